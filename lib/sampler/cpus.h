/* Which cpus need a tracer: those that a target used in the last second. */
#ifndef RBSP_CPUS_H
#define RBSP_CPUS_H

#include "sampler/core.h"

/** Note where a process's threads run and may run, before the first tick. */
void rbsp_cpus_find(struct rbsp_sampler *s, struct rbsp_proc *p);
/** Start the tracers of the cpus noted. */
enum rbsp_status rbsp_cpus_start(struct rbsp_sampler *s, struct rbsp_err *err);
/** Note where a process's threads run now: start tracers there, let those of unused cpus sleep. */
void rbsp_cpus_use(struct rbsp_sampler *s, struct rbsp_proc *p);

#endif
