/* DWARF register numbers of the machine we run on: the only place of lib/native that knows it. */
#ifndef RBSP_NATIVE_ARCH_H
#define RBSP_NATIVE_ARCH_H

#include <elf.h>
#include <stdint.h>

#if defined(__x86_64__)

/* System V ABI for x86-64, figure 3.36: 3 rbx, 6 rbp, 7 rsp, 12..15, 16 the return address column.
 */
enum {
	RBSP_DW_MACHINE = EM_X86_64,
	RBSP_DW_SP = 7,
	RBSP_DW_PC = 16,
	RBSP_DW_RA = 16,
	RBSP_DW_REGS = 17,
	RBSP_DW_SAVED = 7,
};

/** What a caller finds again after a call: the callee-saved registers, and the return address last.
 */
static const uint8_t rbsp_dw_saved[RBSP_DW_SAVED] = { 3, 6, 12, 13, 14, 15, RBSP_DW_RA };

/* Code of a signal trampoline without CFI: mov $15 (rt_sigreturn), %rax; syscall. */
#define RBSP_DW_SIGRETURN "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"

/** Where its stack pointer leads to the interrupted registers: the kernel's struct ucontext,
 * uc_mcontext at 40. */
static const uint16_t rbsp_dw_sigframe[RBSP_DW_REGS] = {
	144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168,
};

static inline uint64_t rbsp_dw_plain_pc(uint64_t pc)
{
	return pc;
}

#elif defined(__aarch64__)

/* DWARF for the Arm 64-bit Architecture, table 2: 19..28 callee-saved, 29 fp, 30 lr, 31 sp. */
enum {
	RBSP_DW_MACHINE = EM_AARCH64,
	RBSP_DW_SP = 31,
	RBSP_DW_PC = 32,
	RBSP_DW_RA = 30,
	RBSP_DW_REGS = 33,
	RBSP_DW_SAVED = 12,
};

static const uint8_t rbsp_dw_saved[RBSP_DW_SAVED] = {
	19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, RBSP_DW_RA,
};

/* mov x8, #139 (rt_sigreturn); svc #0. */
#define RBSP_DW_SIGRETURN "\x68\x11\x80\xd2\x01\x00\x00\xd4"

/** Where its stack pointer leads to the interrupted registers: siginfo 128 bytes, uc_mcontext at
 * 176, regs at 8. */
static const uint16_t rbsp_dw_sigframe[RBSP_DW_REGS] = {
	312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440,
	448, 456, 464, 472, 480, 488, 496, 504, 512, 520, 528, 536, 544, 552, 560, 568,
};

/* A signed return address carries its code above the 48 bits of an address. */
static inline uint64_t rbsp_dw_plain_pc(uint64_t pc)
{
	return pc & UINT64_C(0x0000ffffffffffff);
}

#else
#error "lib/native knows x86-64 and aarch64"
#endif

#endif
