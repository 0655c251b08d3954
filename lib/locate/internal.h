/* What the parts of lib/locate share: the state of one search. Nobody outside includes this. */
#ifndef RBSP_LOCATE_INTERNAL_H
#define RBSP_LOCATE_INTERNAL_H

#include "locate/locate.h"

/** A dynamic relocation that fills a word of the module. */
struct rbsp_got {
	uint64_t vaddr;  /* of the word */
	uint64_t target; /* vaddr of the module's own symbol, 0: not its own or nameless */
	uint32_t type;
};

/** An execution context that was read and validated. */
struct rbsp_ec_seen {
	rbsp_addr ec, th, vm;
	rbsp_addr vm_stack, end, cfp; /* [vm_stack, end) */
	bool valid;
};

/** One kernel thread. */
struct rbsp_lwp {
	int tid;
	rbsp_addr tp;   /* thread pointer, 0: unknown */
	rbsp_addr slot; /* address of the word that holds its ec, 0: none */
	struct rbsp_ec_seen seen;
};

struct rbsp_finder {
	struct rbsp_target *t;
	struct rbsp_located *l; /* being filled */
	uint16_t machine;
	struct rbsp_maps maps;
	struct rbsp_lwp *lwp;
	size_t n_lwp, n_tp;   /* n_tp: of them with a known thread pointer */
	struct rbsp_got *got; /* ascending by vaddr */
	size_t n_got;
	struct rbsp_ruby_thread *thread; /* the VM's own list */
	size_t n_thread;
	bool torn;          /* the list changed while it was read: it is not complete */
	const char *failed; /* name of the check that failed, NULL: none; a constant */
	char failure[160];
};

/* locate.c */

/** Add a row to the step log; a full memory drops it. */
void rbsp_locate_step(struct rbsp_finder *f, const char *what, const char *how, bool found,
		      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/** The runtime address of a defined symbol of the module, 0: none. */
rbsp_addr rbsp_locate_symbol(const struct rbsp_finder *f, const char *name);
/** Whether a status must end the search: the process is gone, memory is full, a tape lacks a page.
 */
bool rbsp_locate_hard(enum rbsp_status st);
/** Read the mappings and the threads (again). */
enum rbsp_status rbsp_locate_refresh(struct rbsp_finder *f, struct rbsp_err *err);

/* read.c */

/**
 * Read many pieces with few calls; pieces with address 0 and pieces that fault are left out.
 *
 * @param ok  n flags, set to whether the piece was read
 * @return RBSP_OK, or a status that ends the search
 */
enum rbsp_status rbsp_locate_read_many(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				       bool *ok);
/** Whether [a, a+n) is in one readable and writable mapping and @p a a multiple of 8: where a C
 * object may be. */
bool rbsp_locate_plausible(const struct rbsp_maps *maps, rbsp_addr a, uint64_t n);
/** The words of the module's writable segments, from memory: calls @p fn with each segment. */
enum rbsp_status rbsp_locate_data(struct rbsp_finder *f,
				  enum rbsp_status (*fn)(struct rbsp_finder *f, rbsp_addr at,
							 const uint64_t *word, size_t n, void *arg),
				  void *arg);

/* module.c */
enum rbsp_status rbsp_locate_module(struct rbsp_finder *f, struct rbsp_err *err);
/** Collect the relocations that this layer follows into f->got. */
enum rbsp_status rbsp_locate_got(struct rbsp_finder *f);
/** Whether the VM has come up far enough to have a class Thread. */
bool rbsp_locate_booted(struct rbsp_finder *f);
/** "3.3.8" as RBSP_RUBY(); 0: not a version. */
uint32_t rbsp_locate_parse_version(const char *text);

/* ec.c */

/**
 * Pure: take the head of an execution context apart.
 *
 * @param head  at least rbsp_locate_ec_bytes() bytes of it
 * @return whether VM stack, control frame and thread are plausible; @p out then has all but vm and
 * valid
 */
bool rbsp_locate_ec_head(const struct rbsp_layout *l, const struct rbsp_maps *maps, rbsp_addr ec,
			 const unsigned char *head, struct rbsp_ec_seen *out);
/** Pure: whether the head of the thread (rbsp_locate_th_bytes()) points back; completes @p seen. */
bool rbsp_locate_ec_thread(const struct rbsp_layout *l, const struct rbsp_maps *maps,
			   const unsigned char *head, struct rbsp_ec_seen *seen);
size_t rbsp_locate_ec_bytes(const struct rbsp_layout *l);
size_t rbsp_locate_th_bytes(const struct rbsp_layout *l);
/** Validate @p n candidates against the live process; 0 and implausible ones are not valid. */
enum rbsp_status rbsp_locate_ecs(struct rbsp_finder *f, const rbsp_addr *ec, size_t n,
				 struct rbsp_ec_seen *seen);
/** The VM without any thread pointer: by symbol, by code, by search of the module's data. Sets
 * addrs.vm. */
enum rbsp_status rbsp_locate_vm(struct rbsp_finder *f);
/** Read the VM's thread list into f->thread; give threads without a known thread pointer the one it
 * names if @p learn. */
enum rbsp_status rbsp_locate_threads(struct rbsp_finder *f, bool learn);

/* tls.c */
struct rbsp_tls {
	uint64_t module;
	int64_t offset; /* of the block from the thread pointer, if fixed */
	bool fixed;
	const char *how;
};
/** The TLS module of the Ruby image. @return RBSP_E_NOT_FOUND: it has none, or none of the ways
 * tells */
enum rbsp_status rbsp_tls_find(struct rbsp_finder *f, struct rbsp_tls *out);
/** Addresses of the module's block for @p n thread pointers; 0: not allocated, or unreadable. */
enum rbsp_status rbsp_tls_blocks(struct rbsp_target *t, uint16_t machine, uint64_t module,
				 bool musl, const rbsp_addr *tp, size_t n, rbsp_addr *block);

/* slot.c */
/** Find the word that holds each thread's execution context. Fills slot_* of the result, lwp[].slot
 * and lwp[].seen. */
enum rbsp_status rbsp_locate_ec_slot(struct rbsp_finder *f);

/* vmexec.c */
/** rb_vm_exec and the dispatch loop. Never fails for want of a find: n_vm_exec is 0 then. */
enum rbsp_status rbsp_locate_vm_exec(struct rbsp_finder *f);
/** The vaddr that a code reference leads to, through a PLT stub or GOT word; 0: nothing in this
 * module. */
uint64_t rbsp_locate_follow(struct rbsp_finder *f, uint64_t target, bool word);

/* symbols.c */
enum rbsp_status rbsp_locate_symbols(struct rbsp_finder *f);

/* gc.c */

/** What an accessor loads, followed in the live process. */
struct rbsp_loads {
	rbsp_addr at[8]; /* addresses loaded from, in order */
	uint64_t value[8];
	size_t n;
};
/** Follow the loads of an exported accessor. @return RBSP_E_NOT_FOUND: no such symbol, or nothing
 * was followed */
enum rbsp_status rbsp_locate_follow_loads(struct rbsp_finder *f, const char *name,
					  struct rbsp_loads *out);
/** GC flags and count: from the loads, else by the layout table. */
enum rbsp_status rbsp_locate_gc(struct rbsp_finder *f);

/* check.c */
/** Named invariants of the layout row. @return RBSP_OK, or RBSP_E_LAYOUT with f->failed set */
enum rbsp_status rbsp_locate_check(struct rbsp_finder *f);

#endif
