/* Tracer threads: asleep to the same instants, one on each cpu that a target uses. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sampler/core.h"

/* The longest that a tracer holds its cpu for another one's INTERRUPT, and that the owner of a tick
 * waits for the others. */
#define HOLD_NS 100000u
#define GATHER_NS 50000u
/* A tracer that wakes later than this was not put on its cpu by the tick's own interrupt. */
#define ON_TIME_NS 200000u
/* A stop that has not come after this is given up. A thread that waits for a cpu may need some
 * scheduler rounds. */
#define DEADLINE_NS 1000000000u
/* At the end of a run: 2 ms each. */
#define PATIENT_TRIES 30
/* An event waits at most this long before the decoder is woken. */
#define WAKE_EVERY_NS 5000000u

/* The kernel's struct sched_attr, include/uapi/linux/sched/types.h; glibc has it from 2.41 on. */
struct sched_attr_v0 {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void nothing(int sig)
{
	(void)sig;
}

static void install_wake_handler(void)
{
	struct sigaction sa = { .sa_handler = nothing }; /* no SA_RESTART: it must end a wait */

	sigaction(rbsp_wake_signal(), &sa, NULL);
}

int rbsp_wake_signal(void)
{
	return SIGRTMIN + 4;
}

bool rbsp_tick_own(struct rbsp_sampler *s)
{
	bool expected = false;

	return atomic_compare_exchange_strong(&s->owned, &expected, true);
}

void rbsp_tick_release(struct rbsp_sampler *s)
{
	atomic_store_explicit(&s->owned, false, memory_order_release);
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

/*
 * The tick's own timer interrupt has to take the target off its cpu. Real-time priority makes that
 * certain; without the privilege an EEVDF slice of 0.1 ms (kernel >= 6.12) nearly does (facts: a
 * late stop lands at the next system call).
 */
static void set_priority(struct rbsp_sampler *s)
{
	struct sched_param sp = { .sched_priority = 1 };
	struct sched_attr_v0 slice = { .size = sizeof(slice), .runtime = 100000 };

	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (s->opt.realtime && pthread_setschedparam(pthread_self(), SCHED_FIFO, &sp) == 0) {
		atomic_store(&s->realtime, true);
		atomic_store(&s->aimed, true);
	} else if (syscall(SYS_sched_setattr, 0, &slice, 0) == 0) {
		atomic_store(&s->aimed, true);
	}
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set),
			  &set); /* refused by a cpuset: it samples from where it is */
}

static bool sleep_to(struct rbsp_sampler *s, uint64_t at_ns)
{
	struct timespec ts = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

	while (!atomic_load_explicit(&s->closing, memory_order_relaxed)) {
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == 0)
			return true;
	}
	return false;
}

/* Say that this cpu is held from tick i on, and, where somebody will ask, since when. */
static void come(struct rbsp_tracer *t, uint64_t i)
{
	uint64_t slept = atomic_load_explicit(&t->s->slept_ns, memory_order_relaxed), ns = 0;

	if (slept && rbsp_tick_ns(&t->s->ticks, i) - slept < RBSP_SLEEPY_NS)
		rbsp_self_on_cpu(t->sched, &ns);
	atomic_store_explicit(&t->on_cpu_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&t->holds, i + 1, memory_order_release);
}

/* Keep this cpu until the INTERRUPTs of tick i are out: what was preempted here does not run on
 * before. */
static void hold(struct rbsp_tracer *t, uint64_t i)
{
	uint64_t until = rbsp_now_ns() + HOLD_NS;

	come(t, i);
	while (atomic_load_explicit(&t->s->issued, memory_order_acquire) <= i &&
	       rbsp_now_ns() < until)
		relax();
}

/* Wait until all other tracers have their cpus. @return whether they have: then nothing of the
 * target runs */
static bool gather(struct rbsp_tracer *t, uint64_t i)
{
	struct rbsp_sampler *s = t->s;
	uint64_t until = rbsp_now_ns() + GATHER_NS;

	for (size_t k = 0; k < RBSP_CPUS; k++) {
		const struct rbsp_tracer *o = &s->tracer[k];

		if (o == t || !atomic_load_explicit(&o->active, memory_order_relaxed))
			continue;
		if (atomic_load_explicit(&o->away, memory_order_relaxed))
			return false;
		while (atomic_load_explicit(&o->holds, memory_order_acquire) <= i) {
			if (rbsp_now_ns() >= until)
				return false;
			relax();
		}
	}
	return atomic_load_explicit(&s->aimed, memory_order_relaxed);
}

static void miss(struct rbsp_sampler *s, uint64_t n)
{
	rbsp_count(&s->counts.missed, n);
	rbsp_count(&s->counts.late,
		   n * atomic_load_explicit(&s->counts.due_last, memory_order_relaxed));
	rbsp_count(&s->counts.due,
		   n * atomic_load_explicit(&s->counts.due_last, memory_order_relaxed));
}

static void wake_decoder(struct rbsp_tracer *t)
{
	uint64_t now = rbsp_now_ns();

	if (now - t->woken_ns < WAKE_EVERY_NS && rbsp_ring_waiting(&t->ring) < RBSP_RING_EVENTS / 2)
		return;
	t->woken_ns = now;
	sem_post(&t->s->wake);
}

