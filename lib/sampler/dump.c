/* One look at every thread of a process. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "sampler/decode.h"
#include "target/live.h"
#include "trace/trace.h"

#define ROOM (80u << 20)
/* How often a thread is looked at whose state does not fit, or that another tracer holds. */
#define TRIES 100
/* How long one thread may take to stop: on a busy machine it must get a cpu first. */
#define PATIENCE_NS 2000000000u

void rbsp_dump_options_init(struct rbsp_dump_options *o)
{
	*o = (struct rbsp_dump_options){ .size = sizeof(*o),
					 .native = RBSP_NATIVE_LEAF,
					 .lines = true };
}

struct look {
	const struct rbsp_dump_options *opt;
	struct rbsp_proc *proc;
	struct rbsp_decoder *decoder;
	unsigned char *data;
	struct rbsp_dump *dump;
	size_t cap;
};

/* Wait for a stop without a timer: this is no hot path. */
static enum rbsp_status wait_stop(int tid, struct rbsp_stop *stop)
{
	uint64_t until = rbsp_now_ns() + PATIENCE_NS;
	struct timespec pause = { 0, 100000 };

	while (rbsp_now_ns() < until) {
		int status, got = waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG);

		if (got < 0)
			return RBSP_E_GONE;
		if (got == tid) {
			*stop = rbsp_stop_of_status(status);
			if (stop->kind == RBSP_STOP_EXITED)
				return RBSP_E_GONE;
			if (stop->kind != RBSP_STOP_NONE)
				return RBSP_OK;
		}
		nanosleep(&pause, NULL);
	}
	return RBSP_E_DEADLINE;
}

/* A thread that does not stop in time stays traced until this process ends, which detaches it
 * without a stop. */
static enum rbsp_status take_stopped(struct look *k, struct rbsp_entry *e, struct rbsp_capture *c)
{
	struct rbsp_stop stop = { 0 };
	enum rbsp_status st = rbsp_trace_seize(e->tid);

	if (st == RBSP_OK)
		st = rbsp_trace_interrupt(e->tid);
	if (st == RBSP_OK)
		st = wait_stop(e->tid, &stop);
	if (st != RBSP_OK)
		return st;
	c->flags |= RBSP_CAP_STOPPED;
	st = rbsp_trace_regs(e->tid, &c->regs);
	if (st == RBSP_OK)
		st = rbsp_view_read(k->proc->live, &k->proc->spec, &e->view, c, ROOM);
	rbsp_trace_detach(e->tid, stop.signal);
	return st;
}

/* Read while it is blocked, with the same call before and after. */
static enum rbsp_status take_blocked(struct look *k, struct rbsp_entry *e,
				     const struct rbsp_proc_syscall *call, struct rbsp_capture *c)
{
	struct rbsp_schedstat before, after;
	struct rbsp_proc_syscall again;
	enum rbsp_status st;

	rbsp_regs_of_sp_pc(&c->regs, call->sp, call->pc);
	c->regs.tp = e->tp;
	if (!rbsp_entry_schedstat(e, &before))
		return RBSP_E_GONE;
	st = rbsp_view_read(k->proc->live, &k->proc->spec, &e->view, c, ROOM);
	if (st != RBSP_OK)
		return st;
	if (!rbsp_entry_schedstat(e, &after) || !rbsp_entry_syscall(e, &again))
		return RBSP_E_GONE;
	return after.count == before.count && again.blocked && again.nr == call->nr &&
			       again.sp == call->sp
		       ? RBSP_OK
		       : RBSP_E_TORN;
}

static enum rbsp_status take(struct look *k, struct rbsp_entry *e, struct rbsp_capture *c)
{
	struct rbsp_proc_syscall call = { .nr = -1 };
	bool stop;

	if (!rbsp_entry_syscall(e, &call))
		call.blocked = false;
	*c = (struct rbsp_capture){ .time_ns = rbsp_now_ns(),
				    .pid = k->proc->info.pid,
				    .tid = e->tid,
				    .syscall = -1,
				    .data = k->data };
	if (call.blocked) {
		c->flags = RBSP_CAP_BLOCKED;
		c->syscall = call.nr;
		memcpy(c->syscall_arg, call.arg, sizeof(call.arg));
	}
	/* A stop ends some calls with EINTR: only for native frames that were asked for. */
	stop = !call.blocked || (k->opt->native != RBSP_NATIVE_OFF &&
				 (k->opt->native_given || !rbsp_syscall_eintr(call.nr)));
	return stop ? take_stopped(k, e, c) : take_blocked(k, e, &call, c);
}

static enum rbsp_status keep(struct look *k, const struct rbsp_entry *e,
			     const struct rbsp_decoded *d)
{
	struct rbsp_dump_thread *t, *bigger;

	if (k->dump->n == k->cap) {
		k->cap = k->cap ? 2 * k->cap : 16;
		bigger = realloc(k->dump->thread, k->cap * sizeof(*bigger));
		if (!bigger)
			return RBSP_E_NOMEM;
		k->dump->thread = bigger;
	}
	t = &k->dump->thread[k->dump->n];
	*t = (struct rbsp_dump_thread){ .state = d->state,
					.thread = { .tid = e->tid, .main = e->main } };
	t->frames = malloc((d->n + 1) * sizeof(*t->frames));
	t->thread.name = e->name[0] ? strdup(e->name) : NULL;
	if (!t->frames) {
		free((void *)(uintptr_t)t->thread.name);
		return RBSP_E_NOMEM;
	}
	for (size_t i = 0; i < d->n; i++)
		t->frames[i] = d->frames[d->n - 1 - i];
	t->n_frames = d->n;
	k->dump->n++;
	return RBSP_OK;
}

