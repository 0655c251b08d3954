/* Which threads a tick asks for, and the reading of those that need no stop. */
#include <string.h>

#include "sampler/core.h"
#include "trace/trace.h"

static bool is_wanted(const struct rbsp_entry *e)
{
	return atomic_load_explicit(&e->wanted, memory_order_relaxed) >= 0;
}

/* The entry of the thread that owns the GVL, NULL: free, or not known. */
static struct rbsp_entry *find_owner(struct rbsp_proc *p)
{
	uint64_t th = 0;

	if (!p->spec.sched || rbsp_read_word(p->live, p->spec.sched, &th) != RBSP_OK || !th)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		if (p->entry[i]->view.th == th)
			return p->entry[i];
	}
	return NULL;
}

static struct rbsp_due *add_due(struct rbsp_sampler *s, const struct rbsp_due *d)
{
	if (s->n_due == s->cap_due)
		return NULL;
	s->due[s->n_due] = *d;
	return &s->due[s->n_due++];
}

/*
 * Seen blocked and not run since: still blocked. Unchanged figures alone prove nothing for a thread that never left
 * its cpu, so the baseline is set only when /proc/TID/syscall names a call (or a page fault).
 */
static bool look(struct rbsp_entry *e, struct rbsp_due *d)
{
	if (!rbsp_entry_schedstat(e, &d->before))
		return false;
	d->blocked = e->blocked && d->before.count == e->base.count && d->before.run_ns == e->base.run_ns;
	if (d->blocked && e->read)
		return true;
	d->blocked = rbsp_entry_syscall(e, &d->call) && d->call.blocked;
	e->blocked = d->blocked;
	e->base = d->before;
	e->read = false;
	return true;
}

static void interrupt(struct rbsp_sampler *s, struct rbsp_due *d)
{
	enum rbsp_status st = rbsp_trace_seize(d->entry->tid);

	d->interrupt_ns = rbsp_now_ns();
	if (st == RBSP_OK)
		st = rbsp_trace_interrupt(d->entry->tid);
	if (st == RBSP_OK)
		return;
	d->done = true;
	rbsp_count(st == RBSP_E_TRACED ? &s->counts.traced : &s->counts.gone, 1);
	if (st == RBSP_E_TRACED)
		atomic_store_explicit(&s->counts.traced_tid, d->entry->tid, memory_order_relaxed);
}

static void consider(struct rbsp_sampler *s, struct rbsp_entry *e, bool owner)
{
	struct rbsp_due look_at = { .entry = e }, *d;

	if (!is_wanted(e) || !look(e, &look_at))
		return;
	if (look_at.blocked && !owner && !(s->opt.idle && e->view.slot))
		return;
	if (!e->view.slot && !e->proc->spec.native)
		return; /* no Ruby frames, and native ones are not asked for */
	d = add_due(s, &look_at);
	if (!d)
		return;
	if (atomic_load(&e->held)) {
		d->done = true;
		rbsp_count(&s->counts.deadline, 1);
	} else if (!d->blocked) {
		interrupt(s, d);
	}
}

void rbsp_due_issue(struct rbsp_sampler *s)
{
	s->n_due = 0;
	for (size_t i = 0; i < s->n_proc; i++) {
		struct rbsp_proc *p = s->proc[i];
		struct rbsp_entry *owner = p->ended ? NULL : find_owner(p);

		if (owner)
			consider(s, owner, true);
		for (size_t k = 0; k < p->n && !p->ended && !s->opt.gvl_only; k++) {
			if (p->entry[k] != owner)
				consider(s, p->entry[k], false);
		}
	}
	rbsp_count(&s->counts.due, s->n_due);
	atomic_store_explicit(&s->counts.due_last, s->n_due, memory_order_relaxed);
}

/* Figures of the thread that an event carries whether it was read or only counted again. */
static void fill_times(struct rbsp_sampler *s, struct rbsp_event *ev, struct rbsp_due *d, uint64_t tick_ns)
{
	struct rbsp_entry *e = d->entry;
	uint64_t period = (uint64_t)s->ticks.period_ns, since = e->tick_ns ? tick_ns - e->tick_ns : period;

	ev->entry = e;
	ev->idle = d->blocked;
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

struct rbsp_event *rbsp_due_event(struct rbsp_sampler *s, struct rbsp_due *d, uint64_t tick_ns)
{
	struct rbsp_event *ev = rbsp_ring_next(&s->ring);

	d->done = true;
	if (!ev)
		rbsp_count(&s->counts.behind, 1);
	else
		fill_times(s, ev, d, tick_ns);
	return ev;
}

void rbsp_due_push(struct rbsp_sampler *s, struct rbsp_event *ev)
{
	atomic_fetch_add_explicit(&ev->entry->in_ring, 1, memory_order_relaxed);
	rbsp_ring_push(&s->ring);
}

/* Count, memory, count again: equal and in the same call both times, else it ran meanwhile. */
static bool read_blocked(struct rbsp_due *d, struct rbsp_event *ev, size_t room)
{
	struct rbsp_entry *e = d->entry;
	struct rbsp_schedstat after;
	struct rbsp_proc_syscall call;

	rbsp_regs_of_sp_pc(&ev->cap.regs, d->call.sp, d->call.pc);
	ev->cap.regs.tp = e->tp;
	ev->cap.flags = RBSP_CAP_BLOCKED;
	ev->cap.syscall = d->call.nr;
	memcpy(ev->cap.syscall_arg, d->call.arg, sizeof(d->call.arg));
	if (rbsp_view_read(e->proc->live, &e->proc->spec, &e->view, &ev->cap, room) != RBSP_OK)
		return false;
	return rbsp_entry_schedstat(e, &after) && after.count == d->before.count && after.run_ns == d->before.run_ns &&
	       rbsp_entry_syscall(e, &call) && call.blocked && call.nr == d->call.nr && call.sp == d->call.sp;
}

void rbsp_due_read_blocked(struct rbsp_sampler *s, uint64_t tick_ns)
{
	for (size_t i = 0; i < s->n_due; i++) {
		struct rbsp_due *d = &s->due[i];
		struct rbsp_event *ev;

		if (d->done || !d->blocked)
			continue;
		ev = rbsp_due_event(s, d, tick_ns);
		if (!ev)
			continue;
		if (d->entry->read) {
			ev->repeat = true;
			rbsp_due_push(s, ev);
		} else if (read_blocked(d, ev, s->ring.room)) {
			d->entry->read = true;
			rbsp_due_push(s, ev);
		} else {
			d->entry->blocked = false;
			rbsp_count(&s->counts.inconsistent, 1);
		}
	}
}
