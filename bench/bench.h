/* Shared by the C programs of the bench: figures of many stops, where and how they run, their
 * ticks. */
#ifndef RBSP_BENCH_H
#define RBSP_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** A number from a command line, or the program ends with a message. */
double number_of(const char *text, const char *what);
/** End with a message. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
