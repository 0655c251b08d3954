/* What every layer uses: target addresses, failures, logging. */
#ifndef RBSP_BASE_H
#define RBSP_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rbsample/log.h>
#include <rbsample/status.h>

/** An address in the target: an integer, cannot be dereferenced. */
typedef uint64_t rbsp_addr;

#define RBSP_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#define RBSP_RUBY(major, minor, teeny) \
	(((uint32_t)(major) << 16) | ((uint32_t)(minor) << 8) | (uint32_t)(teeny))

/**
 * Fill @p err (NULL: nobody asks) with the story of a failure and return its status. errno is kept
 * in it for RBSP_E_SYS, RBSP_E_OUTPUT and RBSP_E_DENIED, and its text is appended.
 */
enum rbsp_status rbsp_fail(struct rbsp_err *err, enum rbsp_status st, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** Send a line to the callback set with rbsp_log_set, if its level asks for it. */
void rbsp_log(enum rbsp_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
