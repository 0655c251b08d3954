/* Shared by the C programs of the bench: see bench.h. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"

static volatile sig_atomic_t ended;

_Noreturn void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

double number_of(const char *text, const char *what)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end)
		die("%s: '%s' is not a number", what, text);
	return v;
}

void figures_add(struct figures *f, uint64_t ns)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 1024;
		f->ns = realloc(f->ns, f->cap * sizeof(*f->ns));
		if (!f->ns)
			die("out of memory");
	}
	f->ns[f->n++] = ns;
}

void figures_fini(struct figures *f)
{
	free(f->ns);
	*f = (struct figures){ 0 };
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void figures_print(const char *name, struct figures *f)
{
	double sum = 0;

	if (!f->n) {
		printf("\"%s\": null", name);
		return;
	}
	qsort(f->ns, f->n, sizeof(*f->ns), by_size);
	for (size_t i = 0; i < f->n; i++)
		sum += (double)f->ns[i];
	printf("\"%s\": {\"n\": %zu, \"median\": %.3f, \"mean\": %.3f, \"p99\": %.3f, "
	       "\"max\": %.3f}",
	       name, f->n, (double)f->ns[f->n / 2] / 1e3, sum / (double)f->n / 1e3,
	       (double)f->ns[f->n * 99 / 100] / 1e3, (double)f->ns[f->n - 1] / 1e3);
}

bool place_self(int cpu)
{
	struct sched_param sp = { .sched_priority = 1 };
	cpu_set_t set;

	if (cpu < 0)
		return false;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("cannot pin to cpu %d", cpu);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	return sched_setscheduler(0, SCHED_FIFO, &sp) == 0;
}

static void end(int sig)
{
	(void)sig;
	ended = 1;
}

void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = end };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

void run_init(struct run *r, double hz, double seconds)
{
	*r = (struct run){ .ticks = {
				   .start_ns = rbsp_now_ns(), .period_ns = 1e9 / hz, .seed = 1 } };
	r->end_ns = r->ticks.start_ns + (uint64_t)(seconds * 1e9);
}

bool run_next(struct run *r)
{
	uint64_t now = rbsp_tick_after(&r->ticks, rbsp_now_ns());
	struct timespec ts;

	r->i = now > r->i ? now : r->i + 1;
	r->at_ns = rbsp_tick_ns(&r->ticks, r->i);
	ts = (struct timespec){ (time_t)(r->at_ns / 1000000000u), (long)(r->at_ns % 1000000000u) };
	while (!ended && r->at_ns < r->end_ns) {
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != EINTR)
			return true;
	}
	return false;
}
