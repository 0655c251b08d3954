/* A growable byte buffer whose failures are checked once, at the end. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbsp_buf_fini(struct rbsp_buf *b)
{
	if (!b)
		return;
	free(b->data);
	*b = (struct rbsp_buf){ 0 };
}

void rbsp_buf_clear(struct rbsp_buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Room for n bytes more and the NUL. */
static bool reserve(struct rbsp_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	char *data;

	if (b->failed)
		return false;
	if (n >= SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + n < b->cap)
		return true;
	while (cap <= b->len + n)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void rbsp_buf_add(struct rbsp_buf *b, const void *data, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void rbsp_buf_str(struct rbsp_buf *b, const char *s)
{
	rbsp_buf_add(b, s, strlen(s));
}

void rbsp_buf_printf(struct rbsp_buf *b, const char *fmt, ...)
{
	size_t room;
	va_list ap;
	int n;

	if (!reserve(b, 0))
		return;
	room = b->cap - b->len;
	va_start(ap, fmt);
	n = vsnprintf(b->data + b->len, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n >= room && reserve(b, (size_t)n)) {
		va_start(ap, fmt);
		n = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	if (n < 0)
		b->failed = true;
	if (b->failed)
		b->data[b->len] = '\0'; /* what was half written is taken back */
	else
		b->len += (size_t)n;
}

const char *rbsp_buf_text(const struct rbsp_buf *b)
{
	return b->data ? b->data : "";
}
