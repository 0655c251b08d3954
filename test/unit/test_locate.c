/* Tests of lib/locate's pure parts: versions, what makes an execution context plausible, batched
 * reads, TLS blocks. */
#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "locate/internal.h"

static const struct {
	const char *name, *text;
	uint32_t version;
} versions[] = {
	{ "three numbers", "3.3.8", RBSP_RUBY(3, 3, 8) },
	{ "two digits", "3.4.11", RBSP_RUBY(3, 4, 11) },
	{ "a word after it", "4.1.0dev", RBSP_RUBY(4, 1, 0) },
	{ "two numbers are none", "3.3", 0 },
	{ "a number too large", "3.3.999", 0 },
	{ "text", "ruby", 0 },
	{ "nothing", "", 0 },
};

START_TEST(parses_versions)
{
	ck_assert_msg(rbsp_locate_parse_version(versions[_i].text) == versions[_i].version, "%s",
		      versions[_i].name);
}
END_TEST

/* A process: a file, the heap, a VM stack of 1 MiB, a stack cut in two, and something unreadable.
 */
static const char maps_text[] = "400000-401000 r-xp 00000000 08:01 7 /usr/bin/x\n"
				"10000000-10100000 rw-p 00000000 00:00 0 [heap]\n"
				"20000000-20100000 rw-p 00000000 00:00 0 \n"
				"30000000-30080000 rw-p 00000000 00:00 0 \n"
				"30081000-30100000 rw-p 00000000 00:00 0 \n"
				"40000000-40100000 ---p 00000000 00:00 0 \n";

#define EC 0x10001000
#define TH 0x10002000
#define VM 0x10003000
#define STACK 0x20000000
#define WORDS 0x20000
#define END (STACK + 8 * WORDS)

/* Control frames of 3.1 are 64 bytes. */
static const struct {
	const char *name;
	uint64_t vm_stack, words, cfp, th;
	bool good;
} heads[] = {
	{ "three frames", STACK, WORDS, END - 3 * 64, TH, true },
	{ "a full stack", STACK, WORDS, STACK, TH, true },
	{ "an ended thread: no stack", 0, WORDS, END - 64, TH, false },
	{ "an ended thread: no frame", STACK, WORDS, 0, TH, false },
	{ "no frame at all: the end itself", STACK, WORDS, END, TH, false },
	{ "half a frame", STACK, WORDS, END - 32, TH, false },
	{ "a frame below the stack", STACK, WORDS, STACK - 64, TH, false },
	{ "a stack that is too small", STACK, 0x100, STACK + 0x800 - 64, TH, false },
	{ "a stack that leaves its mapping", STACK, WORDS + 8, END, TH, false },
	{ "a stack that wraps round", STACK, UINT64_MAX / 8, END - 64, TH, false },
	{ "a stack over a hole", 0x30000000, WORDS, 0x30000000 + 8 * WORDS - 64, TH, false },
	{ "an unreadable stack", 0x40000000, WORDS, 0x40000000 + 8 * WORDS - 64, TH, false },
	{ "a stack at an odd address", STACK + 1, WORDS - 8, END - 63, TH, false },
	{ "a thread in a file", STACK, WORDS, END - 64, 0x400000, false },
	{ "a thread at the very end of its mapping", STACK, WORDS, END - 64, 0x100ffff8, false },
	{ "no thread", STACK, WORDS, END - 64, 0, false },
};

static struct rbsp_maps process_maps(void)
{
	struct rbsp_maps maps;

	ck_assert_int_eq(rbsp_maps_parse(maps_text, strlen(maps_text), &maps, NULL), RBSP_OK);
	return maps;
}

START_TEST(filters_execution_contexts)
{
	const struct rbsp_layout *l = rbsp_layout_find(RBSP_RUBY(3, 1, 2), EM_X86_64);
	struct rbsp_maps maps = process_maps();
	unsigned char head[256] = { 0 };
	struct rbsp_ec_seen seen;
	bool good;

	ck_assert_uint_le(rbsp_locate_ec_bytes(l), sizeof(head));
	memcpy(head + l->ec.vm_stack, &heads[_i].vm_stack, 8);
	memcpy(head + l->ec.vm_stack_size, &heads[_i].words, 8);
	memcpy(head + l->ec.cfp, &heads[_i].cfp, 8);
	memcpy(head + l->ec.thread, &heads[_i].th, 8);
	good = rbsp_locate_ec_head(l, &maps, EC, head, &seen);
	ck_assert_msg(good == heads[_i].good, "%s", heads[_i].name);
	ck_assert_msg(!seen.valid, "%s: the thread was not looked at", heads[_i].name);
	rbsp_maps_fini(&maps);
}
END_TEST

