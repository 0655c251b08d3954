/* Tests of lib/locate's readers of machine code: calls and jumps, PLT stubs, the decoder of
 * accessors. */
#include <check.h>
#include <elf.h>

#include "locate/code.h"

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
	{ "a call with a 32-bit distance", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\xe8\x10\0\0\0", 5, 1, PC, PC + 0x15, false },
	{ "a tail call", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "\xe9\xf0\xff\xff\xff", 5, 1, PC,
	  PC - 0xb, false },
	{ "a padded TLS call: the prefixes are passed over", EM_X86_64, RBSP_REF_CALL, 0,
	  UINT64_MAX, "\x66\x66\x48\xe8\x01\0\0\0", 8, 1, PC + 3, PC + 9, false },
	{ "-fno-plt: a call through a word", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\xff\x15\x00\x01\0\0", 6, 1, PC, PC + 0x106, true },
	{ "-fno-plt: a jump through a word", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\xff\x25\x00\x01\0\0", 6, 1, PC, PC + 0x106, true },
	{ "a conditional jump is not a call", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX,
	  "\x0f\x84\x00\x01\0\0", 6, 0, 0, 0, false },
	{ "a conditional jump", EM_X86_64, RBSP_REF_JUMP, 0, UINT64_MAX, "\x0f\x8f\x00\x01\0\0", 6,
	  1, PC, PC + 0x106, false },
	{ "a call is not a jump", EM_X86_64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xe8\x10\0\0\0", 5, 0,
	  0, 0, false },
	{ "a target outside the range is dropped", EM_X86_64, RBSP_REF_CALL, 0, PC + 0x15,
	  "\xe8\x10\0\0\0", 5, 0, 0, 0, false },
	{ "a call cut off at the end", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "\x90\xe8\x10\0\0",
	  5, 0, 0, 0, false },
	{ "no code", EM_X86_64, RBSP_REF_CALL, 0, UINT64_MAX, "", 0, 0, 0, 0, false },
	{ "aarch64: bl", EM_AARCH64, RBSP_REF_CALL, 0, UINT64_MAX, "\x02\0\0\x94", 4, 1, PC, PC + 8,
	  false },
	{ "aarch64: b backwards", EM_AARCH64, RBSP_REF_CALL, 0, UINT64_MAX, "\xff\xff\xff\x17", 4,
	  1, PC, PC - 4, false },
	{ "aarch64: b.eq", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xa0\xfe\xff\x54", 4, 1, PC,
	  PC - 0x2c, false },
	{ "aarch64: tbz", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\xc0\xfe\x1f\x36", 4, 1, PC,
	  PC - 0x28, false },
	{ "aarch64: cbz", EM_AARCH64, RBSP_REF_JUMP, 0, UINT64_MAX, "\x40\0\0\xb4", 4, 1, PC,
	  PC + 8, false },
	{ "aarch64: blr is no direct call", EM_AARCH64, RBSP_REF_CALL | RBSP_REF_JUMP, 0,
	  UINT64_MAX, "\x20\0\x3f\xd6", 4, 0, 0, 0, false },
};

START_TEST(finds_calls_and_jumps)
{
	struct rbsp_code_ref out[8] = { { 0 } };
	size_t n = rbsp_code_refs(refs[_i].machine, (const unsigned char *)refs[_i].code,
				  refs[_i].n, PC, refs[_i].kinds, refs[_i].lo, refs[_i].hi, out, 8);

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
	ck_assert_uint_eq(rbsp_code_refs(EM_X86_64, code, sizeof(code), PC, RBSP_REF_CALL, 0,
					 UINT64_MAX, out, 2),
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
	size_t n = rbsp_code_indirect_jumps(
		indirect[_i].machine, (const unsigned char *)indirect[_i].code, indirect[_i].n);

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
	{ "with endbr64 and bnd", EM_X86_64,
	  "\xf3\x0f\x1e\xfa\xf2\xff\x25\x00\x20\0\0\x0f\x1f\x44\0\0", PC + 0x200b },
	{ "not a stub", EM_X86_64, "\x48\x83\xec\x08\xff\x25\0\0\0\0\x90\x90\x90\x90\x90\x90", 0 },
	{ "aarch64", EM_AARCH64, "\x30\0\0\xb0\x11\x8e\x44\xf9\x10\x62\x24\x91\x20\x02\x1f\xd6",
	  0x6000 + 0x918 },
	{ "aarch64 with bti", EM_AARCH64,
	  "\x5f\x24\x03\xd5\x30\0\0\xb0\x11\x8e\x44\xf9\x10\x62\x24\x91", 0x6000 + 0x918 },
	{ "aarch64, not a stub", EM_AARCH64,
	  "\x11\x8e\x44\xf9\x30\0\0\xb0\x10\x62\x24\x91\x20\x02\x1f\xd6", 0 },
};

START_TEST(reads_plt_stubs)
{
	uint64_t slot = rbsp_code_plt_slot(stubs[_i].machine, (const unsigned char *)stubs[_i].code,
					   16, PC);

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
	{ "mov 0x280ad9(%rip),%rax",
	  EM_X86_64,
	  "\x48\x8b\x05\xd9\x0a\x28\x00",
	  7,
	  { RBSP_INSN_LOAD, 7, 0, NO, 8, PC + 7 + 0x280ad9 } },
	{ "mov (%rax),%rax", EM_X86_64, "\x48\x8b\x00", 3, { RBSP_INSN_LOAD, 3, 0, 0, 8, 0 } },
	{ "mov 0x480(%rax),%rax",
	  EM_X86_64,
	  "\x48\x8b\x80\x80\x04\x00\x00",
	  7,
	  { RBSP_INSN_LOAD, 7, 0, 0, 8, 0x480 } },
	{ "mov -0x8(%rdi),%r9",
	  EM_X86_64,
	  "\x4c\x8b\x4f\xf8",
	  4,
	  { RBSP_INSN_LOAD, 4, 9, 7, 8, (uint64_t)-8 } },
	{ "mov 0x10(%rax),%eax",
	  EM_X86_64,
	  "\x8b\x40\x10",
	  3,
	  { RBSP_INSN_LOAD, 3, 0, 0, 4, 0x10 } },
	{ "movzbl 0x14(%rax),%eax",
	  EM_X86_64,
	  "\x0f\xb6\x40\x14",
	  4,
	  { RBSP_INSN_LOAD, 4, 0, 0, 1, 0x14 } },
	{ "movzwl 0x10(%rcx),%eax",
	  EM_X86_64,
	  "\x0f\xb7\x41\x10",
	  4,
	  { RBSP_INSN_LOAD, 4, 0, 1, 2, 0x10 } },
	{ "lea 0x372b4d(%rip),%rax",
	  EM_X86_64,
	  "\x48\x8d\x05\x4d\x2b\x37\x00",
	  7,
	  { RBSP_INSN_ADDR, 7, 0, NO, 0, PC + 7 + 0x372b4d } },
	{ "mov %rax,%rdi", EM_X86_64, "\x48\x89\xc7", 3, { RBSP_INSN_ADDR, 3, 7, 0, 0, 0 } },
	{ "test %rax,%rax", EM_X86_64, "\x48\x85\xc0", 3, { RBSP_INSN_TEST, 3, 0, NO, 0, 0 } },
	{ "xor %eax,%eax", EM_X86_64, "\x31\xc0", 2, { RBSP_INSN_ZERO, 2, 0, NO, 0, 0 } },
	{ "je +0x15", EM_X86_64, "\x74\x15", 2, { RBSP_INSN_IF_ZERO, 2, NO, NO, 0, PC + 0x17 } },
	{ "jne, near form",
	  EM_X86_64,
	  "\x0f\x85\x00\x01\0\0",
	  6,
	  { RBSP_INSN_IF_NOT_ZERO, 6, NO, NO, 0, PC + 0x106 } },
	{ "call",
	  EM_X86_64,
	  "\xe8\x73\x10\xf3\xff",
	  5,
	  { RBSP_INSN_CALL, 5, NO, NO, 0, PC + 5 - 0xcef8d } },
	{ "endbr64", EM_X86_64, "\xf3\x0f\x1e\xfa", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "sub $0x8,%rsp", EM_X86_64, "\x48\x83\xec\x08", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "ret", EM_X86_64, "\xc3", 1, { RBSP_INSN_RETURN, 1, NO, NO, 0, 0 } },
	{ "shr $0x5,%al is not followed",
	  EM_X86_64,
	  "\xc0\xe8\x05",
	  3,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "a load with an index is not followed",
	  EM_X86_64,
	  "\x48\x8b\x04\xc8",
	  4,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "a load cut off",
	  EM_X86_64,
	  "\x48\x8b\x80\x80\x04",
	  5,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "nothing", EM_X86_64, "", 0, { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
	{ "adrp x0",
	  EM_AARCH64,
	  "\x00\x14\x00\xb0",
	  4,
	  { RBSP_INSN_ADDR, 4, 0, NO, 0, PC + 0x281000 } },
	{ "add x0, x0, #1152",
	  EM_AARCH64,
	  "\x00\x00\x12\x91",
	  4,
	  { RBSP_INSN_ADDR, 4, 0, 0, 0, 1152 } },
	{ "ldr x0, [x0, #1152]",
	  EM_AARCH64,
	  "\x00\x40\x42\xf9",
	  4,
	  { RBSP_INSN_LOAD, 4, 0, 0, 8, 1152 } },
	{ "ldr w0, [x0, #16]",
	  EM_AARCH64,
	  "\x00\x10\x40\xb9",
	  4,
	  { RBSP_INSN_LOAD, 4, 0, 0, 4, 16 } },
	{ "ldrb w1, [x2, #20]",
	  EM_AARCH64,
	  "\x41\x50\x40\x39",
	  4,
	  { RBSP_INSN_LOAD, 4, 1, 2, 1, 20 } },
	{ "mov x3, x19", EM_AARCH64, "\xe3\x03\x13\xaa", 4, { RBSP_INSN_ADDR, 4, 3, 19, 0, 0 } },
	{ "cbz x0", EM_AARCH64, "\x40\x00\x00\xb4", 4, { RBSP_INSN_IF_ZERO, 4, 0, NO, 0, PC + 8 } },
	{ "cbnz x4",
	  EM_AARCH64,
	  "\x24\x00\x00\xb5",
	  4,
	  { RBSP_INSN_IF_NOT_ZERO, 4, 4, NO, 0, PC + 4 } },
	{ "bl", EM_AARCH64, "\x02\x00\x00\x94", 4, { RBSP_INSN_CALL, 4, NO, NO, 0, PC + 8 } },
	{ "ret", EM_AARCH64, "\xc0\x03\x5f\xd6", 4, { RBSP_INSN_RETURN, 4, NO, NO, 0, 0 } },
	{ "paciasp", EM_AARCH64, "\x3f\x23\x03\xd5", 4, { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "stp x29, x30, [sp, #-16]!",
	  EM_AARCH64,
	  "\xfd\x7b\xbf\xa9",
	  4,
	  { RBSP_INSN_SKIP, 4, NO, NO, 0, 0 } },
	{ "br x17 is not followed",
	  EM_AARCH64,
	  "\x20\x02\x1f\xd6",
	  4,
	  { RBSP_INSN_UNKNOWN, 0, NO, NO, 0, 0 } },
};

START_TEST(decodes_accessors)
{
	const struct rbsp_insn *w = &insns[_i].want;
	struct rbsp_insn in = rbsp_insn_decode(
		insns[_i].machine, (const unsigned char *)insns[_i].code, insns[_i].n, PC);

	ck_assert_msg(in.kind == w->kind, "%s: kind %d", insns[_i].name, in.kind);
	ck_assert_msg(in.len == w->len, "%s: length %d", insns[_i].name, in.len);
	ck_assert_msg(in.to == w->to && in.base == w->base, "%s: %d from %d", insns[_i].name, in.to,
		      in.base);
	ck_assert_msg(in.value == w->value, "%s: %#lx", insns[_i].name, (unsigned long)in.value);
	ck_assert_msg(in.kind != RBSP_INSN_LOAD || in.size == w->size, "%s: %d bytes",
		      insns[_i].name, in.size);
}
END_TEST

Suite *suite_locate_code(void);
Suite *suite_locate_code(void)
{
	Suite *s = suite_create("locate_code");
	TCase *tc = tcase_create("code");

	tcase_add_loop_test(tc, finds_calls_and_jumps, 0, RBSP_COUNT_OF(refs));
	tcase_add_test(tc, fills_no_more_than_there_is_room_for);
	tcase_add_loop_test(tc, counts_indirect_jumps, 0, RBSP_COUNT_OF(indirect));
	tcase_add_loop_test(tc, reads_plt_stubs, 0, RBSP_COUNT_OF(stubs));
	tcase_add_loop_test(tc, decodes_accessors, 0, RBSP_COUNT_OF(insns));
	suite_add_tcase(s, tc);
	return s;
}
