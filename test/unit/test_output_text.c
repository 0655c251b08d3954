/* Tests of lib/output's sanitiser and of the text of a frame. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"

static const struct {
	const char *name;
	const char *in; /* NULL: not known */
	const char *line, *folded;
} names[] = {
	{ "a plain name stays", "Foo#bar", "Foo#bar", "Foo#bar" },
	{ "; is no separator for people, and is : in stacks", "a;b", "a;b", "a:b" },
	{ "ends of line become blanks", "a\nb\r\nc\td", "a b  c d", "a b  c d" },
	{ "Unicode's ends of line and blanks too",
	  "a\xe2\x80\xa8"
	  "b\xc2\x85"
	  "c\xc2\xa0"
	  "d",
	  "a b c d", "a b c d" },
	{ "an escape sequence does not reach the terminal", "\x1b[31mred\x7f", "?[31mred?",
	  "?[31mred?" },
	{ "nor does a C1 control",
	  "x\xc2\x9b"
	  "31m",
	  "x?31m", "x?31m" },
	{ "nor a mark that turns the direction",
	  "a\xe2\x80\xae"
	  "b",
	  "a?b", "a?b" },
	{ "UTF-8 stays", "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80",
	  "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80", "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80" },
	{ "what is no UTF-8 is replaced byte by byte",
	  "a\xff\xfe"
	  "b",
	  "a\xef\xbf\xbd\xef\xbf\xbd"
	  "b",
	  "a\xef\xbf\xbd\xef\xbf\xbd"
	  "b" },
	{ "a cut sequence", "a\xe6\x97", "a\xef\xbf\xbd\xef\xbf\xbd", "a\xef\xbf\xbd\xef\xbf\xbd" },
	{ "an overlong sequence", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd",
	  "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "a surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "beyond Unicode", "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "U+FFFE is no character of XML", "a\xef\xbf\xbe", "a\xef\xbf\xbd", "a\xef\xbf\xbd" },
	{ "the stand-in for a NUL stays",
	  "a\xef\xbf\xbd"
	  "b",
	  "a\xef\xbf\xbd"
	  "b",
	  "a\xef\xbf\xbd"
	  "b" },
	{ "blanks at both ends go", "  a b \n", "a b", "a b" },
	{ "nothing is [unknown]", "", "[unknown]", "[unknown]" },
	{ "blanks only are [unknown]", " \t\n", "[unknown]", "[unknown]" },
	{ "so is a name that is not known", NULL, "[unknown]", "[unknown]" },
};

START_TEST(a_name_is_cleaned)
{
	struct rbsp_buf b = { 0 };

	rbsp_text_add(&b, names[_i].in, RBSP_TEXT_LINE);
	ck_assert_msg(strcmp(rbsp_buf_text(&b), names[_i].line) == 0, "%s: '%s'", names[_i].name,
		      rbsp_buf_text(&b));
	rbsp_buf_clear(&b);
	rbsp_text_add(&b, names[_i].in, RBSP_TEXT_FOLDED);
	ck_assert_msg(strcmp(rbsp_buf_text(&b), names[_i].folded) == 0, "%s: '%s'", names[_i].name,
		      rbsp_buf_text(&b));
	rbsp_buf_fini(&b);
}
END_TEST

START_TEST(a_long_name_stays_whole)
{
	size_t n = 20000;
	char *name = malloc(n + 1);
	struct rbsp_buf b = { 0 };

	memset(name, 'n', n);
	name[n] = '\0';
	rbsp_text_add(&b, name, RBSP_TEXT_FOLDED);
	ck_assert_uint_eq(b.len, n);
	ck_assert_str_eq(b.data, name);
	free(name);
	rbsp_buf_fini(&b);
}
END_TEST

/* Every sequence of up to 3 bytes out of the interesting ones comes out as UTF-8 that decodes to
 * itself. */
START_TEST(any_bytes_become_utf8)
{
	static const unsigned char some[] = { 0x01, ' ',  'a',  ';',  0x7f, 0x80, 0x9b, 0xbf,
					      0xc0, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xff };
	const size_t n = sizeof(some);

	for (size_t i = 0; i < n * n * n; i++) {
		char in[] = { (char)some[i % n], (char)some[i / n % n], (char)some[i / n / n], 0 };
		struct rbsp_buf b = { 0 };
		const char *p;

		rbsp_text_add(&b, in, RBSP_TEXT_FOLDED);
		ck_assert_uint_gt(b.len, 0);
		for (p = b.data; *p;) {
			struct rbsp_buf again = { 0 };
			uint32_t c;
			size_t len = rbsp_utf8_next(p, &c);

			rbsp_utf8_add(&again, c);
			ck_assert(again.len == len && memcmp(again.data, p, len) == 0);
			ck_assert(c >= 0x20 && c != ';' && c != 0x7f);
			rbsp_buf_fini(&again);
			p += len;
		}
		rbsp_buf_fini(&b);
	}
}
END_TEST

static const struct {
	const char *name;
	struct rbsp_frame f;
	bool lines;
	const char *text; /* in a folded stack */
} frames[] = {
	{ "a method with its line",
	  { .kind = RBSP_FRAME_RUBY, .name = "Foo#bar", .path = "path/file.rb", .line = 12 },
	  true,
	  "Foo#bar - path/file.rb:12" },
	{ "without lines",
	  { .kind = RBSP_FRAME_RUBY, .name = "Foo#bar", .path = "path/file.rb", .line = 12 },
	  false,
	  "Foo#bar" },
	{ "a line that is not known is left out",
	  { .kind = RBSP_FRAME_RUBY, .name = "m", .path = "a.rb" },
	  true,
	  "m - a.rb" },
	{ "so is a path", { .kind = RBSP_FRAME_RUBY, .name = "m", .line = 3 }, true, "m" },
	{ "an empty path",
	  { .kind = RBSP_FRAME_RUBY, .name = "m", .path = "", .line = 3 },
	  true,
	  "m - [unknown]:3" },
	{ "a path with a separator",
	  { .kind = RBSP_FRAME_RUBY, .name = "m", .path = "a;b.rb", .line = 3 },
	  true,
	  "m - a:b.rb:3" },
	{ "a name that is not known",
	  { .kind = RBSP_FRAME_RUBY, .path = "a.rb", .line = 3 },
	  true,
	  "[unknown] - a.rb:3" },
	{ "a name that ends like a count",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker 1" },
	  true,
	  "[worker 1]" },
	{ "or like a fraction",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker 1.5" },
	  true,
	  "[worker 1.5]" },
	{ "or like one with a dot only",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker 1." },
	  true,
	  "[worker 1.]" },
	{ "or like one in other digits",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker \xd9\xa1" },
	  true,
	  "[worker \xd9\xa1]" },
	{ "the blank may be of any kind",
	  { .kind = RBSP_FRAME_RUBY,
	    .name = "worker\xc2\xa0"
		    "1" },
	  true,
	  "[worker 1]" },
	{ "a count behind a line end",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker\n1" },
	  true,
	  "[worker 1]" },
	{ "a line after it makes it harmless",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker 1", .path = "a.rb", .line = 3 },
	  true,
	  "worker 1 - a.rb:3" },
	{ "a path that ends like a count",
	  { .kind = RBSP_FRAME_RUBY, .name = "m", .path = "dir 1" },
	  true,
	  "[m - dir 1]" },
	{ "a number without a blank is no count",
	  { .kind = RBSP_FRAME_RUBY, .name = "worker1" },
	  true,
	  "worker1" },
	{ "a word after a blank is none",
	  { .kind = RBSP_FRAME_RUBY, .name = "block in \xc3\xa9" },
	  true,
	  "block in \xc3\xa9" },
	{ "a number alone is none", { .kind = RBSP_FRAME_RUBY, .name = "12" }, true, "12" },
	{ "the method - is no gap", { .kind = RBSP_FRAME_RUBY, .name = "-" }, true, "[-]" },
	{ "a C function",
	  { .kind = RBSP_FRAME_CFUNC, .name = "Array#each", .module = "libruby.so" },
	  true,
	  "Array#each [c function]" },
	{ "a native function",
	  { .kind = RBSP_FRAME_NATIVE, .name = "deflate", .module = "libz.so.1.2.13" },
	  true,
	  "deflate (libz.so.1.2.13)" },
	{ "without a module", { .kind = RBSP_FRAME_NATIVE, .name = "deflate" }, true, "deflate" },
	{ "unnamed: where the function begins",
	  { .kind = RBSP_FRAME_NATIVE, .module = "libfoo.so", .func = 0x24eb, .offset = 0x2500 },
	  true,
	  "libfoo.so+0x24eb" },
	{ "else where it is",
	  { .kind = RBSP_FRAME_NATIVE, .module = "libfoo.so", .offset = 0x2500 },
	  true,
	  "libfoo.so+0x2500" },
	{ "nothing is known",
	  { .kind = RBSP_FRAME_NATIVE, .address = 0x7f001234 },
	  true,
	  "[unknown]" },
	{ "the interpreter's own prints like a native one",
	  { .kind = RBSP_FRAME_INTERP, .name = "vm_exec", .module = "ruby" },
	  true,
	  "vm_exec (ruby)" },
	{ "machine code of a JIT",
	  { .kind = RBSP_FRAME_JIT, .name = "Foo#bar" },
	  true,
	  "Foo#bar [jit]" },
	{ "garbage collection", { .kind = RBSP_FRAME_GC, .name = "mark" }, true, "[gc: mark]" },
	{ "a state", { .kind = RBSP_FRAME_STATE, .name = "gvl wait" }, true, "[gvl wait]" },
	{ "a state with a separator",
	  { .kind = RBSP_FRAME_STATE, .name = "io wait: tcp 10.0.0.5:5432" },
	  true,
	  "[io wait: tcp 10.0.0.5:5432]" },
	{ "a marker", { .kind = RBSP_FRAME_MARKER, .name = "unread" }, true, "[unread]" },
	{ "a marker without a name", { .kind = RBSP_FRAME_MARKER }, true, "[unknown]" },
};

START_TEST(a_frame_has_a_text)
{
	struct rbsp_buf b = { 0 };

	rbsp_buf_str(&b, "before;");
	rbsp_text_frame(&b, &frames[_i].f, frames[_i].lines, RBSP_TEXT_FOLDED);
	ck_assert_msg(strncmp(b.data, "before;", 7) == 0, "%s", frames[_i].name);
	ck_assert_msg(strcmp(b.data + 7, frames[_i].text) == 0, "%s: '%s'", frames[_i].name,
		      b.data + 7);
	ck_assert_msg(strlen(b.data) == b.len, "%s: length", frames[_i].name);
	rbsp_buf_fini(&b);
}
END_TEST

START_TEST(people_see_a_name_as_it_is)
{
	struct rbsp_buf b = { 0 };

	rbsp_text_frame(&b, &(struct rbsp_frame){ .kind = RBSP_FRAME_RUBY, .name = "a;worker 1" },
			true, RBSP_TEXT_LINE);
	ck_assert_str_eq(rbsp_buf_text(&b), "a;worker 1");
	rbsp_buf_fini(&b);
}
END_TEST

Suite *suite_output_text(void);

Suite *suite_output_text(void)
{
	Suite *s = suite_create("output_text");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, a_name_is_cleaned, 0, RBSP_COUNT_OF(names));
	tcase_add_test(tc, a_long_name_stays_whole);
	tcase_add_test(tc, any_bytes_become_utf8);
	tcase_add_loop_test(tc, a_frame_has_a_text, 0, RBSP_COUNT_OF(frames));
	tcase_add_test(tc, people_see_a_name_as_it_is);
	suite_add_tcase(s, tc);
	return s;
}
