/* The table wait status -> what it means; statuses as the kernel was seen to give them. */
#include <check.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "trace/trace.h"

Suite *suite_trace_wait(void);

#define STOPPED(sig, event) (((event) << 16) | ((sig) << 8) | 0x7f)

static const struct {
	const char *name;
	int status;
	enum rbsp_stop_kind kind;
	int signal;
} rows[] = {
	{ "INTERRUPT done", STOPPED(SIGTRAP, PTRACE_EVENT_STOP), RBSP_STOP_INTERRUPT, 0 },
	{ "a signal on its way is passed on", STOPPED(SIGUSR1, 0), RBSP_STOP_SIGNAL, SIGUSR1 },
	{ "the last real-time signal is passed on", STOPPED(64, 0), RBSP_STOP_SIGNAL, 64 },
	{ "a real SIGTRAP is passed on", STOPPED(SIGTRAP, 0), RBSP_STOP_SIGNAL, SIGTRAP },
	{ "SIGSTOP first arrives as a signal", STOPPED(SIGSTOP, 0), RBSP_STOP_SIGNAL, SIGSTOP },
	{ "then as a group-stop", STOPPED(SIGSTOP, PTRACE_EVENT_STOP), RBSP_STOP_GROUP, 0 },
	{ "group-stop by the terminal", STOPPED(SIGTSTP, PTRACE_EVENT_STOP), RBSP_STOP_GROUP, 0 },
	{ "group-stop by reading from it", STOPPED(SIGTTIN, PTRACE_EVENT_STOP), RBSP_STOP_GROUP,
	  0 },
	{ "group-stop by writing to it", STOPPED(SIGTTOU, PTRACE_EVENT_STOP), RBSP_STOP_GROUP, 0 },
	{ "SIGCONT ends a group-stop with SIGTRAP", STOPPED(SIGTRAP, PTRACE_EVENT_STOP),
	  RBSP_STOP_INTERRUPT, 0 },
	{ "SIGCONT itself is passed on", STOPPED(SIGCONT, 0), RBSP_STOP_SIGNAL, SIGCONT },
	{ "exec event", STOPPED(SIGTRAP, PTRACE_EVENT_EXEC), RBSP_STOP_EVENT, 0 },
	{ "fork event", STOPPED(SIGTRAP, PTRACE_EVENT_FORK), RBSP_STOP_EVENT, 0 },
	{ "exit with a code", 3 << 8, RBSP_STOP_EXITED, 0 },
	{ "exit with code 0", 0, RBSP_STOP_EXITED, 0 },
	{ "killed", SIGKILL, RBSP_STOP_EXITED, 0 },
	{ "killed with a core", SIGSEGV | 0x80, RBSP_STOP_EXITED, 0 },
	{ "continued", 0xffff, RBSP_STOP_NONE, 0 },
};

START_TEST(means)
{
	struct rbsp_stop s = rbsp_stop_of_status(rows[_i].status);

	ck_assert_msg(s.kind == rows[_i].kind && s.signal == rows[_i].signal,
		      "%s: %s with signal %d", rows[_i].name, rbsp_stop_kind_name(s.kind),
		      s.signal);
}
END_TEST

Suite *suite_trace_wait(void)
{
	Suite *s = suite_create("trace_wait");
	TCase *tc = tcase_create("tables");

	tcase_add_loop_test(tc, means, 0, RBSP_COUNT_OF(rows));
	suite_add_tcase(s, tc);
	return s;
}
