/* Tests of lib/base: failures and their text, the log callback, buffers, interned strings, ticks.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/strtab.h"

static const struct {
	const char *name;
	enum rbsp_status st;
	int sys_errno; /* set before */
	const char *what;
	const char *text; /* must come out */
	int kept_errno;
} failures[] = {
	{ "a system failure says errno's text", RBSP_E_SYS, ENOENT, "cannot open /x",
	  "cannot open /x: No such file or directory", ENOENT },
	{ "a refusal says it too", RBSP_E_DENIED, EPERM, "no", "no: Operation not permitted",
	  EPERM },
	{ "so does output", RBSP_E_OUTPUT, ENOSPC, "f", "f: No space left on device", ENOSPC },
	{ "without an errno nothing is added", RBSP_E_DENIED, 0, "just this", "just this", 0 },
	{ "other statuses leave errno out", RBSP_E_FORMAT, ENOENT, "bad line 3", "bad line 3", 0 },
	{ "an empty story is errno's text alone", RBSP_E_SYS, EIO, "", "Input/output error", EIO },
	{ "a story is one line", RBSP_E_FORMAT, 0, "file 'a\nb\tc'", "file 'a?b?c'", 0 },
};

START_TEST(a_failure_has_a_story)
{
	struct rbsp_err err;

	memset(&err, 'x', sizeof(err));
	errno = failures[_i].sys_errno;
	ck_assert_int_eq(rbsp_fail(&err, failures[_i].st, "%s", failures[_i].what),
			 failures[_i].st);
	ck_assert_msg(strcmp(err.text, failures[_i].text) == 0, "%s: '%s'", failures[_i].name,
		      err.text);
	ck_assert_msg(err.sys_errno == failures[_i].kept_errno, "%s", failures[_i].name);
	ck_assert_msg(err.status == failures[_i].st, "%s", failures[_i].name);
	ck_assert_msg(errno == failures[_i].sys_errno, "%s: errno is left alone",
		      failures[_i].name);
}
END_TEST

START_TEST(a_long_story_is_cut)
{
	struct rbsp_err err;
	char *long_name = malloc(5000);

	memset(long_name, 'n', 4999);
	long_name[4999] = '\0';
	errno = EIO;
	rbsp_fail(&err, RBSP_E_SYS, "%s", long_name);
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	ck_assert_int_eq(rbsp_fail(NULL, RBSP_E_NOMEM, "%s", long_name), RBSP_E_NOMEM);
	free(long_name);
}
END_TEST

START_TEST(every_status_has_a_text_and_a_next_step)
{
#define X(name, next, text)                                    \
	ck_assert_str_eq(rbsp_status_text(RBSP_##name), text); \
	ck_assert_int_eq(rbsp_status_next(RBSP_##name), RBSP_NEXT_##next);
	RBSP_STATUS_MAP(X)
#undef X
	ck_assert_str_eq(rbsp_status_text((enum rbsp_status)9999), "unknown status");
	ck_assert_int_eq(rbsp_status_next((enum rbsp_status)9999), RBSP_NEXT_GIVE_UP);
}
END_TEST

struct heard {
	unsigned n;
	enum rbsp_log_level level;
	char text[2048];
};

static void hear(void *arg, enum rbsp_log_level level, const char *text)
{
	struct heard *h = arg;

	h->n++;
	h->level = level;
	snprintf(h->text, sizeof(h->text), "%s", text);
}

START_TEST(the_log_calls_back_up_to_its_level)
{
	struct heard h = { 0 };

	rbsp_log(RBSP_LOG_ERROR, "nobody listens");
	rbsp_log_set(hear, &h, RBSP_LOG_INFO);
	rbsp_log(RBSP_LOG_DEBUG, "too fine");
	ck_assert_uint_eq(h.n, 0);
	errno = ENOENT;
	rbsp_log(RBSP_LOG_INFO, "%d threads\nin %s", 3, "all");
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_int_eq(h.level, RBSP_LOG_INFO);
	ck_assert_str_eq(h.text, "3 threads in all");
	rbsp_log_set(NULL, NULL, RBSP_LOG_DEBUG);
	rbsp_log(RBSP_LOG_ERROR, "gone");
	ck_assert_uint_eq(h.n, 1);
}
END_TEST

START_TEST(a_buffer_grows)
{
	struct rbsp_buf b = { 0 };
	size_t expect = 0;

	ck_assert_str_eq(rbsp_buf_text(&b), "");
	for (int i = 0; i < 2000; i++) {
		rbsp_buf_add(&b, "ab", 2);
		rbsp_buf_str(&b, "c");
		rbsp_buf_printf(&b, "%04d", i);
		expect += 7;
	}
	ck_assert_uint_eq(b.len, expect);
	ck_assert_uint_eq(strlen(rbsp_buf_text(&b)), expect);
	ck_assert_str_eq(rbsp_buf_text(&b) + expect - 7, "abc1999");
	rbsp_buf_clear(&b);
	ck_assert_str_eq(rbsp_buf_text(&b), "");
	rbsp_buf_printf(&b, "%*s|", 300, "");
	ck_assert_uint_eq(b.len, 301);
	rbsp_buf_add(&b, "a\0b", 3);
	ck_assert_uint_eq(b.len, 304);
	ck_assert(!b.failed);
	rbsp_buf_fini(&b);
	ck_assert_ptr_null(b.data);
	rbsp_buf_fini(NULL);
}
END_TEST

START_TEST(a_failed_buffer_stays_failed)
{
	struct rbsp_buf b = { 0 };

	rbsp_buf_str(&b, "kept");
	rbsp_buf_add(&b, "x", SIZE_MAX - 2);
	ck_assert(b.failed);
	rbsp_buf_str(&b, "dropped");
	rbsp_buf_printf(&b, "%d", 1);
	ck_assert_str_eq(rbsp_buf_text(&b), "kept");
	rbsp_buf_fini(&b);
}
END_TEST

START_TEST(equal_strings_have_one_address)
{
	struct rbsp_strtab *t = rbsp_strtab_new();
	const char *first[500];
	char name[32];

	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "method_%d", i);
		first[i] = rbsp_strtab_add(t, name, strlen(name));
		ck_assert_str_eq(first[i], name);
		ck_assert_ptr_ne(first[i], name);
	}
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "method_%d...", i);
		ck_assert_ptr_eq(rbsp_strtab_add(t, name, strlen(name) - 3), first[i]);
	}
	ck_assert_ptr_eq(rbsp_strtab_add(t, "", 0), rbsp_strtab_add(t, NULL, 0));
	ck_assert_str_eq(rbsp_strtab_add(t, "", 0), "");
	rbsp_strtab_free(t);
	rbsp_strtab_free(NULL);
}
END_TEST

