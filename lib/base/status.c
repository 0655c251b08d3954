/* Statuses as text, and the one place where a failure's story is written. */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	enum rbsp_next next;
	const char *text;
} rows[] = {
#define X(name, next, text) [RBSP_##name] = { RBSP_NEXT_##next, text },
	RBSP_STATUS_MAP(X)
#undef X
};

const char *rbsp_status_text(enum rbsp_status st)
{
	return (size_t)st < RBSP_COUNT_OF(rows) ? rows[st].text : "unknown status";
}

enum rbsp_next rbsp_status_next(enum rbsp_status st)
{
	return (size_t)st < RBSP_COUNT_OF(rows) ? rows[st].next : RBSP_NEXT_GIVE_UP;
}

static bool has_errno(enum rbsp_status st)
{
	return st == RBSP_E_SYS || st == RBSP_E_OUTPUT || st == RBSP_E_DENIED;
}

/* Names in a story may come from the target: a story stays one line whatever they hold. */
static void one_line(char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	}
}

enum rbsp_status rbsp_fail(struct rbsp_err *err, enum rbsp_status st, const char *fmt, ...)
{
	int sys_errno = has_errno(st) ? errno : 0;
	int saved = errno;
	va_list ap;
	int n;

	if (!err)
		return st;
	err->status = st;
	err->sys_errno = sys_errno;
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (n < 0)
		err->text[0] = '\0';
	if (sys_errno) {
		size_t len = strlen(err->text);

		snprintf(err->text + len, sizeof(err->text) - len, "%s%s", len ? ": " : "",
			 strerror(sys_errno));
	}
	one_line(err->text);
	errno = saved;
	return st;
}
