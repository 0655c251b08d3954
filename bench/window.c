/* The sampler's stop window and nothing else, timed from INTERRUPT to resume: the calls of
 * lib/sampler/window.c at the ticks of bare.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench.h"
#include "sampler/process.h"
#include "trace/trace.h"

#define ROOM (16u << 20)

struct times {
	struct stop_figures stop;
	struct figures seize, process_clock; /* outside of the window */
	struct figures bytes;                /* read; thousandfold, so that they print as bytes */
};

static struct rbsp_entry *find(struct rbsp_proc *p, int tid)
{
	struct rbsp_entry **table = NULL, **old = NULL;
	size_t n = 0, n_old = 0;

	if (rbsp_proc_list(p, &table, &n) != RBSP_OK)
		die("cannot list the threads");
	rbsp_proc_install(p, table, n, &old, &n_old);
	rbsp_proc_retire(p, old, n_old);
	for (size_t i = 0; i < p->n; i++) {
		if (p->entry[i]->tid == tid && p->entry[i]->view.slot)
			return p->entry[i];
	}
	die("thread %d is not a Ruby thread", tid);
}

/* @return false: the thread is gone, or a signal ended the run */
static bool one_window(struct rbsp_entry *e, struct rbsp_capture *c, struct times *f)
{
	struct stop_times t = { .wait_before_ns = schedstat_wait_ns(e->schedstat) };
	uint64_t start = rbsp_now_ns();
	struct rbsp_stop stop;
	int status;

	if (rbsp_trace_seize(e->tid) != RBSP_OK)
		die("cannot seize %d", e->tid);
	t.interrupt_ns = rbsp_now_ns();
	if (rbsp_trace_interrupt(e->tid) != RBSP_OK ||
	    wait4(-1, &status, __WALL | __WNOTHREAD, NULL) != e->tid)
		return false;
	t.stopped_ns = rbsp_now_ns();
	stop = rbsp_stop_of_status(status);
	if (stop.kind == RBSP_STOP_EXITED)
		return false;
	t.wait_after_ns = schedstat_wait_ns(e->schedstat);
	t.looked_ns = rbsp_now_ns();
	c->flags = RBSP_CAP_STOPPED;
	if (rbsp_trace_regs(e->tid, &c->regs) != RBSP_OK ||
	    rbsp_view_read(e->proc->live, &e->proc->spec, &e->view, c, ROOM) != RBSP_OK)
		die("the thread's memory cannot be read");
	rbsp_trace_detach(e->tid, stop.signal);
	t.resumed_ns = rbsp_now_ns();
	stop_add(&f->stop, &t);
	figures_add(&f->bytes, (uint64_t)c->size * 1000);
	figures_add(&f->seize, t.interrupt_ns - start);
	start = rbsp_now_ns();
	rbsp_proc_cpu_ns(e->proc);
	figures_add(&f->process_clock, rbsp_now_ns() - start);
	return true;
}

static void print(struct times *t, bool realtime)
{
	printf("{\"realtime\": %s, ", realtime ? "true" : "false");
	stop_print(&t->stop);
	printf(", ");
	figures_print("seize", &t->seize);
	printf(", ");
	figures_print("process_clock", &t->process_clock);
	printf(", ");
	figures_print("bytes", &t->bytes);
	printf("}\n");
	figures_fini(&t->seize);
	figures_fini(&t->process_clock);
	figures_fini(&t->bytes);
}

int main(int argc, char **argv)
{
	struct rbsp_frames *frames = rbsp_frames_new();
	struct rbsp_capture c = { .data = malloc(ROOM) };
	struct rbsp_sampler_options o;
	struct rbsp_proc *p = NULL;
	struct rbsp_err err = { 0 };
	struct times t = { 0 };
	struct rbsp_entry *e;
	bool realtime;
	struct run r;
	int pid;

	if (argc != 6)
		die("usage: window PID HZ SECONDS CPU off|leaf|full   (PID's main thread)");
	if (!frames || !c.data)
		die("out of memory");
	memset(c.data, 0, ROOM);
	pid = (int)number_of(argv[1], "PID");
	rbsp_sampler_options_init(&o);
	o.native = native_mode_of(argv[5]);
	if (rbsp_proc_open(pid, &o, frames, &p, &err) != RBSP_OK)
		die("%s", err.text);
	e = find(p, pid);
	realtime = place_self((int)number_of(argv[4], "CPU"));
	catch_signals();
	run_init(&r, number_of(argv[2], "HZ"), number_of(argv[3], "SECONDS"));
	while (run_next(&r) && one_window(e, &c, &t))
		;
	print(&t, realtime);
	rbsp_proc_free(p);
	rbsp_frames_free(frames);
	free(c.data);
	return 0;
}
