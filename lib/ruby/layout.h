/* Where CRuby keeps things, by minor version: numbers with their sources. */
#ifndef RBSP_LAYOUT_H
#define RBSP_LAYOUT_H

#include "base/base.h"
#include "target/capture.h"

/* Offsets in bytes; RBSP_NONE where a version has no such field. */
#define RBSP_NONE UINT16_MAX

struct rbsp_layout {
	uint32_t from, to; /* versions [from, to), RBSP_RUBY(); rows of one machine join or leave
			      whole minors out */
	uint16_t machine;  /* EM_X86_64, EM_AARCH64 */
	const char *source;
	bool run; /* false: from headers, never run */
	struct {
		uint16_t vm_stack, vm_stack_size, cfp, fiber, thread, stack_start, errinfo;
	} ec;
	struct {
		uint16_t pc, sp, iseq, self, ep, jit_return, size;
		bool published_unfilled; /* 2.7: ec->cfp moves before the frame is filled */
	} cfp;
	struct {
		uint16_t node; /* list node in the VM's or ractor's thread list */
		uint16_t ractor, vm, ec, status, name, blocking_region, unblock_func;
		uint16_t name_plain; /* name in a Ruby built with plain setjmp (<= 3.0), else
					RBSP_NONE */
		uint16_t pthread;    /* pthread_t in the thread itself (<= 3.1), else RBSP_NONE */
		uint16_t nt;         /* rb_native_thread * (3.2+), else RBSP_NONE */
		uint16_t self;       /* the Thread object */
		uint16_t locking_mutex; /* the Mutex it waits for, 0: none */
		uint16_t ready_node; /* list node in the queue for the GVL; shared with the ubf list
					up to 3.2 */
	} th;
	struct {
		uint16_t pthread, tid, size;
	} nt;
	struct {
		uint16_t ractors; /* list head of ractors (3.0+) */
		uint16_t threads; /* list head of threads (2.7) */
		uint16_t main_thread, main_ractor, objspace;
		uint16_t gvl_owner; /* in the vm (2.7) */
	} vm;
	struct {
		uint16_t node, threads, gvl_owner, is_running, running_ec;
	} ractor;
	struct {
		uint16_t flags, during_gc_bit, compacting_bit, minor_bit;
	} gc;
	struct {
		uint16_t body, wrapper;
	} iseq;
	struct {
		uint16_t type, size, encoded, pathobj, base_label, label, first_lineno, insns_body,
			insns_size, succ_table, parent, local;
		uint16_t builtin_attrs; /* bit 3: shown like a C method (3.4+) */
		uint16_t insn_stride;
		bool first_lineno_value; /* a Fixnum VALUE (<= 3.1), else an int */
	} body;
	struct {
		uint16_t defined_class, def, called_id, owner;
	} me;
	struct {
		uint16_t original_id, cfunc;
		uint16_t size;
	} def;
	struct {
		uint16_t ext; /* class extension: a pointer at this offset (<= 3.1), or the
				 extension itself (3.2+) */
		bool ext_embedded;
		uint16_t super;               /* in the class itself */
		uint16_t iv_tbl;              /* in ext: class path in an internal ivar (<= 3.1) */
		uint16_t iv_ptr;              /* in ext: array of ivars (3.2) */
		uint16_t const_tbl;           /* in ext: for walking constants (3.2) */
		uint16_t classpath, attached; /* in ext (3.3+) */
		uint16_t permanent; /* in ext: a byte, bit 0: the class path will not change (3.3+)
				     */
		uint64_t singleton_flag;  /* of a T_CLASS */
		uint64_t refinement_flag; /* of a T_MODULE */
	} klass;
	struct {
		uint16_t len_shift, data;
		bool len_field;
	} str; /* embedded strings: length in flags, or a field at +16 */
	struct {
		uint32_t embed_len_mask;
	} ary;
	struct {
		uint16_t ids, first_word;
		uint32_t last_op_id;
	} symbols;
	uint64_t qnil;
	struct {
		bool qualified;   /* caller_locations prints "Foo#bar", and rescue bodies as their
				     method (3.4+) */
		bool no_internal; /* frames of <internal:...> print as their caller's (4.0+) */
	} labels;
};

/** All rows, for tests and messages. */
const struct rbsp_layout *rbsp_layout_rows(size_t *n);
/** The row of exactly this minor version and machine; NULL: no row. */
const struct rbsp_layout *rbsp_layout_find(uint32_t version, uint16_t machine);
/** Rows to try for a version without one: the nearest older, then the nearest newer. @return 0..2
 * rows */
size_t rbsp_layout_trial(uint32_t version, uint16_t machine, const struct rbsp_layout *out[2]);

/** The numbers that the stop window needs, from a row. The addresses and switches in it are left
 * alone. */
void rbsp_layout_spec(const struct rbsp_layout *l, struct rbsp_capture_spec *spec);

#endif
