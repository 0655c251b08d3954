/* Tests of lib/locate's pure parts: calls and jumps in code, the accessor decoder, what makes an execution context plausible. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locate/code.h"
#include "locate/internal.h"

/* Code stands at this address unless a row says otherwise. */
#define PC 0x1000

static const struct {
	const char *name;
	uint16_t machine;
	unsigned kinds;
	uint64_t lo, hi;
	const char *code;
	size_t n;
	size_t found;
	uint64_t at, target; /* of the last one found */
	bool word;
} refs[] = {
	{ "a call with a 32-bit distance", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "\xe8\x10\0\0\0", 5, 1,
	  PC, PC + 0x15, false },
	{ "a tail call", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "\xe9\xf0\xff\xff\xff", 5, 1, PC,
	  PC - 0xb, false },
	{ "a padded TLS call: the prefixes are passed over", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\x66\x66\x48\xe8\x01\0\0\0", 8, 1, PC + 3, PC + 9, false },
	{ "-fno-plt: a call through a word", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\xff\x15\x00\x01\0\0", 6, 1, PC, PC + 0x106, true },
	{ "-fno-plt: a jump through a word", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\xff\x25\x00\x01\0\0", 6, 1, PC, PC + 0x106, true },
	{ "a conditional jump is not a call", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\x0f\x84\x00\x01\0\0", 6, 0, 0, 0, false },
	{ "a conditional jump", EM_X86_64, RBSP_REF_JUMP, 0, UINT64_MAX, "\x0f\x8f\x00\x01\0\0", 6, 1, PC,
	  PC + 0x106, false },
	{ "a call is not a jump", EM_X86_64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xe8\x10\0\0\0", 5, 0, 0, 0,
	  false },
	{ "a target outside the range is dropped", EM_X86_64, RBSP_REF_CALL, 0, PC + 0x15,
	  "\xe8\x10\0\0\0", 5, 0, 0, 0, false },
	{ "a call cut off at the end", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "\x90\xe8\x10\0\0", 5, 0,
	  0, 0, false },
	{ "no code", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "", 0, 0, 0, 0, false },
	{ "aarch64: bl", EM_AARCH64, RBSP_REF_CALL, 0, UINT64_MAX, "\x02\0\0\x94", 4, 1, PC, PC + 8,
	  false },
	{ "aarch64: b backwards", EM_AARCH64, RBSP_REF_CALL, 0, UINT64_MAX, "\xff\xff\xff\x17", 4, 1, PC,
	  PC - 4, false },
	{ "aarch64: b.eq", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xa0\xfe\xff\x54", 4, 1, PC,
	  PC - 0x2c, false },
	{ "aarch64: tbz", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xc0\xfe\x1f\x36", 4, 1, PC,
	  PC - 0x28, false },
	{ "aarch64: cbz", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\x40\0\0\xb4", 4, 1, PC, PC + 8,
	  false },
	{ "aarch64: blr is no direct call", EM_AARCH64, RBSP_REF_CALL | RBSP_REF_JUMP, 0, UINT64_MAX,
	  "\x20\0\x3f\xd6", 4, 0, 0, 0, false },
};

START_TEST(finds_calls_and_jumps)
{
	struct rbsp_code_ref out[8] = { { 0 } };
	size_t n = rbsp_code_refs(refs[_i].machine, (const unsigned char *)refs[_i].code, refs[_i].n, PC,
				  refs[_i].kinds, refs[_i].lo, refs[_i].hi, out, 8);

	ck_assert_msg(n == refs[_i].found, "%s: %zu found", refs[_i].name, n);
	if (!n)
		return;
	ck_assert_msg(out[n - 1].at == refs[_i].at, "%s: at %#lx", refs[_i].name,
		      (unsigned long)out[n - 1].at);
	ck_assert_msg(out[n - 1].target == refs[_i].target, "%s: to %#lx", refs[_i].name,
		      (unsigned long)out[n - 1].target);
	ck_assert_msg(out[n - 1].word == refs[_i].word, "%s", refs[_i].name);
}
END_TEST

START_TEST(fills_no_more_than_there_is_room_for)
{
	struct rbsp_code_ref out[2];
	unsigned char code[50];

	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = i % 5 ? 0 : 0xe8;
	ck_assert_uint_eq(rbsp_code_refs(EM_X86_64, code, sizeof(code), PC, RBSP_REF_CALL, 0, UINT64_MAX,
					 out, 2),
			  2);
}
END_TEST

static const struct {
	const char *name;
	uint16_t machine;
	const char *code;
	size_t n, found;
} indirect[] = {
	{ "jmp *%rax", EM_X86_64, "\xff\xe0", 2, 1 },
	{ "jmp *%r8: with a REX prefix", EM_X86_64, "\x41\xff\xe0", 3, 1 },
	{ "jmp *(%rax): the handler's address in the instruction", EM_X86_64, "\xff\x20", 2, 1 },
	{ "jmp *0x8(%rax)", EM_X86_64, "\xff\x60\x08", 3, 1 },
	{ "notrack jmp *%rax is a switch", EM_X86_64, "\x3e\xff\xe0", 3, 0 },
	{ "notrack jmp *%r8 too", EM_X86_64, "\x3e\x41\xff\xe0", 4, 0 },
	{ "a jump through a GOT word", EM_X86_64, "\xff\x25\0\0\0\0", 6, 0 },
	{ "call *%rax", EM_X86_64, "\xff\xd0", 2, 0 },
	{ "two", EM_X86_64, "\xff\xe0\xff\xe2", 4, 2 },
	{ "cut off", EM_X86_64, "\xff", 1, 0 },
	{ "aarch64: br x17", EM_AARCH64, "\x20\x02\x1f\xd6", 4, 1 },
	{ "aarch64: ret", EM_AARCH64, "\xc0\x03\x5f\xd6", 4, 0 },
};

START_TEST(counts_indirect_jumps)
{
	size_t n = rbsp_code_indirect_jumps(indirect[_i].machine, (const unsigned char *)indirect[_i].code,
					    indirect[_i].n);

	ck_assert_msg(n == indirect[_i].found, "%s: %zu", indirect[_i].name, n);
}
END_TEST

static const struct {
	const char *name;
	uint16_t machine;
	const char *code;
	uint64_t slot;
} stubs[] = {
	{ "plain", EM_X86_64, "\xff\x25\x00\x20\0\0\x68\0\0\0\0\xe9\0\0\0\0", PC + 0x2006 },
	{ "with endbr64", EM_X86_64, "\xf3\x0f\x1e\xfa\xff\x25\x00\x20\0\0\x66\x0f\x1f\x44\0\0",
	  PC + 0x200a },
	{ "with endbr64 and bnd", EM_X86_64, "\xf3\x0f\x1e\xfa\xf2\xff\x25\x00\x20\0\0\x0f\x1f\x44\0\0",
	  PC + 0x200b },
	{ "not a stub", EM_X86_64, "\x48\x83\xec\x08\xff\x25\0\0\0\0\x90\x90\x90\x90\x90\x90", 0 },
	{ "aarch64", EM_AARCH64, "\x30\0\0\xb0\x11\x8e\x44\xf9\x10\x62\x24\x91\x20\x02\x1f\xd6",
	  0x6000 + 0x918 },
	{ "aarch64 with bti", EM_AARCH64, "\x5f\x24\x03\xd5\x30\0\0\xb0\x11\x8e\x44\xf9\x10\x62\x24\x91",
	  0x6000 + 0x918 },
	{ "aarch64, not a stub", EM_AARCH64,
	  "\x11\x8e\x44\xf9\x30\0\0\xb0\x10\x62\x24\x91\x20\x02\x1f\xd6", 0 },
};

START_TEST(reads_plt_stubs)
{
	uint64_t slot = rbsp_code_plt_slot(stubs[_i].machine, (const unsigned char *)stubs[_i].code, 16, PC);

	ck_assert_msg(slot == stubs[_i].slot, "%s: %#lx", stubs[_i].name, (unsigned long)slot);
}
END_TEST

#define NO RBSP_NO_REG

/* The forms that gcc and clang make of rb_gc_count and rb_during_gc in 2.7 to 3.4. */
static const struct {
	const char *name;
	uint16_t machine;
	const char *code;
	size_t n;
	struct rbsp_insn want;
} insns[] = {
	{ "mov 0x280ad9(%rip),%rax", EM_X86_64, "\x48\x8b\x05\xd9\x0a\x28\x00", 7,
	  { RBSP_INSN_LOAD, 7, 0, NO, 8, PC + 7 + 0x280ad9 } },
	{ "mov (%rax),%rax", EM_X86_64, "\x48\x8b\x00", 3, { RBSP_INSN_LOAD, 3, 0, 0, 8, 0 } },
	{ "mov 0x480(%rax),%rax", EM_X86_64, "\x48\x8b\x80\x80\x04\x00\x00", 7,
	  { RBSP_INSN_LOAD, 7, 0, 0, 8, 0x480 } },
	{ "mov -0x8(%rdi),%r9", EM_X86_64, "\x4c\x8b\x4f\xf8", 4,
	  { RBSP_INSN_LOAD, 4, 9, 7, 8, (uint64_t)-8 } },
	{ "mov 0x10(%rax),%eax", EM_X86_64, "\x8b\x40\x10", 3, { RBSP_INSN_LOAD, 3, 0, 0, 4, 0x10 } },
	{ "movzbl 0x14(%rax),%eax", EM_X86_64, "\x0f\xb6\x40\x14", 4,
	  { RBSP_INSN_LOAD, 4, 0, 0, 1, 0x14 } },
	{ "movzwl 0x10(%rcx),%eax", EM_X86_64, "\x0f\xb7\x41\x10", 4,
	  { RBSP_INSN_LOAD, 4, 0, 1, 2, 0x10 } },
	{ "lea 0x372b4d(%rip),%rax", EM_X86_64, "\x48\x8d\x05\x4d\x2b\x37\x00", 7,
	  { RBSP_INSN_ADDR, 7, 0, NO, 0, PC + 7 + 0x372b4d } },
	{ "mov %rax,%rdi", EM_X86_64, "\x48\x89\xc7", 3, { RBSP_INSN_ADDR, 3, 7, 0, 0, 0 } },
	{ "test %rax,%rax", EM_X86_64, "\x48\x85\xc0", 3, { RBSP_INSN_TEST, 3, 0, NO, 0, 0 } },
	{ "xor %eax,%eax", EM_X86_64, "\x31\xc0", 2, { RBSP_INSN_ZERO, 2, 0, NO, 0, 0 } },
	{ "je +0x15", EM_X86_64, "\x74\x15", 2, { RBSP_INSN_IF_ZERO, 2, NO, NO, 0, PC + 0x17 } },
	{ "jne, near form", EM_X86_64, "\x0f\x85\x00\x01\0\0", 6,
	  { RBSP_INSN_IF_NOT_ZERO, 6, NO, NO, 0, PC + 0x106 } },
	{ "call", EM_X86_64, "\xe8\x73\x10\xf3\xff", 5,
	  { RBSP_INSN_CALL, 5, NO, NO, 0, PC + 5 - 0xcef8d } },
	{ "endbr64", EM_X86_64, "\xf3\x0f\x1e\xfa", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "sub $0x8,%rsp", EM_X86_64, "\x48\x83\xec\x08", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "ret", EM_X86_64, "\xc3", 1, { RBSP_INSN_RETURN, 1, NO, NO, 0, 0 } },
	{ "shr $0x5,%al is not followed", EM_X86_64, "\xc0\xe8\x05", 3,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "a load with an index is not followed", EM_X86_64, "\x48\x8b\x04\xc8", 4,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "a load cut off", EM_X86_64, "\x48\x8b\x80\x80\x04", 5, { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "nothing", EM_X86_64, "", 0, { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "adrp x0", EM_AARCH64, "\x00\x14\x00\xb0", 4, { RBSP_INSN_ADDR, 4, 0, NO, 0, PC + 0x281000 } },
	{ "add x0, x0, #1152", EM_AARCH64, "\x00\x00\x12\x91", 4, { RBSP_INSN_ADDR, 4, 0, 0, 0, 1152 } },
	{ "ldr x0, [x0, #1152]", EM_AARCH64, "\x00\x40\x42\xf9", 4,
	  { RBSP_INSN_LOAD, 4, 0, 0, 8, 1152 } },
	{ "ldr w0, [x0, #16]", EM_AARCH64, "\x00\x10\x40\xb9", 4, { RBSP_INSN_LOAD, 4, 0, 0, 4, 16 } },
	{ "ldrb w1, [x2, #20]", EM_AARCH64, "\x41\x50\x40\x39", 4, { RBSP_INSN_LOAD, 4, 1, 2, 1, 20 } },
	{ "mov x3, x19", EM_AARCH64, "\xe3\x03\x13\xaa", 4, { RBSP_INSN_ADDR, 4, 3, 19, 0, 0 } },
	{ "cbz x0", EM_AARCH64, "\x40\x00\x00\xb4", 4, { RBSP_INSN_IF_ZERO, 4, 0, NO, 0, PC + 8 } },
	{ "cbnz x4", EM_AARCH64, "\x24\x00\x00\xb5", 4, { RBSP_INSN_IF_NOT_ZERO, 4, 4, NO, 0, PC + 4 } },
	{ "bl", EM_AARCH64, "\x02\x00\x00\x94", 4, { RBSP_INSN_CALL, 4, NO, NO, 0, PC + 8 } },
	{ "ret", EM_AARCH64, "\xc0\x03\x5f\xd6", 4, { RBSP_INSN_RETURN, 4, NO, NO, 0, 0 } },
	{ "paciasp", EM_AARCH64, "\x3f\x23\x03\xd5", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "stp x29, x30, [sp, #-16]!", EM_AARCH64, "\xfd\x7b\xbf\xa9", 4,
	  { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "br x17 is not followed", EM_AARCH64, "\x20\x02\x1f\xd6", 4,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
};

START_TEST(decodes_accessors)
{
	const struct rbsp_insn *w = &insns[_i].want;
	struct rbsp_insn in = rbsp_insn_decode(insns[_i].machine, (const unsigned char *)insns[_i].code,
					       insns[_i].n, PC);

	ck_assert_msg(in.kind == w->kind, "%s: kind %d", insns[_i].name, in.kind);
	ck_assert_msg(in.len == w->len, "%s: length %d", insns[_i].name, in.len);
	ck_assert_msg(in.to == w->to && in.base == w->base, "%s: %d from %d", insns[_i].name, in.to, in.base);
	ck_assert_msg(in.value == w->value, "%s: %#lx", insns[_i].name, (unsigned long)in.value);
	ck_assert_msg(in.kind != RBSP_INSN_LOAD || in.size == w->size, "%s: %d bytes", insns[_i].name, in.size);
}
END_TEST

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

/* A process: a file, the heap, a VM stack of 1 MiB, a stack cut in two, and something unreadable. */
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
	ck_assert_msg(rbsp_locate_ec_thread(l, &maps, head, &seen) == threads[_i].good, "%s", threads[_i].name);
	ck_assert_msg(seen.valid == threads[_i].good, "%s", threads[_i].name);
	rbsp_maps_fini(&maps);
}
END_TEST

/* A target whose memory is one array at MEM; reads outside it fault. */
#define MEM 0x50000000
static uint64_t memory[64];
static size_t calls;

static enum rbsp_status array_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n, size_t *done)
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

static enum rbsp_status gone_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n, size_t *done)
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
	static const rbsp_addr at[] = { MEM, 1, MEM + 8, 0, 0, MEM + 16, MEM + sizeof(memory) - 4, 2 };
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

/* Words of `memory`: a thread control block at 8, its vector of TLS blocks at 16 (glibc: after its capacity). */
static const struct {
	const char *name;
	uint16_t machine;
	bool musl;
	int dtv_word;       /* word that holds the vector's address */
	uint64_t capacity;  /* said by the vector */
	int capacity_word;
	uint64_t module;
	int block_word;     /* word that holds the module's block */
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
	ck_assert_msg(block[1] == dtvs[_i].block, "%s: %#lx", dtvs[_i].name, (unsigned long)block[1]);
	ck_assert_msg(block[0] == 0 && block[2] == 0, "%s: other threads have none", dtvs[_i].name);
}
END_TEST

Suite *suite_locate(void);
Suite *suite_locate(void)
{
	Suite *s = suite_create("locate");
	TCase *tc = tcase_create("code");

	tcase_add_loop_test(tc, finds_calls_and_jumps, 0, RBSP_COUNT_OF(refs));
	tcase_add_test(tc, fills_no_more_than_there_is_room_for);
	tcase_add_loop_test(tc, counts_indirect_jumps, 0, RBSP_COUNT_OF(indirect));
	tcase_add_loop_test(tc, reads_plt_stubs, 0, RBSP_COUNT_OF(stubs));
	tcase_add_loop_test(tc, decodes_accessors, 0, RBSP_COUNT_OF(insns));
	suite_add_tcase(s, tc);
	tc = tcase_create("candidates");
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
