/* The command of `record -- CMD`: started by us, held until we are ready. */
#ifndef RBSAMPLE_CHILD_H
#define RBSAMPLE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;     /* 0: none */
	int go, broke; /* pipes: our word to exec; errno of an exec that failed. -1: closed */
	bool reaped;
	int status; /* as waitpid gave it, once reaped */
};

/**
 * Fork; the child waits for child_exec before it becomes the command. Call first of all: it
 * inherits our mask, dispositions, limits and descriptors as they are now.
 *
 * @return false: errno says why
 */
bool child_fork(struct child *c, char **command);
/** Let it become the command. Returns 0, or the errno of the exec; then the child is gone. */
int child_exec(struct child *c);
/** Whether it has not ended; does not reap it. */
bool child_lives(const struct child *c);
/** Wait for its end. Returns its exit status as a shell tells it: 128 + n for signal n. */
int child_wait(struct child *c);
/** It never became the command: let it go. */
void child_drop(struct child *c);

#endif
