/* What ends a run from outside, and the progress line. */
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

static _Atomic(struct rbsp_sampler *) run;
static pid_t passed_to; /* 0: signals are for us */
static atomic_bool asked, unread;

static void on_signal(int sig, siginfo_t *si, void *context)
{
	struct rbsp_sampler *s = atomic_load(&run);
	int saved = errno;

	(void)context;
	if (passed_to) {
		/* One that the terminal sent has reached the command as well. */
		if (si->si_code <= 0)
			kill(passed_to, sig);
		errno = saved;
		return;
	}
	for (size_t i = 0; i < N_SIGNALS; i++)
		signal(signals[i], SIG_DFL);
	atomic_store(&asked, true);
	if (s)
		rbsp_sampler_stop(s);
	errno = saved;
}

void stop_on_signals(struct rbsp_sampler *s, pid_t child)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t set;

	atomic_store(&run, s);
	passed_to = child;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is seen as EFBIG */
	sigemptyset(&act.sa_mask);
	sigemptyset(&set);
	for (size_t i = 0; i < N_SIGNALS; i++) {
		struct sigaction old;

		sigaddset(&set, signals[i]);
		/* nohup's HUP stays ignored */
		if (signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &old) != 0 ||
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &act, NULL);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void stop_forget(void)
{
	atomic_store(&run, NULL);
}

bool stop_asked(void)
{
	return atomic_load(&asked);
}

bool stop_unread(void)
{
	return atomic_load(&unread);
}

struct watch {
	pthread_t thread;
	struct rbsp_sampler *s;
	int fd;
	bool progress;
	int end[2]; /* a pipe: closed at the end */
};

static void show(const struct rbsp_sampler *s)
{
	struct rbsp_sampler_stats t;
	uint64_t lost;
	char line[160];

	rbsp_sampler_stats(s, &t);
	lost = t.lost_gone + t.lost_deadline + t.lost_unreadable + t.lost_inconsistent +
	       t.lost_traced + t.lost_behind;
	snprintf(line, sizeof(line),
		 "%.0f s, %" PRIu64 " samples, %" PRIu64 " late, %" PRIu64
		 " lost, stop %.0f us mean %.0f us max",
		 t.seconds, t.samples, t.late, lost, t.stop_mean_us, t.stop_max_us);
	say_progress(line);
}

static void *watch_run(void *arg)
{
	struct watch *w = arg;
	struct pollfd fds[2] = { { .fd = w->end[0] }, { .fd = w->fd } };

	for (;;) {
		int n = poll(fds, 2, 1000);

		if (n < 0 && errno != EINTR)
			return NULL;
		if (n > 0 && fds[0].revents)
			return NULL;
		if (n > 0 && fds[1].revents) {
			atomic_store(&unread, true);
			rbsp_sampler_stop(w->s);
			fds[1].fd = -1;
		}
		if (stop_asked() || stop_unread()) /* it may have come before the run began */
			rbsp_sampler_stop(w->s);
		if (w->progress)
			show(w->s);
	}
}

struct watch *watch_start(struct rbsp_sampler *s, int fd, bool progress)
{
	struct watch *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int failed;

	if (!w || pipe2(w->end, O_CLOEXEC) != 0) {
		free(w);
		return NULL;
	}
	w->s = s;
	w->fd = fd;
	w->progress = progress;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	failed = pthread_create(&w->thread, NULL, watch_run, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!failed)
		return w;
	close(w->end[0]);
	close(w->end[1]);
	free(w);
	return NULL;
}

void watch_end(struct watch *w)
{
	if (!w)
		return;
	close(w->end[1]);
	pthread_join(w->thread, NULL);
	close(w->end[0]);
	if (w->progress)
		say_progress("");
	free(w);
}
