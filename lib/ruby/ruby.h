/* The Ruby side of a capture: control frames to typed frames. */
#ifndef RBSP_RUBY_H
#define RBSP_RUBY_H

#include <rbsample/frame.h>
#include <rbsample/sample.h>

#include "ruby/layout.h"
#include "target/target.h"

/** Addresses in one process that decoding uses; 0: not found, and what depends on it is said to be
 * unknown. */
struct rbsp_ruby_addrs {
	rbsp_addr vm;      /* rb_vm_t */
	rbsp_addr ractor;  /* main ractor, 3.0+ */
	rbsp_addr symbols; /* ruby_global_symbols */
	rbsp_addr object;  /* rb_cObject itself (the class), for walking constants */
	rbsp_addr gc_flags, gc_count;
};

enum rbsp_labels { RBSP_LABELS_DEFAULT, RBSP_LABELS_RUBY };

struct rbsp_ruby_options {
	enum rbsp_labels labels;
	bool lines;
};

/** Decoder of one process: caches, and what the addresses lead to. */
struct rbsp_ruby;

/** @p target, @p layout and @p frames are borrowed and outlive it; @p addrs is copied. */
enum rbsp_status rbsp_ruby_new(struct rbsp_target *target, const struct rbsp_layout *layout,
			       const struct rbsp_ruby_addrs *addrs,
			       const struct rbsp_ruby_options *opt, struct rbsp_frames *frames,
			       struct rbsp_ruby **out, struct rbsp_err *err);
void rbsp_ruby_free(struct rbsp_ruby *r);

/** One control frame, newest first. */
struct rbsp_ruby_frame {
	rbsp_frame_id id; /* 0: not shown (IFUNC, and what --labels hides or joins) */
	bool finish;      /* VM_FRAME_FLAG_FINISH: the last of one rb_vm_exec's run */
	bool cfunc;       /* a method written in C */
	bool jit;         /* has a jit_return */
	rbsp_addr func;   /* cfunc: its C function, 0: unknown; ifunc: the block's C function */
	rbsp_addr cfp;
};

struct rbsp_ruby_stack {
	struct rbsp_ruby_frame
		*frame; /* newest first, without the DUMMY frames; owned, grown as needed */
	size_t n, cap;
	unsigned unread; /* frames that became [unread] */
	bool bare_names; /* class paths were not found */
};
void rbsp_ruby_stack_fini(struct rbsp_ruby_stack *s);

/**
 * Whether the capture's ec is the thread's own: ec->thread_ptr->ec == ec, its pthread_t is the
 * thread pointer (where known), status is not KILLED, cfp inside the VM stack and a whole number of
 * frames from its end.
 * @return RBSP_OK; RBSP_E_NOT_FOUND: not a Ruby thread (NULL or stale); RBSP_E_RANGE, RBSP_E_TORN:
 * drop it
 */
enum rbsp_status rbsp_ruby_check(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				 rbsp_addr thread_pointer);

/**
 * Decode the control frames of a capture that passed rbsp_ruby_check. Names not in the capture are
 * read from the running target, bounded; what fails becomes a marker frame [unread].
 */
enum rbsp_status rbsp_ruby_decode(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				  struct rbsp_ruby_stack *out);

/** The frame [gc: ...] when this thread was collecting at the capture, else 0. Only for the GVL
 * owner. */
rbsp_frame_id rbsp_ruby_gc(struct rbsp_ruby *r, const struct rbsp_capture *cap);

/** State of the capture's thread, from the capture alone. @p owner_th (may be NULL): the
 * rb_thread_t that owns the GVL, 0: free. */
enum rbsp_thread_state rbsp_ruby_state(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				       rbsp_addr *owner_th);

/** Thread#name into @p buf, "" when nil. @return RBSP_OK or why it cannot be read */
enum rbsp_status rbsp_ruby_thread_name(struct rbsp_ruby *r, rbsp_addr th, char *buf, size_t cap);

/** One Ruby thread on the VM's own lists. */
struct rbsp_ruby_thread {
	rbsp_addr th, ec, pthread; /* pthread 0: parked */
	rbsp_addr ractor;
	bool main;
};
/** The VM's threads (all ractors'), bounded walk of intrusive lists; malloc'ed, the caller frees.
 * Races with the target: a torn list ends early with RBSP_E_TORN and what was read. */
enum rbsp_status rbsp_ruby_threads(struct rbsp_target *t, const struct rbsp_layout *l, rbsp_addr vm,
				   struct rbsp_ruby_thread **out, size_t *n);

/* Reading of single objects, bounded: used by the decoder and by lib/locate's checks. */
enum rbsp_status rbsp_ruby_string(struct rbsp_target *t, const struct rbsp_layout *l, rbsp_addr str,
				  char *buf, size_t cap, size_t *len);
/** Name of an ID through ruby_global_symbols. */
enum rbsp_status rbsp_ruby_id_name(struct rbsp_target *t, const struct rbsp_layout *l,
				   rbsp_addr symbols, uint64_t id, char *buf, size_t cap,
				   size_t *len);

#endif
