/* Bounded reads of the target's heap: a page cache that lives for one decoding, and the words of
 * objects. */
#ifndef RBSP_RUBY_MEM_H
#define RBSP_RUBY_MEM_H

#include "target/target.h"

/** Reads of one decoding: whole pages, each at most once, and at most `budget` of them. */
struct rbsp_mem {
	struct rbsp_target *target;
	struct rbsp_mem_page
		*page;   /* RBSP_MEM_PAGES slots; NULL: no cache, every read goes to the target */
	uint32_t serial; /* of this decoding: older pages do not count */
	unsigned reads, budget;
	bool tape_short; /* a tape lacked what was read in this decoding */
};

/** @p target is borrowed. @return RBSP_E_NOMEM */
enum rbsp_status rbsp_mem_init(struct rbsp_mem *m, struct rbsp_target *target);
void rbsp_mem_fini(struct rbsp_mem *m);
/** Forget all pages; @p budget pages may be read until the next call. */
void rbsp_mem_begin(struct rbsp_mem *m, unsigned budget);

/** A reader without a cache, for single objects. */
static inline struct rbsp_mem rbsp_mem_direct(struct rbsp_target *t)
{
	return (struct rbsp_mem){ .target = t };
}

/** @return RBSP_OK; RBSP_E_FAULT: unreadable, not an address, or over the budget; RBSP_E_GONE;
 * RBSP_E_TAPE */
enum rbsp_status rbsp_mem_read(struct rbsp_mem *m, rbsp_addr addr, void *to, size_t n);
enum rbsp_status rbsp_mem_word(struct rbsp_mem *m, rbsp_addr addr, uint64_t *to);
/** Put the pages of these addresses into the cache with one vectored read; what cannot be read is
 * left out. */
void rbsp_mem_prefetch(struct rbsp_mem *m, const rbsp_addr *addr, size_t n);

/* Types of RBasic.flags, value_type.h; the same in all versions. */
enum {
	RBSP_T_OBJECT = 0x01,
	RBSP_T_CLASS = 0x02,
	RBSP_T_MODULE = 0x03,
	RBSP_T_STRING = 0x05,
	RBSP_T_ARRAY = 0x07,
	RBSP_T_IMEMO = 0x1a,
	RBSP_T_ICLASS = 0x1c,
	RBSP_T_MASK = 0x1f,
};
/* FL_USER1: RSTRING_NOEMBED, RARRAY_EMBED_FLAG. */
#define RBSP_FL_USER1 0x2000u

/** Whether a VALUE can be the address of an object: not nil, true, a Fixnum, a Symbol or a flonum.
 */
static inline bool rbsp_is_object(uint64_t v)
{
	return v > 0x1000 && !(v & 7);
}

#endif
