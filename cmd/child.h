/* The command of `record -- CMD`: started by us, held until we are ready. */
#ifndef RBSAMPLE_CHILD_H
#define RBSAMPLE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * Between us and the command stands a keeper, a process that does nothing but wait for it: a
 * process that is traced by a thread of its own parent's would be reaped by that thread, and its
 * exit status lost.
 */
struct child {
	pid_t pid; /* the command's, 0: none */
	pid_t keeper;
	int go;    /* pipe to the command: our word to exec; -1: closed */
	int broke; /* pipe from the command: errno of an exec that failed; -1: closed */
	int kept;  /* pipe from the keeper: the command's pid, later its status; -1: closed */
	bool ended;
	int status; /* as waitpid gave it, once ended */
};

/**
 * Fork; the child waits for child_exec before it becomes the command. Call first of all: it
 * inherits our mask, dispositions, limits and descriptors as they are now.
 *
 * @param c        filled
 * @param command  argv of the command
 * @return false: errno says why
 */
bool child_fork(struct child *c, char **command);
/** Let it become the command. Returns 0, or the errno of the exec; then the child is gone. ECHILD:
 * it was killed before. */
int child_exec(struct child *c);
/** Whether it has not ended. */
bool child_lives(struct child *c);
/** Wait for its end. Returns its exit status as a shell tells it: 128 + n for signal n. */
int child_wait(struct child *c);
/** It never became the command: let it go. */
void child_drop(struct child *c);

#endif
