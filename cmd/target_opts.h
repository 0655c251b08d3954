/* Options that several subcommands share, as argp children. */
#ifndef RBSAMPLE_TARGET_OPTS_H
#define RBSAMPLE_TARGET_OPTS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <rbsample/log.h>
#include <rbsample/output.h>
#include <rbsample/sampler.h>

/** Which processes, and how much we say. Zero-initialised; the pids are freed by target_opts_fini.
 */
struct target_opts {
	int *pid;
	size_t n;
	int verbose; /* -1: quiet */
};
extern const struct argp target_argp; /* input: struct target_opts */
void target_opts_fini(struct target_opts *o);
/** End with a usage error if no process was named. */
void target_opts_require(const struct target_opts *o, const struct argp_state *state);
/** Send the library's messages to stderr, as many as -q and -v ask for. */
void target_opts_log(const struct target_opts *o);

/** What stacks look like. */
struct stack_opts {
	enum rbsp_native_mode native;
	bool native_given;
	enum rbsp_label_mode labels;
	bool interp, no_lines;
	enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color;
};
extern const struct argp stack_argp; /* input: struct stack_opts */
/** Whether to colour what goes to @p out. */
bool stack_opts_color(const struct stack_opts *o, FILE *out);
/** The options of the writers. */
struct rbsp_output_options stack_opts_output(const struct stack_opts *o);

#endif
