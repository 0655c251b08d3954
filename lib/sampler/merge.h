/* Merging native and Ruby frames: a pure function. */
#ifndef RBSP_MERGE_H
#define RBSP_MERGE_H

#include "native/native.h"
#include "ruby/ruby.h"

enum rbsp_role {
	RBSP_ROLE_PLAIN,    /* any other function */
	RBSP_ROLE_RUBY_LIB, /* a function of the Ruby module */
	RBSP_ROLE_LOOP,     /* the dispatch loop */
	RBSP_ROLE_EXEC,     /* rb_vm_exec */
};

/** One native frame as the merge sees it, innermost first. */
struct rbsp_merge_native {
	enum rbsp_role role;
	bool named;     /* has a symbol */
	rbsp_addr func; /* start of its function, 0: unknown */
};

struct rbsp_merge_ruby {
	bool shown, finish, cfunc;
	rbsp_addr func; /* of a cfunc */
};

/** One line of the merged stack. At least one of the two is set; both: a C function and its native
 * frame are one frame. */
struct rbsp_merged {
	int32_t ruby;   /* index of a Ruby frame, -1: none */
	int32_t native; /* index of a native frame, -1: none */
	bool interp;    /* the interpreter's own */
};

enum rbsp_merge_result {
	RBSP_MERGED,
	RBSP_MERGE_MISMATCH, /* more than one apart: Ruby frames only */
};

/**
 * Merge by rb_vm_exec runs, paired from the oldest end (design: "The merge rule").
 *
 * @param whole  the native stack reaches its oldest frame; else the natives are those above the
 * newest run only
 * @param out    root first; room for n_native + n_ruby rows
 * @param n_out  set to the number filled
 */
enum rbsp_merge_result rbsp_merge(const struct rbsp_merge_native *native, size_t n_native,
				  const struct rbsp_merge_ruby *ruby, size_t n_ruby, bool whole,
				  struct rbsp_merged *out, size_t *n_out);

#endif
