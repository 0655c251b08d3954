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

/* INTERRUPT, wait, CONT under a kept attachment, timed. */
static void time_stops(int tid, struct run *r, struct figures *window, struct figures *to_stop)
{
	int signal = 0;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
		die("cannot seize %d: %s", tid, strerror(errno));
	while (run_next(r)) {
		uint64_t start = rbsp_now_ns(), stopped;

		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || !wait_for(tid, &signal))
			return;
		stopped = rbsp_now_ns();
		ptrace(PTRACE_CONT, tid, 0, (long)signal);
		figures_add(window, rbsp_now_ns() - start);
		figures_add(to_stop, stopped - start);
	}
}

/* What a sampler that is attached only while it looks must do, and no more. */
static void sample(int tid, struct run *r, struct figures *window)
{
	struct user_regs_struct regs;
	struct iovec io = { &regs, sizeof(regs) };
	int signal = 0;

	while (run_next(r)) {
		uint64_t start;

		if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
			die("cannot seize %d: %s", tid, strerror(errno));
		start = rbsp_now_ns();
		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || !wait_for(tid, &signal))
			return;
		ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io);
		ptrace(PTRACE_DETACH, tid, 0, (long)signal);
		figures_add(window, rbsp_now_ns() - start);
	}
}

int main(int argc, char **argv)
{
	struct figures window = { 0 }, to_stop = { 0 };
	bool stops, realtime;
	struct run r;
	int tid;

	if (argc != 6 || (strcmp(argv[1], "stop") != 0 && strcmp(argv[1], "sample") != 0))
		die("usage: bare stop|sample TID HZ SECONDS CPU   (CPU -1: not pinned, normal "
		    "priority)");
	stops = strcmp(argv[1], "stop") == 0;
	tid = (int)number_of(argv[2], "TID");
	realtime = place_self((int)number_of(argv[5], "CPU"));
	catch_signals();
	run_init(&r, number_of(argv[3], "HZ"), number_of(argv[4], "SECONDS"));
	if (stops)
		time_stops(tid, &r, &window, &to_stop);
	else
		sample(tid, &r, &window);
	printf("{\"realtime\": %s, ", realtime ? "true" : "false");
	figures_print("window", &window);
	printf(", ");
	figures_print("to_stop", &to_stop);
	printf("}\n");
	figures_fini(&window);
	figures_fini(&to_stop);
	return 0;
}
