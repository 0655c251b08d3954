/* Shared by the C programs of the bench: figures of many stops, where and how they run, their
 * ticks. */
#ifndef RBSP_BENCH_H
#define RBSP_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rbsample/sampler.h>

#include "base/clock.h"

/** Many measured times, in ns. */
struct figures {
	uint64_t *ns;
	size_t n, cap;
};

void figures_add(struct figures *f, uint64_t ns);
void figures_fini(struct figures *f);
/** `"NAME": {"n": .., "median": .., "mean": .., "p99": .., "max": ..}` in microseconds, to stdout;
 * sorts @p f. */
void figures_print(const char *name, struct figures *f);

/** Where the calling thread runs: cpu -1: not pinned, at normal priority; else pinned there, with
 * real-time priority and exact timers where allowed, as the sampler's tracers are. @return whether
 * real-time priority was granted */
bool place_self(int cpu);

/** Let INT and TERM end the loop of ticks. */
void catch_signals(void);

/** The ticks of a run, the same for every program that is given the same rate. */
struct run {
	struct rbsp_ticks ticks;
	uint64_t i, end_ns;
	uint64_t at_ns; /* the tick at hand */
};
void run_init(struct run *r, double hz, double seconds);
/** Sleep to the next tick that is not yet over. @return false: the end, or a signal came */
bool run_next(struct run *r);

/** Open the schedstat file of a thread; or the program ends with a message. */
int schedstat_open(int tid);
/** How long the thread has waited for a cpu so far, in ns. */
uint64_t schedstat_wait_ns(int fd);

/** One stop, taken apart. */
struct stop_times {
	uint64_t interrupt_ns, stopped_ns; /* just before INTERRUPT, just after the wait */
	uint64_t looked_ns; /* when the schedstat read at the stop, not part of the window, was done
			     */
	uint64_t resumed_ns;                    /* just after the resume */
	uint64_t wait_before_ns, wait_after_ns; /* waited for a cpu, at INTERRUPT and at the stop */
};
/** What every program of the bench tells of its stops. */
struct stop_figures {
	struct figures window; /* from INTERRUPT to resume, less the schedstat read */
	struct figures own; /* the same, less what the thread waited for a cpu before it stopped */
	struct figures to_stop;   /* from INTERRUPT to the stop */
	struct figures held;      /* from the stop to the resume, less the schedstat read */
	struct figures schedstat; /* that read */
};
void stop_add(struct stop_figures *f, const struct stop_times *t);
/** Print all of them, separated by commas, and free them. */
void stop_print(struct stop_figures *f);

/** A number from a command line, or the program ends with a message. */
double number_of(const char *text, const char *what);
/** off, leaf or full, or the program ends with a message. */
enum rbsp_native_mode native_mode_of(const char *name);
/** End with a message. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
