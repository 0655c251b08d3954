/* The decoder of one process: control frames of a capture to a stack of typed frames. */
#include "ruby/internal.h"

#include <stdlib.h>

enum { ME_CREF, SPECVAL, FLAGS };

static uint64_t word_at(const unsigned char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

enum rbsp_status rbsp_ruby_new(struct rbsp_target *target, const struct rbsp_layout *layout,
			       const struct rbsp_ruby_addrs *addrs,
			       const struct rbsp_ruby_options *opt, struct rbsp_frames *frames,
			       struct rbsp_ruby **out, struct rbsp_err *err)
{
	struct rbsp_ruby *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r || rbsp_mem_init(&r->mem, target) != RBSP_OK) {
		free(r);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the Ruby decoder");
	}
	r->target = target;
	r->l = layout;
	r->addrs = *addrs;
	r->opt = *opt;
	r->frames = frames;
	*out = r;
	return RBSP_OK;
}

static void free_places(struct rbsp_ruby *r)
{
	struct rbsp_place *p, *next;

	HASH_ITER (hh, r->places, p, next) {
		HASH_DEL(r->places, p);
		free(p);
	}
}

static void free_last(struct rbsp_ruby *r, struct rbsp_last *last)
{
	HASH_DEL(r->lasts, last);
	free(last->raw);
	free(last);
}

void rbsp_ruby_free(struct rbsp_ruby *r)
{
	struct rbsp_last *last, *next;

	if (!r)
		return;
	HASH_ITER (hh, r->lasts, last, next)
		free_last(r, last);
	free_places(r);
	rbsp_iseqs_free(r);
	rbsp_ments_free(r);
	rbsp_envs_free(r);
	rbsp_class_free(r);
	rbsp_constants_free(r);
	rbsp_mem_fini(&r->mem);
	free(r);
}

void rbsp_ruby_stack_fini(struct rbsp_ruby_stack *s)
{
	free(s->frame);
	*s = (struct rbsp_ruby_stack){ 0 };
}

/* (GC count, marking) and whether GC runs or moves objects, from two words; 0: no epoch. */
static uint64_t epoch_of(const struct rbsp_layout *l, uint64_t count, uint32_t flags)
{
	if (flags & (1u << l->gc.during_gc_bit | 1u << l->gc.compacting_bit))
		return 0;
	return (count << 1 | ((flags & 3) == 1)) + 1;
}

static const unsigned char *range_bytes(const struct rbsp_capture *cap, enum rbsp_range_id id,
					size_t n)
{
	const struct rbsp_range *g = &cap->range[id];

	return g->addr && g->len >= n ? cap->data + g->off : NULL;
}

static uint64_t capture_epoch(const struct rbsp_ruby *r, const struct rbsp_capture *cap)
{
	const unsigned char *gc = range_bytes(cap, RBSP_RANGE_GC, sizeof(uint32_t));
	const unsigned char *count = range_bytes(cap, RBSP_RANGE_GC_COUNT, sizeof(uint64_t));
	uint32_t flags;

	if (!gc || !count)
		return 0;
	memcpy(&flags, gc, sizeof(flags));
	return epoch_of(r->l, word_at(count), flags);
}

/* Whether the GC went on since the capture, so that what was read in this decoding may be of
 * another epoch. */
static bool gc_went_on(const struct rbsp_ruby *r)
{
	uint64_t count;
	uint32_t flags;
	struct rbsp_piece now[] = { { r->addrs.gc_count, &count, sizeof(count) },
				    { r->addrs.gc_flags, &flags, sizeof(flags) } };

	return r->target->ops->readv(r->target, now, RBSP_COUNT_OF(now), NULL) != RBSP_OK ||
	       epoch_of(r->l, count, flags) != r->epoch;
}

/* Empty caches that have grown too large; the stacks that were made of them stay valid as ids. */
static void bound_caches(struct rbsp_ruby *r)
{
	if (HASH_COUNT(r->iseqs) + HASH_COUNT(r->ments) + HASH_COUNT(r->envs) > RBSP_CACHE_MAX) {
		rbsp_iseqs_free(r);
		rbsp_ments_free(r);
		rbsp_envs_free(r);
		free_places(r);
	}
	if (HASH_COUNT(r->places) > RBSP_CACHE_MAX)
		free_places(r);
}