/* Worth another look; a thread that did not stop in time is still seized, and would be refused. */
static bool is_passing(enum rbsp_status st)
{
	return st == RBSP_E_TORN || st == RBSP_E_RANGE || st == RBSP_E_FAULT || st == RBSP_E_TRACED;
}

/* A few tries: a thread may run on, or be caught where its state is between two stores. */
static enum rbsp_status look_at(struct look *k, struct rbsp_entry *e, struct rbsp_err *err)
{
	enum rbsp_status st = RBSP_E_TORN;
	struct rbsp_decoded d = { 0 };
	struct rbsp_capture c;

	for (int i = 0; i < TRIES && is_passing(st); i++) {
		if (st == RBSP_E_TRACED) /* another sampler's window, some tens of microseconds */
			nanosleep(&(struct timespec){ 0, 300000 + 170000 * (i % 7) }, NULL);
		st = take(k, e, &c);
		if (st == RBSP_OK)
			st = rbsp_decode(k->decoder, k->proc, &c, &d);
	}
	if (st == RBSP_OK && d.th) {
		rbsp_entry_name(e, d.th, c.time_ns);
		st = keep(k, e, &d);
	}
	if (st == RBSP_E_TRACED)
		return rbsp_live_explain(e->proc->info.pid, err);
	if (st == RBSP_E_NOMEM)
		return rbsp_fail(err, st, "no memory for the stacks");
	if (st != RBSP_OK && st != RBSP_E_NOT_FOUND && st != RBSP_E_GONE)
		rbsp_log(RBSP_LOG_WARN, "thread %d is left out: %s", e->tid, rbsp_status_text(st));
	return RBSP_OK;
}

static int main_first(const void *a, const void *b)
{
	const struct rbsp_thread *x = &((const struct rbsp_dump_thread *)a)->thread,
				 *y = &((const struct rbsp_dump_thread *)b)->thread;

	if (x->main != y->main)
		return x->main ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static enum rbsp_status look_at_all(struct look *k, struct rbsp_err *err)
{
	struct rbsp_proc *p = k->proc;
	struct rbsp_entry **table = NULL, **old = NULL;
	size_t n = 0, n_old = 0;
	enum rbsp_status st = rbsp_proc_list(p, &table, &n);

	if (st != RBSP_OK)
		return rbsp_fail(err, st, "process %d has ended", p->info.pid);
	rbsp_proc_install(p, table, n, &old, &n_old);
	rbsp_proc_retire(p, old, n_old);
	for (size_t i = 0; i < p->n && st == RBSP_OK; i++)
		st = look_at(k, p->entry[i], err);
	if (k->dump->n)
		qsort(k->dump->thread, k->dump->n, sizeof(*k->dump->thread), main_first);
	return st;
}

static enum rbsp_status copy_process(struct rbsp_dump *d, const struct rbsp_process *p)
{
	d->process = *p;
	d->process.command = strdup(p->command);
	d->process.ruby = strdup(p->ruby);
	return d->process.command && d->process.ruby ? RBSP_OK : RBSP_E_NOMEM;
}

enum rbsp_status rbsp_dump_take(int pid, const struct rbsp_dump_options *o,
				struct rbsp_frames *frames, struct rbsp_dump **out,
				struct rbsp_err *err)
{
	struct rbsp_sampler_options so;
	struct look k = { .opt = o };
	enum rbsp_status st;

	rbsp_sampler_options_init(&so);
	so.native = o->native;
	so.labels = o->labels;
	so.lines = o->lines;
	st = rbsp_proc_open(pid, &so, frames, &k.proc, err);
	if (st != RBSP_OK)
		return st;
	k.data = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	k.decoder = rbsp_decoder_new(o->native, frames);
	k.dump = calloc(1, sizeof(*k.dump));
	if (k.data == MAP_FAILED || !k.decoder || !k.dump ||
	    copy_process(k.dump, &k.proc->info) != RBSP_OK)
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for a dump");
	else
		st = look_at_all(&k, err);
	if (k.data != MAP_FAILED)
		munmap(k.data, ROOM);
	rbsp_decoder_free(k.decoder);
	rbsp_proc_free(k.proc);
	if (st == RBSP_OK)
		*out = k.dump;
	else
		rbsp_dump_free(k.dump);
	return st;
}

void rbsp_dump_free(struct rbsp_dump *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++) {
		free((void *)(uintptr_t)d->thread[i].thread.name);
		free(d->thread[i].frames);
	}
	free(d->thread);
	free((void *)(uintptr_t)d->process.command);
	free((void *)(uintptr_t)d->process.ruby);
	free(d);
}
