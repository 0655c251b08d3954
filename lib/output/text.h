/* Bytes of a target as text that no reader stumbles over, and what a frame is called. */
#ifndef RBSP_TEXT_H
#define RBSP_TEXT_H

#include <rbsample/frame.h>

#include "base/buf.h"

/** Who reads the text. */
enum rbsp_text_form {
	RBSP_TEXT_LINE,   /* people: one line, no control codes */
	RBSP_TEXT_FOLDED, /* also no ';', and nothing that the readers of folded stacks take for a
			     count */
};

/** Stands for a name that is empty or not known. */
#define RBSP_TEXT_UNKNOWN "[unknown]"

/**
 * Decode the code point at the beginning of a string.
 *
 * @param s   bytes, NUL-terminated, not at its end
 * @param cp  the code point; U+FFFD where the bytes are no UTF-8
 * @return how many bytes it took, at least 1
 */
size_t rbsp_utf8_next(const char *s, uint32_t *cp);

/** Append a code point as UTF-8. */
void rbsp_utf8_add(struct rbsp_buf *b, uint32_t cp);

/**
 * The sanitiser: append a name (NULL: not known) as valid UTF-8 without control codes, trimmed,
 * never empty. What a control code was is a blank or '?'.
 */
void rbsp_text_add(struct rbsp_buf *b, const char *s, enum rbsp_text_form form);

/**
 * Append the text of a frame: `Foo#bar - path/file.rb:12`, `Array#each [c function]`, `deflate
 * (libz.so.1.2.13)`, `libfoo.so+0x24eb`, `[gc: mark]`, `[gvl wait]`.
 *
 * @param b      buffer
 * @param f      frame
 * @param lines  with path and line
 * @param form   who reads it
 */
void rbsp_text_frame(struct rbsp_buf *b, const struct rbsp_frame *f, bool lines,
		     enum rbsp_text_form form);

/** Put what begins at @p from into brackets if a reader of folded stacks would misread it: ends in
 * a blank and a number, is "-" or "--". */
void rbsp_text_harmless(struct rbsp_buf *b, size_t from);

#endif
