/* A target that is this process, and captures of this process's own stack at the end of a chain of
 * calls. */
#ifndef RBSP_TEST_SELF_H
#define RBSP_TEST_SELF_H

#include <ucontext.h>

#include "target/target.h"

/** A target that is this process; unwinding may ask it for mappings and images only. */
struct self {
	struct rbsp_target target;
	unsigned maps_read;
	rbsp_addr hidden; /* the mapping that holds it is left out of the maps; 0: none */
	struct {
		uint64_t dev, ino;
		struct rbsp_elf *elf;
	} image[64];
	size_t n;
};

void self_init(struct self *s);

/** What chain_leaf captured last; its stack may be changed. */
extern struct rbsp_capture chain_cap;

/* Functions whose frames a test looks for. */
int chain_leaf(size_t n);
int chain_compare(const void *a, const void *b);
void chain_sort(void); /* by qsort: frames of libc between it and chain_compare */
void chain_recurse(unsigned depth);
void chain_last_call(
	void); /* over last_call, whose last instruction is a call that does not return */
void chain_handler(int signo);
void chain_raise(void); /* SIGUSR1 */
#if defined(__x86_64__)
void chain_restorer(void); /* a signal trampoline as musl has it, without CFI */
#endif

#endif
