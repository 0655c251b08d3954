/* The sampler's stop window and nothing else, timed from INTERRUPT to resume: the calls of
 * lib/sampler/window.c at the ticks of bare.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "bench.h"
#include "sampler/process.h"
#include "trace/trace.h"

#define ROOM (16u << 20)

struct times {
	struct figures window, to_stop, reads, resume; /* without the schedstat read */
	struct figures with_schedstat;                 /* the whole window, with it */
	struct figures seize, process_clock;           /* outside of the window */
	struct figures bytes; /* read, in thousandths so that they print as bytes */
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
static bool one_window(struct rbsp_entry *e, struct rbsp_capture *c, bool schedstat,
		       struct times *t)
{
	uint64_t seize = rbsp_now_ns(), start, stopped, read, end;
	char text[96];
	struct rbsp_stop stop;
	int status;

	if (rbsp_trace_seize(e->tid) != RBSP_OK)
		die("cannot seize %d", e->tid);
	start = rbsp_now_ns();
	if (rbsp_trace_interrupt(e->tid) != RBSP_OK ||
	    wait4(-1, &status, __WALL | __WNOTHREAD, NULL) != e->tid)
		return false;
	stop = rbsp_stop_of_status(status);
	if (stop.kind == RBSP_STOP_EXITED)
		return false;
	stopped = rbsp_now_ns();
	c->flags = RBSP_CAP_STOPPED;
	if (rbsp_trace_regs(e->tid, &c->regs) != RBSP_OK ||
	    rbsp_view_read(e->proc->live, &e->proc->spec, &e->view, c, ROOM) != RBSP_OK)
		die("the thread's memory cannot be read");
	if (schedstat && pread(e->schedstat, text, sizeof(text) - 1, 0) <= 0)
		die("schedstat cannot be read");
	read = rbsp_now_ns();
	rbsp_trace_detach(e->tid, stop.signal);
	end = rbsp_now_ns();
	if (schedstat) {
		figures_add(&t->with_schedstat, end - start);
	} else {
		figures_add(&t->window, end - start);
		figures_add(&t->to_stop, stopped - start);
		figures_add(&t->reads, read - stopped);
		figures_add(&t->resume, end - read);
		figures_add(&t->bytes, (uint64_t)c->size * 1000);
	}
	figures_add(&t->seize, start - seize);
	start = rbsp_now_ns();
	rbsp_proc_cpu_ns(e->proc);
	figures_add(&t->process_clock, rbsp_now_ns() - start);
	return true;
}

static void print(struct times *t, bool realtime)
{
	const struct {
		const char *name;
		struct figures *f;
	} row[] = {
		{ "window", &t->window },
		{ "to_stop", &t->to_stop },
		{ "reads", &t->reads },
		{ "resume", &t->resume },
		{ "with_schedstat", &t->with_schedstat },
		{ "seize", &t->seize },
		{ "process_clock", &t->process_clock },
		{ "bytes", &t->bytes },
	};

	printf("{\"realtime\": %s", realtime ? "true" : "false");
	for (size_t i = 0; i < RBSP_COUNT_OF(row); i++) {
		printf(", ");
		figures_print(row[i].name, row[i].f);
		figures_fini(row[i].f);
	}
	printf("}\n");
}

static enum rbsp_native_mode mode_of(const char *name)
{
	if (strcmp(name, "off") == 0)
		return RBSP_NATIVE_OFF;
	if (strcmp(name, "leaf") == 0)
		return RBSP_NATIVE_LEAF;
	if (strcmp(name, "full") == 0)
		return RBSP_NATIVE_FULL;
	die("'%s' is not one of off, leaf, full", name);
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
	o.native = mode_of(argv[5]);
	if (rbsp_proc_open(pid, &o, frames, &p, &err) != RBSP_OK)
		die("%s", err.text);
	e = find(p, pid);
	realtime = place_self((int)number_of(argv[4], "CPU"));
	catch_signals();
	run_init(&r, number_of(argv[2], "HZ"), number_of(argv[3], "SECONDS"));
	while (run_next(&r) && one_window(e, &c, r.i & 1, &t))
		;
	print(&t, realtime);
	rbsp_proc_free(p);
	rbsp_frames_free(frames);
	free(c.data);
	return 0;
}
