/* Log messages of the library: it never prints, it calls back. */
#ifndef RBSAMPLE_LOG_H
#define RBSAMPLE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

enum rbsp_log_level { RBSP_LOG_ERROR, RBSP_LOG_WARN, RBSP_LOG_INFO, RBSP_LOG_DEBUG };

/** Called from any thread of the library, never inside a stop window; @p text is one line without a
 * newline, borrowed. */
typedef void (*rbsp_log_fn)(void *arg, enum rbsp_log_level level, const char *text);

/** Set the process-wide log callback, NULL for none (the default). Call before any sampler is
 * opened. */
void rbsp_log_set(rbsp_log_fn fn, void *arg, enum rbsp_log_level max_level);

#ifdef __cplusplus
}
#endif
#endif
