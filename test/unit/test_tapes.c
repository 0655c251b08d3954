/* The tapes of real Rubies in fixtures/tapes: located, decoded, unwound and merged again, with no
 * Ruby and no ptrace. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rbsample/output.h>

#include "base/base.h"
#include "replay.h"

Suite *suite_tapes(void);

static const char *const versions[] = { "2.7", "3.1", "3.3", "3.4" };

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t n = 0;

	ck_assert_msg(f != NULL, "%s is missing: make it with scripts/tapes", path);
	ck_assert(getdelim(&text, &n, '\0', f) > 0);
	fclose(f);
	return text;
}

START_TEST(gives_the_stacks_it_gave)
{
	char path[64], *expect, *got = NULL;
	struct rbsp_err err = { 0 };
	size_t n = 0;
	FILE *out = open_memstream(&got, &n);
	enum rbsp_status st;

	snprintf(path, sizeof(path), "fixtures/tapes/%s.tape", versions[_i]);
	st = replay(path, out, &err);
	fclose(out);
	ck_assert_msg(st == RBSP_OK, "%s: %s", versions[_i], err.text);
	snprintf(path, sizeof(path), "fixtures/tapes/%s.folded", versions[_i]);
	expect = slurp(path);
	ck_assert_msg(strcmp(got, expect) == 0, "%s: other stacks than %s:\n%s", versions[_i], path,
		      got);
	free(expect);
	free(got);
}
END_TEST

START_TEST(a_damaged_tape_is_refused)
{
	char name[] = "/tmp/rbsample-tape-XXXXXX", *bytes;
	struct rbsp_err err = { 0 };
	size_t n = 0;
	FILE *in = fopen("fixtures/tapes/3.3.tape", "rb"), *out = open_memstream(&bytes, &n), *cut;
	int c, fd = mkstemp(name);

	ck_assert(in && fd >= 0);
	while ((c = getc(in)) != EOF)
		putc(c, out);
	fclose(in);
	fclose(out);
	cut = fdopen(fd, "wb");
	fwrite(bytes, 1, n / 2, cut);
	fclose(cut);
	free(bytes);
	out = fopen("/dev/null", "w");
	ck_assert_int_eq(replay(name, out, &err), RBSP_E_FORMAT);
	ck_assert_msg(strstr(err.text, "damaged") != NULL, "%s", err.text);
	fclose(out);
	remove(name);
}
END_TEST

Suite *suite_tapes(void)
{
	Suite *s = suite_create("tapes");
	TCase *tc = tcase_create("fixtures");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, gives_the_stacks_it_gave, 0, RBSP_COUNT_OF(versions));
	tcase_add_test(tc, a_damaged_tape_is_refused);
	suite_add_tcase(s, tc);
	return s;
}
