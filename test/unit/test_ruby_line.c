/* Tests of lib/ruby/line.c: the succinct index against a plain search, and the line of a program
 * counter. */
#include <check.h>
#include <elf.h>
#include <stdlib.h>

#include "ruby_heap.h"

#define POSITIONS_MAX 6000

static const struct {
	const char *name;
	unsigned step, n; /* an instruction begins at every step-th position, n of them */
} tables[] = {
	{ "only the immediate part", 1, 40 },
	{ "the immediate part ends between two instructions", 5, 12 },
	{ "one block", 3, 150 },
	{ "a block's last position", 1, 566 },
	{ "several blocks", 2, 1500 },
	{ "a method of six thousand instructions", 1, 5999 },
	{ "instructions wider than a small rank", 130, 40 },
};

/* iseq.c, succ_index_table_create: the same table from the sorted positions. */
static void put_table(struct heap *h, rbsp_addr table, const unsigned *at, unsigned n)
{
	unsigned j = 0, blocks = POSITIONS_MAX / 512 + 1;

	for (unsigned pos = 0; pos < 54; pos++) {
		rbsp_addr word = table + pos / 9 * 8;

		while (j < n && at[j] <= pos)
			j++;
		heap_put(h, word, heap_get(h, word) | (uint64_t)j << (7 * (pos % 9)));
	}
	for (unsigned b = 0; b < blocks; b++) {
		rbsp_addr block = table + 48 + b * 80;
		uint64_t ranks = 0;

		heap_put32(h, block, j);
		for (unsigned w = 0, small = 0; w < 8; w++) {
			uint64_t bits = 0;

			if (w)
				ranks |= (uint64_t)small << (9 * (w - 1));
			for (unsigned i = 0; i < 64; i++) {
				if (j < n && at[j] == 54 + b * 512 + w * 64 + i) {
					bits |= UINT64_C(1) << i;
					j++;
					small++;
				}
			}
			heap_put(h, block + 16 + w * 8, bits);
		}
		heap_put(h, block + 8, ranks);
	}
}

START_TEST(finds_the_entry_of_a_position)
{
	struct heap h;
	struct rbsp_mem m;
	unsigned at[POSITIONS_MAX], n = tables[_i].n;
	rbsp_addr table;

	heap_init(&h, rbsp_layout_find(RBSP_RUBY(3, 3, 0), EM_X86_64));
	m = rbsp_mem_direct(&h.target);
	for (unsigned i = 0; i < n; i++)
		at[i] = i * tables[_i].step;
	table = heap_alloc(&h, 48 + (POSITIONS_MAX / 512 + 1) * 80);
	put_table(&h, table, at, n);
	for (unsigned pos = 0; pos <= at[n - 1]; pos++)
		ck_assert_msg(rbsp_succ_lookup(&m, table, pos) == pos / tables[_i].step + 1,
			      "%s: position %u", tables[_i].name, pos);
	ck_assert_msg(rbsp_succ_lookup(&m, HEAP_BASE + HEAP_BYTES, 1) == 0,
		      "unreadable, immediate part");
	ck_assert_msg(rbsp_succ_lookup(&m, HEAP_BASE + HEAP_BYTES, 100) == 0, "unreadable, blocks");
	heap_fini(&h);
}
END_TEST

static const struct {
	const char *name;
	int64_t words; /* from the iseq's first word to the pc; INT64_MIN: pc is 0 */
	uint32_t type; /* RBSP_ISEQ_* */
	uint32_t line; /* the iseq begins at line 10, each word is a line */
} lines[] = {
	{ "at the first word nothing is subtracted", 0, RBSP_ISEQ_METHOD, 10 },
	{ "a pc points behind its instruction", 1, RBSP_ISEQ_METHOD, 10 },
	{ "in the middle", 7, RBSP_ISEQ_METHOD, 16 },
	{ "behind the last", HEAP_INSNS, RBSP_ISEQ_METHOD, 10 + HEAP_INSNS - 1 },
	{ "outside: unknown", HEAP_INSNS + 1, RBSP_ISEQ_METHOD, 0 },
	{ "before: unknown", -1, RBSP_ISEQ_METHOD, 0 },
	{ "no pc: the first line", INT64_MIN, RBSP_ISEQ_METHOD, 10 },
	{ "no pc of a file: none", INT64_MIN, RBSP_ISEQ_TOP, 0 },
};

START_TEST(line_of_a_pc)
{
	size_t n;
	const struct rbsp_layout *rows = rbsp_layout_rows(&n);

	for (size_t row = 0; row < n; row++) {
		struct heap h;
		struct heap_iseq made = { .type = lines[_i].type, .label = "foo" };
		const struct rbsp_iseq *q;
		rbsp_addr pc = 0;

		heap_init(&h, &rows[row]);
		rbsp_mem_begin(&h.ruby->mem, 100);
		ck_assert_int_eq(rbsp_iseq_get(h.ruby, heap_iseq(&h, &made), &q), RBSP_OK);
		if (lines[_i].words != INT64_MIN)
			pc = q->encoded + (uint64_t)lines[_i].words * 8;
		rbsp_mem_begin(&h.ruby->mem, 100);
		ck_assert_msg(rbsp_iseq_line(h.ruby, q, pc) == lines[_i].line, "%s: %s",
			      rows[row].source, lines[_i].name);
		heap_fini(&h);
	}
}
END_TEST

START_TEST(line_without_an_index)
{
	struct heap h;
	struct heap_iseq made = { .type = RBSP_ISEQ_METHOD, .label = "foo" };
	rbsp_addr body, insns;
	const struct rbsp_iseq *q;

	heap_init(&h, rbsp_layout_find(RBSP_RUBY(2, 7, 0), EM_X86_64));
	made.parent = heap_iseq(&h, &made);
	body = heap_get(&h, made.parent + h.l.iseq.body);
	insns = heap_get(&h, body + h.l.body.insns_body);
	/* One entry needs no index; nops without a line (2.7) have the line before theirs. */
	heap_put32(&h, insns + 3 * h.l.body.insn_stride, 0);
	rbsp_mem_begin(&h.ruby->mem, 100);
	ck_assert_int_eq(rbsp_iseq_get(h.ruby, made.parent, &q), RBSP_OK);
	ck_assert_uint_eq(rbsp_iseq_line(h.ruby, q, q->encoded + 32), 12);
	((struct rbsp_iseq *)(uintptr_t)q)->n_insns = 1;
	ck_assert_uint_eq(rbsp_iseq_line(h.ruby, q, q->encoded + 32), 10);
	((struct rbsp_iseq *)(uintptr_t)q)->n_insns = 0;
	ck_assert_uint_eq(rbsp_iseq_line(h.ruby, q, q->encoded + 32), 0);
	heap_fini(&h);
}
END_TEST

Suite *suite_ruby_line(void);
Suite *suite_ruby_line(void)
{
	Suite *s = suite_create("ruby_line");
	TCase *tc = tcase_create("lines");

	tcase_add_loop_test(tc, finds_the_entry_of_a_position, 0, RBSP_COUNT_OF(tables));
	tcase_add_loop_test(tc, line_of_a_pc, 0, RBSP_COUNT_OF(lines));
	tcase_add_test(tc, line_without_an_index);
	suite_add_tcase(s, tc);
	return s;
}
