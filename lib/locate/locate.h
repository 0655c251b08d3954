/* Found once per process: the Ruby module, the word that holds each thread's execution context,
 * rb_vm_exec, the ID table; and how. */
#ifndef RBSP_LOCATE_H
#define RBSP_LOCATE_H

#include "native/native.h"
#include "ruby/ruby.h"

enum rbsp_slot_kind {
	RBSP_SLOT_TLS_STATIC, /* thread pointer + offset (a signed constant) */
	RBSP_SLOT_TLS_DTV,    /* through the thread's DTV: module id + offset */
	RBSP_SLOT_THREAD,     /* &th->ec, th from the VM's list by pthread_t (2.7) */
};

/** One step that was tried. */
struct rbsp_step {
	const char *what; /* "module", "version", "layout", "execution context", "vm", "rb_vm_exec",
			     "symbols", "gc" */
	const char *how;  /* "by symbol in .dynsym", "by search of the TLS block" ... */
	bool found;
	char detail[160];
};

struct rbsp_located {
	const struct rbsp_elf *elf; /* borrowed from the target */
	uint64_t bias;              /* runtime address = vaddr + bias */
	char path[256];             /* of the module, as in maps */
	uint32_t version;           /* RBSP_RUBY() */
	char version_text[32];
	char description[192]; /* ruby_description */
	const struct rbsp_layout *layout;
	bool on_trial; /* the row is of another version */
	enum rbsp_slot_kind slot_kind;
	int64_t slot_offset; /* static: from the thread pointer; DTV: in the module's block */
	uint64_t tls_module; /* DTV: module id */
	bool musl;           /* DTV entries of 8 bytes */
	struct rbsp_code_range vm_exec[4]; /* rb_vm_exec and its cold parts */
	size_t n_vm_exec;
	struct rbsp_code_range interp[8]; /* the dispatch loop vm_exec_core and its cold parts */
	size_t n_interp;
	struct rbsp_ruby_addrs addrs;
	rbsp_addr sched;     /* what holds the GVL owner: addresses of the words, */
	uint32_t sched_size; /* RBSP_RANGE_SCHED reads [sched, sched+size), owner word first */
	struct rbsp_step *step;
	size_t n_steps;
};

/**
 * Locate everything in a process. Stops no thread.
 *
 * @return RBSP_OK; RBSP_E_NOT_RUBY; RBSP_E_BOOTING (a Ruby, but its VM is not up: try again later);
 *         RBSP_E_LAYOUT (names the check that failed); RBSP_E_GONE; RBSP_E_NOMEM; RBSP_E_TAPE.
 *         Steps are filled in any case; give back with rbsp_located_fini.
 */
enum rbsp_status rbsp_locate(struct rbsp_target *t, struct rbsp_located *out, struct rbsp_err *err);
void rbsp_located_fini(struct rbsp_located *l);

/**
 * The address of the word that holds a thread's ec, stable for the thread's life.
 * @return RBSP_OK; RBSP_E_NOT_FOUND: not a Ruby thread (now); RBSP_E_FAULT
 */
enum rbsp_status rbsp_locate_slot(struct rbsp_target *t, const struct rbsp_located *l,
				  rbsp_addr thread_pointer, rbsp_addr *slot);

/**
 * The same for many threads with a few vectored reads, without a look at the words themselves.
 *
 * @param tp    n thread pointers, 0: unknown
 * @param slot  n addresses; 0: none now
 * @return RBSP_OK, also when none was found; RBSP_E_FAULT, RBSP_E_GONE
 */
enum rbsp_status rbsp_locate_slots(struct rbsp_target *t, const struct rbsp_located *l,
				   const rbsp_addr *tp, size_t n, rbsp_addr *slot);

#endif
