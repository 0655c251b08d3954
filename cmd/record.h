/* `rbsample record`: what was asked for. */
#ifndef RBSAMPLE_RECORD_H
#define RBSAMPLE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <rbsample/output.h>
#include <rbsample/sampler.h>

#include "target_opts.h"

struct record {
	struct target_opts target;
	struct stack_opts stack;
	struct rbsp_sampler_options sampler;
	uint64_t duration_ns;             /* 0: no limit */
	bool limited;                     /* -d was given */
	uint64_t count;                   /* samples, 0: no limit */
	const char *output;               /* NULL: not given */
	const struct rbsp_format *format; /* NULL: not given, until record_run chooses */
	bool threads;
	char **command; /* NULL: none */
};

/** Do it. Returns the exit status. */
int record_run(struct record *r);

#endif
