/* Tests of lib/profile: the stack trie. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "profile/trie.h"

static enum rbsp_status print_stack(void *arg, const uint32_t *keys, size_t n, uint64_t count)
{
	struct rbsp_buf *b = arg;

	for (size_t i = 0; i < n; i++)
		rbsp_buf_printf(b, "%s%" PRIu32, i ? "." : "", keys[i]);
	rbsp_buf_printf(b, "=%" PRIu64 " ", count);
	return RBSP_OK;
}

static int by_key(const struct rbsp_trie_item *a, const struct rbsp_trie_item *b, void *arg)
{
	(void)arg;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->count == 0) - (b->count == 0); /* the stack that ends here first */
}

#define STACKS 6
static const struct {
	const char *name;
	struct {
		uint32_t keys[4];
		size_t n;
		uint64_t count;
	} add[STACKS];
	const char *walk; /* siblings by key */
	uint32_t nodes;
} tries[] = {
	{ "an empty trie has the top only", { { { 0 }, 0, 0 } }, "", 1 },
	{ "one stack", { { { 7, 8 }, 2, 3 } }, "7.8=3 ", 3 },
	{ "the same stack adds up", { { { 7, 8 }, 2, 3 }, { { 7, 8 }, 2, 2 } }, "7.8=5 ", 3 },
	{ "a beginning is shared", { { { 7, 8 }, 2, 1 }, { { 7, 9 }, 2, 1 } }, "7.8=1 7.9=1 ", 4 },
	{ "a stack may end inside another",
	  { { { 7, 8, 9 }, 3, 1 }, { { 7 }, 1, 4 } },
	  "7=4 7.8.9=1 ",
	  4 },
	{ "siblings come in order, whatever order they were added in",
	  { { { 3 }, 1, 1 }, { { 1, 2 }, 2, 1 }, { { 2 }, 1, 1 }, { { 1 }, 1, 1 } },
	  "1=1 1.2=1 2=1 3=1 ",
	  5 },
	{ "a key may occur at every depth",
	  { { { 5, 5, 5 }, 3, 1 }, { { 5, 5 }, 2, 1 } },
	  "5.5=1 5.5.5=1 ",
	  4 },
	{ "a stack of nothing counts at the top",
	  { { { 0 }, 0, 2 }, { { 1 }, 1, 1 } },
	  "=2 1=1 ",
	  2 },
	{ "key 0 is a key", { { { 0, 0 }, 2, 1 } }, "0.0=1 ", 3 },
};

START_TEST(stacks_are_counted)
{
	struct rbsp_trie *t = rbsp_trie_new();
	struct rbsp_buf b = { 0 };

	for (size_t i = 0; i < STACKS && tries[_i].add[i].count; i++)
		ck_assert_int_eq(rbsp_trie_add(t, tries[_i].add[i].keys, tries[_i].add[i].n,
					       tries[_i].add[i].count),
				 RBSP_OK);
	ck_assert_int_eq(rbsp_trie_walk(t, by_key, print_stack, &b), RBSP_OK);
	ck_assert_msg(strcmp(rbsp_buf_text(&b), tries[_i].walk) == 0, "%s: '%s'", tries[_i].name,
		      rbsp_buf_text(&b));
	ck_assert_msg(rbsp_trie_nodes(t) == tries[_i].nodes, "%s: %" PRIu32 " nodes",
		      tries[_i].name, rbsp_trie_nodes(t));
	rbsp_buf_fini(&b);
	rbsp_trie_free(t);
}
END_TEST

struct sum {
	uint64_t count, stacks;
	size_t deepest;
};

static enum rbsp_status add_up(void *arg, const uint32_t *keys, size_t n, uint64_t count)
{
	struct sum *s = arg;

	(void)keys;
	s->count += count;
	s->stacks++;
	if (n > s->deepest)
		s->deepest = n;
	return RBSP_OK;
}

START_TEST(many_stacks_keep_their_sum)
{
	struct rbsp_trie *t = rbsp_trie_new();
	struct sum s = { 0 };
	uint32_t x = 1;

	for (int i = 0; i < 20000; i++) {
		uint32_t keys[8];

		for (size_t k = 0; k < 8; k++) {
			x = x * 1664525u + 1013904223u;
			keys[k] = x >> 29;
		}
		ck_assert_int_eq(rbsp_trie_add(t, keys, 1 + (x >> 13) % 8, 1), RBSP_OK);
	}
	ck_assert_int_eq(rbsp_trie_walk(t, by_key, add_up, &s), RBSP_OK);
	ck_assert_uint_eq(s.count, 20000);
	ck_assert_uint_eq(s.deepest, 8);
	ck_assert_uint_gt(s.stacks, 5000);
	rbsp_trie_free(t);
}
END_TEST

START_TEST(a_deep_stack_needs_no_recursion)
{
	size_t n = 300000;
	uint32_t *keys = malloc(n * sizeof(*keys));
	struct rbsp_trie *t = rbsp_trie_new();
	struct sum s = { 0 };

	for (size_t i = 0; i < n; i++)
		keys[i] = (uint32_t)(i % 3);
	ck_assert_int_eq(rbsp_trie_add(t, keys, n, 1), RBSP_OK);
	ck_assert_int_eq(rbsp_trie_walk(t, NULL, add_up, &s), RBSP_OK);
	ck_assert_uint_eq(s.deepest, n);
	rbsp_trie_free(t);
	free(keys);
}
END_TEST

static enum rbsp_status refuse(void *arg, const uint32_t *keys, size_t n, uint64_t count)
{
	int *calls = arg;

	(void)keys;
	(void)n;
	(void)count;
	++*calls;
	return RBSP_E_OUTPUT;
}

START_TEST(a_failure_ends_the_walk)
{
	struct rbsp_trie *t = rbsp_trie_new();
	uint32_t a = 1, b = 2;
	int calls = 0;

	rbsp_trie_add(t, &a, 1, 1);
	rbsp_trie_add(t, &b, 1, 1);
	ck_assert_int_eq(rbsp_trie_walk(t, NULL, refuse, &calls), RBSP_E_OUTPUT);
	ck_assert_int_eq(calls, 1);
	rbsp_trie_free(t);
	rbsp_trie_free(NULL);
}
END_TEST

Suite *suite_profile(void);

Suite *suite_profile(void)
{
	Suite *s = suite_create("profile");
	TCase *tc = tcase_create("trie");

	tcase_add_loop_test(tc, stacks_are_counted, 0, RBSP_COUNT_OF(tries));
	tcase_add_test(tc, many_stacks_keep_their_sum);
	tcase_add_test(tc, a_deep_stack_needs_no_recursion);
	tcase_add_test(tc, a_failure_ends_the_walk);
	suite_add_tcase(s, tc);
	return s;
}
