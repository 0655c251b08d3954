/* A growable byte buffer. */
#ifndef RBSP_BUF_H
#define RBSP_BUF_H

#include "base/base.h"

/** Zero-initialised is empty. After a failed allocation `failed` stays set and appends do nothing:
 * check once, at the end. */
struct rbsp_buf {
	char *data; /* NUL-terminated whenever not NULL */
	size_t len, cap;
	bool failed;
};

void rbsp_buf_fini(struct rbsp_buf *b);
void rbsp_buf_clear(struct rbsp_buf *b);
void rbsp_buf_add(struct rbsp_buf *b, const void *data, size_t n);
void rbsp_buf_str(struct rbsp_buf *b, const char *s);
void rbsp_buf_printf(struct rbsp_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** The text, "" when empty; borrowed until the next append. */
const char *rbsp_buf_text(const struct rbsp_buf *b);

#endif
