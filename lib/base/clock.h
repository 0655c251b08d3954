/* Time, and the instants of the ticks. */
#ifndef RBSP_CLOCK_H
#define RBSP_CLOCK_H

#include "base/base.h"

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t rbsp_now_ns(void);

/** Jittered instants around an exact mean rate: the same function of (seed, index) for every thread
 * that asks. */
struct rbsp_ticks {
	uint64_t start_ns;
	double period_ns;
	uint64_t seed;
};

/** When tick @p i is: start + (i + u) * period, u in [0, 1) from a hash of (seed, i). */
uint64_t rbsp_tick_ns(const struct rbsp_ticks *t, uint64_t i);

/** The first tick that lies after @p now_ns. */
uint64_t rbsp_tick_after(const struct rbsp_ticks *t, uint64_t now_ns);

#endif
