/* Which threads a tick asks for, and the reading of those that need no stop. */
#include <string.h>

#include "sampler/core.h"
#include "trace/trace.h"

static bool is_wanted(const struct rbsp_entry *e)
{
	return atomic_load_explicit(&e->wanted, memory_order_relaxed) >= 0;
}

/* The pthread_t, so the thread pointer, of the native thread that a Ruby thread runs in; 0:
 * unknown. */
static rbsp_addr pthread_of(const struct rbsp_proc *p, rbsp_addr th)
{
	const struct rbsp_layout *l = p->loc.layout;
	rbsp_addr at = th + l->th.pthread, nt = 0;
	uint64_t pthread = 0;

	if (l->th.pthread == RBSP_NONE) {
		if (rbsp_read_word(p->live, th + l->th.nt, &nt) != RBSP_OK || !nt)
			return 0;
		at = nt + l->nt.pthread;
	}
	return rbsp_read_word(p->live, at, &pthread) == RBSP_OK ? pthread : 0;
}

/* Addresses of ended threads are used again by new ones. */
static bool is_alive(const struct rbsp_entry *e)
{
	struct rbsp_schedstat s;

	return rbsp_entry_schedstat(e, &s);
}

/* A native thread that has begun to run another Ruby thread since it was last looked at. */
static struct rbsp_entry *find_reused(struct rbsp_proc *p, rbsp_addr th)
{
	rbsp_addr tp = pthread_of(p, th);

	for (size_t i = 0; tp && i < p->n; i++) {
		struct rbsp_entry *e = p->entry[i];

		if (e->tp != tp || atomic_load(&e->held) || !is_alive(e))
			continue;
		if (p->loc.slot_kind == RBSP_SLOT_THREAD)
			e->view = (struct rbsp_view){ .slot = th + p->loc.layout->th.ec };
		e->view.th = th;
		return e;
	}
	return NULL;
}

/*
 * The entry of the thread that owns the GVL; NULL: free, or not known. A new native thread is not
 * in the table yet: its sample is lost, and the decoder is told to list the threads again.
 */
static struct rbsp_entry *find_owner(struct rbsp_tracer *t, struct rbsp_proc *p)
{
	struct rbsp_entry *e = NULL;
	uint64_t th = 0;

	if (!p->spec.sched || rbsp_read_word(p->live, p->spec.sched, &th) != RBSP_OK || !th)
		return NULL;
	for (size_t i = 0; i < p->n && !e; i++) {
		if (p->entry[i]->view.th == th && is_alive(p->entry[i]))
			e = p->entry[i];
	}
	if (!e)
		e = find_reused(p, th);
	if (!e) {
		atomic_store(&p->unlisted, true);
		t->n_unlisted++;
	}
	return e;
}

/*
 * Seen blocked and not run since: still blocked, or woken and not yet on a cpu. Unchanged figures
 * alone prove nothing for a thread that never left its cpu, so the baseline is set only when
 * /proc/TID/syscall names a call (or a page fault).
 */
static bool look(struct rbsp_entry *e, struct rbsp_due *d, bool will_read)
{
	bool unchanged;

	if (!rbsp_entry_schedstat(e, &d->before))
		return false;
	unchanged = e->blocked && d->before.count == e->base.count &&
		    d->before.run_ns == e->base.run_ns;
	if (unchanged && (e->read || !will_read)) {
		d->blocked = true;
		return true;
	}
	d->blocked = rbsp_entry_syscall(e, &d->call) && d->call.blocked;
	d->fresh = !unchanged;
	e->blocked = d->blocked;
	e->base = d->before;
	e->read = false;
	return true;
}

void rbsp_due_lose(struct rbsp_due *d, _Atomic uint64_t *why)
{
	rbsp_count(why, !d->done + atomic_exchange(&d->entry->owed, 0));
	d->done = true;
	atomic_store(&d->entry->held, false);
}

/* One switch: both sides of it are accounted with one reading of the cpu's clock, or two in a row.
 */
#define SWITCH_NS 2000

static bool is_near(uint64_t a, uint64_t b)
{
	int64_t d = (int64_t)(a - b);

	return d < SWITCH_NS && d > -SWITCH_NS;
}

enum whereabouts { UNTOLD, ON_CPU, OFF_CPU };