static const struct {
	const char *name;
	const char *in;
	size_t n;
	const char *out;
} nuls[] = {
	{ "a NUL inside becomes U+FFFD", "a\0b", 3,
	  "a\xef\xbf\xbd"
	  "b" },
	{ "one at each end too", "\0x\0", 3, "\xef\xbf\xbdx\xef\xbf\xbd" },
	{ "only a NUL", "\0", 1, "\xef\xbf\xbd" },
	{ "bytes that are not UTF-8 are kept", "\xff\xfe", 2, "\xff\xfe" },
};

START_TEST(interned_strings_hold_no_nul)
{
	struct rbsp_strtab *t = rbsp_strtab_new();
	const char *s = rbsp_strtab_add(t, nuls[_i].in, nuls[_i].n);

	ck_assert_msg(strcmp(s, nuls[_i].out) == 0, "%s", nuls[_i].name);
	ck_assert_msg(rbsp_strtab_add(t, nuls[_i].out, strlen(nuls[_i].out)) == s, "%s",
		      nuls[_i].name);
	rbsp_strtab_free(t);
}
END_TEST

START_TEST(ticks_keep_their_mean_rate)
{
	const struct rbsp_ticks t = { .start_ns = 1000000007, .period_ns = 1e9 / 99, .seed = 42 };
	const struct rbsp_ticks other = { .start_ns = 1000000007,
					  .period_ns = 1e9 / 99,
					  .seed = 43 };
	uint64_t last = 0;
	double sum = 0;
	unsigned differ = 0;

	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t at = rbsp_tick_ns(&t, i);
		double phase = (double)(at - t.start_ns) / t.period_ns - (double)i;

		ck_assert_msg(phase > -1e-6 && phase < 1 + 1e-6, "tick %ju is %f periods off",
			      (uintmax_t)i, phase);
		ck_assert_uint_gt(at, last);
		sum += phase;
		differ += at != rbsp_tick_ns(&other, i);
		last = at;
	}
	ck_assert_double_eq_tol(sum / 10000, 0.5, 0.02);
	ck_assert_uint_gt(differ, 9990);
}
END_TEST

START_TEST(the_tick_after_an_instant_is_the_first_later_one)
{
	const struct rbsp_ticks t = { .start_ns = 5000000000, .period_ns = 1e9 / 997, .seed = 7 };

	ck_assert_uint_eq(rbsp_tick_after(&t, 0), 0);
	ck_assert_uint_eq(rbsp_tick_after(&t, 4999999999), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t at = rbsp_tick_ns(&t, i);

		ck_assert_uint_eq(rbsp_tick_after(&t, at), i + 1);
		ck_assert_uint_eq(rbsp_tick_after(&t, at - 1), i);
	}
	for (uint64_t now = t.start_ns; now < t.start_ns + 50000000; now += 12345) {
		uint64_t i = rbsp_tick_after(&t, now);

		ck_assert_uint_gt(rbsp_tick_ns(&t, i), now);
		ck_assert(i == 0 || rbsp_tick_ns(&t, i - 1) <= now);
	}
}
END_TEST

START_TEST(the_clock_does_not_go_back)
{
	uint64_t a = rbsp_now_ns();

	ck_assert_uint_gt(a, 0);
	ck_assert_uint_ge(rbsp_now_ns(), a);
}
END_TEST

Suite *suite_base(void)
{
	Suite *s = suite_create("base");
	TCase *tc = tcase_create("base");

	tcase_add_loop_test(tc, a_failure_has_a_story, 0, RBSP_COUNT_OF(failures));
	tcase_add_test(tc, a_long_story_is_cut);
	tcase_add_test(tc, every_status_has_a_text_and_a_next_step);
	tcase_add_test(tc, the_log_calls_back_up_to_its_level);
	tcase_add_test(tc, a_buffer_grows);
	tcase_add_test(tc, a_failed_buffer_stays_failed);
	tcase_add_test(tc, equal_strings_have_one_address);
	tcase_add_loop_test(tc, interned_strings_hold_no_nul, 0, RBSP_COUNT_OF(nuls));
	tcase_add_test(tc, ticks_keep_their_mean_rate);
	tcase_add_test(tc, the_tick_after_an_instant_is_the_first_later_one);
	tcase_add_test(tc, the_clock_does_not_go_back);
	suite_add_tcase(s, tc);
	return s;
}
