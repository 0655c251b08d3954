/* Where a profile goes: opened before anything is attached, written at the end. */
#ifndef RBSAMPLE_OUT_FILE_H
#define RBSAMPLE_OUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <rbsample/status.h>

struct out_file {
	FILE *f; /* NULL: not open */
	bool is_stdout;
	bool ours;  /* we made the file: it goes away if nothing comes of the run */
	bool named; /* by default, not by the user */
	char path[PATH_MAX];
};

/** Open @p path, "-" for stdout. What is in the file stays there until out_file_begin. */
enum rbsp_status out_file_open(struct out_file *o, const char *path, struct rbsp_err *err);
/** Make a new file `rbsample-PID-YYYYmmddTHHMMSS` @p suffix in the current directory; never an old
 * one. */
enum rbsp_status out_file_make(struct out_file *o, int pid, const char *suffix,
			       struct rbsp_err *err);
/** Empty it: writing begins. */
enum rbsp_status out_file_begin(struct out_file *o, struct rbsp_err *err);
/** Close it. RBSP_E_OUTPUT: not all of it was written. */
enum rbsp_status out_file_close(struct out_file *o, struct rbsp_err *err);
/** Close it and take it away again if we made it. */
void out_file_drop(struct out_file *o);

#endif
