/* Writers: sinks that make files, and texts for people. */
#ifndef RBSAMPLE_OUTPUT_H
#define RBSAMPLE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <rbsample/frame.h>
#include <rbsample/sample.h>
#include <rbsample/sampler.h>
#include <rbsample/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How stacks are written. */
struct rbsp_output_options {
	size_t size;
	bool lines;        /* path:line of Ruby frames */
	bool threads;      /* "thread NAME (TID)" as a root */
	bool processes;    /* "process NAME (PID)" as a root */
	bool interp;       /* the interpreter's own frames too */
	bool caller_lines; /* a C function has the path and line of its caller, as
			      Thread::Backtrace::Location says it */
};
void rbsp_output_options_init(struct rbsp_output_options *o);

/** One row of the table of formats. */
struct rbsp_format {
	const char *name;   /* "folded" */
	const char *alias;  /* "collapsed", NULL: none */
	const char *suffix; /* of file names, with the dot */
	const char *text;   /* one line for --help */
	/** A sink that writes to @p out (borrowed, flushed by finish, closed by the caller). */
	enum rbsp_status (*open)(FILE *out, const struct rbsp_output_options *o,
				 const struct rbsp_frames *frames, struct rbsp_sink **sink,
				 struct rbsp_err *err);
};
/** The formats, ended by a row with name NULL. */
extern const struct rbsp_format rbsp_formats[];
/** By name or alias; NULL: unknown. */
const struct rbsp_format *rbsp_format_find(const char *name);
/** By the suffix of a file name; NULL: no format has it. */
const struct rbsp_format *rbsp_format_of_file(const char *path);

/** A sink that counts, for a table of the hottest frames, and passes every sample on to @p next
 * (owned afterwards, NULL: none). */
enum rbsp_status rbsp_hot_open(struct rbsp_sink *next, const struct rbsp_output_options *o,
			       const struct rbsp_frames *frames, struct rbsp_sink **sink,
			       struct rbsp_err *err);
/** Print the @p rows hottest frames: self and total shares. @p sink comes from rbsp_hot_open. */
void rbsp_hot_print(const struct rbsp_sink *sink, FILE *out, size_t rows, bool color);

/** `dump` for people, one paragraph a thread, innermost frame first. */
enum rbsp_status rbsp_dump_text(const struct rbsp_dump *d, const struct rbsp_frames *frames,
				const struct rbsp_output_options *o, bool color, FILE *out,
				struct rbsp_err *err);
/** `dump -f json`. */
enum rbsp_status rbsp_dump_json(const struct rbsp_dump *d, const struct rbsp_frames *frames,
				const struct rbsp_output_options *o, FILE *out,
				struct rbsp_err *err);
enum rbsp_status rbsp_inspect_text(const struct rbsp_inspect *i, FILE *out, struct rbsp_err *err);
enum rbsp_status rbsp_inspect_json(const struct rbsp_inspect *i, FILE *out, struct rbsp_err *err);

#ifdef __cplusplus
}
#endif
#endif
