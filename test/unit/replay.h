/* A tape to folded stacks: used by the test of the tapes and by the program that makes them. */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdio.h>

#include <rbsample/status.h>

/** Replay a tape into folded stacks with threads and the interpreter's frames, the most that a
 * stack can show. */
enum rbsp_status replay(const char *path, FILE *out, struct rbsp_err *err);

#endif
