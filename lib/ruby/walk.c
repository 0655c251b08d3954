/* One control frame to a typed frame. */
#include "ruby/internal.h"

#include <stdlib.h>

/* Path of code that comes with the interpreter. */
#define INTERNAL "<internal:"

/* ep[0], among the words from ep[-2] on. */
#define FLAGS 2

static bool known_magic(uint64_t flags)
{
	switch (flags & RBSP_MAGIC_MASK) {
	case RBSP_MAGIC_METHOD:
	case RBSP_MAGIC_BLOCK:
	case RBSP_MAGIC_CLASS:
	case RBSP_MAGIC_TOP:
	case RBSP_MAGIC_CFUNC:
	case RBSP_MAGIC_IFUNC:
	case RBSP_MAGIC_EVAL:
	case RBSP_MAGIC_RESCUE:
	case RBSP_MAGIC_DUMMY:
		return true;
	default:
		return false;
	}
}

/* Whether code of this type runs in frames of this kind. The main script and evals run in several.
 */
static bool fits(uint64_t flags, uint32_t type)
{
	switch (flags & RBSP_MAGIC_MASK) {
	case RBSP_MAGIC_METHOD:
		return type == RBSP_ISEQ_METHOD;
	case RBSP_MAGIC_BLOCK:
		return type == RBSP_ISEQ_BLOCK || type == RBSP_ISEQ_PLAIN;
	case RBSP_MAGIC_CLASS:
		return type == RBSP_ISEQ_CLASS;
	case RBSP_MAGIC_RESCUE:
		return type == RBSP_ISEQ_RESCUE || type == RBSP_ISEQ_ENSURE ||
		       type == RBSP_ISEQ_PLAIN;
	default:
		return true;
	}
}

static bool inside(const struct rbsp_iseq *q, rbsp_addr pc)
{
	return pc >= q->encoded && pc <= q->encoded + q->size * UINT64_C(8);
}

static void unread(struct rbsp_ruby *r, struct rbsp_raw *f)
{
	if (!r->unread) {
		struct rbsp_frame marker = { .kind = RBSP_FRAME_MARKER, .name = "unread" };

		r->unread = rbsp_frames_intern(r->frames, &marker);
	}
	f->id = r->unread;
	f->flags |= RBSP_RAW_UNREAD | RBSP_RAW_VOLATILE;
}

static rbsp_frame_id make_frame(struct rbsp_ruby *r, const struct rbsp_iseq *q,
				const struct rbsp_ment *m, const struct rbsp_place_key *key)
{
	struct rbsp_frame frame = { .kind = q ? RBSP_FRAME_RUBY : RBSP_FRAME_CFUNC };
	struct rbsp_buf label = { 0 };
	rbsp_frame_id id = 0;

	rbsp_label(r, q, m, (unsigned)key->hops, &label);
	frame.name = rbsp_buf_text(&label);
	frame.owner = m ? m->owner.path : NULL;
	if (q && r->opt.labels == RBSP_LABELS_RUBY &&
	    (q->c_trace ||
	     (r->l->labels.no_internal && !strncmp(q->path, INTERNAL, strlen(INTERNAL))))) {
		frame.kind = RBSP_FRAME_CFUNC; /* Ruby prints it at its caller's line */
	} else if (q) {
		frame.path = q->path;
		frame.line = key->pc ? rbsp_iseq_line(r, q, key->pc) : 0;
	}
	if (!label.failed)
		id = rbsp_frames_intern(r->frames, &frame);
	rbsp_buf_fini(&label);
	return id;
}

/* The frame of a place, made once for each content of its iseq and method. */
static rbsp_frame_id frame_of(struct rbsp_ruby *r, const struct rbsp_iseq *q,
			      const struct rbsp_ment *m, rbsp_addr pc, unsigned hops)
{
	struct rbsp_place_key key = { q ? q->addr : 0, pc, m ? m->addr : 0, hops };
	uint32_t iseq_gen = q ? q->gen : 0, ment_gen = m ? m->gen : 0;
	struct rbsp_place *p;

	HASH_FIND(hh, r->places, &key, sizeof(key), p);
	if (p && p->iseq_gen == iseq_gen && p->ment_gen == ment_gen)
		return p->id;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return 0;
		p->key = key;
		HASH_ADD(hh, r->places, key, sizeof(p->key), p);
		if (!p->hh.tbl) {
			free(p);
			return 0;
		}
	}
	p->iseq_gen = iseq_gen;
	p->ment_gen = ment_gen;
	p->id = make_frame(r, q, m, &key);
	return p->id;
}

