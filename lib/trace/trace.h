/* Stopping and releasing single threads with ptrace: what a wait status means (pure), and the
 * calls. */
#ifndef RBSP_TRACE_H
#define RBSP_TRACE_H

#include "trace/regs.h"

/** What a wait status of a seized thread means. */
enum rbsp_stop_kind {
	RBSP_STOP_NONE,      /* nothing to see: a status that asks for no action */
	RBSP_STOP_INTERRUPT, /* PTRACE_EVENT_STOP with SIGTRAP: our INTERRUPT (or the end of a
				group-stop) */
	RBSP_STOP_GROUP,  /* PTRACE_EVENT_STOP with a stop signal: the user stopped the process */
	RBSP_STOP_SIGNAL, /* signal-delivery-stop: the signal must be passed on */
	RBSP_STOP_EVENT,  /* another PTRACE_EVENT_*: fork, exec, clone ... */
	RBSP_STOP_EXITED, /* the thread ended */
};

struct rbsp_stop {
	enum rbsp_stop_kind kind;
	int signal; /* RBSP_STOP_SIGNAL: to pass on when it is released */
};

/** Pure: from waitpid's status of a thread seized with PTRACE_SEIZE. Every value is covered. */
struct rbsp_stop rbsp_stop_of_status(int status);

/** A short name of a kind, for messages and tests. */
const char *rbsp_stop_kind_name(enum rbsp_stop_kind kind);

/** PTRACE_SEIZE without options. @return RBSP_OK; RBSP_E_GONE; RBSP_E_TRACED (EPERM: somebody
 * else's, a zombie, or not permitted) */
enum rbsp_status rbsp_trace_seize(int tid);
enum rbsp_status rbsp_trace_interrupt(int tid);
/** Registers of a stopped thread. */
enum rbsp_status rbsp_trace_regs(int tid, struct rbsp_regs *out);
/** PTRACE_DETACH, passing a signal on (0: none). ESRCH is no error: the thread is gone. */
void rbsp_trace_detach(int tid, int signal);

#endif
