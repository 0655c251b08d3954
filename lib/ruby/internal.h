/* What the files of the Ruby reader share: the decoder, its caches, and what makes an entry of a
 * cache trusted. */
#ifndef RBSP_RUBY_INTERNAL_H
#define RBSP_RUBY_INTERNAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "ruby/object.h"

/* Bounds of walks through the target's memory. */
enum {
	RBSP_EP_MAX = 64,       /* environments of one frame */
	RBSP_PARENT_MAX = 256,  /* iseqs around one iseq */
	RBSP_SUPER_MAX = 64,    /* superclasses on the way to a real class */
	RBSP_IVARS_MAX = 1024,  /* internal ivars of one class */
	RBSP_LIST_MAX = 100000, /* nodes of a list, constants of a program */
	RBSP_CACHE_MAX = 60000, /* entries of a cache before it is emptied */
	RBSP_STACKS_MAX = 128,  /* VM stacks whose last frames are kept */
	RBSP_PAGES_MAX = 8192,  /* pages read for one decoding */
};

/* vm_core.h: ep[0] of every frame. */
#define RBSP_MAGIC_MASK 0x7fff0001u
#define RBSP_MAGIC_METHOD 0x11110001u
#define RBSP_MAGIC_BLOCK 0x22220001u
#define RBSP_MAGIC_CLASS 0x33330001u
#define RBSP_MAGIC_TOP 0x44440001u
#define RBSP_MAGIC_CFUNC 0x55550001u
#define RBSP_MAGIC_IFUNC 0x66660001u
#define RBSP_MAGIC_EVAL 0x77770001u
#define RBSP_MAGIC_RESCUE 0x78880001u
#define RBSP_MAGIC_DUMMY 0x79990001u
#define RBSP_ENV_BYTES 24u /* ep[-2..0] */
#define RBSP_ENV_LOCAL 0x2u
#define RBSP_FRAME_FINISH 0x20u
#define RBSP_FRAME_CFRAME 0x80u

/* iseq.h: rb_iseq_constant_body.type. */
enum rbsp_iseq_type {
	RBSP_ISEQ_TOP,
	RBSP_ISEQ_METHOD,
	RBSP_ISEQ_BLOCK,
	RBSP_ISEQ_CLASS,
	RBSP_ISEQ_RESCUE,
	RBSP_ISEQ_ENSURE,
	RBSP_ISEQ_EVAL,
	RBSP_ISEQ_MAIN,
	RBSP_ISEQ_PLAIN,
};

/* internal/imemo.h: (flags >> 12) & 15 of a T_IMEMO. */
enum {
	RBSP_IMEMO_CREF = 1,
	RBSP_IMEMO_SVAR = 2,
	RBSP_IMEMO_IFUNC = 4,
	RBSP_IMEMO_MENT = 6,
	RBSP_IMEMO_ISEQ = 7
};

/* method.h: rb_method_definition_t.type. */
enum { RBSP_METHOD_CFUNC = 1, RBSP_METHOD_BMETHOD = 4 };

/**
 * Objects at an address change only by GC. An entry is trusted in the epoch (GC count, marking) in
 * which it was validated, or for the one decoding in which it was.
 */
struct rbsp_trust {
	uint64_t epoch;  /* 0: none */
	uint32_t serial; /* of the decoding that validated it */
	uint32_t wanted; /* of the decoding that put it on its list of entries to validate */
};

/** An iseq, and what it says of itself. */
struct rbsp_iseq {
	rbsp_addr addr;
	struct rbsp_trust trust;
	uint32_t gen; /* changes whenever the content does */
	rbsp_addr body, encoded, insns, succ, parent, local;
	uint64_t label_v, path_v; /* the VALUEs, for validation */
	uint32_t type, size, n_insns, first_line;
	bool c_trace; /* shown like a C method */
	char *label;  /* as stored: "block in foo" */
	char *path;
	unsigned levels; /* blocks on the way to its local iseq */
	uint32_t local_type;
	char *local_label; /* "foo", "<class:Foo>" */
	UT_hash_handle hh;
};

/** What stands in front of a method's name. */
struct rbsp_owner {
	char *path;     /* class path; NULL: unknown */
	char separator; /* '#' or '.' */
	bool permanent; /* the path will not change */
	bool qualifies; /* Ruby 3.4+ itself prints it: a permanent name of a class or module */
};

