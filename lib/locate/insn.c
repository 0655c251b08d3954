/* A decoder for the few instructions of an accessor: address, load, test, branch, call, return. */
#include "locate/code.h"

#include <elf.h>
#include <string.h>

static uint32_t u32_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t sext(uint64_t v, unsigned bits)
{
	uint64_t sign = 1ull << (bits - 1);

	v &= (sign << 1) - 1;
	return (v ^ sign) - sign;
}

static struct rbsp_insn unknown(void)
{
	return (struct rbsp_insn){ .kind = RBSP_INSN_UNKNOWN,
				   .to = RBSP_NO_REG,
				   .base = RBSP_NO_REG };
}

static struct rbsp_insn simple(enum rbsp_insn_kind kind, size_t len, uint64_t value)
{
	return (struct rbsp_insn){ .kind = kind,
				   .len = (uint8_t)len,
				   .to = RBSP_NO_REG,
				   .base = RBSP_NO_REG,
				   .value = value };
}

struct x86_modrm {
	uint8_t mod, reg, rm;
	bool memory, absolute; /* absolute: value is an address (PC-relative form) */
	uint64_t value;
	size_t len; /* of modrm and displacement; 0: a form that is not decoded */
};

/** The operands of an instruction at @p pc whose ModRM byte is p[at] and ends it. */
static struct x86_modrm x86_modrm(const unsigned char *p, size_t n, size_t at, uint8_t rex,
				  uint64_t pc)
{
	struct x86_modrm m = { .len = 0 };

	if (at >= n)
		return m;
	m.mod = p[at] >> 6;
	m.reg = (uint8_t)((p[at] >> 3 & 7) | (rex & 4) << 1);
	m.rm = (uint8_t)((p[at] & 7) | (rex & 1) << 3);
	m.memory = m.mod != 3;
	if (!m.memory) {
		m.len = 1;
	} else if (m.mod == 0 && (p[at] & 7) == 5) {
		if (at + 5 > n)
			return m;
		m.absolute = true;
		m.value = pc + at + 5 + sext(u32_at(p + at + 1), 32);
		m.len = 5;
	} else if ((p[at] & 7) == 4) { /* SIB: not used by accessors */
		m.len = 0;
	} else if (m.mod == 0) {
		m.len = 1;
	} else if (m.mod == 1 && at + 2 <= n) {
		m.value = sext(p[at + 1], 8);
		m.len = 2;
	} else if (m.mod == 2 && at + 5 <= n) {
		m.value = sext(u32_at(p + at + 1), 32);
		m.len = 5;
	}
	return m;
}

static struct rbsp_insn x86_memory(enum rbsp_insn_kind kind, struct x86_modrm m, size_t before,
				   uint8_t size)
{
	return (struct rbsp_insn){
		.kind = kind,
		.len = (uint8_t)(before + m.len),
		.to = m.reg,
		.base = m.absolute ? RBSP_NO_REG : m.rm,
		.size = size,
		.value = m.value,
	};
}

/** Opcodes after an optional REX prefix at p[-1]; @p at is the offset of the opcode. */
static struct rbsp_insn x86_opcode(const unsigned char *p, size_t n, size_t at, uint8_t rex,
				   uint64_t pc)
{
	uint8_t op = p[at], wide = rex & 8 ? 8 : 4;
	struct x86_modrm m;

	if (op == 0x0f && at + 1 < n && (p[at + 1] == 0xb6 || p[at + 1] == 0xb7)) { /* movzx */
		m = x86_modrm(p, n, at + 2, rex, pc);
		return m.len && m.memory
			       ? x86_memory(RBSP_INSN_LOAD, m, at + 2, p[at + 1] == 0xb6 ? 1 : 2)
			       : unknown();
	}
	m = x86_modrm(p, n, at + 1, rex, pc);
	if (!m.len)
		return unknown();
	if (op == 0x8b && m.memory) /* mov r, [m] */
		return x86_memory(RBSP_INSN_LOAD, m, at + 1, wide);
	if (op == 0x8b && wide == 8) /* mov r, r */
		return (struct rbsp_insn){
			.kind = RBSP_INSN_ADDR, .len = (uint8_t)(at + 2), .to = m.reg, .base = m.rm
		};
	if (op == 0x89 && !m.memory && wide == 8)
		return (struct rbsp_insn){
			.kind = RBSP_INSN_ADDR, .len = (uint8_t)(at + 2), .to = m.rm, .base = m.reg
		};
	if (op == 0x8d && m.memory && wide == 8) /* lea */
		return x86_memory(RBSP_INSN_ADDR, m, at + 1, 0);
	if (op == 0x85 && !m.memory && m.reg == m.rm) /* test r, r */
		return (struct rbsp_insn){ .kind = RBSP_INSN_TEST,
					   .len = (uint8_t)(at + 2),
					   .to = m.reg,
					   .base = RBSP_NO_REG };
	if ((op == 0x31 || op == 0x33) && !m.memory && m.reg == m.rm) /* xor r, r */
		return (struct rbsp_insn){ .kind = RBSP_INSN_ZERO,
					   .len = (uint8_t)(at + 2),
					   .to = m.reg,
					   .base = RBSP_NO_REG };
	if (op == 0x83 && !m.memory && m.rm == 4 &&
	    (m.reg == 0 || m.reg == 5)) /* add, sub rsp, imm8 */
		return simple(RBSP_INSN_SKIP, at + 3, 0);
	return unknown();
}

