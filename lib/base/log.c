/* The process-wide log callback. */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
	rbsp_log_fn fn;
	void *arg;
	enum rbsp_log_level max_level;
} sink;

void rbsp_log_set(rbsp_log_fn fn, void *arg, enum rbsp_log_level max_level)
{
	sink.fn = fn;
	sink.arg = arg;
	sink.max_level = max_level;
}

void rbsp_log(enum rbsp_log_level level, const char *fmt, ...)
{
	char line[1024];
	int saved = errno;
	va_list ap;

	if (!sink.fn || level > sink.max_level)
		return;
	va_start(ap, fmt);
	if (vsnprintf(line, sizeof(line), fmt, ap) < 0)
		line[0] = '\0';
	va_end(ap);
	for (char *p = line; *p; p++) {
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	}
	sink.fn(sink.arg, level, line);
	errno = saved;
}
