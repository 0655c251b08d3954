/* Which cpus need a tracer. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "sampler/cpus.h"
#include "target/live.h"

#define UNUSED_AFTER_NS 1000000000u
/* On machines of up to this many cpus all that the target may use have a tracer from the start. */
#define FEW_CPUS 4

/* The cpu a thread last ran on, -1: unknown. */
static int cpu_of(const struct rbsp_proc *p, int tid)
{
	struct rbsp_proc_stat st;
	char name[40], text[1024];
	long n;

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	n = rbsp_live_file(p->live, name, text, sizeof(text));
	if (n <= 0 || rbsp_proc_stat_parse(text, (size_t)n, &st) != RBSP_OK)
		return -1;
	return st.cpu >= 0 && st.cpu < RBSP_CPUS ? st.cpu : -1;
}

static void note(struct rbsp_sampler *s, const struct rbsp_proc *p, uint64_t now)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct rbsp_entry *e = p->entry[i];
		int cpu;

		/* A thread that was not due lately has not run lately. */
		if (e->tick_ns && now - e->tick_ns > UNUSED_AFTER_NS)
			continue;
		cpu = cpu_of(p, e->tid);
		if (cpu >= 0)
			s->cpu_used_ns[cpu] = now;
	}
}

void rbsp_cpus_find(struct rbsp_sampler *s, struct rbsp_proc *p)
{
	uint64_t now = rbsp_now_ns();
	cpu_set_t set;

	note(s, p, now);
	if (sysconf(_SC_NPROCESSORS_ONLN) > FEW_CPUS ||
	    sched_getaffinity(p->info.pid, sizeof(set), &set) != 0)
		return;
	for (int cpu = 0; cpu < RBSP_CPUS; cpu++) {
		if (CPU_ISSET((size_t)cpu, &set))
			s->cpu_used_ns[cpu] = now;
	}
}

enum rbsp_status rbsp_cpus_start(struct rbsp_sampler *s, struct rbsp_err *err)
{
	enum rbsp_status st = RBSP_OK;
	bool any = false;

	for (int cpu = 0; cpu < RBSP_CPUS && st == RBSP_OK; cpu++) {
		if (!s->cpu_used_ns[cpu])
			continue;
		st = rbsp_tracer_start(s, cpu, err);
		any = true;
	}
	return any || st != RBSP_OK ? st : rbsp_tracer_start(s, 0, err);
}

void rbsp_cpus_use(struct rbsp_sampler *s, struct rbsp_proc *p)
{
	uint64_t now = rbsp_now_ns();
	bool few = sysconf(_SC_NPROCESSORS_ONLN) <= FEW_CPUS;

	note(s, p, now);
	for (int cpu = 0; cpu < RBSP_CPUS; cpu++) {
		if (!s->cpu_used_ns[cpu])
			continue;
		if (now - s->cpu_used_ns[cpu] < UNUSED_AFTER_NS)
			rbsp_tracer_start(s, cpu, NULL);
		else if (!few)
			atomic_store(&s->tracer[cpu].active, false);
	}
}
