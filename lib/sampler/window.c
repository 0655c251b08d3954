/* The stop window: from the first INTERRUPT of a tick to the resume of its last thread. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/core.h"
#include "trace/trace.h"

/* What was taken while the thread stood still; everything else about it is worked out after the
 * resume. */
struct taken {
	char schedstat[96];
	ssize_t n_schedstat;
	uint64_t resumed_ns;
	enum rbsp_status st;
};

/*
 * One thread is stopped here, and only here: registers, its memory by two vectored reads, its
 * schedstat, and it runs on. Nothing is opened, allocated, logged, parsed or unwound before the
 * release.
 */
static struct taken capture_and_release(struct rbsp_due *d, struct rbsp_event *ev, size_t room,
					int signal)
{
	struct rbsp_entry *e = d->entry;
	struct taken k = { .st = RBSP_E_FULL };

	if (ev)
		k.st = rbsp_trace_regs(e->tid, &ev->cap.regs);
	if (k.st == RBSP_OK)
		k.st = rbsp_view_read(e->proc->live, &e->proc->spec, &e->view, &ev->cap, room);
	k.n_schedstat = pread(e->schedstat, k.schedstat, sizeof(k.schedstat) - 1, 0);
	rbsp_trace_detach(e->tid, signal);
	k.resumed_ns = rbsp_now_ns();
	return k;
}

static void count_window(struct rbsp_sampler *s, uint64_t ns)
{
	uint64_t us = ns / 1000;

	rbsp_count(&s->counts.stops, 1);
	rbsp_count(&s->counts.stop_ns, ns);
	if (ns > atomic_load_explicit(&s->counts.stop_max_ns, memory_order_relaxed))
		atomic_store_explicit(&s->counts.stop_max_ns, ns, memory_order_relaxed);
	rbsp_count(&s->counts.stop_bucket[us < RBSP_STOP_BUCKETS ? us : RBSP_STOP_BUCKETS - 1], 1);
}

/*
 * A window's length leaves out what the thread waited for a cpu meanwhile. That wait began at the
 * tick, which put it off its cpu, so its part before the INTERRUPT is not taken off. From its stop
 * to its resume it waits for us alone.
 */
static uint64_t window_ns(const struct rbsp_due *d, const struct rbsp_schedstat *now,
			  uint64_t tick_ns, uint64_t stopped_ns, uint64_t resumed_ns)
{
	uint64_t all = resumed_ns - d->interrupt_ns, least = resumed_ns - stopped_ns;
	uint64_t before = d->interrupt_ns - tick_ns, waited = now->wait_ns - d->before.wait_ns;
	uint64_t left_out = waited > before ? waited - before : 0;

	return all > left_out + least ? all - left_out : least;
}

/* A stop that has come. */
struct arrival {
	uint64_t tick_ns, stopped_ns;
	int signal; /* to pass on at the resume */
	bool exact;
};

static void take(struct rbsp_tracer *t, struct rbsp_due *d, const struct arrival *a)
{
	struct rbsp_sampler *s = t->s;
	size_t room = 0;
	struct rbsp_event *ev = rbsp_due_event(t, d, a->tick_ns, &room);
	struct rbsp_schedstat now = d->before;
	struct taken k;
	uint64_t ns;

	if (ev)
		ev->cap.flags = RBSP_CAP_STOPPED | (a->exact ? RBSP_CAP_EXACT : 0);
	k = capture_and_release(d, ev, room, a->signal);
	if (k.n_schedstat > 0)
		rbsp_schedstat_parse(k.schedstat, (size_t)k.n_schedstat, &now);
	ns = window_ns(d, &now, a->tick_ns, a->stopped_ns, k.resumed_ns);
	count_window(s, ns);
	if (!ev)
		return; /* counted as `decoder behind` */
	if (d->queued) {
		ev->cap.flags |= RBSP_CAP_QUEUED;
		ev->cap.syscall = ev->cap.regs.call;
	}
	ev->cap.cpu_ns = now.run_ns;
	ev->cap.window_ns = ns;
	d->entry->tp = ev->cap.regs.tp;
	if (k.st == RBSP_OK)
		rbsp_due_push(t, d, ev);
	else
		rbsp_due_lose(d, k.st == RBSP_E_GONE ? &s->counts.gone : &s->counts.unreadable);
}

static bool is_pending(const struct rbsp_due *d)
{
	return !d->done && !d->blocked;
}

static struct rbsp_due *find_due(struct rbsp_tracer *t, int tid)
{
	for (size_t i = 0; i < t->n_due; i++) {
		if (t->due[i].entry->tid == tid && !t->due[i].blocked)
			return &t->due[i];
	}
	return NULL;
}

/* The deadline has passed: their samples are lost. They stay held until their stops come: see
 * rbsp_windows. */
static void give_up(struct rbsp_tracer *t)
{
	for (size_t i = 0; i < t->n_due; i++) {
		struct rbsp_due *d = &t->due[i];

		if (is_pending(d)) {
			rbsp_due_lose(d, &t->s->counts.deadline);
			d->late = true;
			atomic_store(&d->entry->held, true);
		}
	}
}

/* A stop that nobody waits for any more: let the thread run on. */
static void release_late(struct rbsp_tracer *t, struct rbsp_due *d, int tid, struct rbsp_stop stop)
{
	if (stop.kind != RBSP_STOP_EXITED)
		rbsp_trace_detach(tid, stop.signal);
	if (!d)
		return;
	rbsp_due_lose(d, &t->s->counts.deadline);
	d->late = false;
}

/*
 * Take the stops as they come. A thread that waits for a cpu stops when it gets one, before it runs
 * on, so its sample is as good then; one that misses the deadline is lost, and released when its
 * stop comes at last.
 */
void rbsp_windows(struct rbsp_tracer *t, uint64_t tick_ns, bool exact)
{
	size_t owed = 0;

	for (size_t i = 0; i < t->n_due; i++)
		owed += is_pending(&t->due[i]);
	atomic_store(&t->pressed, false);
	atomic_store(&t->waits_ns, rbsp_now_ns());
	while (owed) {
		int status, tid = wait4(-1, &status, __WALL | __WNOTHREAD, NULL);
		struct arrival a = { .tick_ns = tick_ns,
				     .stopped_ns = rbsp_now_ns(),
				     .exact = exact };
		struct rbsp_due *d = tid > 0 ? find_due(t, tid) : NULL;
		struct rbsp_stop stop;

		if (tid < 0 && errno == EINTR && !atomic_exchange(&t->pressed, false))
			continue;
		if (tid < 0 && errno == EINTR && !atomic_load(&t->s->closing)) {
			give_up(t);
			continue;
		}
		if (tid < 0)
			break; /* ECHILD: they all are gone; or this run is over */
		stop = rbsp_stop_of_status(status);
		a.signal = stop.signal;
		if (stop.kind == RBSP_STOP_NONE)
			continue;
		owed -= d != NULL;
		if (!d || d->done)
			release_late(t, d, tid, stop);
		else if (stop.kind == RBSP_STOP_EXITED)
			rbsp_due_lose(d, &t->s->counts.gone);
		else
			take(t, d, &a);
	}
	for (size_t i = 0; i < t->n_due; i++) {
		if (is_pending(&t->due[i]) || t->due[i].late)
			rbsp_due_lose(&t->due[i], &t->s->counts.gone);
	}
	atomic_store(&t->waits_ns, 0);
}