/** What ep[-2] or an ifunc frame leads to: a method entry, or another kind of internal object. */
struct rbsp_ment {
	rbsp_addr addr;
	struct rbsp_trust trust;
	uint32_t gen;
	uint64_t word[5]; /* as read, for validation */
	int kind;         /* RBSP_IMEMO_*, 0: none of ours */
	int def_type;     /* of a method entry */
	rbsp_addr func;   /* C function of a cfunc or an ifunc */
	char *name;       /* original name; NULL: unknown */
	struct rbsp_owner owner;
	UT_hash_handle hh;
};

/** An environment on the heap. */
struct rbsp_env {
	rbsp_addr ep;
	struct rbsp_trust trust;
	uint64_t word[3]; /* ep[-2] method entry or cref, ep[-1] specval, ep[0] flags */
	UT_hash_handle hh;
};

/** The typed frame of a place: (iseq, pc, method, which of the iseqs around it is the method's
 * body). */
struct rbsp_place {
	struct rbsp_place_key {
		uint64_t iseq, pc, ment, hops;
	} key;
	uint32_t iseq_gen, ment_gen;
	rbsp_frame_id id;
	UT_hash_handle hh;
};

/** A control frame as captured, and what it was decoded to. */
struct rbsp_raw {
	uint64_t pc, iseq, ep, jit;
	uint64_t env[3];
	rbsp_frame_id id;
	rbsp_addr func;
	uint8_t flags; /* RBSP_RAW_* */
	bool captured; /* env is from the capture, else from the heap */
	bool todo;     /* to be decoded in this decoding */
};
enum {
	RBSP_RAW_DROPPED = 1, /* a DUMMY frame, or a newest frame that is not filled yet */
	RBSP_RAW_CFUNC = 2,
	RBSP_RAW_RESCUE =
		4, /* the body of a rescue or ensure: the next older frame is its method */
	RBSP_RAW_VOLATILE = 8, /* decode again although nothing changed */
	RBSP_RAW_UNREAD = 16,
	RBSP_RAW_BARE = 32, /* the class path was not found */
	RBSP_RAW_ISEQ = 64,
};

/** The last frames of one VM stack, oldest first. */
struct rbsp_last {
	rbsp_addr end;
	uint64_t epoch;
	uint64_t used; /* decoding that used it last */
	struct rbsp_raw *raw;
	size_t n, cap;
	UT_hash_handle hh;
};

struct rbsp_ruby {
	struct rbsp_target *target;
	const struct rbsp_layout *l;
	struct rbsp_ruby_addrs addrs;
	struct rbsp_ruby_options opt;
	struct rbsp_frames *frames;
	struct rbsp_mem mem;
	struct rbsp_iseq *iseqs;
	struct rbsp_ment *ments;
	struct rbsp_env *envs;
	struct rbsp_place *places;
	struct rbsp_last *lasts;
	struct rbsp_iv_id *iv_ids; /* IDs of internal ivars, class.c */
	struct rbsp_const *consts; /* classes by address, constants.c */
	uint64_t consts_ns;        /* when they were walked */
	uint64_t
		consts_wait_ns; /* until they are walked again for a class that is not among them */
	rbsp_frame_id unread, gc[3]; /* 0: not interned yet */
	uint32_t gen;
	/* of the decoding under way */
	uint32_t serial;
	uint64_t epoch;        /* of the capture; 0: none, nothing is trusted */
	uint32_t spoiled_from; /* entries of this epoch from this decoding on were read when the GC
				  had gone on */
	bool stored;           /* an entry was read or validated in this decoding */
	uint64_t now_ns;
	bool epoch_checked;          /* before the first cold read */
	rbsp_addr stack, stack_end;  /* the VM stack */
	const unsigned char *values; /* its captured values, NULL: none */
	rbsp_addr values_at;
	uint32_t values_len;
};

/** Whether an entry may be used in this decoding as it is. */
static inline bool rbsp_trusted(const struct rbsp_ruby *r, const struct rbsp_trust *t)
{
	return t->serial == r->serial ||
	       (r->epoch && t->epoch == r->epoch && t->serial < r->spoiled_from);
}

/** Note that an entry's content was read or validated in this decoding. */
static inline void rbsp_trust_now(struct rbsp_ruby *r, struct rbsp_trust *t)
{
	r->stored = true;
	t->epoch = r->epoch;
	t->serial = r->serial;
}

