/* Tests of what is said when access to a process is refused. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "proc/proc.h"

#define PTRACE_CAP (UINT64_C(1) << 19)

/* User 1000 looks at its own ordinary process unless the row says otherwise. */
struct refusal {
	const char *name;
	unsigned self_uid, target_uid, self_gid;
	uint64_t self_cap, target_cap;
	int tracer, yama;
	bool not_dumpable, other_userns, kthread, descendant;
	const char *command;
	enum rbsp_status st;
	const char *cause, *remedy; /* words of the message */
};

static const struct refusal refusals[] = {
	{ .name = "a tracer is named",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .tracer = 77,
	  .command = "gdb",
	  .st = RBSP_E_TRACED,
	  .cause = "traced by gdb (pid 77)",
	  .remedy = "end that tracer" },
	{ .name = "a tracer without a name",
	  .self_uid = 0,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .tracer = 77,
	  .self_cap = PTRACE_CAP,
	  .st = RBSP_E_TRACED,
	  .cause = "another process (pid 77)",
	  .remedy = "detach" },
	{ .name = "a kernel thread",
	  .self_uid = 0,
	  .target_uid = 0,
	  .self_gid = 9,
	  .kthread = true,
	  .self_cap = PTRACE_CAP,
	  .st = RBSP_E_NOT_RUBY,
	  .cause = "kernel thread",
	  .remedy = "give the pid" },
	{ .name = "Yama 3 stops root too",
	  .self_uid = 0,
	  .target_uid = 0,
	  .self_gid = 9,
	  .yama = 3,
	  .self_cap = PTRACE_CAP,
	  .st = RBSP_E_DENIED,
	  .cause = "ptrace_scope is 3",
	  .remedy = "reboot" },
	{ .name = "Yama 2",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .yama = 2,
	  .st = RBSP_E_DENIED,
	  .cause = "ptrace_scope is 2",
	  .remedy = "as root" },
	{ .name = "Yama 1",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .yama = 1,
	  .st = RBSP_E_DENIED,
	  .cause = "ptrace_scope is 1",
	  .remedy = "rbsample record -- COMMAND" },
	{ .name = "Yama 1 lets parents in: something else",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .yama = 1,
	  .descendant = true,
	  .st = RBSP_E_DENIED,
	  .cause = "cannot be seen",
	  .remedy = "as root" },
	{ .name = "another user",
	  .self_uid = 1000,
	  .target_uid = 33,
	  .self_gid = 9,
	  .yama = 1,
	  .st = RBSP_E_DENIED,
	  .cause = "it runs as user 33, rbsample as user 1000",
	  .remedy = "as root or as that user" },
	{ .name = "another group",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 8,
	  .st = RBSP_E_DENIED,
	  .cause = "group",
	  .remedy = "same groups" },
	{ .name = "more capabilities than we",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .target_cap = 1 << 10,
	  .st = RBSP_E_DENIED,
	  .cause = "capabilities that rbsample has not",
	  .remedy = "CAP_SYS_PTRACE" },
	{ .name = "not dumpable",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .not_dumpable = true,
	  .yama = 1,
	  .st = RBSP_E_DENIED,
	  .cause = "not dumpable",
	  .remedy = "as root" },
	{ .name = "a container's root",
	  .self_uid = 0,
	  .target_uid = 33,
	  .self_gid = 9,
	  .st = RBSP_E_DENIED,
	  .cause = "lacks CAP_SYS_PTRACE",
	  .remedy = "--cap-add=SYS_PTRACE" },
	{ .name = "another user namespace",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .other_userns = true,
	  .st = RBSP_E_DENIED,
	  .cause = "another user namespace",
	  .remedy = "as root outside" },
	{ .name = "the capability is there: a security module",
	  .self_uid = 0,
	  .target_uid = 33,
	  .self_gid = 9,
	  .self_cap = PTRACE_CAP,
	  .st = RBSP_E_DENIED,
	  .cause = "security module",
	  .remedy = "allow ptrace" },
	{ .name = "nothing visible",
	  .self_uid = 1000,
	  .target_uid = 1000,
	  .self_gid = 9,
	  .yama = -1,
	  .st = RBSP_E_DENIED,
	  .cause = "cannot be seen",
	  .remedy = "as root" },
};

START_TEST(a_refusal_names_cause_and_remedy)
{
	const struct refusal *r = &refusals[_i];
	struct rbsp_access a = { .yama = r->yama,
				 .dumpable = !r->not_dumpable,
				 .same_userns = !r->other_userns,
				 .kthread = r->kthread,
				 .descendant = r->descendant };
	struct rbsp_err err;

	for (int i = 0; i < 4; i++) {
		a.self.uid[i] = r->self_uid;
		a.target.uid[i] = r->target_uid;
		a.self.gid[i] = r->self_gid;
		a.target.gid[i] = 9;
	}
	a.self.cap_eff = a.self.cap_prm = r->self_cap;
	a.target.cap_eff = a.target.cap_prm = r->target_cap;
	a.target.tracer_pid = r->tracer;
	errno = EPERM;
	ck_assert_msg(rbsp_access_explain(&a, r->command, &err) == r->st, "%s", r->name);
	ck_assert_msg(err.status == r->st, "%s", r->name);
	ck_assert_msg(strstr(err.text, r->cause) && strstr(err.text, r->remedy), "%s: %s", r->name,
		      err.text);
	ck_assert_msg(strlen(err.text) < sizeof(err.text) - 1 && !strstr(err.text, "not permitted"),
		      "%s: %s", r->name, err.text);
}
END_TEST

Suite *suite_proc_access(void)
{
	Suite *s = suite_create("proc_access");
	TCase *tc = tcase_create("access");

	tcase_add_loop_test(tc, a_refusal_names_cause_and_remedy, 0, RBSP_COUNT_OF(refusals));
	suite_add_tcase(s, tc);
	return s;
}