static struct rbsp_insn x86_decode(const unsigned char *p, size_t n, uint64_t pc)
{
	static const unsigned char endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (n >= 4 && memcmp(p, endbr64, 4) == 0)
		return simple(RBSP_INSN_SKIP, 4, 0);
	if (n >= 1 && p[0] == 0xc3)
		return simple(RBSP_INSN_RETURN, 1, 0);
	if (n >= 2 && p[0] == 0xf3 && p[1] == 0xc3)
		return simple(RBSP_INSN_RETURN, 2, 0);
	if (n >= 1 &&
	    (p[0] == 0x90 || (p[0] & 0xf0) == 0x50)) /* nop, push, pop of what is not followed */
		return simple(RBSP_INSN_SKIP, 1, 0);
	if (n >= 2 && (p[0] == 0x74 || p[0] == 0x75))
		return simple(p[0] == 0x74 ? RBSP_INSN_IF_ZERO : RBSP_INSN_IF_NOT_ZERO, 2,
			      pc + 2 + sext(p[1], 8));
	if (n >= 6 && p[0] == 0x0f && (p[1] == 0x84 || p[1] == 0x85))
		return simple(p[1] == 0x84 ? RBSP_INSN_IF_ZERO : RBSP_INSN_IF_NOT_ZERO, 6,
			      pc + 6 + sext(u32_at(p + 2), 32));
	if (n >= 2 && p[0] == 0xeb)
		return simple(RBSP_INSN_JUMP, 2, pc + 2 + sext(p[1], 8));
	if (n >= 5 && (p[0] == 0xe8 || p[0] == 0xe9))
		return simple(p[0] == 0xe8 ? RBSP_INSN_CALL : RBSP_INSN_JUMP, 5,
			      pc + 5 + sext(u32_at(p + 1), 32));
	if (n >= 2 && (p[0] & 0xf0) == 0x40)
		return x86_opcode(p, n, 1, p[0], pc);
	return n >= 1 ? x86_opcode(p, n, 0, 0, pc) : unknown();
}

/** Loads and address arithmetic. */
static struct rbsp_insn arm_memory(uint32_t i, uint64_t pc)
{
	static const struct {
		uint32_t op;
		uint8_t size;
	} load[] = { { 0xf9400000, 8 }, { 0xb9400000, 4 }, { 0x79400000, 2 }, { 0x39400000, 1 } };
	struct rbsp_insn out = { .len = 4, .to = i & 31, .base = i >> 5 & 31 };

	for (size_t k = 0; k < RBSP_COUNT_OF(load); k++) {
		if ((i & 0xffc00000) != load[k].op)
			continue;
		out.kind = RBSP_INSN_LOAD;
		out.size = load[k].size;
		out.value = (uint64_t)(i >> 10 & 0xfff) * load[k].size;
		return out;
	}
	if ((i & 0x9f000000) == 0x90000000) { /* adrp */
		out.kind = RBSP_INSN_ADDR;
		out.base = RBSP_NO_REG;
		out.value = (pc & ~0xfffull) +
			    (sext((uint64_t)(i >> 5 & 0x7ffff) << 2 | (i >> 29 & 3), 21) << 12);
	} else if ((i & 0xff800000) == 0x91000000) { /* add x, x, #imm */
		out.kind = RBSP_INSN_ADDR;
		out.value = (uint64_t)(i >> 10 & 0xfff) << (i >> 22 & 1 ? 12 : 0);
	} else if ((i & 0xffe0ffe0) == 0xaa0003e0) { /* mov x, x */
		out.kind = RBSP_INSN_ADDR;
		out.base = i >> 16 & 31;
	} else {
		return unknown();
	}
	return out;
}

static struct rbsp_insn arm_decode(const unsigned char *p, size_t n, uint64_t pc)
{
	struct rbsp_insn out;
	uint32_t i;

	if (n < 4)
		return unknown();
	i = u32_at(p);
	if ((i & 0xfffff01f) == 0xd503201f || (i & 0xffc003e0) == 0xa98003e0 ||
	    (i & 0xffc003e0) == 0xa8c003e0)
		return simple(RBSP_INSN_SKIP, 4, 0); /* hints (bti, paciasp); stp, ldp on sp */
	if ((i & 0xfffffc1f) == 0xd65f0000)
		return simple(RBSP_INSN_RETURN, 4, 0);
	if ((i & 0x7c000000) == 0x14000000)
		return simple(i >> 31 ? RBSP_INSN_CALL : RBSP_INSN_JUMP, 4, pc + sext(i, 26) * 4);
	if ((i & 0x7e000000) == 0x34000000) {
		out = simple(i >> 24 & 1 ? RBSP_INSN_IF_NOT_ZERO : RBSP_INSN_IF_ZERO, 4,
			     pc + sext(i >> 5, 19) * 4);
		out.to = i & 31;
		return out;
	}
	return arm_memory(i, pc);
}

struct rbsp_insn rbsp_insn_decode(uint16_t machine, const unsigned char *code, size_t n,
				  uint64_t pc)
{
	return machine == EM_AARCH64 ? arm_decode(code, n, pc) : x86_decode(code, n, pc);
}
