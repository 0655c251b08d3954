/* Monotonic time, and jittered ticks as a pure function of seed and index. */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

uint64_t rbsp_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* splitmix64's output function (Steele, Lea, Flood 2014): neighbouring inputs give unrelated
 * outputs. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t rbsp_tick_ns(const struct rbsp_ticks *t, uint64_t i)
{
	double u = (double)(mix(mix(t->seed) ^ i) >> 11) * 0x1p-53;

	/* Exact to the nanosecond for 2^53 ns = 104 days of run. */
	return t->start_ns + (uint64_t)(((double)i + u) * t->period_ns);
}

uint64_t rbsp_tick_after(const struct rbsp_ticks *t, uint64_t now_ns)
{
	uint64_t i;

	assert(t->period_ns >= 1);
	if (now_ns < t->start_ns)
		return 0;
	i = (uint64_t)((double)(now_ns - t->start_ns) / t->period_ns);
	if (i > 0)
		i--; /* the division may have rounded up */
	while (rbsp_tick_ns(t, i) <= now_ns)
		i++;
	return i;
}
