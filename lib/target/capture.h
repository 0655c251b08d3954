/* One look at one thread, as plain data: all that unwinding, decoding and merging use of it. */
#ifndef RBSP_CAPTURE_H
#define RBSP_CAPTURE_H

#include "base/base.h"
#include "trace/regs.h"

enum rbsp_range_id {
	RBSP_RANGE_SLOT,  /* 8 bytes: the word that holds the thread's ec */
	RBSP_RANGE_EC,    /* head of the rb_execution_context_t */
	RBSP_RANGE_TH,    /* head of the rb_thread_t */
	RBSP_RANGE_NT,    /* head of the rb_native_thread, 3.2+; absent before */
	RBSP_RANGE_SCHED, /* what holds the GVL owner */
	RBSP_RANGE_GC,    /* objspace flags word */
	RBSP_RANGE_GC_COUNT,
	RBSP_RANGE_STACK,  /* native stack from sp - 128 */
	RBSP_RANGE_ENTRY,  /* native stack of the thread's entry frames, `full` only */
	RBSP_RANGE_CFP,    /* control frames: [ec->cfp, end of the VM stack) */
	RBSP_RANGE_VALUES, /* value stack: [vm_stack, above the newest frame's sp) */
	RBSP_RANGES
};

struct rbsp_range {
	rbsp_addr addr; /* 0: not read */
	uint32_t off;   /* in data */
	uint32_t len;   /* bytes that were read, from addr on */
};

enum {
	RBSP_CAP_STOPPED = 1,   /* read while the thread was stopped */
	RBSP_CAP_BLOCKED = 2,   /* the thread was blocked in the kernel (syscall tells where) */
	RBSP_CAP_EXACT = 4,     /* held at the tick's own instant */
	RBSP_CAP_CUT_STACK = 8, /* the native stack was not read to its end */
	RBSP_CAP_CUT_VALUES = 16,
	RBSP_CAP_NO_EC = 32,  /* the slot was empty, or the ec did not read */
	RBSP_CAP_QUEUED = 64, /* at the tick it waited for a cpu */
};

/** Plain data; `data` belongs to whoever made the capture. */
struct rbsp_capture {
	uint64_t time_ns;   /* CLOCK_MONOTONIC of the tick */
	uint64_t cpu_ns;    /* the thread's cpu time so far (schedstat) */
	uint64_t weight_ns; /* since this thread's last tick */
	uint64_t window_ns; /* from its INTERRUPT to its resume, less what it waited for a cpu; 0:
			       not stopped */
	int pid, tid;
	unsigned flags;  /* RBSP_CAP_* */
	int64_t syscall; /* number of the call it is blocked in, or on its way out of; -1: none */
	uint64_t syscall_arg[6];
	struct rbsp_regs regs;
	struct rbsp_range range[RBSP_RANGES];
	uint32_t size; /* bytes used of data */
	unsigned char *data;
};

/** Bytes [addr, addr+n) of the capture, borrowed; NULL: not captured. Looks through all ranges. */
const void *rbsp_capture_at(const struct rbsp_capture *c, rbsp_addr addr, size_t n);
/** The 8 bytes at @p addr. @return false: not captured */
bool rbsp_capture_word(const struct rbsp_capture *c, rbsp_addr addr, uint64_t *out);

/**
 * Where things are in a thread's structures: the numbers the stop window needs. Filled by lib/ruby
 * from its layout table, so that no layer below knows Ruby. Offsets in bytes.
 */
struct rbsp_capture_spec {
	uint32_t ec_size; /* bytes of the ec to read, <= RBSP_EC_MAX */
	uint32_t ec_vm_stack, ec_vm_stack_size, ec_cfp, ec_thread, ec_stack_start;
	uint32_t th_size; /* bytes of the thread to read, <= RBSP_TH_MAX */
	uint32_t th_nt;   /* 0: this Ruby has no rb_native_thread */
	uint32_t nt_size;
	uint32_t cfp_size, cfp_sp;
	rbsp_addr sched; /* 0: unknown */
	uint32_t sched_size;
	rbsp_addr gc, gc_count; /* 0: unknown */
	bool native;            /* read registers' stack */
	bool native_full; /* beyond machine.stack_start, at most 16 KiB, for the thread's entry
			     frames */
};
#define RBSP_EC_MAX 256
#define RBSP_TH_MAX 512

#endif
