/* A live process: what the sampler needs of it beyond the seam. */
#ifndef RBSP_LIVE_H
#define RBSP_LIVE_H

#include "target/target.h"

/** @p t of all functions here must come from rbsp_live_open. */

/** A pidfd, borrowed: readable (poll) when the process has ended; -1 on kernels without. */
int rbsp_live_pidfd(const struct rbsp_target *t);

/** Whether the process has called exec since it was opened: addresses and images mean nothing any
 * more. */
bool rbsp_live_execed(struct rbsp_target *t);

/** Whether the process has ended (a zombie counts as ended). */
bool rbsp_live_ended(struct rbsp_target *t);

/** Read a small file /proc/PID/@p name into @p buf, NUL-terminated. @return bytes, < 0: errno
 * negated */
long rbsp_live_file(const struct rbsp_target *t, const char *name, char *buf, size_t cap);

/** The same for a whole path. */
long rbsp_live_path(const char *path, char *buf, size_t cap);

/** "pid in its own namespace", 0: unknown. */
int rbsp_live_ns_pid(const struct rbsp_target *t);

/**
 * Whether no other process traces @p pid. A sampler that attaches for its windows only is no
 * obstacle: asked several times over 50 ms. @return RBSP_OK; RBSP_E_TRACED with a story that names
 * the tracer
 */
enum rbsp_status rbsp_live_untraced(int pid, struct rbsp_err *err);

/** Explain a refused ptrace or memory access to process @p pid, see rbsp_access_explain. */
enum rbsp_status rbsp_live_explain(int pid, struct rbsp_err *err);

#endif