static const struct {
	const char *name;
	uint64_t ec, vm;
	bool good;
} threads[] = {
	{ "points back", EC, VM, true },
	{ "runs another fiber", EC + 0x100, VM, false },
	{ "has no VM", EC, 0, false },
	{ "has a VM in a file", EC, 0x400000, false },
};

START_TEST(filters_threads)
{
	const struct rbsp_layout *l = rbsp_layout_find(RBSP_RUBY(3, 1, 2), EM_X86_64);
	struct rbsp_maps maps = process_maps();
	struct rbsp_ec_seen seen = { .ec = EC };
	unsigned char head[256] = { 0 };

	memcpy(head + l->th.ec, &threads[_i].ec, 8);
	memcpy(head + l->th.vm, &threads[_i].vm, 8);
	ck_assert_msg(rbsp_locate_ec_thread(l, &maps, head, &seen) == threads[_i].good, "%s",
		      threads[_i].name);
	ck_assert_msg(seen.valid == threads[_i].good, "%s", threads[_i].name);
	rbsp_maps_fini(&maps);
}
END_TEST

/* A target whose memory is one array at MEM; reads outside it fault. */
#define MEM 0x50000000
static uint64_t memory[64];
static size_t calls;

static enum rbsp_status array_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				    size_t *done)
{
	(void)t;
	calls++;
	*done = 0;
	for (size_t i = 0; i < n; i++) {
		if (v[i].addr < MEM || v[i].addr - MEM + v[i].n > sizeof(memory))
			return RBSP_E_FAULT;
		memcpy(v[i].to, (char *)memory + (v[i].addr - MEM), v[i].n);
		*done += v[i].n;
	}
	return RBSP_OK;
}

static enum rbsp_status gone_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	(void)t;
	(void)v;
	(void)n;
	*done = 0;
	return RBSP_E_GONE;
}

static const struct rbsp_target_ops array_ops = { .readv = array_readv };
static const struct rbsp_target_ops gone_ops = { .readv = gone_readv };

START_TEST(leaves_out_what_faults)
{
	struct rbsp_target t = { .ops = &array_ops }, gone = { .ops = &gone_ops };
	static const rbsp_addr at[] = {
		MEM, 1, MEM + 8, 0, 0, MEM + 16, MEM + sizeof(memory) - 4, 2
	};
	static const bool want[] = { true, false, true, false, false, true, false, false };
	struct rbsp_piece v[RBSP_COUNT_OF(at)];
	uint64_t to[RBSP_COUNT_OF(at)];
	bool ok[RBSP_COUNT_OF(at)];

	for (size_t i = 0; i < RBSP_COUNT_OF(at); i++) {
		v[i] = (struct rbsp_piece){ at[i], &to[i], 8 };
		ok[i] = !want[i];
	}
	for (size_t i = 0; i < RBSP_COUNT_OF(memory); i++)
		memory[i] = 1000 + i;
	calls = 0;
	ck_assert_int_eq(rbsp_locate_read_many(&t, v, RBSP_COUNT_OF(v), ok), RBSP_OK);
	for (size_t i = 0; i < RBSP_COUNT_OF(at); i++)
		ck_assert_msg(ok[i] == want[i], "piece %zu", i);
	ck_assert_uint_eq(to[0], 1000);
	ck_assert_uint_eq(to[2], 1001);
	ck_assert_uint_eq(to[5], 1002);
	ck_assert_uint_eq(calls, 3); /* each fault ends a call, the last one is the last piece */
	ck_assert_int_eq(rbsp_locate_read_many(&gone, v, RBSP_COUNT_OF(v), ok), RBSP_E_GONE);
}
END_TEST

