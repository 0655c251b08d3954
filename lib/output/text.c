/* The one sanitiser of all writers, and the text of a frame. */
#include "output/text.h"

#include <inttypes.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

/* One row for each length of a sequence: RFC 3629. */
static const struct {
	unsigned char mask, lead;
	uint32_t least;
} utf8[] = {
	{ 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
};

size_t rbsp_utf8_next(const char *s, uint32_t *cp)
{
	const unsigned char *p = (const unsigned char *)s;

	for (size_t n = 1; n <= RBSP_COUNT_OF(utf8); n++) {
		uint32_t c = p[0] & (unsigned char)~utf8[n - 1].mask;
		size_t i;

		if ((p[0] & utf8[n - 1].mask) != utf8[n - 1].lead)
			continue;
		for (i = 1; i < n && (p[i] & 0xc0) == 0x80; i++)
			c = c << 6 | (p[i] & 0x3f);
		if (i < n || c < utf8[n - 1].least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			break;
		*cp = c;
		return n;
	}
	*cp = REPLACEMENT;
	return 1;
}

void rbsp_utf8_add(struct rbsp_buf *b, uint32_t cp)
{
	unsigned char s[4];
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		s[i] = (unsigned char)(0x80 | (cp & 0x3f));
	s[0] = (unsigned char)(utf8[n - 1].lead | cp);
	rbsp_buf_add(b, s, n);
}

struct span {
	uint32_t first, last;
};

static bool within(const struct span *span, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++) {
		if (c >= span[i].first && c <= span[i].last)
			return true;
	}
	return false;
}

/* Blanks, tabs and ends of line of every kind: Unicode's Zs, Zl, Zp, and the C0 and C1 controls
 * that separate. */
static const struct span blanks[] = {
	{ 0x09, 0x0d },     { 0x20, 0x20 },     { 0x85, 0x85 },     { 0xa0, 0xa0 },
	{ 0x1680, 0x1680 }, { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f },
	{ 0x205f, 0x205f }, { 0x3000, 0x3000 },
};

/* What a terminal obeys: C0, DEL, C1, and the marks that turn the direction of writing. */
static const struct span controls[] = {
	{ 0x00, 0x1f },     { 0x7f, 0x9f },     { 0x061c, 0x061c },
	{ 0x200e, 0x200f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 },
};

/* Not characters of XML 1.0. */
static const struct span not_xml[] = { { 0xfffe, 0xffff } };

static uint32_t soften(uint32_t c, enum rbsp_text_form form)
{
	if (c > 0x20 && c < 0x7f)
		return c == ';' && form == RBSP_TEXT_FOLDED ? ':' : c;
	if (within(blanks, RBSP_COUNT_OF(blanks), c))
		return ' ';
	if (within(controls, RBSP_COUNT_OF(controls), c))
		return '?';
	return within(not_xml, RBSP_COUNT_OF(not_xml), c) ? REPLACEMENT : c;
}

static void cut(struct rbsp_buf *b, size_t len)
{
	if (b->len > len) {
		b->len = len;
		b->data[len] = '\0';
	}
}

void rbsp_text_add(struct rbsp_buf *b, const char *s, enum rbsp_text_form form)
{
	size_t from = b->len, end = from;

	while (s && *s) {
		uint32_t c;

		s += rbsp_utf8_next(s, &c);
		c = soften(c, form);
		if (c == ' ' && b->len == from)
			continue;
		rbsp_utf8_add(b, c);
		if (c != ' ')
			end = b->len;
	}
	cut(b, end);
	if (end == from)
		rbsp_buf_str(b, RBSP_TEXT_UNKNOWN);
}

/* First digits of the decimal digits that are not ASCII, ten each (Unicode 14, Nd): \d of a Perl
 * that reads UTF-8. */
static const uint32_t digits[] = {
	0x0660,  0x06f0,  0x07c0,  0x0966,  0x09e6,  0x0a66,  0x0ae6,  0x0b66,  0x0be6,  0x0c66,
	0x0ce6,  0x0d66,  0x0de6,  0x0e50,  0x0ed0,  0x0f20,  0x1040,  0x1090,  0x17e0,  0x1810,
	0x1946,  0x19d0,  0x1a80,  0x1a90,  0x1b50,  0x1bb0,  0x1c40,  0x1c50,  0xa620,  0xa8d0,
	0xa900,  0xa9d0,  0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x11066, 0x110f0,
	0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950,
	0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec,
	0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
};

static bool is_digit(uint32_t c)
{
	if (c < 0x80)
		return c >= '0' && c <= '9';
	for (size_t i = 0; i < RBSP_COUNT_OF(digits); i++) {
		if (c >= digits[i] && c < digits[i] + 10)
			return true;
	}
	return false;
}

/* flamegraph.pl takes `^(.*)\s+?(\d+(?:\.\d*)?)$` for a stack with a count, and does so twice. */
static bool looks_like_a_count(const char *s)
{
	const char *p = strrchr(s, ' ');
	uint32_t c = 0;

	if (!p || !p[1])
		return false;
	for (p++; *p;) {
		p += rbsp_utf8_next(p, &c);
		if (c != '.' && !is_digit(c))
			return false;
	}
	return true;
}

void rbsp_text_harmless(struct rbsp_buf *b, size_t from)
{
	const char *s = rbsp_buf_text(b) + from;

	/* A frame "-" or "--" is drawn as a grey gap. */
	if (!looks_like_a_count(s) && strcmp(s, "-") != 0 && strcmp(s, "--") != 0)
		return;
	rbsp_buf_str(b, "[]");
	if (b->failed)
		return;
	memmove(b->data + from + 1, b->data + from, b->len - 2 - from);
	b->data[from] = '[';
	b->data[b->len - 1] = ']';
}

static void add_ruby(struct rbsp_buf *b, const struct rbsp_frame *f, bool lines,
		     enum rbsp_text_form form)
{
	rbsp_text_add(b, f->name, form);
	if (!lines || !f->path)
		return;
	rbsp_buf_str(b, " - ");
	rbsp_text_add(b, f->path, form);
	if (f->line)
		rbsp_buf_printf(b, ":%" PRIu32, f->line);
}

static void add_native(struct rbsp_buf *b, const struct rbsp_frame *f, enum rbsp_text_form form)
{
	bool named = f->name && *f->name, placed = f->module && *f->module;

	if (named && placed) {
		rbsp_text_add(b, f->name, form);
		rbsp_buf_str(b, " (");
		rbsp_text_add(b, f->module, form);
		rbsp_buf_str(b, ")");
	} else if (placed) {
		rbsp_text_add(b, f->module, form);
		rbsp_buf_printf(b, "+0x%" PRIx64, f->func ? f->func : f->offset);
	} else {
		rbsp_text_add(b, f->name, form);
	}
}

static void add_bracketed(struct rbsp_buf *b, const char *what, const char *name,
			  enum rbsp_text_form form)
{
	rbsp_buf_str(b, "[");
	rbsp_buf_str(b, what);
	rbsp_text_add(b, name && *name ? name : "unknown", form);
	rbsp_buf_str(b, "]");
}

void rbsp_text_frame(struct rbsp_buf *b, const struct rbsp_frame *f, bool lines,
		     enum rbsp_text_form form)
{
	size_t from = b->len;

	switch (f->kind) {
	case RBSP_FRAME_RUBY:
		add_ruby(b, f, lines, form);
		break;
	case RBSP_FRAME_CFUNC:
		rbsp_text_add(b, f->name, form);
		rbsp_buf_str(b, " [c function]");
		break;
	case RBSP_FRAME_NATIVE:
	case RBSP_FRAME_INTERP:
		add_native(b, f, form);
		break;
	case RBSP_FRAME_JIT:
		rbsp_text_add(b, f->name, form);
		rbsp_buf_str(b, " [jit]");
		break;
	case RBSP_FRAME_GC:
		add_bracketed(b, "gc: ", f->name, form);
		break;
	case RBSP_FRAME_STATE:
	case RBSP_FRAME_MARKER:
		add_bracketed(b, "", f->name, form);
		break;
	}
	if (form == RBSP_TEXT_FOLDED)
		rbsp_text_harmless(b, from);
}
