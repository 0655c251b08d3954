/* The command of `record -- CMD`, and its keeper. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* All of @p n bytes; less is written at once or not at all. */
static bool read_all(int fd, void *buf, size_t n)
{
	ssize_t got;

	do
		got = read(fd, buf, n);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)n;
}

/* Between fork and exec: nothing here but system calls. */
static _Noreturn void become(char **command, int go, int broke)
{
	char word;
	int why;

	if (!read_all(go, &word, 1))
		_exit(127); /* rbsample gave up, or is gone */
	execvp(command[0], command);
	why = errno;
	if (write(broke, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

struct pipes {
	int go[2], broke[2], kept[2];
};

/* What the terminal sends to all of us is for the command. */
static void ignore_signals(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

static _Noreturn void keep(char **command, const struct pipes *p)
{
	int word[2] = { 0, 0 }, status;
	pid_t pid, got;

	close(p->go[1]); /* else the command would wait for itself when rbsample dies */
	close(p->broke[0]);
	close(p->kept[0]);
	pid = fork();
	if (pid == 0) {
		close(p->kept[1]);
		become(command, p->go[0], p->broke[1]);
	}
	ignore_signals();
	word[0] = pid;
	word[1] = errno;
	if (write(p->kept[1], word, sizeof(word)) < 0 || pid < 0)
		_exit(126);
	for (int fd = 0; fd < p->kept[1]; fd++) /* the ends of others' pipes are not ours to hold */
		close(fd);
	close_range((unsigned)p->kept[1] + 1, ~0U, 0);
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	_exit(got == pid && write(p->kept[1], &status, sizeof(status)) == (ssize_t)sizeof(status)
		      ? 0
		      : 126);
}

static void close_pipes(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		close_end(&p->go[i]);
		close_end(&p->broke[i]);
		close_end(&p->kept[i]);
	}
}

bool child_fork(struct child *c, char **command)
{
	struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int word[2] = { -1, EAGAIN };

	*c = (struct child){ .go = -1, .broke = -1, .kept = -1 };
	if (pipe2(p.go, O_CLOEXEC) != 0 || pipe2(p.broke, O_CLOEXEC) != 0 ||
	    pipe2(p.kept, O_CLOEXEC) != 0)
		goto failed;
	c->keeper = fork();
	if (c->keeper < 0)
		goto failed;
	if (c->keeper == 0)
		keep(command, &p);
	close_end(&p.kept[1]);
	if (!read_all(p.kept[0], word, sizeof(word)) || word[0] < 0) {
		waitpid(c->keeper, NULL, 0);
		errno = word[1];
		goto failed;
	}
	close(p.go[0]);
	close(p.broke[1]);
	c->pid = word[0];
	c->go = p.go[1];
	c->broke = p.broke[0];
	c->kept = p.kept[0];
	return true;
failed:
	word[1] = errno;
	close_pipes(&p);
	errno = word[1];
	return false;
}

int child_exec(struct child *c)
{
	int why = 0;

	if (write(c->go, "x", 1) != 1)
		why = errno == EPIPE ? ECHILD : errno;
	close_end(&c->go);
	if (!why && !read_all(c->broke, &why, sizeof(why)))
		why = 0; /* closed by the exec */
	close_end(&c->broke);
	if (why)
		child_wait(c);
	return why;
}

bool child_lives(struct child *c)
{
	struct pollfd kept = { .fd = c->kept, .events = POLLIN };

	return !c->ended && poll(&kept, 1, 0) <= 0;
}

int child_wait(struct child *c)
{
	if (!c->ended) {
		if (!read_all(c->kept, &c->status, sizeof(c->status)))
			c->status = 126 << 8; /* somebody killed the keeper */
		c->ended = true;
		close_end(&c->kept);
		while (waitpid(c->keeper, NULL, 0) < 0 && errno == EINTR)
			;
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