static void begin(struct rbsp_ruby *r, const struct rbsp_capture *cap)
{
	const struct rbsp_range *values = &cap->range[RBSP_RANGE_VALUES];
	uint64_t epoch;

	bound_caches(r);
	r->serial++;
	rbsp_mem_begin(&r->mem, RBSP_PAGES_MAX);
	r->now_ns = cap->time_ns;
	epoch = r->addrs.gc_count && r->addrs.gc_flags ? capture_epoch(r, cap) : 0;
	if (epoch != r->epoch)
		r->spoiled_from = UINT32_MAX;
	r->epoch = epoch;
	r->stored = false;
	r->values = values->addr ? cap->data + values->off : NULL;
	r->values_at = values->addr;
	r->values_len = values->addr ? values->len : 0;
}

static struct rbsp_last *last_of(struct rbsp_ruby *r, rbsp_addr end)
{
	struct rbsp_last *last, *each, *next, *oldest = NULL;

	HASH_FIND(hh, r->lasts, &end, sizeof(end), last);
	if (last) {
		last->used = r->serial;
		return last;
	}
	if (HASH_COUNT(r->lasts) >= RBSP_STACKS_MAX) {
		HASH_ITER (hh, r->lasts, each, next)
			if (!oldest || each->used < oldest->used)
				oldest = each;
		free_last(r, oldest);
	}
	last = calloc(1, sizeof(*last));
	if (!last)
		return NULL;
	last->end = end;
	last->used = r->serial;
	HASH_ADD(hh, r->lasts, end, sizeof(last->end), last);
	if (last->hh.tbl)
		return last;
	free(last);
	return NULL;
}

static bool grow(struct rbsp_last *last, size_t n)
{
	struct rbsp_raw *grown;
	size_t cap = last->cap ? last->cap : 64;

	while (cap < n)
		cap *= 2;
	if (cap == last->cap)
		return true;
	grown = realloc(last->raw, cap * sizeof(*grown));
	if (!grown)
		return false;
	last->raw = grown;
	last->cap = cap;
	return true;
}

/* A control frame's own words; its environment's too if they were captured. */
static void load(const struct rbsp_ruby *r, const unsigned char *cfp, struct rbsp_raw *f)
{
	const struct rbsp_layout *l = r->l;
	const unsigned char *env;

	f->pc = word_at(cfp + l->cfp.pc);
	f->iseq = word_at(cfp + l->cfp.iseq);
	f->ep = word_at(cfp + l->cfp.ep);
	f->jit = l->cfp.jit_return == RBSP_NONE ? 0 : word_at(cfp + l->cfp.jit_return);
	env = rbsp_env_captured(r, f->ep);
	f->captured = env != NULL;
	if (env)
		memcpy(f->env, env, sizeof(f->env));
}

/* Whether a control frame and its environment are as they were. */
static bool same(const struct rbsp_ruby *r, const unsigned char *cfp, const struct rbsp_raw *f)
{
	const struct rbsp_layout *l = r->l;
	const unsigned char *env;

	if (word_at(cfp + l->cfp.pc) != f->pc || word_at(cfp + l->cfp.iseq) != f->iseq ||
	    word_at(cfp + l->cfp.ep) != f->ep)
		return false;
	if (l->cfp.jit_return != RBSP_NONE && word_at(cfp + l->cfp.jit_return) != f->jit)
		return false;
	env = rbsp_env_captured(r, f->ep);
	/* What an environment on the heap says is the same in the same epoch. */
	if (!env || !f->captured)
		return !env == !f->captured;
	return word_at(env) == f->env[ME_CREF] && word_at(env + 8) == f->env[SPECVAL] &&
	       word_at(env + 16) == f->env[FLAGS];
}

/*
 * Load the frames, oldest first, over those of the last capture of this stack. A frame that is as
 * it was in the same epoch, with all older ones, keeps its id. @return how many are to be decoded
 */
static size_t load_frames(struct rbsp_ruby *r, struct rbsp_last *last, const unsigned char *cfps,
			  size_t n)
{
	size_t todo = 0, old = r->epoch && last->epoch == r->epoch ? last->n : 0;
	bool equal = true;

	for (size_t j = 0; j < n; j++) {
		const unsigned char *cfp = cfps + (n - 1 - j) * r->l->cfp.size;
		struct rbsp_raw *f = &last->raw[j];

		equal = equal && j < old && same(r, cfp, f);
		/* The newest frame is judged otherwise than an older one. */
		if (equal && !(f->flags & RBSP_RAW_VOLATILE) && (j + 1 == old) == (j + 1 == n)) {
			f->todo = false;
			continue;
		}
		*f = (struct rbsp_raw){ .todo = true };
		load(r, cfp, f);
		todo++;
	}
	return todo;
}