START_TEST(reads_many_pieces_in_few_calls)
{
	enum { N = 1000 };
	struct rbsp_target t = { .ops = &array_ops };
	struct rbsp_piece *v = calloc(N, sizeof(*v));
	uint64_t to = 0;
	bool ok[N];

	for (size_t i = 0; i < N; i++)
		v[i] = (struct rbsp_piece){ MEM, &to, 8 };
	calls = 0;
	ck_assert_int_eq(rbsp_locate_read_many(&t, v, N, ok), RBSP_OK);
	ck_assert_uint_le(calls, 4);
	for (size_t i = 0; i < N; i++)
		ck_assert(ok[i]);
	free(v);
}
END_TEST

/* Words of `memory`: a thread control block at 8, its vector of TLS blocks at 16 (glibc: after its
 * capacity). */
static const struct {
	const char *name;
	uint16_t machine;
	bool musl;
	int dtv_word;      /* word that holds the vector's address */
	uint64_t capacity; /* said by the vector */
	int capacity_word;
	uint64_t module;
	int block_word; /* word that holds the module's block */
	uint64_t held, block;
} dtvs[] = {
	{ "glibc", EM_X86_64, false, 9, 20, 14, 2, 20, MEM + 128, MEM + 128 },
	{ "glibc, aarch64", EM_AARCH64, false, 8, 20, 14, 2, 20, MEM + 128, MEM + 128 },
	{ "glibc, not allocated", EM_X86_64, false, 9, 20, 14, 2, 20, UINT64_MAX, 0 },
	{ "glibc, a vector that is too short", EM_X86_64, false, 9, 1, 14, 2, 20, MEM + 128, 0 },
	{ "glibc, a wild capacity", EM_X86_64, false, 9, 1ull << 40, 14, 2, 20, MEM + 128, 0 },
	{ "musl", EM_X86_64, true, 9, 3, 16, 2, 18, MEM + 128, MEM + 128 },
	{ "musl, aarch64", EM_AARCH64, true, 7, 3, 16, 2, 18, MEM + 128, MEM + 128 },
	{ "musl, fewer modules", EM_X86_64, true, 9, 1, 16, 2, 18, MEM + 128, 0 },
	{ "module 0 is none", EM_X86_64, false, 9, 20, 14, 0, 16, MEM + 128, 0 },
	{ "a machine that is not known", EM_RISCV, false, 9, 20, 14, 2, 20, MEM + 128, 0 },
};

START_TEST(finds_tls_blocks)
{
	struct rbsp_target t = { .ops = &array_ops };
	const rbsp_addr tp[3] = { 0, MEM + 64, 0x7000 };
	rbsp_addr block[3] = { 1, 1, 1 };

	memset(memory, 0, sizeof(memory));
	memory[dtvs[_i].dtv_word] = MEM + 128;
	memory[dtvs[_i].capacity_word] = dtvs[_i].capacity;
	memory[dtvs[_i].block_word] = dtvs[_i].held;
	rbsp_tls_blocks(&t, dtvs[_i].machine, dtvs[_i].module, dtvs[_i].musl, tp, 3, block);
	ck_assert_msg(block[1] == dtvs[_i].block, "%s: %#lx", dtvs[_i].name,
		      (unsigned long)block[1]);
	ck_assert_msg(block[0] == 0 && block[2] == 0, "%s: other threads have none", dtvs[_i].name);
}
END_TEST

Suite *suite_locate(void);
Suite *suite_locate(void)
{
	Suite *s = suite_create("locate");
	TCase *tc = tcase_create("candidates");

	tcase_add_loop_test(tc, parses_versions, 0, RBSP_COUNT_OF(versions));
	tcase_add_loop_test(tc, filters_execution_contexts, 0, RBSP_COUNT_OF(heads));
	tcase_add_loop_test(tc, filters_threads, 0, RBSP_COUNT_OF(threads));
	suite_add_tcase(s, tc);
	tc = tcase_create("reads");
	tcase_add_test(tc, leaves_out_what_faults);
	tcase_add_test(tc, reads_many_pieces_in_few_calls);
	tcase_add_loop_test(tc, finds_tls_blocks, 0, RBSP_COUNT_OF(dtvs));
	suite_add_tcase(s, tc);
	return s;
}