/* The caller owns the tick; it is given up as soon as the INTERRUPTs are out. */
static void run_tick(struct rbsp_tracer *t, uint64_t i, bool on_time)
{
	struct rbsp_sampler *s = t->s;
	uint64_t at = rbsp_tick_ns(&s->ticks, i);
	bool exact = rbsp_now_ns() - at < ON_TIME_NS && gather(t, i) && on_time;

	if (!s->first_ns)
		s->first_ns = at;
	s->last_ns = at;
	rbsp_count(&s->counts.ticks, 1);
	rbsp_due_issue(t, at);
	atomic_store(&t->away, true);
	atomic_store_explicit(&s->issued, i + 1, memory_order_release);
	rbsp_due_settle(t);
	rbsp_due_read_blocked(t, at);
	rbsp_tick_release(s);
	rbsp_windows(t, at, exact);
	atomic_store(&t->away, false);
	if (t->n_unlisted)
		sem_post(&s->wake);
	else if (rbsp_ring_waiting(&t->ring))
		wake_decoder(t);
}

/* Own the tick, waiting a little for whoever has it. @return false: it is missed */
static bool own_tick(struct rbsp_sampler *s, bool *on_time)
{
	uint64_t until;

	*on_time = true;
	if (rbsp_tick_own(s))
		return true;
	*on_time = false;
	until = rbsp_now_ns() + HOLD_NS;
	while (rbsp_now_ns() < until) {
		if (rbsp_tick_own(s))
			return true;
		relax();
	}
	return false;
}

/* The first tracer to come takes the tick; ticks that nobody took in time are counted and never
 * caught up. */
static void on_tick(struct rbsp_tracer *t, uint64_t i)
{
	struct rbsp_sampler *s = t->s;
	uint64_t claimed = atomic_load(&s->claimed);
	bool on_time;

	while (claimed <= i) {
		if (!atomic_compare_exchange_weak(&s->claimed, &claimed, i + 1))
			continue;
		if (claimed < i)
			miss(s, i - claimed);
		come(t, i);
		if (own_tick(s, &on_time)) {
			run_tick(t, i, on_time);
		} else {
			miss(s, 1);
			atomic_store_explicit(&s->issued, i + 1, memory_order_release);
		}
		return;
	}
	hold(t, i);
}

static void *tracer_main(void *arg)
{
	struct rbsp_tracer *t = arg;
	struct rbsp_sampler *s = t->s;
	uint64_t i;

	pin(t->cpu);
	set_priority(s);
	t->sched = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
	i = rbsp_tick_after(&s->ticks, rbsp_now_ns());
	while (!atomic_load(&s->closing)) {
		uint64_t now;

		if (!atomic_load(&t->active)) {
			sem_wait(&t->go);
			i = rbsp_tick_after(&s->ticks, rbsp_now_ns());
			continue;
		}
		if (s->end_ns && rbsp_tick_ns(&s->ticks, i) >= s->end_ns)
			break;
		if (!sleep_to(s, rbsp_tick_ns(&s->ticks, i)))
			break;
		on_tick(t, i);
		now = rbsp_tick_after(&s->ticks, rbsp_now_ns());
		i = now > i ? now : i + 1;
	}
	if (t->sched >= 0)
		close(t->sched);
	return NULL; /* what this thread still traces runs on: the end of a tracer detaches without
			a stop */
}

enum rbsp_status rbsp_tracer_start(struct rbsp_sampler *s, int cpu, struct rbsp_err *err)
{
	struct rbsp_tracer *t = &s->tracer[cpu];
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, old;
	enum rbsp_status st;
	int rc;

	if (t->started) {
		if (!atomic_exchange(&t->active, true))
			sem_post(&t->go);
		return RBSP_OK;
	}
	pthread_once(&once, install_wake_handler);
	t->s = s;
	t->cpu = cpu;
	t->due = calloc(RBSP_DUE_MAX, sizeof(*t->due));
	if (!t->due)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for a tracer");
	st = rbsp_ring_init(&t->ring, err);
	if (st != RBSP_OK)
		return st;
	sem_init(&t->go, 0, 0);
	atomic_store(&t->active, true);
	sigfillset(&all);
	sigdelset(&all, rbsp_wake_signal());
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&t->thread, NULL, tracer_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		atomic_store(&t->active, false);
		return rbsp_fail(err, RBSP_E_NOMEM, "no thread for cpu %d: %s", cpu, strerror(rc));
	}
	t->started = true;
	return RBSP_OK;
}

void rbsp_tracers_press(struct rbsp_sampler *s, uint64_t now_ns)
{
	for (size_t k = 0; k < RBSP_CPUS; k++) {
		struct rbsp_tracer *t = &s->tracer[k];
		uint64_t since = t->started ? atomic_load(&t->waits_ns) : 0;

		if (!since || now_ns < since + DEADLINE_NS)
			continue;
		atomic_store(&t->pressed, true);
		pthread_kill(t->thread,
			     rbsp_wake_signal()); /* again at the next call, until it is seen */
	}
}

/* Wait for a thread to end. @return false: it has not within @p ms */
static bool join_within(pthread_t thread, long ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += ms * 1000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &at) == 0;
}

void rbsp_tracers_stop(struct rbsp_sampler *s)
{
	atomic_store(&s->closing, true);
	for (size_t k = 0; k < RBSP_CPUS; k++) {
		struct rbsp_tracer *t = &s->tracer[k];
		int tries = 0;

		if (!t->started)
			continue;
		sem_post(&t->go);
		do { /* it may finish its windows; what has not stopped by then is let go */
			atomic_store(&t->pressed, ++tries > PATIENT_TRIES);
			pthread_kill(t->thread, rbsp_wake_signal());
		} while (!join_within(t->thread, 2));
		sem_destroy(&t->go);
		t->started = false;
		atomic_store(&t->active, false);
	}
}

void rbsp_tracers_free(struct rbsp_sampler *s)
{
	for (size_t k = 0; k < RBSP_CPUS; k++) {
		free(s->tracer[k].due);
		rbsp_ring_fini(&s->tracer[k].ring);
	}
}