static void note_method(struct rbsp_raw *f, const struct rbsp_ment *m)
{
	if (!m)
		return;
	if (!m->owner.permanent)
		f->flags |= RBSP_RAW_VOLATILE;
	if (!m->owner.path)
		f->flags |= RBSP_RAW_BARE;
}

static enum rbsp_status walk_cfunc(struct rbsp_ruby *r, struct rbsp_raw *f)
{
	const struct rbsp_ment *m;
	unsigned hops;
	enum rbsp_status st = rbsp_env_method(r, f, &m, &hops);

	if (st == RBSP_OK && (!m || f->iseq))
		st = RBSP_E_TORN;
	if (st != RBSP_OK)
		return st;
	f->flags |= RBSP_RAW_CFUNC;
	f->func = m->func;
	note_method(f, m);
	f->id = frame_of(r, NULL, m, 0, 0);
	return f->id ? RBSP_OK : RBSP_E_NOMEM;
}

static enum rbsp_status walk_ifunc(struct rbsp_ruby *r, struct rbsp_raw *f)
{
	const struct rbsp_ment *m;
	enum rbsp_status st;

	if (!rbsp_is_object(f->iseq))
		return RBSP_E_TORN;
	st = rbsp_ment_get(r, f->iseq, &m);
	if (st == RBSP_OK && m->kind != RBSP_IMEMO_IFUNC)
		st = RBSP_E_TORN;
	if (st == RBSP_OK)
		f->func = m->func;
	return st;
}

static enum rbsp_status walk_iseq(struct rbsp_ruby *r, struct rbsp_raw *f, bool newest)
{
	const struct rbsp_iseq *q;
	const struct rbsp_ment *m;
	unsigned hops = 0;
	rbsp_addr pc = f->pc;
	enum rbsp_status st = rbsp_iseq_get(r, f->iseq, &q);

	if (st == RBSP_OK)
		st = rbsp_env_method(r, f, &m, &hops);
	if (st != RBSP_OK)
		return st;
	if (newest && r->l->cfp.published_unfilled &&
	    (!inside(q, pc) || !fits(f->env[FLAGS], q->type)))
		return RBSP_E_TORN;
	f->flags |= RBSP_RAW_ISEQ;
	if (q->type == RBSP_ISEQ_RESCUE || q->type == RBSP_ISEQ_ENSURE)
		f->flags |= RBSP_RAW_RESCUE;
	note_method(f, m);
	/* The pc of the newest frame is stale while machine code of a JIT runs for it. */
	if (!r->opt.lines || !inside(q, pc) || (newest && f->jit))
		pc = 0;
	if (!m || m->def_type != RBSP_METHOD_BMETHOD)
		hops = 0;
	f->id = frame_of(r, q, m, pc, hops);
	return f->id ? RBSP_OK : RBSP_E_NOMEM;
}

void rbsp_walk_frame(struct rbsp_ruby *r, struct rbsp_raw *f, bool newest)
{
	enum rbsp_status st = f->captured ? RBSP_OK : rbsp_env_words(r, f->ep, f->env);
	uint64_t flags = st == RBSP_OK ? f->env[FLAGS] : 0, magic = flags & RBSP_MAGIC_MASK;

	f->id = 0;
	f->func = 0;
	f->flags = 0;
	if (st == RBSP_OK && !known_magic(flags))
		st = RBSP_E_TORN;
	if (st != RBSP_OK)
		magic = 0;
	else if (magic == RBSP_MAGIC_DUMMY)
		f->flags = RBSP_RAW_DROPPED;
	else if (magic == RBSP_MAGIC_IFUNC)
		st = walk_ifunc(r, f);
	else if (magic == RBSP_MAGIC_CFUNC || flags & RBSP_FRAME_CFRAME)
		st = walk_cfunc(r, f);
	else
		st = walk_iseq(r, f, newest);
	if (st == RBSP_OK)
		return;
	/* The newest frame may be half filled (2.7, JIT): without it the stack is whole. */
	f->flags = 0;
	if (newest && (st == RBSP_E_TORN || r->l->cfp.published_unfilled))
		f->flags = RBSP_RAW_DROPPED | RBSP_RAW_VOLATILE;
	else if (magic == RBSP_MAGIC_IFUNC)
		f->flags = RBSP_RAW_VOLATILE;
	else
		unread(r, f);
}
