/* The one seam to the process: every byte of the target passes through these operations. */
#ifndef RBSP_TARGET_H
#define RBSP_TARGET_H

#include "base/base.h"
#include "elf/elf.h"
#include "proc/proc.h"
#include "target/capture.h"

struct rbsp_target;

/** One piece of a vectored read. */
struct rbsp_piece {
	rbsp_addr addr;
	void *to;
	size_t n;
};

struct rbsp_target_ops {
	/** The mappings now; give back with rbsp_maps_fini. */
	enum rbsp_status (*maps)(struct rbsp_target *t, struct rbsp_maps *out,
				 struct rbsp_err *err);
	/** Kernel thread ids now, ascending; malloc'ed array, the caller frees. */
	enum rbsp_status (*threads)(struct rbsp_target *t, int **tids, size_t *n,
				    struct rbsp_err *err);
	/**
	 * Read all pieces in their order with as few system calls as possible. @p done (may be
	 * NULL): bytes read from the first on; a piece that faults ends the read. @return RBSP_OK:
	 * all; RBSP_E_FAULT; RBSP_E_GONE; RBSP_E_TAPE
	 */
	enum rbsp_status (*readv)(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				  size_t *done);
	/**
	 * The thread pointer (fs_base) of a thread, without stopping it where the kernel and the
	 * libc allow it.
	 * @return RBSP_E_NOT_FOUND: only a stop would tell
	 */
	enum rbsp_status (*thread_pointer)(struct rbsp_target *t, int tid, rbsp_addr *tp);
	/** The ELF image of a file mapping (or of the vdso), owned by the target, borrowed for its
	 * life; opened once by (dev, ino). */
	enum rbsp_status (*image)(struct rbsp_target *t, const struct rbsp_map *m,
				  const struct rbsp_elf **out, struct rbsp_err *err);
	void (*free)(struct rbsp_target *t);
};

struct rbsp_target {
	const struct rbsp_target_ops *ops;
	int pid;
};

/** Read @p n bytes at @p addr. */
enum rbsp_status rbsp_read(struct rbsp_target *t, rbsp_addr addr, void *to, size_t n);
/** Read a word of 8 bytes. */
enum rbsp_status rbsp_read_word(struct rbsp_target *t, rbsp_addr addr, uint64_t *to);
/** Read a NUL-terminated string of at most @p cap - 1 bytes; it is cut there. */
enum rbsp_status rbsp_read_cstr(struct rbsp_target *t, rbsp_addr addr, char *to, size_t cap);

static inline void rbsp_target_free(struct rbsp_target *t)
{
	if (t)
		t->ops->free(t);
}

/**
 * A live process. Fails with a clear story: RBSP_E_NO_PID, RBSP_E_DENIED, RBSP_E_TRACED (names the
 * tracer), RBSP_E_NOT_RUBY (kernel thread). Stops nothing. Its identity is kept (a pidfd; a
 * /proc/PID/mem descriptor that reads 0 bytes after an exec).
 */
enum rbsp_status rbsp_live_open(int pid, struct rbsp_target **out, struct rbsp_err *err);

#endif
