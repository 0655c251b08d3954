/* The stop window: from the first INTERRUPT of a tick to the resume of its last thread. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/core.h"
#include "trace/trace.h"

/* What was taken while the thread stood still; everything else about it is worked out after the resume. */
struct taken {
	char schedstat[96];
	ssize_t n_schedstat;
	uint64_t resumed_ns;
	enum rbsp_status st;
};

/*
 * One thread is stopped here, and only here: registers, its memory by two vectored reads, its schedstat, and it runs
 * on. Nothing is opened, allocated, logged, parsed or unwound before the release.
 */
static struct taken capture_and_release(struct rbsp_due *d, struct rbsp_event *ev, size_t room, int signal)
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

/* A window's length leaves out what the thread waited for a cpu meanwhile. */
static uint64_t window_ns(const struct rbsp_due *d, const struct rbsp_schedstat *now, uint64_t resumed_ns)
{
	uint64_t all = resumed_ns - d->interrupt_ns, waited = now->wait_ns - d->before.wait_ns;

	return waited < all ? all - waited : 0;
}

static void take(struct rbsp_sampler *s, struct rbsp_due *d, uint64_t tick_ns, int signal, bool exact)
{
	struct rbsp_event *ev = rbsp_due_event(s, d, tick_ns);
	struct taken k;
	struct rbsp_schedstat now = d->before;

	if (ev)
		ev->cap.flags = RBSP_CAP_STOPPED | (exact ? RBSP_CAP_EXACT : 0);
	k = capture_and_release(d, ev, s->ring.room, signal);
	if (k.n_schedstat > 0)
		rbsp_schedstat_parse(k.schedstat, (size_t)k.n_schedstat, &now);
	count_window(s, window_ns(d, &now, k.resumed_ns));
	if (!ev)
		return; /* counted as `decoder behind` */
	ev->cap.cpu_ns = now.run_ns;
	ev->cap.window_ns = window_ns(d, &now, k.resumed_ns);
	d->entry->tp = ev->cap.regs.tp;
	if (k.st == RBSP_OK)
		rbsp_due_push(s, ev);
	else
		rbsp_count(k.st == RBSP_E_GONE ? &s->counts.gone : &s->counts.unreadable, 1);
}

static struct rbsp_due *find_due(struct rbsp_sampler *s, int tid)
{
	for (size_t i = 0; i < s->n_due; i++) {
		if (s->due[i].entry->tid == tid && !s->due[i].done)
			return &s->due[i];
	}
	return NULL;
}

static size_t count_pending(const struct rbsp_sampler *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_due; i++)
		n += !s->due[i].done && !s->due[i].blocked;
	return n;
}

/* A stop that nobody waits for any more: let the thread run on. */
static void release_late(struct rbsp_tracer *t, int tid, struct rbsp_stop stop)
{
	if (stop.kind != RBSP_STOP_EXITED)
		rbsp_trace_detach(tid, stop.signal);
	for (size_t i = 0; i < t->n_late; i++) {
		if (t->late[i]->tid == tid) {
			atomic_store(&t->late[i]->held, false);
			t->late[i] = t->late[--t->n_late];
			return;
		}
	}
}

static void give_up(struct rbsp_tracer *t, struct rbsp_sampler *s)
{
	for (size_t i = 0; i < s->n_due; i++) {
		struct rbsp_due *d = &s->due[i];

		if (d->done || d->blocked)
			continue;
		d->done = true;
		rbsp_count(&s->counts.deadline, 1);
		if (t->n_late == RBSP_COUNT_OF(t->late))
			continue;
		atomic_store(&d->entry->held, true);
		t->late[t->n_late++] = d->entry;
	}
}

void rbsp_windows(struct rbsp_tracer *t, uint64_t tick_ns, bool exact)
{
	struct rbsp_sampler *s = t->s;
	size_t pending = count_pending(s);

	atomic_store(&t->pressed, false);
	atomic_store(&t->waits_ns, rbsp_now_ns());
	while (pending) {
		int status, tid = wait4(-1, &status, __WALL | __WNOTHREAD, NULL);
		struct rbsp_due *d = tid > 0 ? find_due(s, tid) : NULL;
		struct rbsp_stop stop;

		if (tid < 0 && errno == EINTR && !atomic_load(&t->pressed))
			continue;
		if (tid < 0) { /* the deadline; or ECHILD: they all are gone */
			give_up(t, s);
			break;
		}
		stop = rbsp_stop_of_status(status);
		if (!d) {
			release_late(t, tid, stop);
		} else if (stop.kind == RBSP_STOP_EXITED) {
			d->done = true;
			rbsp_count(&s->counts.gone, 1);
			pending--;
		} else if (stop.kind != RBSP_STOP_NONE) {
			take(s, d, tick_ns, stop.signal, exact);
			pending--;
		}
	}
	atomic_store(&t->waits_ns, 0);
}

void rbsp_late_release(struct rbsp_tracer *t)
{
	while (t->n_late && !atomic_load(&t->s->closing)) {
		int status, tid = wait4(-1, &status, __WALL | __WNOTHREAD, NULL);

		if (tid > 0)
			release_late(t, tid, rbsp_stop_of_status(status));
		else if (errno == ECHILD)
			break;
	}
	while (t->n_late)
		atomic_store(&t->late[--t->n_late]->held, false);
}
