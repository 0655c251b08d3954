/* The sampler's own structures: shared by its tracers, which stop threads, and its decoder, which
 * does all the rest. */
#ifndef RBSP_CORE_H
#define RBSP_CORE_H

#include <pthread.h>
#include <regex.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "sampler/decode.h"
#include "sampler/process.h"
#include "sampler/ring.h"

#define RBSP_CPUS 256
#define RBSP_STOP_BUCKETS 4096 /* of one microsecond; the last holds all that is longer */

/** Counters of tracers, written by the owner of the tick, read by anybody. */
struct rbsp_tick_counts {
	_Atomic uint64_t ticks, missed, due, late, stops;
	_Atomic uint64_t gone, deadline, unreadable, inconsistent, traced, behind;
	_Atomic uint64_t due_last; /* threads that were due at the last tick: what a missed one is
				      counted with */
	_Atomic uint64_t stop_ns, stop_max_ns;
	_Atomic uint64_t stop_bucket[RBSP_STOP_BUCKETS];
	_Atomic int traced_tid; /* a thread that somebody else holds */
};

/** A thread that the tick asks for. */
struct rbsp_due {
	struct rbsp_entry *entry;
	struct rbsp_schedstat before;  /* at the tick */
	struct rbsp_proc_syscall call; /* where it is blocked */
	uint64_t interrupt_ns;
	bool blocked; /* not running: read without a stop */
	bool owner;   /* of the GVL */
	bool fresh;   /* it has run since it was last looked at */
	bool queued;  /* woken, but on no cpu at the tick */
	bool ran;     /* blocked by now, but on a cpu at the tick */
	bool done;    /* its one due sample is settled: handed to the decoder, or counted as lost */
	bool late;    /* lost to the deadline, its stop is still to come */
};

/* A thread that slept within this time may be on its way back to a cpu at a tick. */
#define RBSP_SLEEPY_NS 1000000000u

/* Threads that one tick may ask for. */
#define RBSP_DUE_MAX 32768u

/**
 * One tracer thread, pinned to a cpu. All are asleep to the same instant; the first to wake takes
 * the tick, the others hold their cpus until its INTERRUPTs are out. A tracer that waits for a stop
 * does not own the tick any more: the next one is another's.
 */
struct rbsp_tracer {
	struct rbsp_sampler *s;
	int cpu;
	pthread_t thread;
	bool started;
	_Atomic bool active;        /* its cpu is in use by a target */
	_Atomic bool away;          /* it waits for stops, and does not hold its cpu */
	sem_t go;                   /* posted when it becomes active */
	_Atomic uint64_t holds;     /* 1 + the last tick at whose instant it had its cpu */
	_Atomic uint64_t waits_ns;  /* since when it waits for stops, 0: it does not */
	_Atomic bool pressed;       /* the deadline has passed */
	uint64_t woken_ns;          /* when it last woke the decoder */
	int sched;                  /* descriptor of its own /proc/thread-self/sched */
	_Atomic uint64_t on_cpu_ns; /* when it came on its cpu for this tick, by the scheduler's
				       clock; 0: nobody asks */
	struct rbsp_due *due;       /* what the tick at hand asks for */
	size_t n_due;
	size_t n_owed; /* threads it asks for whose stop from an earlier tick is still to come */
	size_t n_unlisted; /* owners of a GVL that were not in the tables of threads */
	struct rbsp_ring ring;
};

struct rbsp_sampler {
	struct rbsp_sampler_options opt;
	char *tape_path;
	regex_t name;
	bool has_name;
	struct rbsp_frames *frames;
	struct rbsp_proc **proc;
	size_t n_proc;
	struct rbsp_decoder *decoder;
	struct rbsp_ticks ticks;
	_Atomic uint64_t claimed; /* ticks below were taken */
	_Atomic uint64_t issued;  /* ticks below have their INTERRUPTs out */
	_Atomic bool owned;       /* somebody owns the tick: a tracer that looks who is due, or the
				     decoder changing a table */
	_Atomic uint64_t
		slept_ns;      /* the last tick at which a thread of a target was seen blocked */
	_Atomic bool stopping; /* asked to end */
	_Atomic bool closing;  /* tracers must end */
	_Atomic bool realtime; /* real-time priority was granted */
	_Atomic bool aimed;    /* at least the scheduler lets our timers preempt the target */
	sem_t wake;            /* the decoder sleeps here */
	uint64_t end_ns;       /* no tick at or after, 0: none */
	struct rbsp_tracer tracer[RBSP_CPUS];
	uint64_t cpu_used_ns[RBSP_CPUS]; /* when a target was last seen there, 0: never */
	struct rbsp_tick_counts counts;
	struct {
		_Atomic uint64_t samples, exact, cut, unmerged, not_due, inconsistent, unreadable,
			cpu_ns;
	} done;                             /* the decoder's */
	_Atomic uint64_t first_ns, last_ns; /* of the ticks */
	_Atomic int other_tracer;           /* a process that holds a thread of a target, 0: none */
};

static inline void rbsp_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/** The signal that wakes a tracer from a wait; its handler does nothing. */
int rbsp_wake_signal(void);

/** Take the tick if nobody has it. Released with rbsp_tick_release. */
bool rbsp_tick_own(struct rbsp_sampler *s);
void rbsp_tick_release(struct rbsp_sampler *s);

/** Make the tracer of a cpu run, and keep those of other cpus as they are. */
enum rbsp_status rbsp_tracer_start(struct rbsp_sampler *s, int cpu, struct rbsp_err *err);
/** Wake tracers whose stops are overdue; called by the decoder every few milliseconds. */
void rbsp_tracers_press(struct rbsp_sampler *s, uint64_t now_ns);
/** End all tracers; what they hold runs on, what they captured can still be read. */
void rbsp_tracers_stop(struct rbsp_sampler *s);
void rbsp_tracers_free(struct rbsp_sampler *s);

/** Find who is due at this tick and interrupt those that run: t->due. The caller owns the tick. */
void rbsp_due_issue(struct rbsp_tracer *t, uint64_t tick_ns);
/**
 * Find out which of the blocked threads were running at the tick, drop those that nobody asks for,
 * and count what is due: the second half, when the cpus are free again.
 */
void rbsp_due_settle(struct rbsp_tracer *t);
/** A free event for a due thread, its times filled in, which settles it; NULL: the decoder is
 * behind (counted). */
struct rbsp_event *rbsp_due_event(struct rbsp_tracer *t, struct rbsp_due *d, uint64_t tick_ns,
				  size_t *room);
/** Hand a due thread's event to the decoder. */
void rbsp_due_push(struct rbsp_tracer *t, struct rbsp_due *d, struct rbsp_event *ev);
/** Count what a due thread stands for as lost. */
void rbsp_due_lose(struct rbsp_due *d, _Atomic uint64_t *why);
/** Read threads that are blocked, without a stop. */
void rbsp_due_read_blocked(struct rbsp_tracer *t, uint64_t tick_ns);
/** Collect the stops: capture and release each thread as it comes, until none is owed. */
void rbsp_windows(struct rbsp_tracer *t, uint64_t tick_ns, bool exact);

#endif
