/* Reading machine code without a disassembler: calls, indirect jumps, PLT stubs, and the few loads
 * of an accessor. Pure. */
#ifndef RBSP_LOCATE_CODE_H
#define RBSP_LOCATE_CODE_H

#include "base/base.h"

/** A place that code calls or jumps to. */
struct rbsp_code_ref {
	uint64_t at;     /* address of the instruction */
	uint64_t target; /* where it goes, or the word that holds it */
	bool word;       /* target is the address of a word (a GOT slot) */
};

/** Kinds of instructions that rbsp_code_refs reports, to be or-ed. */
enum {
	RBSP_REF_CALL = 1, /* calls and unconditional jumps: E8, E9, FF 15, FF 25; BL, B */
	RBSP_REF_JUMP =
		2, /* unconditional and conditional direct jumps: E9, 0F 8x; B, B.cond, CBZ, TBZ */
};

/**
 * What looks like direct calls or jumps in @p n bytes of code at address @p pc. On x86-64 every
 * byte offset is tried, so there are accidental ones: the caller keeps targets that mean something.
 * Targets outside [@p lo, @p hi) are dropped at once.
 *
 * @param machine  EM_X86_64 or EM_AARCH64
 * @param kinds    RBSP_REF_CALL, RBSP_REF_JUMP or both
 * @param out      array of @p cap references in ascending order of `at`
 * @return number filled, 0..cap
 */
size_t rbsp_code_refs(uint16_t machine, const unsigned char *code, size_t n, uint64_t pc,
		      unsigned kinds, uint64_t lo, uint64_t hi, struct rbsp_code_ref *out,
		      size_t cap);

/** Number of jumps through a register or a computed address, `notrack` ones (switch tables) and
 * PC-relative ones not counted. */
size_t rbsp_code_indirect_jumps(uint16_t machine, const unsigned char *code, size_t n);

/** The GOT slot of a PLT stub of which @p n (at least 16) bytes at @p pc are given; 0: not a stub.
 */
uint64_t rbsp_code_plt_slot(uint16_t machine, const unsigned char *code, size_t n, uint64_t pc);

enum rbsp_insn_kind {
	RBSP_INSN_UNKNOWN, /* not one of those below */
	RBSP_INSN_SKIP,    /* has no effect on what is followed: endbr64, stack adjustment, push,
			      paciasp */
	RBSP_INSN_ADDR,    /* to = base + value, or value */
	RBSP_INSN_LOAD,    /* to = *(base + value), or *value; size bytes */
	RBSP_INSN_ZERO,    /* to = 0 */
	RBSP_INSN_TEST,    /* compares `to` with 0 */
	RBSP_INSN_IF_ZERO, /* goes to value if the last test (or `to`, if a register) is 0 */
	RBSP_INSN_IF_NOT_ZERO,
	RBSP_INSN_CALL, /* value */
	RBSP_INSN_JUMP, /* value */
	RBSP_INSN_RETURN,
};

#define RBSP_NO_REG 0xff

/** One instruction of an accessor such as rb_gc_count: a handful of forms, all that compilers use
 * there. */
struct rbsp_insn {
	enum rbsp_insn_kind kind;
	uint8_t len;
	uint8_t to, base; /* register numbers, 0..31; RBSP_NO_REG: none, value is absolute */
	uint8_t size;     /* of a load, bytes */
	uint64_t value;   /* absolute address, or displacement (two's complement) */
};

/** Decode one instruction at @p pc from at most @p n bytes. An unknown one has kind
 * RBSP_INSN_UNKNOWN and length 0. */
struct rbsp_insn rbsp_insn_decode(uint16_t machine, const unsigned char *code, size_t n,
				  uint64_t pc);

#endif
