/* What commands share that look once at processes and print: `dump` and `inspect`. */
#ifndef RBSAMPLE_VIEW_H
#define RBSAMPLE_VIEW_H

#include "target_opts.h"

struct view {
	struct target_opts target;
	bool json;
	size_t printed; /* processes that are on stdout so far */
};
/** -p, -q, -v and -f text|json; input: struct view. Ends with a usage error if no process was
 * named. */
extern const struct argp view_argp;

/**
 * Do one process after the other, and free the pids.
 *
 * @param one  prints one process and returns its exit status; counts it in @p printed
 * @return EXIT_DONE if any was printed, else the first failure's status; EXIT_OUTPUT as soon as
 * stdout fails
 */
int view_each(struct view *v, int (*one)(void *arg, struct view *v, int pid), void *arg);

#endif
