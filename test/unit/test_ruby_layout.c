/* Tests of lib/ruby/layout.c: which row a version gets, and that the rows are sound. */
#include <check.h>
#include <elf.h>
#include <string.h>

#include "ruby/layout.h"

static const struct {
	const char *name;
	uint32_t version;
	uint16_t machine;
	unsigned cfp_size; /* 0: there must be no row */
	bool run;
} by_version[] = {
	{ "2.6 is older than the table", RBSP_RUBY(2, 6, 10), EM_X86_64, 0, false },
	{ "bullseye's 2.7", RBSP_RUBY(2, 7, 4), EM_X86_64, 56, true },
	{ "the last 2.7 has the row of the first", RBSP_RUBY(2, 7, 8), EM_X86_64, 56, true },
	{ "3.0 was never run", RBSP_RUBY(3, 0, 2), EM_X86_64, 56, false },
	{ "bookworm's 3.1 has jit_return", RBSP_RUBY(3, 1, 2), EM_X86_64, 64, true },
	{ "3.2 was never run", RBSP_RUBY(3, 2, 3), EM_X86_64, 64, false },
	{ "trixie's 3.3 lost __bp__", RBSP_RUBY(3, 3, 8), EM_X86_64, 56, true },
	{ "an unknown patch level takes the row of its minor version", RBSP_RUBY(3, 4, 99),
	  EM_X86_64, 56, true },
	{ "4.0 was never run", RBSP_RUBY(4, 0, 0), EM_X86_64, 56, false },
	{ "3.5 was never released", RBSP_RUBY(3, 5, 0), EM_X86_64, 0, false },
	{ "4.1 is newer than the table", RBSP_RUBY(4, 1, 0), EM_X86_64, 0, false },
	{ "aarch64 has rows of its own", RBSP_RUBY(3, 3, 8), EM_AARCH64, 56, false },
	{ "no other machine has", RBSP_RUBY(3, 3, 8), EM_RISCV, 0, false },
};

START_TEST(finds_the_row_of_a_version)
{
	const struct rbsp_layout *l =
		rbsp_layout_find(by_version[_i].version, by_version[_i].machine);

	ck_assert_msg((l ? l->cfp.size : 0u) == by_version[_i].cfp_size, "%s", by_version[_i].name);
	ck_assert_msg(!l || l->run == by_version[_i].run, "%s", by_version[_i].name);
}
END_TEST

static const struct {
	const char *name;
	uint32_t version;
	uint32_t first, second; /* `from` of the rows to try, 0: none */
} trials[] = {
	{ "before the table only the oldest row is left", RBSP_RUBY(2, 6, 0), RBSP_RUBY(2, 7, 0),
	  0 },
	{ "between rows the older comes first", RBSP_RUBY(3, 5, 0), RBSP_RUBY(3, 4, 0),
	  RBSP_RUBY(4, 0, 0) },
	{ "behind the table only the newest row is left", RBSP_RUBY(4, 1, 0), RBSP_RUBY(4, 0, 6),
	  0 },
};

START_TEST(tries_the_nearest_rows)
{
	const struct rbsp_layout *l[2] = { NULL, NULL };
	size_t n = rbsp_layout_trial(trials[_i].version, EM_X86_64, l);

	ck_assert_msg(n == 1u + (trials[_i].second != 0), "%s", trials[_i].name);
	ck_assert_msg(l[0]->from == trials[_i].first, "%s", trials[_i].name);
	ck_assert_msg((l[1] ? l[1]->from : 0u) == trials[_i].second, "%s", trials[_i].name);
}
END_TEST

START_TEST(no_row_for_an_unknown_machine)
{
	const struct rbsp_layout *l[2];

	ck_assert_uint_eq(rbsp_layout_trial(RBSP_RUBY(3, 3, 0), EM_RISCV, l), 0);
}
END_TEST

/* A row names its sources, does not overlap the next one, and fits into what a capture reads. */
START_TEST(rows_are_sound)
{
	size_t n;
	const struct rbsp_layout *rows = rbsp_layout_rows(&n), *l = &rows[_i], *next = l + 1;
	struct rbsp_capture_spec s = { .native = true, .sched = 0x1000 };

	if ((size_t)_i >= n)
		return;
	ck_assert_ptr_nonnull(l->source);
	ck_assert_uint_gt(strlen(l->source), 10);
	ck_assert_uint_lt(l->from, l->to);
	if ((size_t)_i + 1 < n && next->machine == l->machine)
		ck_assert_uint_le(l->to, next->from);
	ck_assert(l->machine == EM_X86_64 || !l->run);
	ck_assert((l->th.pthread == RBSP_NONE) != (l->th.nt == RBSP_NONE));
	ck_assert((l->vm.threads == RBSP_NONE) != (l->vm.ractors == RBSP_NONE));
	ck_assert((l->vm.gvl_owner == RBSP_NONE) != (l->ractor.gvl_owner == RBSP_NONE));
	ck_assert_uint_eq((l->klass.classpath != RBSP_NONE) + (l->klass.iv_tbl != RBSP_NONE) +
				  (l->from == RBSP_RUBY(3, 2, 0)),
			  1);
	rbsp_layout_spec(l, &s);
	ck_assert_uint_le(s.ec_size, RBSP_EC_MAX);
	ck_assert_uint_ge(s.ec_size, s.ec_stack_start + 8);
	ck_assert_uint_le(s.th_size, RBSP_TH_MAX);
	ck_assert_uint_ge(s.th_size, l->th.unblock_func + 8u);
	ck_assert_uint_eq(s.cfp_size, l->cfp.size);
	ck_assert_msg(s.native && s.sched == 0x1000, "what is not the row's is left alone");
}
END_TEST

Suite *suite_ruby_layout(void);
Suite *suite_ruby_layout(void)
{
	Suite *s = suite_create("ruby_layout");
	TCase *tc = tcase_create("rows");
	size_t n;

	rbsp_layout_rows(&n);
	tcase_add_loop_test(tc, finds_the_row_of_a_version, 0, RBSP_COUNT_OF(by_version));
	tcase_add_loop_test(tc, tries_the_nearest_rows, 0, RBSP_COUNT_OF(trials));
	tcase_add_test(tc, no_row_for_an_unknown_machine);
	tcase_add_loop_test(tc, rows_are_sound, 0, (int)n);
	suite_add_tcase(s, tc);
	return s;
}
