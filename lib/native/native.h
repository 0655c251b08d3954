/* The native side of a capture: program counters, function bounds, symbol names. */
#ifndef RBSP_NATIVE_H
#define RBSP_NATIVE_H

#include <rbsample/frame.h>

#include "target/target.h"

/** Half-open range of runtime addresses. */
struct rbsp_code_range {
	rbsp_addr start, end;
};

/** Unwinder and symbol tables of one process. */
struct rbsp_native;

/** @p target is borrowed and outlives it. Reads the mappings. */
enum rbsp_status rbsp_native_new(struct rbsp_target *target, struct rbsp_native **out,
				 struct rbsp_err *err);
void rbsp_native_free(struct rbsp_native *n);

/**
 * A runtime address to look up: a return address points behind its call, so one is subtracted to
 * stay inside the caller's function and line.
 */
static inline rbsp_addr rbsp_pc_lookup(rbsp_addr pc, bool is_return)
{
	return is_return ? pc - 1 : pc;
}

/** One native frame, innermost first. */
struct rbsp_native_frame {
	rbsp_addr pc;   /* program counter or return address */
	rbsp_addr cfa;  /* canonical frame address; 0: unknown */
	rbsp_addr func; /* runtime start of the function: FDE's or symbol's; 0: unknown */
	bool is_return; /* pc is a return address (not the innermost frame, not below a signal
			   frame) */
};

enum rbsp_unwind_end {
	RBSP_UNWIND_BOTTOM,  /* the oldest frame was reached */
	RBSP_UNWIND_STOPPED, /* at the first frame inside @p until, which is the last one filled */
	RBSP_UNWIND_JIT,     /* in code that belongs to no file; that frame is not filled */
	RBSP_UNWIND_CUT, /* the captured stack or the array ends, a register is unknown, or no CFI
			    covers the pc */
};

/**
 * Unwind a capture (registers and RBSP_RANGE_STACK; memory of images only, nothing of the thread is
 * read again).
 *
 * @param until   stop at the first frame whose look-up address is inside one of these, NULL with
 * n_until 0: go on to the bottom
 * @param out     array of @p cap frames, innermost first
 * @param n       set to the number filled
 */
enum rbsp_unwind_end rbsp_native_unwind(struct rbsp_native *nat, const struct rbsp_capture *c,
					const struct rbsp_code_range *until, size_t n_until,
					struct rbsp_native_frame *out, size_t cap, size_t *n);

/**
 * Unwind every frame by libunwind (about 3 us a frame) instead of by cached rows: the oracle in
 * tests and trials. The ends of a walk are the same.
 */
void rbsp_native_only_libunwind(struct rbsp_native *nat, bool only);

/**
 * Fill a frame (kind native) for a native frame: symbol (only where value <= pc < value + size),
 * module, build-id, offset, func. Strings borrowed from @p nat. In code of no file the kind is jit,
 * and nothing but the address is known.
 */
void rbsp_native_describe(struct rbsp_native *nat, const struct rbsp_native_frame *f,
			  struct rbsp_frame *out);

/** Whether the address lies in an executable mapping that belongs to no file. */
bool rbsp_native_is_jit(struct rbsp_native *nat, rbsp_addr pc);

#endif
