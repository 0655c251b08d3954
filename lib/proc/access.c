/* Why a look into a process is refused, and what to do about it: the kernel's rules of ptrace(2),
 * in words. */
#include "proc/proc.h"

#include <errno.h>

#define CAP_SYS_PTRACE_BIT (1ull << 19)

static bool may_trace_all(const struct rbsp_access *a)
{
	return a->self.cap_eff & CAP_SYS_PTRACE_BIT;
}

static bool same_id(uint32_t own, const uint32_t target[4])
{
	return own == target[0] && own == target[1] && own == target[2];
}

static bool always(const struct rbsp_access *a)
{
	(void)a;
	return true;
}

static bool yama_forbids_all(const struct rbsp_access *a)
{
	return a->yama >= 3;
}

static bool other_userns(const struct rbsp_access *a)
{
	return !a->same_userns;
}

static bool security_module(const struct rbsp_access *a)
{
	return may_trace_all(a);
}

static bool other_ids(const struct rbsp_access *a)
{
	return !same_id(a->self.uid[0], a->target.uid) || !same_id(a->self.gid[0], a->target.gid);
}

/* A container's root: being root is no remedy for it. */
static bool bare_root(const struct rbsp_access *a)
{
	return a->self.uid[1] == 0 &&
	       (other_ids(a) || !a->dumpable || (a->target.cap_prm & ~a->self.cap_prm));
}

static bool other_user(const struct rbsp_access *a)
{
	return !same_id(a->self.uid[0], a->target.uid);
}

static bool other_group(const struct rbsp_access *a)
{
	return !same_id(a->self.gid[0], a->target.gid);
}

static bool more_capabilities(const struct rbsp_access *a)
{
	return a->target.cap_prm & ~a->self.cap_prm;
}

static bool not_dumpable(const struct rbsp_access *a)
{
	return !a->dumpable;
}

static bool yama_needs_root(const struct rbsp_access *a)
{
	return a->yama == 2;
}

static bool yama_wants_parent(const struct rbsp_access *a)
{
	return a->yama == 1 && !a->descendant;
}

/* The first row that holds is the reason: from what no privilege helps against to what the same
 * user can cure. */
static const struct {
	bool (*holds)(const struct rbsp_access *a);
	const char *text;
} reasons[] = {
	{ yama_forbids_all,
	  "kernel.yama.ptrace_scope is 3, nobody may attach to any process: set a lower value at boot and reboot" },
	{ other_userns,
	  "it is in another user namespace (a container?): run rbsample as root outside of it, or inside as its user" },
	{ security_module,
	  "refused although rbsample has CAP_SYS_PTRACE, so by a security module or seccomp filter: allow ptrace there "
	  "(SELinux: deny_ptrace off; containers: a seccomp and AppArmor profile with ptrace)" },
	{ bare_root,
	  "rbsample is root but lacks CAP_SYS_PTRACE (in a container?): start it with that capability "
	  "(docker run --cap-add=SYS_PTRACE)" },
	{ other_user, "it runs as another user: run rbsample as root or as that user" },
	{ other_group,
	  "its group ids differ from rbsample's: run rbsample as root or with the same groups" },
	{ more_capabilities,
	  "it has capabilities that rbsample has not: run rbsample as root or with CAP_SYS_PTRACE" },
	{ not_dumpable,
	  "it is not dumpable (it changed its user, was executed from a file that cannot be read, or asked for it with "
	  "prctl): run rbsample as root or with CAP_SYS_PTRACE" },
	{ yama_needs_root,
	  "kernel.yama.ptrace_scope is 2, only CAP_SYS_PTRACE may attach: run rbsample as root, or set "
	  "sysctl kernel.yama.ptrace_scope=0" },
	{ yama_wants_parent,
	  "kernel.yama.ptrace_scope is 1, only a process's parents may attach: run rbsample as root, let it start the "
	  "program (rbsample record -- COMMAND), or set sysctl kernel.yama.ptrace_scope=0" },
	{ always,
	  "the kernel refuses it for a reason that cannot be seen from here (a security module, a seccomp filter): "
	  "run rbsample as root" },
};

enum rbsp_status rbsp_access_explain(const struct rbsp_access *a, const char *tracer_command,
				     struct rbsp_err *err)
{
	const char *tracer = tracer_command && *tracer_command ? tracer_command : "another process";
	size_t i = 0;

	errno = 0; /* the story says more than errno's text */
	if (a->kthread)
		return rbsp_fail(err, RBSP_E_NOT_RUBY,
				 "it is a kernel thread: give the pid of a Ruby program");
	if (a->target.tracer_pid > 0)
		return rbsp_fail(err, RBSP_E_TRACED,
				 "it is already traced by %s (pid %d): end that tracer or let it "
				 "detach, then try again",
				 tracer, a->target.tracer_pid);
	while (!reasons[i].holds(a))
		i++;
	if (reasons[i].holds == other_user)
		return rbsp_fail(err, RBSP_E_DENIED, "%s (it runs as user %u, rbsample as user %u)",
				 reasons[i].text, a->target.uid[1], a->self.uid[0]);
	return rbsp_fail(err, RBSP_E_DENIED, "%s", reasons[i].text);
}
