/* What the subcommands share: messages, exit statuses, numbers. */
#ifndef RBSAMPLE_CMD_H
#define RBSAMPLE_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include <rbsample/status.h>

/** A subcommand; @p argv[0] is "rbsample NAME". Returns the exit status. */
int cmd_record(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_inspect(int argc, char **argv);

/** The exit status for a status of the library. */
int exit_status(enum rbsp_status st);
enum { EXIT_DONE = 0, EXIT_OTHER = 1, EXIT_USAGE = 64, EXIT_OUTPUT = 74 };

/** Print `rbsample: ...` as one line on stderr, over a progress line if there is one. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Show a progress line on stderr; "" takes it away. */
void say_progress(const char *text);
/** Whether a failure is only that nobody reads our stdout any more, which is no error. */
bool nobody_reads(const struct rbsp_err *err);
/** Print `rbsample: cannot attach to 4242: ...` and return the exit status. */
int say_attach_failed(int pid, const struct rbsp_err *err);
/** Print `rbsample: ...` for a failed write, unless nobody reads; returns the exit status. */
int say_failed(const struct rbsp_err *err);

/**
 * Read a duration: `30s`, `500ms`, `2m`, `1h`; a plain number is seconds; fractions are allowed.
 *
 * @param s   text
 * @param ns  set to it in nanoseconds; more than 0
 * @return false: not a duration, or longer than ten years
 */
bool parse_duration(const char *s, uint64_t *ns);
/** Read a whole number of @p least to @p most. */
bool parse_number(const char *s, uint64_t least, uint64_t most, uint64_t *out);

#endif
