/* A Ruby without a process: objects laid out by a row of the layout table, one thread's stack, and
 * captures of it. */
#ifndef RBSP_TEST_RUBY_HEAP_H
#define RBSP_TEST_RUBY_HEAP_H

#include "ruby/internal.h"

#define HEAP_BASE UINT64_C(0x7f1200000000)
#define HEAP_BYTES (1u << 20)
#define HEAP_STACK_WORDS 4096
#define HEAP_IDS 64

struct heap {
	struct rbsp_target target;
	struct rbsp_layout l; /* a copy: tests may bend it */
	unsigned char *bytes;
	size_t used;
	unsigned reads; /* vectored reads so far */
	rbsp_addr symbols, ids;
	const char *id_name[HEAP_IDS];
	uint64_t n_ids;
	/* classes that every test has */
	rbsp_addr object, klass, module;
	/* the thread */
	rbsp_addr vm, ractor, th, nt, ec, slot, stack, gc, gc_count, sched;
	rbsp_addr sp, cfp; /* where the next value and the last control frame are */
	struct rbsp_frames *frames;
	struct rbsp_ruby *ruby;
	struct rbsp_capture cap;
};

/** A heap with Object, Class, Module and a thread without frames but the DUMMY one. */
void heap_init(struct heap *h, const struct rbsp_layout *l);
void heap_fini(struct heap *h);

rbsp_addr heap_alloc(struct heap *h, size_t n);
void heap_put(struct heap *h, rbsp_addr at, uint64_t word);
void heap_put32(struct heap *h, rbsp_addr at, uint32_t word);
uint64_t heap_get(struct heap *h, rbsp_addr at);

rbsp_addr heap_string(struct heap *h, const char *bytes, size_t n);
rbsp_addr heap_text(struct heap *h, const char *text);
rbsp_addr heap_array(struct heap *h, const uint64_t *v, size_t n);
uint64_t heap_id(struct heap *h, const char *name);

/** A class (RBSP_T_CLASS) or module; @p path NULL: without a name. */
rbsp_addr heap_class(struct heap *h, unsigned type, const char *path);
/** Give a class a name, as a constant of Object does. */
void heap_name(struct heap *h, rbsp_addr klass, const char *path);
/** The singleton class of an object, which becomes the object's class. */
rbsp_addr heap_singleton(struct heap *h, rbsp_addr object, rbsp_addr super);
rbsp_addr heap_instance(struct heap *h, rbsp_addr klass);

struct heap_iseq {
	enum rbsp_iseq_type type;
	const char *label;
	rbsp_addr parent; /* iseq; 0: none */
	const char *path; /* NULL: "/app.rb" */
	uint32_t line;    /* of its first instruction, the others follow; 0: 10 */
};
#define HEAP_INSNS 16
rbsp_addr heap_iseq(struct heap *h, const struct heap_iseq *q);
/** pc of a frame that executes instruction @p i of an iseq made by heap_iseq: its line is first +
 * i. */
rbsp_addr heap_pc(struct heap *h, rbsp_addr iseq, unsigned i);
/** An internal object of a kind, with up to four more words. */
rbsp_addr heap_imemo(struct heap *h, int kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/** A method entry; @p type 0: Ruby code, RBSP_METHOD_*. */
rbsp_addr heap_method(struct heap *h, int type, rbsp_addr owner, const char *name, rbsp_addr func);

struct heap_frame {
	uint64_t flags; /* magic and RBSP_FRAME_*, RBSP_ENV_LOCAL */
	rbsp_addr iseq, pc, me;
	rbsp_addr parent; /* environment around it */
	bool escaped;     /* its environment is on the heap */
};
/** Push a frame; @return its ep */
rbsp_addr heap_push(struct heap *h, const struct heap_frame *f);
/** Frames of a Ruby method, of a block in the frame whose ep is @p parent, of a C method. */
rbsp_addr heap_push_method(struct heap *h, rbsp_addr iseq, rbsp_addr me);
rbsp_addr heap_push_block(struct heap *h, rbsp_addr iseq, rbsp_addr parent);
rbsp_addr heap_push_cfunc(struct heap *h, rbsp_addr me);
void heap_pop(struct heap *h);

/** A decoder; call again for other options. */
void heap_decoder(struct heap *h, enum rbsp_labels labels);
/** Capture the thread into h->cap. */
void heap_capture(struct heap *h);
/** Capture and decode; the labels of shown frames, newest first, joined by ';', in a static buffer.
 */
const char *heap_labels(struct heap *h, struct rbsp_ruby_stack *out);

#endif
