/* The merge of native and Ruby frames: tables of stacks. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "sampler/merge.h"

Suite *suite_sampler_merge(void);

/*
 * A stack is text, newest first. Natives: E rb_vm_exec, L the loop, r an unnamed function of the
 * Ruby module, R a named one, a digit the C function of that number, any other letter a plain
 * function. Ruby frames: a letter A-Z is a Ruby method, a digit a C function of that number, i an
 * IFUNC; `|` ends a run (FINISH on the frame before it). The result is root first, blank-separated:
 * Ruby frames by their letter, natives by theirs in lower-case quotes ('), joined ones as 1=1; the
 * interpreter's own in brackets.
 */
static const struct {
	const char *name, *native, *ruby;
	bool whole;
	const char *expect; /* NULL: mismatch */
} rows[] = {
	{ "interpreted code shows Ruby frames alone", "LE", "AB|", false, "[E] B A [L]" },
	{ "helpers next to the loop are the interpreter's", "mrRLE", "A|", false,
	  "[E] A [L] [R] [r] 'm'" },
	{ "a C function and its native frame are one", "m1rLE", "1A|", false,
	  "[E] A [L] [r] 1=1 'm'" },
	{ "a tail-called C function keeps what it called", "mRrLE", "1A|", false,
	  "[E] A 1 [L] [r] 'R' 'm'" },
	{ "leaf claims nothing below the newest run", "LE", "A|1B|", false, "B 1 [E] A [L]" },
	{ "nested runs pair from the oldest end", "LErRr1rLEm", "A|1B|", true,
	  "'m' [E] B [L] [r] 1=1 'r' 'R' 'r' [E] A [L]" },
	{ "two C functions in one run, glue between them hidden", "m2r1rLE", "21A|", false,
	  "[E] A [L] [r] 1=1 [r] 2=2 'm'" },
	{ "an IFUNC has no line of its own", "m1rLE", "i1A|", false, "[E] A [L] [r] 1=1 'm'" },
	{ "a left-over rb_vm_exec on top has an empty run", "ErLE", "A|", true,
	  "[E] A [L] [r] [E]" },
	{ "a left-over run on top has no rb_vm_exec", "rLE", "A|B|", true, "[E] B [L] [r] A" },
	{ "two apart: Ruby frames only", "EEE", "A|", true, NULL },
	{ "a thread without Ruby frames", "mnLE", "", false, "[E] [L] 'n' 'm'" },
	{ "C functions below the oldest rb_vm_exec", "m1x", "1", true, "'x' 1=1 'm'" },
	{ "a native stack that was cut stays on top of the newest run", "m1", "1A|B|", false,
	  "B A 1=1 'm'" },
};

static size_t make_native(const char *text, struct rbsp_merge_native *out)
{
	size_t n = 0;

	for (; *text; text++, n++) {
		struct rbsp_merge_native f = { .role = RBSP_ROLE_PLAIN,
					       .named = true,
					       .func = (rbsp_addr)(*text) };

		if (*text == 'E')
			f.role = RBSP_ROLE_EXEC;
		else if (*text == 'L')
			f.role = RBSP_ROLE_LOOP;
		else if (*text == 'r' || *text == 'R' || (*text >= '0' && *text <= '9'))
			f.role = RBSP_ROLE_RUBY_LIB;
		if (*text == 'r')
			f.named = false;
		out[n] = f;
	}
	return n;
}

static size_t make_ruby(const char *text, struct rbsp_merge_ruby *out, char *letters)
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '|') {
			out[n - 1].finish = true;
			continue;
		}
		out[n] = (struct rbsp_merge_ruby){
			.shown = *text != 'i',
			.cfunc = *text >= '0' && *text <= '9',
			.func = (rbsp_addr)(*text),
		};
		letters[n++] = *text;
	}
	return n;
}

static void render(const struct rbsp_merged *m, size_t n, const char *native, const char *ruby,
		   char *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++) {
		char one[16];

		if (m[i].ruby >= 0 && m[i].native >= 0)
			snprintf(one, sizeof(one), "%c=%c", ruby[m[i].ruby], native[m[i].native]);
		else if (m[i].ruby >= 0)
			snprintf(one, sizeof(one), "%c", ruby[m[i].ruby]);
		else
			snprintf(one, sizeof(one), m[i].interp ? "[%c]" : "'%c'",
				 native[m[i].native]);
		if (*out)
			strcat(out, " ");
		strcat(out, one);
	}
}

START_TEST(merges)
{
	struct rbsp_merge_native native[32];
	struct rbsp_merge_ruby ruby[32];
	struct rbsp_merged out[64];
	char letters[32], text[256];
	size_t n_native = make_native(rows[_i].native, native),
	       n_ruby = make_ruby(rows[_i].ruby, ruby, letters), n;
	enum rbsp_merge_result r =
		rbsp_merge(native, n_native, ruby, n_ruby, rows[_i].whole, out, &n);

	render(out, n, rows[_i].native, letters, text);
	ck_assert_msg((r == RBSP_MERGED) == (rows[_i].expect != NULL), "%s: merged or not",
		      rows[_i].name);
	if (rows[_i].expect)
		ck_assert_msg(strcmp(text, rows[_i].expect) == 0, "%s: %s, not %s", rows[_i].name,
			      text, rows[_i].expect);
}
END_TEST

Suite *suite_sampler_merge(void)
{
	Suite *s = suite_create("sampler_merge");
	TCase *tc = tcase_create("tables");

	tcase_add_loop_test(tc, merges, 0, RBSP_COUNT_OF(rows));
	suite_add_tcase(s, tc);
	return s;
}