/* iseq.c */
/** What the way from an iseq to the code around it needs. */
struct rbsp_iseq_head {
	rbsp_addr body;
	uint32_t type;
	rbsp_addr parent, local;
};
/** @return RBSP_E_TORN: not an iseq */
enum rbsp_status rbsp_iseq_head(struct rbsp_ruby *r, rbsp_addr addr, struct rbsp_iseq_head *h);
/** The iseq at an address, from the cache or cold. @return RBSP_E_TORN: not an iseq */
enum rbsp_status rbsp_iseq_get(struct rbsp_ruby *r, rbsp_addr addr, const struct rbsp_iseq **out);
bool rbsp_iseq_known(const struct rbsp_ruby *r, rbsp_addr addr);
void rbsp_iseqs_free(struct rbsp_ruby *r);
/** Bytes that validate an iseq: RBSP_ISEQ_PROOF at its address, RBSP_BODY_PROOF at its body. */
#define RBSP_ISEQ_PROOF 24u
#define RBSP_BODY_PROOF 96u
bool rbsp_iseq_same(const struct rbsp_ruby *r, const struct rbsp_iseq *q, const unsigned char *iseq,
		    const unsigned char *body);

/* line.c */
/** Index into the line table for an instruction: how many entries lie at or before @p pos; 0: none,
 * or unreadable. */
uint32_t rbsp_succ_lookup(struct rbsp_mem *m, rbsp_addr table, uint64_t pos);
/** Line of a program counter; 0: unknown, or outside the iseq. */
uint32_t rbsp_iseq_line(struct rbsp_ruby *r, const struct rbsp_iseq *q, rbsp_addr pc);

/* ment.c */
enum rbsp_status rbsp_ment_get(struct rbsp_ruby *r, rbsp_addr addr, const struct rbsp_ment **out);
bool rbsp_ment_known(const struct rbsp_ruby *r, rbsp_addr addr);
bool rbsp_ment_same(const struct rbsp_ment *m, const uint64_t word[5]);
void rbsp_ments_free(struct rbsp_ruby *r);

/* class.c */
/** What stands in front of the methods of a class; path is malloc'ed, NULL: not found. */
enum rbsp_status rbsp_class_owner(struct rbsp_ruby *r, rbsp_addr klass, struct rbsp_owner *out);
void rbsp_class_free(struct rbsp_ruby *r);

/* constants.c */
/** Path of a class by walking the constants from rb_cObject, borrowed until the next call; NULL:
 * not found. */
const char *rbsp_constants_path(struct rbsp_ruby *r, rbsp_addr klass);
void rbsp_constants_free(struct rbsp_ruby *r);

/* env.c */
/** ep[-2], ep[-1], ep[0] of an environment. */
enum rbsp_status rbsp_env_words(struct rbsp_ruby *r, rbsp_addr ep, uint64_t word[3]);
bool rbsp_env_known(const struct rbsp_ruby *r, rbsp_addr ep);
/** The same from the capture alone. @return NULL: not captured */
static inline const unsigned char *rbsp_env_captured(const struct rbsp_ruby *r, rbsp_addr ep)
{
	rbsp_addr at = ep - 16;

	if (ep & 7 || at < r->values_at || r->values_len < RBSP_ENV_BYTES ||
	    at - r->values_at > r->values_len - RBSP_ENV_BYTES)
		return NULL;
	return r->values + (at - r->values_at);
}
/**
 * The method entry of a frame: vm_insnhelper.c, rb_vm_frame_method_entry.
 *
 * @param out   NULL: the frame belongs to no method
 * @param hops  environments between the frame's own and the one that names the method
 */
enum rbsp_status rbsp_env_method(struct rbsp_ruby *r, const struct rbsp_raw *f,
				 const struct rbsp_ment **out, unsigned *hops);
void rbsp_envs_free(struct rbsp_ruby *r);

/* validate.c */
/** Validate by content, in one vectored read, what the frames to do of raw[0..n) need and the
 * caches do not trust. */
void rbsp_validate(struct rbsp_ruby *r, const struct rbsp_raw *raw, size_t n);

/* label.c */
/** The name of a frame, as the options ask. @p m NULL: no method; @p hops as of rbsp_env_method. */
void rbsp_label(struct rbsp_ruby *r, const struct rbsp_iseq *q, const struct rbsp_ment *m,
		unsigned hops, struct rbsp_buf *out);
/** "", "block in ", "block (2 levels) in ". */
void rbsp_label_levels(struct rbsp_buf *out, unsigned levels);

/* walk.c */
/** Decode one control frame. @p newest: it may be half filled. */
void rbsp_walk_frame(struct rbsp_ruby *r, struct rbsp_raw *f, bool newest);

#endif
