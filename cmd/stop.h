/* What ends a run from outside: signals, and a stdout that nobody reads any more. And the progress
 * line. */
#ifndef RBSAMPLE_STOP_H
#define RBSAMPLE_STOP_H

#include <stdbool.h>
#include <sys/types.h>

#include <rbsample/sampler.h>

/**
 * From now on INT, TERM and HUP end the run of @p s (a second one ends us as usual), or, where @p
 * child is not 0, are passed to it. PIPE is ignored: a reader that goes away is seen as EPIPE.
 */
void stop_on_signals(struct rbsp_sampler *s, pid_t child);
/** The sampler is about to go: what comes now no longer reaches it, and waits until we are done. */
void stop_forget(void);
/** Whether a signal asked for the end. */
bool stop_asked(void);
/** Whether a watch saw that nobody reads the output any more. */
bool stop_unread(void);

struct watch;
/**
 * Start to watch a run: once a second a progress line, if @p progress; the run ends when the reader
 * of @p fd
 * (-1: none) goes away.
 *
 * @return NULL: not possible; the run goes on without
 */
struct watch *watch_start(struct rbsp_sampler *s, int fd, bool progress);
void watch_end(struct watch *w);

#endif