/*
 * Whether a thread was on a cpu at the tick. What the tick put off its cpu left it at the very
 * instant at which a tracer came on it. What was woken and waits for a cpu left its own earlier,
 * when it fell asleep: that wait, 20-50 us after each lock or call, is no time of what it will do
 * next. And what the tick met in the kernel on its way to sleep is asleep by now, but was running.
 * The scheduler's clock is each cpu's own (stolen time is taken off), so the instant is looked for
 * among all tracers'.
 */
static enum whereabouts at_tick(struct rbsp_tracer *t, const struct rbsp_entry *e)
{
	struct rbsp_sampler *s = t->s;
	uint64_t left_ns;

	if (!t->on_cpu_ns || !rbsp_entry_on_cpu(e, &left_ns))
		return UNTOLD; /* from the next tick on, or the kernel does not tell */
	for (size_t k = 0; k < RBSP_CPUS; k++) {
		if (atomic_load_explicit(&s->tracer[k].active, memory_order_relaxed) &&
		    is_near(left_ns,
			    atomic_load_explicit(&s->tracer[k].on_cpu_ns, memory_order_relaxed)))
			return ON_CPU;
	}
	return OFF_CPU;
}

static void interrupt(struct rbsp_sampler *s, struct rbsp_due *d)
{
	enum rbsp_status st;

	atomic_store(&d->entry->held, true);
	st = rbsp_trace_seize(d->entry->tid);
	d->interrupt_ns = rbsp_now_ns();
	if (st == RBSP_OK)
		st = rbsp_trace_interrupt(d->entry->tid);
	if (st == RBSP_OK)
		return;
	rbsp_due_lose(d, st == RBSP_E_TRACED ? &s->counts.traced : &s->counts.gone);
	if (st == RBSP_E_TRACED)
		atomic_store_explicit(&s->counts.traced_tid, d->entry->tid, memory_order_relaxed);
}

/* A blocked thread that is asked for even if it was not running. */
static bool is_kept(const struct rbsp_sampler *s, const struct rbsp_due *d)
{
	return d->owner || (s->opt.idle && d->entry->view.slot);
}

static void consider(struct rbsp_tracer *t, struct rbsp_entry *e, bool owner, uint64_t tick_ns)
{
	struct rbsp_sampler *s = t->s;
	struct rbsp_due *d = &t->due[t->n_due];

	if (!is_wanted(e))
		return;
	if (atomic_load(&e->held)) { /* asked for by this tick too: whoever waits for its stop
					counts it */
		atomic_fetch_add(&e->owed, 1);
		t->n_owed++;
		return;
	}
	*d = (struct rbsp_due){ .entry = e, .owner = owner };
	if (t->n_due + 1 >= RBSP_DUE_MAX || !look(e, d, owner || s->opt.idle))
		return;
	if (d->blocked)
		e->slept_ns = tick_ns;
	if (d->blocked && d->fresh)
		s->slept_ns = tick_ns;
	if (d->blocked && !d->fresh && !is_kept(s, d))
		return;
	if (!e->view.slot && !e->proc->spec.native)
		return; /* no Ruby frames, and native ones are not asked for */
	t->n_due++;
	if (d->blocked)
		return;
	d->queued =
		e->slept_ns && tick_ns - e->slept_ns < RBSP_SLEEPY_NS && at_tick(t, e) == OFF_CPU;
	interrupt(s, d);
}

void rbsp_due_issue(struct rbsp_tracer *t, uint64_t tick_ns)
{
	struct rbsp_sampler *s = t->s;

	t->n_due = t->n_owed = 0;
	t->n_unlisted = 0;
	for (size_t i = 0; i < s->n_proc; i++) {
		struct rbsp_proc *p = s->proc[i];
		struct rbsp_entry *owner = p->ended ? NULL : find_owner(t, p);

		if (owner)
			consider(t, owner, true, tick_ns);
		for (size_t k = 0; k < p->n && !p->ended && !s->opt.gvl_only; k++) {
			if (p->entry[k] != owner)
				consider(t, p->entry[k], false, tick_ns);
		}
	}
}