/* One vectored read for the first objects that the frames lead to and no cache has. */
static void prefetch(struct rbsp_ruby *r, const struct rbsp_raw *raw, size_t n)
{
	enum { SOME = 192 };
	rbsp_addr at[SOME];
	size_t used = 0;

	for (size_t j = n; j-- > 0 && used + 3 <= SOME;) {
		const struct rbsp_raw *f = &raw[j];

		if (!f->todo)
			continue;
		if (!f->captured && !rbsp_env_known(r, f->ep))
			at[used++] = f->ep - 16;
		if (f->iseq && !rbsp_iseq_known(r, f->iseq))
			at[used++] = f->iseq;
		if (f->captured && rbsp_is_object(f->env[ME_CREF]) &&
		    !rbsp_ment_known(r, f->env[ME_CREF]))
			at[used++] = f->env[ME_CREF];
	}
	if (used > 1)
		rbsp_mem_prefetch(&r->mem, at, used);
}

static bool emit(const struct rbsp_ruby *r, const struct rbsp_last *last, rbsp_addr cfp,
		 struct rbsp_ruby_stack *out)
{
	/* 3.4+ hides the frame below a rescue or ensure body, and so do the default labels
	 * everywhere. */
	bool hides = r->opt.labels == RBSP_LABELS_DEFAULT || r->l->labels.qualified, hidden = false;

	if (out->cap < last->n) {
		struct rbsp_ruby_frame *grown = realloc(out->frame, last->n * sizeof(*grown));

		if (!grown)
			return false;
		out->frame = grown;
		out->cap = last->n;
	}
	for (size_t j = last->n; j-- > 0; cfp += r->l->cfp.size) {
		const struct rbsp_raw *f = &last->raw[j];
		bool hide = hidden && f->flags & RBSP_RAW_ISEQ;

		if (f->flags & RBSP_RAW_DROPPED)
			continue;
		if (f->flags & RBSP_RAW_ISEQ)
			hidden = hides && f->flags & RBSP_RAW_RESCUE;
		out->frame[out->n++] = (struct rbsp_ruby_frame){
			.id = hide ? 0 : f->id,
			.finish = f->env[FLAGS] & RBSP_FRAME_FINISH,
			.cfunc = f->flags & RBSP_RAW_CFUNC,
			.jit = f->jit != 0,
			.func = f->func,
			.cfp = cfp,
		};
		out->unread += !!(f->flags & RBSP_RAW_UNREAD);
		out->bare_names |= f->flags & RBSP_RAW_BARE;
	}
	return true;
}

enum rbsp_status rbsp_ruby_decode(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				  struct rbsp_ruby_stack *out)
{
	const struct rbsp_layout *l = r->l;
	const struct rbsp_range *cfps = &cap->range[RBSP_RANGE_CFP];
	const unsigned char *ec = range_bytes(cap, RBSP_RANGE_EC, l->ec.thread + 8u);
	struct rbsp_last *last;
	size_t n;

	out->n = 0;
	out->unread = 0;
	out->bare_names = false;
	if (!ec || !cfps->addr)
		return RBSP_E_RANGE;
	begin(r, cap);
	r->stack = word_at(ec + l->ec.vm_stack);
	r->stack_end = r->stack + word_at(ec + l->ec.vm_stack_size) * 8;
	n = cfps->len / l->cfp.size;
	last = last_of(r, r->stack_end);
	if (!last || !grow(last, n))
		return RBSP_E_NOMEM;
	if (load_frames(r, last, cap->data + cfps->off, n)) {
		rbsp_validate(r, last->raw, n);
		prefetch(r, last->raw, n);
		for (size_t j = n; j-- > 0;)
			if (last->raw[j].todo)
				rbsp_walk_frame(r, &last->raw[j], j + 1 == n);
	}
	if (r->stored && r->epoch && r->spoiled_from > r->serial && gc_went_on(r))
		r->spoiled_from = r->serial;
	last->n = n;
	last->epoch = r->stored && r->spoiled_from <= r->serial ? 0 : r->epoch;
	if (!emit(r, last, cfps->addr, out))
		return RBSP_E_NOMEM;
	return r->mem.tape_short ? RBSP_E_TAPE : RBSP_OK;
}
