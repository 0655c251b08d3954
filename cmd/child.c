/* The command of `record -- CMD`. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static ssize_t read_all(int fd, void *buf, size_t n)
{
	ssize_t got;

	do
		got = read(fd, buf, n);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Between fork and exec: nothing here but system calls. */
static _Noreturn void become(char **command, int go, int broke)
{
	char word;
	int why;

	if (read_all(go, &word, 1) != 1)
		_exit(127); /* rbsample gave up, or is gone */
	execvp(command[0], command);
	why = errno;
	if (write(broke, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

bool child_fork(struct child *c, char **command)
{
	int go[2] = { -1, -1 }, broke[2] = { -1, -1 };
	int saved;

	*c = (struct child){ .go = -1, .broke = -1 };
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(broke, O_CLOEXEC) != 0)
		goto failed;
	c->pid = fork();
	if (c->pid < 0)
		goto failed;
	if (c->pid == 0) {
		close(go[1]); /* else it would wait for itself when we die */
		close(broke[0]);
		become(command, go[0], broke[1]);
	}
	close(go[0]);
	close(broke[1]);
	c->go = go[1];
	c->broke = broke[0];
	return true;
failed:
	saved = errno;
	c->pid = 0;
	for (int i = 0; i < 2; i++) {
		close_end(&go[i]);
		close_end(&broke[i]);
	}
	errno = saved;
	return false;
}

int child_exec(struct child *c)
{
	int why = 0;

	if (write(c->go, "x", 1) != 1)
		why = errno == EPIPE ? ECHILD : errno; /* killed before its exec */
	close_end(&c->go);
	if (!why && read_all(c->broke, &why, sizeof(why)) != (ssize_t)sizeof(why))
		why = 0; /* closed by the exec */
	close_end(&c->broke);
	if (why)
		child_wait(c);
	return why;
}

bool child_lives(const struct child *c)
{
	siginfo_t si = { 0 };

	if (c->reaped)
		return false;
	if (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) != 0)
		return errno == EINTR;
	return si.si_pid == 0;
}

int child_wait(struct child *c)
{
	while (!c->reaped) {
		pid_t pid = waitpid(c->pid, &c->status, 0);

		if (pid == c->pid || (pid < 0 && errno != EINTR))
			c->reaped = true;
	}
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void child_drop(struct child *c)
{
	if (!c->pid)
		return;
	close_end(&c->go);
	close_end(&c->broke);
	child_wait(c);
}