void rbsp_due_settle(struct rbsp_tracer *t)
{
	struct rbsp_sampler *s = t->s;
	size_t n = 0;

	for (size_t i = 0; i < t->n_due; i++) {
		struct rbsp_due *d = &t->due[i];

		d->ran = d->blocked && d->fresh && at_tick(t, d->entry) == ON_CPU;
		if (!d->blocked || d->ran || is_kept(s, d))
			t->due[n++] = *d;
	}
	t->n_due = n;
	rbsp_count(&s->counts.due, n + t->n_owed + t->n_unlisted);
	rbsp_count(&s->counts.unreadable, t->n_unlisted);
	atomic_store_explicit(&s->counts.due_last, n + t->n_owed, memory_order_relaxed);
}

/* Figures of the thread that an event carries whether it was read or only counted again. */
static void fill_times(struct rbsp_sampler *s, struct rbsp_event *ev, struct rbsp_due *d,
		       uint64_t tick_ns)
{
	struct rbsp_entry *e = d->entry;
	uint64_t period = (uint64_t)s->ticks.period_ns,
		 since = e->tick_ns ? tick_ns - e->tick_ns : period;

	ev->entry = e;
	ev->count = 1;
	ev->idle = d->blocked && !d->ran;
	ev->repeat = false;
	ev->cap.time_ns = tick_ns;
	ev->cap.weight_ns = since < 2 * period ? since : 2 * period;
	ev->cap.pid = e->proc->info.pid;
	ev->cap.tid = e->tid;
	ev->cap.cpu_ns = d->before.run_ns;
	ev->cap.window_ns = 0;
	ev->cap.flags = 0;
	ev->cap.syscall = -1;
	ev->cap.size = 0;
	e->tick_ns = tick_ns;
}

struct rbsp_event *rbsp_due_event(struct rbsp_tracer *t, struct rbsp_due *d, uint64_t tick_ns,
				  size_t *room)
{
	struct rbsp_event *ev = rbsp_ring_next(&t->ring, room);

	if (ev)
		fill_times(t->s, ev, d, tick_ns);
	else
		rbsp_due_lose(d, &t->s->counts.behind);
	return ev;
}

void rbsp_due_push(struct rbsp_tracer *t, struct rbsp_due *d, struct rbsp_event *ev)
{
	struct rbsp_entry *e = d->entry;

	d->done = true;
	ev->count = 1 + atomic_exchange(&e->owed, 0);
	atomic_fetch_add_explicit(&e->in_ring, 1, memory_order_relaxed);
	rbsp_ring_push(&t->ring);
	atomic_store(&e->held,
		     false); /* its next event, in whichever ring, is pushed after this one */
}

/* Count, memory, count again: equal and in the same call both times, else it ran meanwhile. */
static bool read_blocked(struct rbsp_due *d, struct rbsp_event *ev, size_t room)
{
	struct rbsp_entry *e = d->entry;
	struct rbsp_schedstat after;
	struct rbsp_proc_syscall call;

	rbsp_regs_of_sp_pc(&ev->cap.regs, d->call.sp, d->call.pc);
	ev->cap.regs.tp = e->tp;
	ev->cap.flags = d->ran ? RBSP_CAP_EXACT : RBSP_CAP_BLOCKED;
	ev->cap.syscall = d->call.nr;
	memcpy(ev->cap.syscall_arg, d->call.arg, sizeof(d->call.arg));
	if (rbsp_view_read(e->proc->live, &e->proc->spec, &e->view, &ev->cap, room) != RBSP_OK)
		return false;
	return rbsp_entry_schedstat(e, &after) && after.count == d->before.count &&
	       after.run_ns == d->before.run_ns && rbsp_entry_syscall(e, &call) && call.blocked &&
	       call.nr == d->call.nr && call.sp == d->call.sp;
}

void rbsp_due_read_blocked(struct rbsp_tracer *t, uint64_t tick_ns)
{
	for (size_t i = 0; i < t->n_due; i++) {
		struct rbsp_due *d = &t->due[i];
		struct rbsp_event *ev;
		size_t room;

		if (d->done || !d->blocked)
			continue;
		ev = rbsp_due_event(t, d, tick_ns, &room);
		if (!ev)
			continue;
		if (d->entry->read) {
			ev->repeat = true;
			rbsp_due_push(t, d, ev);
		} else if (read_blocked(d, ev, room)) {
			d->entry->read = !d->ran; /* its next tick finds it blocked */
			rbsp_due_push(t, d, ev);
		} else {
			d->entry->blocked = false;
			rbsp_due_lose(d, &t->s->counts.inconsistent);
		}
	}
}
