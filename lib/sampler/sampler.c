/* The sampler: its life, its run loop, and the decoder's side of the ring. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/core.h"
#include "sampler/cpus.h"
#include "target/live.h"
#include "target/tape.h"

/* How long the decoder sleeps at most: tracers that wait too long for a stop are woken by it. */
#define NAP_NS 50000000u

void rbsp_sampler_options_init(struct rbsp_sampler_options *o)
{
	*o = (struct rbsp_sampler_options){
		.size = sizeof(*o),
		.rate_hz = 99,
		.native = RBSP_NATIVE_LEAF,
		.labels = RBSP_LABEL_DEFAULT,
		.lines = true,
		.realtime = true,
	};
}

static enum rbsp_status copy_options(struct rbsp_sampler *s, const struct rbsp_sampler_options *o,
				     struct rbsp_err *err)
{
	char why[128];
	int rc;

	if (!(o->rate_hz > 0 && o->rate_hz <= 100000))
		return rbsp_fail(err, RBSP_E_USAGE,
				 "a rate of %g Hz: give one between 0 and 100000", o->rate_hz);
	s->opt = *o;
	if (o->thread_name) {
		rc = regcomp(&s->name, o->thread_name, REG_EXTENDED | REG_NOSUB);
		if (rc != 0) {
			regerror(rc, &s->name, why, sizeof(why));
			return rbsp_fail(err, RBSP_E_USAGE, "'%s' is not a regular expression: %s",
					 o->thread_name, why);
		}
		s->has_name = true;
	}
	if (o->tape) {
		s->tape_path = strdup(o->tape);
		s->opt.tape = s->tape_path;
		if (!s->tape_path)
			return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the options");
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_sampler_new(const struct rbsp_sampler_options *o, struct rbsp_frames *frames,
				  struct rbsp_sampler **out, struct rbsp_err *err)
{
	struct rbsp_sampler *s = calloc(1, sizeof(*s));
	enum rbsp_status st;

	if (!s)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for a sampler");
	sem_init(&s->wake, 0, 0);
	s->frames = frames;
	st = copy_options(s, o, err);
	if (st == RBSP_OK && !(s->decoder = rbsp_decoder_new(o->native, frames)))
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for a decoder");
	if (st != RBSP_OK) {
		rbsp_sampler_free(s);
		return st;
	}
	*out = s;
	return RBSP_OK;
}

void rbsp_sampler_free(struct rbsp_sampler *s)
{
	if (!s)
		return;
	rbsp_tracers_stop(s);
	for (size_t i = 0; i < s->n_proc; i++)
		rbsp_proc_free(s->proc[i]);
	free(s->proc);
	rbsp_tracers_free(s);
	rbsp_decoder_free(s->decoder);
	if (s->has_name)
		regfree(&s->name);
	free(s->tape_path);
	sem_destroy(&s->wake);
	free(s);
}

enum rbsp_status rbsp_sampler_add(struct rbsp_sampler *s, int pid, struct rbsp_err *err)
{
	struct rbsp_proc *p = NULL, **bigger;
	enum rbsp_status st;

	if (s->opt.tape && s->n_proc)
		return rbsp_fail(err, RBSP_E_USAGE,
				 "a tape holds one process: give one -p with --tape");
	st = rbsp_proc_open(pid, &s->opt, s->frames, &p, err);
	if (st != RBSP_OK)
		return st;
	bigger = realloc(s->proc, (s->n_proc + 1) * sizeof(struct rbsp_proc *));
	if (!bigger) {
		rbsp_proc_free(p);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for process %d", pid);
	}
	s->proc = bigger;
	s->proc[s->n_proc++] = p;
	return RBSP_OK;
}

void rbsp_sampler_stop(struct rbsp_sampler *s)
{
	atomic_store(&s->stopping, true);
	sem_post(&s->wake);
}

/* Own the tick for a moment; ticks in that moment are late by it, or missed. */
static void own_tick_between(struct rbsp_sampler *s)
{
	while (!rbsp_tick_own(s)) {
		struct timespec ts = { 0, 50000 };

		nanosleep(&ts, NULL);
	}
}

/* Take in the threads of now. */
static enum rbsp_status refresh(struct rbsp_sampler *s, struct rbsp_proc *p)
{
	struct rbsp_entry **table = NULL, **old = NULL;
	size_t n = 0, n_old = 0;
	enum rbsp_status st = rbsp_proc_list(p, &table, &n);

	if (st != RBSP_OK)
		return st;
	own_tick_between(s);
	rbsp_proc_install(p, table, n, &old, &n_old);
	rbsp_tick_release(s);
	rbsp_proc_retire(p, old, n_old);
	return RBSP_OK;
}

/* Who holds a thread that we were refused: the summary names it. */
static void find_other_tracer(struct rbsp_sampler *s)
{
	struct rbsp_proc_status status;
	char text[4096], name[40];
	int tid = atomic_load_explicit(&s->counts.traced_tid, memory_order_relaxed);
	long n;

	if (!tid || atomic_load(&s->other_tracer))
		return;
	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	n = rbsp_live_path(name, text, sizeof(text));
	if (n > 0 && rbsp_proc_status_parse(text, (size_t)n, &status) == RBSP_OK)
		atomic_store(&s->other_tracer, status.tracer_pid);
}

/* The process clock is gone with the process: what was read last stands. */
static void note_cpu_time(struct rbsp_proc *p)
{
	uint64_t cpu = rbsp_proc_cpu_ns(p);

	if (cpu)
		p->cpu_end_ns = cpu;
}

/* Everything but decoding that must be done now and then. @return whether any process is left */
static bool maintain(struct rbsp_sampler *s)
{
	uint64_t now = rbsp_now_ns();
	bool any = false;

	rbsp_tracers_press(s, now);
	find_other_tracer(s);
	for (size_t i = 0; i < s->n_proc; i++) {
		struct rbsp_proc *p = s->proc[i];

		if (p->ended)
			continue;
		note_cpu_time(p);
		if (rbsp_live_ended(p->live) || rbsp_live_execed(p->live)) {
			own_tick_between(s);
			p->ended = true;
			rbsp_tick_release(s);
			continue;
		}
		any = true;
		if (atomic_exchange(&p->unlisted, false) || rbsp_proc_is_stale(p, now)) {
			refresh(s, p);
			rbsp_cpus_use(s, p);
		}
	}
	return any;
}

static bool name_matches(const struct rbsp_sampler *s, const struct rbsp_entry *e)
{
	return !s->has_name || (e->name[0] && regexec(&s->name, e->name, 0, NULL, 0) == 0);
}

/* Remember the stack, to count it again while the thread does not run. */
static bool keep_stack(struct rbsp_entry *e, const struct rbsp_decoded *d)
{
	if (d->n > e->cap_stack) {
		size_t cap = 2 * d->n;
		rbsp_frame_id *bigger = realloc(e->stack, cap * sizeof(*bigger));

		if (!bigger)
			return false;
		e->stack = bigger;
		e->cap_stack = cap;
	}
	memcpy(e->stack, d->frames, d->n * sizeof(*e->stack));
	e->n_stack = d->n;
	e->state = d->state;
	e->flags = d->flags;
	return true;
}

static int tid_of_th(const struct rbsp_proc *p, rbsp_addr th)
{
	for (size_t i = 0; th && i < p->n; i++) {
		if (p->entry[i]->th == th)
			return p->entry[i]->tid;
	}
	return 0;
}

static enum rbsp_status send(struct rbsp_sampler *s, const struct rbsp_event *ev,
			     const struct rbsp_decoded *d, struct rbsp_sink *sink)
{
	struct rbsp_entry *e = ev->entry;
	struct rbsp_thread thread = { .tid = e->tid,
				      .name = e->name[0] ? e->name : NULL,
				      .main = e->main };
	struct rbsp_sample sample = {
		.time_ns = ev->cap.time_ns,
		.weight_ns = ev->cap.weight_ns,
		.cpu_ns = ev->cap.cpu_ns > e->cpu_ns ? ev->cap.cpu_ns - e->cpu_ns : 0,
		.process = &e->proc->info,
		.thread = &thread,
		.state = d->state,
		.holder_tid = d->state == RBSP_STATE_GVL_WAIT ? tid_of_th(e->proc, d->owner) : 0,
		.flags = d->flags | (ev->repeat ? RBSP_SAMPLE_REPEATED : 0),
		.frames = d->frames,
		.n_frames = d->n,
	};

	e->cpu_ns = ev->cap.cpu_ns;
	rbsp_count(&s->done.samples, 1);
	rbsp_count(&s->done.cpu_ns, sample.cpu_ns);
	rbsp_count(&s->done.exact, (sample.flags & RBSP_SAMPLE_EXACT) != 0 || ev->idle);
	rbsp_count(&s->done.cut, (sample.flags & RBSP_SAMPLE_CUT) != 0);
	rbsp_count(&s->done.unmerged, (sample.flags & RBSP_SAMPLE_UNMERGED) != 0);
	return rbsp_sink_sample(sink, &sample);
}

static void drop(struct rbsp_sampler *s, enum rbsp_status st)
{
	if (st ==
	    RBSP_E_NOT_FOUND) /* a stale ec, or nothing to show: the options do not ask for it */
		rbsp_count(&s->done.not_due, 1);
	else
		rbsp_count(st == RBSP_E_FAULT ? &s->done.unreadable : &s->done.inconsistent, 1);
}

/*
 * By default the threads that run: that hold the GVL, or are on a cpu with C code. What only waits
 * for a cpu does not run.
 */
static bool is_asked_for(const struct rbsp_sampler *s, const struct rbsp_event *ev,
			 const struct rbsp_decoded *d)
{
	bool queued = ev->cap.flags & RBSP_CAP_QUEUED;
	bool on_cpu = !queued && !(ev->cap.flags & RBSP_CAP_BLOCKED);

	if (s->opt.gvl_only)
		return d->th && d->owner == d->th;
	if (!d->th)
		return on_cpu; /* no Ruby thread: nobody waits in it */
	if (s->opt.idle)
		return true;
	if (d->state == RBSP_STATE_RUNNING)
		return !queued;
	return (d->state == RBSP_STATE_NATIVE || d->state == RBSP_STATE_UNKNOWN) && on_cpu;
}

/* One event from the ring: decode it, or count the thread's last stack again. */
static enum rbsp_status handle(struct rbsp_sampler *s, const struct rbsp_event *ev,
			       struct rbsp_sink *sink)
{
	struct rbsp_entry *e = ev->entry;
	struct rbsp_decoded d = {
		.frames = e->stack, .n = e->n_stack, .state = e->state, .flags = e->flags
	};
	enum rbsp_status st = RBSP_OK;
	bool wanted;

	if (!ev->repeat) {
		if (e->proc->cold != e->proc->live)
			rbsp_tape_add_capture(e->proc->cold, &ev->cap);
		st = rbsp_decode(s->decoder, e->proc, &ev->cap, &d);
		e->n_stack = 0;
	} else if (!e->n_stack) {
		st = RBSP_E_NOT_FOUND; /* the one before was not decoded */
	}
	if (st != RBSP_OK) {
		drop(s, st);
		return st == RBSP_E_NOMEM ? st : RBSP_OK;
	}
	if (!ev->repeat) {
		rbsp_entry_name(e, d.th, ev->cap.time_ns);
		if (!keep_stack(e, &d))
			return RBSP_E_NOMEM;
	}
	wanted = name_matches(s, e) && (!s->opt.main_only || e->main);
	if (s->has_name || s->opt.main_only)
		atomic_store_explicit(&e->wanted, wanted ? 1 : -1, memory_order_relaxed);
	if (wanted && is_asked_for(s, ev, &d))
		return send(s, ev, &d, sink);
	drop(s, RBSP_E_NOT_FOUND);
	return RBSP_OK;
}

static enum rbsp_status handle_all_of(struct rbsp_sampler *s, struct rbsp_event *ev,
				      uint64_t max_samples, struct rbsp_sink *sink)
{
	enum rbsp_status st = RBSP_OK;

	bool wall = s->opt.idle || s->opt.gvl_only;

	/* While its stop took its time the thread had no cpu: such ticks count only where waiting
	 * does. */
	for (uint32_t i = 0; i < ev->count && st == RBSP_OK; i++) {
		if ((i && !wall) || (max_samples && atomic_load(&s->done.samples) >= max_samples))
			drop(s, RBSP_E_NOT_FOUND);
		else
			st = handle(s, ev, sink);
		ev->repeat = true;
	}
	atomic_fetch_sub_explicit(&ev->entry->in_ring, 1, memory_order_relaxed);
	return st;
}

static struct rbsp_ring *oldest_of(struct rbsp_sampler *s, struct rbsp_ring *than)
{
	for (size_t k = 0; k < RBSP_CPUS; k++) {
		struct rbsp_ring *r = &s->tracer[k].ring;
		const struct rbsp_event *ev = r->event ? rbsp_ring_peek(r) : NULL;

		if (ev && (!than || ev->cap.time_ns < rbsp_ring_peek(than)->cap.time_ns))
			than = r;
	}
	return than;
}

/*
 * The ring with the oldest event, NULL: all are empty. A thread's events come from several rings in
 * their order: each is pushed before the next can be, so whoever saw the later one finds the
 * earlier by looking again.
 */
static struct rbsp_ring *next_ring(struct rbsp_sampler *s)
{
	struct rbsp_ring *found = oldest_of(s, NULL), *before;

	do {
		before = found;
		found = found ? oldest_of(s, found) : NULL;
	} while (found != before);
	return found;
}

/* Take what waits, but for @p within_ns at most: also a decoder that is behind must hear that it
 * shall end. */
static enum rbsp_status drain(struct rbsp_sampler *s, uint64_t within_ns, uint64_t max_samples,
			      struct rbsp_sink *sink)
{
	uint64_t until = within_ns ? rbsp_now_ns() + within_ns : UINT64_MAX;
	enum rbsp_status st = RBSP_OK;
	struct rbsp_ring *r;

	while (st == RBSP_OK && rbsp_now_ns() < until && (r = next_ring(s))) {
		st = handle_all_of(s, rbsp_ring_peek(r), max_samples, sink);
		rbsp_ring_pop(r);
	}
	return st;
}

static void nap(struct rbsp_sampler *s, uint64_t until_ns)
{
	uint64_t at = rbsp_now_ns() + NAP_NS;
	struct timespec ts;

	if (until_ns && at > until_ns)
		at = until_ns;
	ts = (struct timespec){ (time_t)(at / 1000000000u), (long)(at % 1000000000u) };
	sem_clockwait(&s->wake, CLOCK_MONOTONIC, &ts);
}

static enum rbsp_status start(struct rbsp_sampler *s, uint64_t duration_ns, struct rbsp_err *err)
{
	s->ticks.period_ns = 1e9 / s->opt.rate_hz;
	s->ticks.seed = s->opt.seed ? s->opt.seed : rbsp_now_ns();
	for (size_t i = 0; i < s->n_proc; i++) {
		struct rbsp_proc *p = s->proc[i];

		refresh(s, p); /* a process that has just ended is noticed by maintain */
		p->cpu_start_ns = rbsp_proc_cpu_ns(p);
		rbsp_cpus_find(s, p);
	}
	s->ticks.start_ns = rbsp_now_ns() + 1000000;
	s->end_ns = duration_ns ? s->ticks.start_ns + duration_ns : 0;
	return rbsp_cpus_start(s, err);
}

static enum rbsp_status ignore_sample(struct rbsp_sink *self, const struct rbsp_sample *sample)
{
	(void)self;
	(void)sample;
	return RBSP_OK;
}

/* A tape is worth something only if it can be read again without the process: do so at once. */
static enum rbsp_status finish_tape(struct rbsp_sampler *s, struct rbsp_err *err)
{
	static const struct rbsp_sink_ops ops = { .sample = ignore_sample };
	struct rbsp_sink sink = { &ops };
	struct rbsp_sampler_options o = s->opt;
	struct rbsp_sampler_stats stats;
	struct rbsp_frames *frames;
	enum rbsp_status st = rbsp_tape_finish(s->proc[0]->cold, err);

	if (st != RBSP_OK)
		return st;
	o.tape = NULL;
	frames = rbsp_frames_new();
	st = frames ? rbsp_tape_replay(s->tape_path, &o, frames, &sink, &stats, err)
		    : rbsp_fail(err, RBSP_E_NOMEM, "no memory to replay the tape");
	rbsp_frames_free(frames);
	return st;
}

enum rbsp_status rbsp_sampler_run(struct rbsp_sampler *s, uint64_t duration_ns,
				  uint64_t max_samples, struct rbsp_sink *sink,
				  struct rbsp_err *err)
{
	enum rbsp_status st = start(s, duration_ns, err);

	while (st == RBSP_OK && !atomic_load(&s->stopping)) {
		st = drain(s, NAP_NS, max_samples, sink);
		if ((max_samples && atomic_load(&s->done.samples) >= max_samples) || !maintain(s) ||
		    (s->end_ns && rbsp_now_ns() >= s->end_ns))
			break;
		nap(s, s->end_ns);
	}
	rbsp_tracers_stop(s);
	for (size_t i = 0; i < s->n_proc; i++)
		note_cpu_time(s->proc[i]);
	if (st == RBSP_OK)
		st = drain(s, 0, max_samples, sink);
	return st == RBSP_OK && s->opt.tape ? finish_tape(s, err) : st;
}
