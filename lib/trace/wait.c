/* What a wait status of a seized thread means: a pure function. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "trace/trace.h"

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* ptrace(2), "Stopped states": with PTRACE_SEIZE status >> 16 is the event, 0 for a
 * signal-delivery-stop. */
struct rbsp_stop rbsp_stop_of_status(int status)
{
	int event = status >> 16;

	if (WIFEXITED(status) || WIFSIGNALED(status))
		return (struct rbsp_stop){ RBSP_STOP_EXITED, 0 };
	if (!WIFSTOPPED(status))
		return (struct rbsp_stop){ RBSP_STOP_NONE, 0 };
	if (event == 0)
		return (struct rbsp_stop){ RBSP_STOP_SIGNAL, WSTOPSIG(status) };
	if (event != PTRACE_EVENT_STOP)
		return (struct rbsp_stop){ RBSP_STOP_EVENT, 0 };
	if (is_stop_signal(WSTOPSIG(status)))
		return (struct rbsp_stop){ RBSP_STOP_GROUP, 0 };
	return (struct rbsp_stop){ RBSP_STOP_INTERRUPT, 0 };
}

const char *rbsp_stop_kind_name(enum rbsp_stop_kind kind)
{
	static const char *const names[] = {
		[RBSP_STOP_NONE] = "none",        [RBSP_STOP_INTERRUPT] = "interrupt",
		[RBSP_STOP_GROUP] = "group-stop", [RBSP_STOP_SIGNAL] = "signal",
		[RBSP_STOP_EVENT] = "event",      [RBSP_STOP_EXITED] = "exited",
	};

	return names[kind];
}
