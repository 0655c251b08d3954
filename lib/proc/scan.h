/* Bounded scanning of text that is not NUL-terminated. */
#ifndef RBSP_SCAN_H
#define RBSP_SCAN_H

#include <string.h>

#include "base/base.h"

/** What is left of a text. */
struct rbsp_scan {
	const char *p, *end;
};

/** Take the next character if it is @p c. */
static inline bool rbsp_scan_char(struct rbsp_scan *s, char c)
{
	if (s->p >= s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/** Skip blanks and tabs. */
static inline void rbsp_scan_blanks(struct rbsp_scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

/** Skip everything up to the next blank or newline. @return false: nothing is there */
static inline bool rbsp_scan_word(struct rbsp_scan *s)
{
	const char *start = s->p;

	while (s->p < s->end && *s->p != ' ' && *s->p != '\n')
		s->p++;
	return s->p > start;
}

/** Take an unsigned number of base 8, 10 or 16 without prefix. @return false: no digit here, or
 * more than 64 bits */
static inline bool rbsp_scan_u64(struct rbsp_scan *s, unsigned base, uint64_t *out)
{
	const char *start = s->p;
	uint64_t value = 0;

	for (; s->p < s->end; s->p++) {
		unsigned digit;
		char c = *s->p;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			digit = (unsigned)(c - 'A') + 10;
		else
			break;
		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*out = value;
	return s->p > start;
}

/** Take a decimal number with an optional minus. */
static inline bool rbsp_scan_i64(struct rbsp_scan *s, int64_t *out)
{
	bool minus = rbsp_scan_char(s, '-');
	uint64_t value;

	if (!rbsp_scan_u64(s, 10, &value) || value > INT64_MAX)
		return false;
	*out = minus ? -(int64_t)value : (int64_t)value;
	return true;
}

/** Take a decimal number of an int. */
static inline bool rbsp_scan_int(struct rbsp_scan *s, int *out)
{
	int64_t value;

	if (!rbsp_scan_i64(s, &value) || value < INT32_MIN || value > INT32_MAX)
		return false;
	*out = (int)value;
	return true;
}

/** Take the rest of the line without its newline. @return false: nothing is left */
static inline bool rbsp_scan_line(struct rbsp_scan *s, struct rbsp_scan *line)
{
	const char *nl;

	if (s->p >= s->end)
		return false;
	nl = memchr(s->p, '\n', (size_t)(s->end - s->p));
	line->p = s->p;
	line->end = nl ? nl : s->end;
	s->p = nl ? nl + 1 : s->end;
	return true;
}

#endif
