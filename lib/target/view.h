/* Filling a capture: the two bulk reads of a thread's memory, planned from what its last capture
 * showed. */
#ifndef RBSP_VIEW_H
#define RBSP_VIEW_H

#include "target/target.h"

/** Where one thread's state was when it was last read: what the next reads are planned with. */
struct rbsp_view {
	rbsp_addr slot; /* the word that holds its ec, 0: not a Ruby thread */
	rbsp_addr ec, th, nt;
	rbsp_addr stack_start;      /* upper bound of the native stack */
	rbsp_addr vm_stack, vm_end; /* [vm_stack, vm_end) */
	uint64_t stack_used;        /* bytes of the native stack that were read */
	uint64_t values;            /* bytes of the value stack in use */
};

/**
 * Native stack read of a thread that has no ec, and the most that `full` reads for a thread's entry
 * frames: beyond machine.stack_start, or beyond the VM stack where that lies inside the native one
 * (threads of 2.7 to 3.1).
 */
#define RBSP_STACK_PLAIN (64u << 10)
#define RBSP_STACK_ENTRY (16u << 10)
/** No native stack is taken to be longer: a bound that lies further away is another stack's. */
#define RBSP_STACK_MAX (10u << 20)

/**
 * Read the memory of one thread into a capture whose regs, flags and data are set. Two vectored
 * reads where nothing moved since the last capture, one more where the ec, its stacks or the depth
 * of the value stack changed. No allocation.
 *
 * @param room  bytes at c->data
 * @return RBSP_OK (flags say what is cut or absent); RBSP_E_FAULT: not even the slot could be read;
 * RBSP_E_GONE
 */
enum rbsp_status rbsp_view_read(struct rbsp_target *t, const struct rbsp_capture_spec *spec,
				struct rbsp_view *v, struct rbsp_capture *c, size_t room);

#endif
