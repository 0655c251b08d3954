/* Calls, indirect jumps and PLT stubs in machine code of x86-64 and aarch64, by pattern. */
#include "locate/code.h"

#include <elf.h>
#include <string.h>

static uint32_t u32_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int64_t s32_at(const unsigned char *p)
{
	return (int32_t)u32_at(p);
}

/** @p v's low @p bits bits as a signed number. */
static int64_t sign_extend(uint64_t v, unsigned bits)
{
	uint64_t sign = 1ull << (bits - 1);

	v &= (sign << 1) - 1;
	return (int64_t)(v ^ sign) - (int64_t)sign;
}

/** One x86-64 reference at @p p, if there is one. */
static bool x86_ref(const unsigned char *p, size_t n, uint64_t pc, unsigned kinds,
		    struct rbsp_code_ref *out)
{
	if (n < 5)
		return false;
	out->at = pc;
	out->word = false;
	if (p[0] == 0xe9 || (p[0] == 0xe8 && (kinds & RBSP_REF_CALL))) {
		out->target = pc + 5 + (uint64_t)s32_at(p + 1);
		return true;
	}
	if (n < 6)
		return false;
	out->target = pc + 6 + (uint64_t)s32_at(p + 2);
	if (p[0] == 0x0f && (p[1] & 0xf0) == 0x80)
		return kinds & RBSP_REF_JUMP;
	out->word = true;
	return p[0] == 0xff && (p[1] == 0x15 || p[1] == 0x25) && (kinds & RBSP_REF_CALL);
}

static bool arm_ref(const unsigned char *p, size_t n, uint64_t pc, unsigned kinds,
		    struct rbsp_code_ref *out)
{
	uint32_t i;

	if (n < 4)
		return false;
	i = u32_at(p);
	out->at = pc;
	out->word = false;
	out->target = pc + (uint64_t)sign_extend(i, 26) * 4;
	if ((i & 0xfc000000) == 0x14000000)
		return true;
	if ((i & 0xfc000000) == 0x94000000)
		return kinds & RBSP_REF_CALL;
	if (!(kinds & RBSP_REF_JUMP))
		return false;
	out->target = pc + (uint64_t)sign_extend(i >> 5, 19) * 4;
	if ((i & 0xff000010) == 0x54000000 || (i & 0x7e000000) == 0x34000000)
		return true;
	out->target = pc + (uint64_t)sign_extend(i >> 5, 14) * 4;
	return (i & 0x7e000000) == 0x36000000;
}

size_t rbsp_code_refs(uint16_t machine, const unsigned char *code, size_t n, uint64_t pc,
		      unsigned kinds, uint64_t lo, uint64_t hi, struct rbsp_code_ref *out,
		      size_t cap)
{
	bool arm = machine == EM_AARCH64;
	size_t step = arm ? 4 : 1, found = 0;
	struct rbsp_code_ref r;

	for (size_t i = 0; i < n && found < cap; i += step) {
		if (!(arm ? arm_ref : x86_ref)(code + i, n - i, pc + i, kinds, &r))
			continue;
		if (r.target >= lo && r.target < hi)
			out[found++] = r;
	}
	return found;
}

/** FF /4: jmp *reg or *[...]; FF 25 is the PC-relative form, 3E before it (or before its REX) is
 * notrack. */
static bool x86_indirect_jump(const unsigned char *code, size_t i)
{
	unsigned char modrm = code[i + 1];
	size_t before = i;

	if (code[i] != 0xff || ((modrm >> 3) & 7) != 4 || modrm == 0x25)
		return false;
	if (before > 0 && (code[before - 1] & 0xf0) == 0x40)
		before--;
	return before == 0 || code[before - 1] != 0x3e;
}

size_t rbsp_code_indirect_jumps(uint16_t machine, const unsigned char *code, size_t n)
{
	size_t found = 0;

	if (machine == EM_AARCH64) {
		for (size_t i = 0; i + 4 <= n; i += 4)
			found += (u32_at(code + i) & 0xfffffc1f) == 0xd61f0000; /* BR */
		return found;
	}
	for (size_t i = 0; i + 2 <= n; i++)
		found += x86_indirect_jump(code, i);
	return found;
}

/** adrp x16, PAGE; ldr x17, [x16, OFFSET]; (bti c before it or not). */
static uint64_t arm_plt_slot(const unsigned char *p, size_t n, uint64_t pc)
{
	size_t i = n >= 4 && u32_at(p) == 0xd503245f ? 4 : 0;
	uint32_t adrp, ldr;
	uint64_t page;

	if (n < i + 8)
		return 0;
	adrp = u32_at(p + i);
	ldr = u32_at(p + i + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return 0;
	page = (uint64_t)sign_extend((uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3), 21)
	       << 12;
	return ((pc + i) & ~0xfffull) + page + (ldr >> 10 & 0xfff) * 8;
}

uint64_t rbsp_code_plt_slot(uint16_t machine, const unsigned char *code, size_t n, uint64_t pc)
{
	static const unsigned char endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t i = 0;

	if (machine == EM_AARCH64)
		return arm_plt_slot(code, n, pc);
	if (n >= 4 && memcmp(code, endbr64, 4) == 0)
		i = 4;
	if (i < n && code[i] == 0xf2) /* bnd */
		i++;
	if (n < i + 6 || code[i] != 0xff || code[i + 1] != 0x25)
		return 0;
	return pc + i + 6 + (uint64_t)s32_at(code + i + 2);
}
