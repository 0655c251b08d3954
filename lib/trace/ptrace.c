/* The few ptrace calls that sampling makes. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "trace/trace.h"

static enum rbsp_status of_errno(void)
{
	if (errno == ESRCH)
		return RBSP_E_GONE;
	return errno == EPERM ? RBSP_E_TRACED : RBSP_E_SYS;
}

enum rbsp_status rbsp_trace_seize(int tid)
{
	return ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 ? RBSP_OK : of_errno();
}

enum rbsp_status rbsp_trace_interrupt(int tid)
{
	return ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? RBSP_OK : of_errno();
}

void rbsp_trace_detach(int tid, int signal)
{
	ptrace(PTRACE_DETACH, tid, 0, (void *)(uintptr_t)signal);
}

#if defined(__x86_64__)

enum rbsp_status rbsp_trace_regs(int tid, struct rbsp_regs *out)
{
	struct user_regs_struct u;
	struct iovec io = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0)
		return of_errno();
	/* DWARF numbers: System V ABI, AMD64 supplement, figure 3.36 */
	*out = (struct rbsp_regs){
		.r = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
		       u.r11, u.r12, u.r13, u.r14, u.r15, u.rip },
		.known = (1u << 17) - 1,
		.pc = u.rip,
		.sp = u.rsp,
		.tp = u.fs_base,
		.call = (int64_t)u.orig_rax, /* -1 where an interrupt or exception led into the
						kernel */
	};
	return RBSP_OK;
}

void rbsp_regs_of_sp_pc(struct rbsp_regs *out, rbsp_addr sp, rbsp_addr pc)
{
	*out = (struct rbsp_regs){ .known = 1u << 7 | 1u << 16, .pc = pc, .sp = sp, .call = -1 };
	out->r[7] = sp;
	out->r[16] = pc;
}

#elif defined(__aarch64__)

#ifndef NT_ARM_TLS
#define NT_ARM_TLS 0x401
#endif
#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

enum rbsp_status rbsp_trace_regs(int tid, struct rbsp_regs *out)
{
	struct user_regs_struct u;
	uint64_t tp = 0;
	int call = -1;
	struct iovec io = { &u, sizeof(u) }, tls = { &tp, sizeof(tp) },
		     nr = { &call, sizeof(call) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0 ||
	    ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &tls) != 0)
		return of_errno();
	*out = (struct rbsp_regs){ .known = (UINT64_C(1) << RBSP_REGS) - 1,
				   .pc = u.pc,
				   .sp = u.sp,
				   .tp = tp,
				   .call = -1 };
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &nr) == 0)
		out->call = call;
	memcpy(out->r, u.regs, 31 * sizeof(u.regs[0]));
	out->r[31] = u.sp;
	out->r[32] = u.pc;
	return RBSP_OK;
}

void rbsp_regs_of_sp_pc(struct rbsp_regs *out, rbsp_addr sp, rbsp_addr pc)
{
	*out = (struct rbsp_regs){ .known = UINT64_C(3) << 31, .pc = pc, .sp = sp, .call = -1 };
	out->r[31] = sp;
	out->r[32] = pc;
}

#else
#error "rbsample knows the registers of x86-64 and aarch64"
#endif
