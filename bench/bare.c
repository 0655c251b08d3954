/* The least that a sampler can do, for comparison: stop a thread at each tick, and let it run on.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* Wait for the stop. @return whether it came: the thread may have ended, or a signal ended the run
 */
static bool wait_for(int tid, int *signal)
{
	int status;

	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return false;
	*signal = status >> 16 ? 0 : WSTOPSIG(status);
	return true;
}

/*
 * Stop the thread, look or not, let it run on by @p resume (PTRACE_CONT or PTRACE_DETACH). @return
 * false: it is gone, or a signal ended the run
 */
static bool stop_once(int tid, int schedstat, bool look, int resume, struct stop_figures *f)
{
	struct stop_times t = { .wait_before_ns =
					schedstat < 0 ? 0 : schedstat_wait_ns(schedstat) };
	struct user_regs_struct regs;
	struct iovec io = { &regs, sizeof(regs) };
	int signal = 0;

	t.interrupt_ns = rbsp_now_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || !wait_for(tid, &signal))
		return false;
	t.stopped_ns = t.looked_ns = rbsp_now_ns();
	if (schedstat >= 0) {
		t.wait_after_ns = schedstat_wait_ns(schedstat);
		t.looked_ns = rbsp_now_ns();
	}
	if (look)
		ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io);
	ptrace(resume, tid, 0, (long)signal);
	t.resumed_ns = rbsp_now_ns();
	stop_add(f, &t);
	return true;
}

static void seize(int tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
		die("cannot seize %d: %s", tid, strerror(errno));
}

/* INTERRUPT, wait, CONT under a kept attachment. */
static void time_stops(int tid, struct run *r, struct stop_figures *f)
{
	int schedstat = schedstat_open(tid);

	seize(tid);
	while (run_next(r) && stop_once(tid, schedstat, false, PTRACE_CONT, f))
		;
	close(schedstat);
}

/* What a sampler that is attached only while it looks must do, and no more. */
static void sample(int tid, struct run *r, struct stop_figures *f)
{
	do {
		if (!run_next(r))
			return;
		seize(tid);
	} while (stop_once(tid, -1, true, PTRACE_DETACH, f));
}

int main(int argc, char **argv)
{
	struct stop_figures f = { 0 };
	bool realtime;
	struct run r;
	int tid;

	if (argc != 6 || (strcmp(argv[1], "stop") != 0 && strcmp(argv[1], "sample") != 0))
		die("usage: bare stop|sample TID HZ SECONDS CPU   (CPU -1: not pinned, normal "
		    "priority)");
	tid = (int)number_of(argv[2], "TID");
	realtime = place_self((int)number_of(argv[5], "CPU"));
	catch_signals();
	run_init(&r, number_of(argv[3], "HZ"), number_of(argv[4], "SECONDS"));
	if (strcmp(argv[1], "stop") == 0)
		time_stops(tid, &r, &f);
	else
		sample(tid, &r, &f);
	printf("{\"realtime\": %s, ", realtime ? "true" : "false");
	stop_print(&f);
	printf("}\n");
	return 0;
}
