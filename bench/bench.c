/* Shared by the C programs of the bench: see bench.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "proc/proc.h"

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

enum rbsp_native_mode native_mode_of(const char *name)
{
	if (strcmp(name, "off") == 0)
		return RBSP_NATIVE_OFF;
	if (strcmp(name, "leaf") == 0)
		return RBSP_NATIVE_LEAF;
	if (strcmp(name, "full") == 0)
		return RBSP_NATIVE_FULL;
	die("'%s' is not one of off, leaf, full", name);
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

static double us_at(const struct figures *f, size_t i)
{
	return (double)f->ns[i] / 1e3;
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
	       name, f->n, us_at(f, f->n / 2), sum / (double)f->n / 1e3, us_at(f, f->n * 99 / 100),
	       us_at(f, f->n - 1));
}

int schedstat_open(int tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("cannot open %s", path);
	return fd;
}

uint64_t schedstat_wait_ns(int fd)
{
	struct rbsp_schedstat s = { 0 };
	char text[96];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n > 0)
		rbsp_schedstat_parse(text, (size_t)n, &s);
	return s.wait_ns;
}

void stop_add(struct stop_figures *f, const struct stop_times *t)
{
	uint64_t to_stop = t->stopped_ns - t->interrupt_ns;
	uint64_t waited = t->wait_after_ns - t->wait_before_ns;
	uint64_t held = t->resumed_ns - t->looked_ns;

	/* The wait may have begun before the INTERRUPT: with the preemption by the sampler itself.
	 */
	if (waited > to_stop)
		waited = to_stop;
	figures_add(&f->window, to_stop + held);
	figures_add(&f->own, to_stop - waited + held);
	figures_add(&f->to_stop, to_stop);
	figures_add(&f->held, held);
	figures_add(&f->schedstat, t->looked_ns - t->stopped_ns);
}

void stop_print(struct stop_figures *f)
{
	struct {
		const char *name;
		struct figures *f;
	} row[] = {
		{ "window", &f->window },       { "own", &f->own },
		{ "to_stop", &f->to_stop },     { "held", &f->held },
		{ "schedstat", &f->schedstat },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (i)
			printf(", ");
		figures_print(row[i].name, row[i].f);
		figures_fini(row[i].f);
	}
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
