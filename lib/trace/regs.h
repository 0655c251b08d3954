/* Registers of a thread, by DWARF number. */
#ifndef RBSP_REGS_H
#define RBSP_REGS_H

#include "base/base.h"

/** x86-64: 0..15 general, 16 the pc; aarch64: 0..30 general, 31 sp, 32 the pc. */
#define RBSP_REGS 33

struct rbsp_regs {
	uint64_t r[RBSP_REGS];
	uint64_t
		known; /* bit i: r[i] was read; a thread read without a stop knows sp and pc only */
	rbsp_addr pc, sp;
	rbsp_addr tp; /* thread pointer: fs_base, TPIDR_EL0; 0: unknown */
	int64_t call; /* number of the system call it is in, -1: in none */
};

/** Set pc and sp alone, as /proc/TID/syscall tells them. */
void rbsp_regs_of_sp_pc(struct rbsp_regs *out, rbsp_addr sp, rbsp_addr pc);

#endif
