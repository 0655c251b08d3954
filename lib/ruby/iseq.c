/* Compiled Ruby code of the target: the cache of iseqs. */
#include "ruby/internal.h"

#include <stdlib.h>

/* iseq.c: no compiled method comes near it; a larger number is not an iseq's size. */
#define SIZE_MAX_WORDS (1u << 24)
/* vm_core.h: BUILTIN_ATTR_C_TRACE. */
#define ATTR_C_TRACE 0x8u

static bool is_iseq(uint64_t flags)
{
	return (flags & RBSP_T_MASK) == RBSP_T_IMEMO && (flags >> 12 & 15) == RBSP_IMEMO_ISEQ;
}

static uint64_t word_at(const unsigned char *p, size_t off)
{
	uint64_t w;

	memcpy(&w, p + off, sizeof(w));
	return w;
}

static uint32_t half_at(const unsigned char *p, size_t off)
{
	uint32_t w;

	memcpy(&w, p + off, sizeof(w));
	return w;
}

bool rbsp_iseq_same(const struct rbsp_ruby *r, const struct rbsp_iseq *q, const unsigned char *iseq,
		    const unsigned char *body)
{
	const struct rbsp_layout *l = r->l;

	return is_iseq(word_at(iseq, 0)) && word_at(iseq, l->iseq.body) == q->body &&
	       half_at(body, l->body.type) == q->type && half_at(body, l->body.size) == q->size &&
	       word_at(body, l->body.encoded) == q->encoded &&
	       word_at(body, l->body.label) == q->label_v &&
	       word_at(body, l->body.pathobj) == q->path_v;
}

enum rbsp_status rbsp_iseq_head(struct rbsp_ruby *r, rbsp_addr addr, struct rbsp_iseq_head *h)
{
	const struct rbsp_layout *l = r->l;
	uint64_t flags;
	enum rbsp_status st;

	if (!rbsp_is_object(addr))
		return RBSP_E_TORN;
	st = rbsp_mem_word(&r->mem, addr, &flags);
	if (st != RBSP_OK)
		return st;
	if (!is_iseq(flags))
		return RBSP_E_TORN;
	st = rbsp_mem_word(&r->mem, addr + l->iseq.body, &h->body);
	if (st == RBSP_OK)
		st = rbsp_mem_read(&r->mem, h->body + l->body.type, &h->type, sizeof(h->type));
	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, h->body + l->body.parent, &h->parent);
	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, h->body + l->body.local, &h->local);
	if (st == RBSP_OK && h->type > RBSP_ISEQ_PLAIN)
		st = RBSP_E_TORN;
	return st;
}

/* The path that Location#path says: pathobj itself, or the first of [path, realpath]. */
static enum rbsp_status read_path(struct rbsp_ruby *r, rbsp_addr pathobj, char **out)
{
	uint64_t flags, path = pathobj;
	enum rbsp_status st;

	if (!rbsp_is_object(pathobj))
		return RBSP_E_TORN;
	st = rbsp_mem_word(&r->mem, pathobj, &flags);
	if (st == RBSP_OK && (flags & RBSP_T_MASK) == RBSP_T_ARRAY)
		st = rbsp_object_element(&r->mem, r->l, pathobj, 0, &path);
	return st == RBSP_OK ? rbsp_object_text(&r->mem, r->l, path, out) : st;
}

/*
 * vm_backtrace.c, calculate_iseq_label: from an iseq out to its local iseq, counting the blocks. An
 * eval's local iseq is that of the code around it.
 */
static enum rbsp_status read_local(struct rbsp_ruby *r, struct rbsp_iseq *q)
{
	struct rbsp_iseq_head h = { q->body, q->type, q->parent, q->local };
	rbsp_addr at = q->addr;
	uint64_t label;
	enum rbsp_status st = RBSP_OK;

	q->levels = 0;
	for (unsigned i = 0; at != q->local && h.parent; i++) {
		if (i == RBSP_PARENT_MAX)
			return RBSP_E_RANGE;
		q->levels += h.type == RBSP_ISEQ_BLOCK;
		at = h.parent;
		st = rbsp_iseq_head(r, at, &h);
		if (st != RBSP_OK)
			return st;
	}
	if (q->type == RBSP_ISEQ_PLAIN && q->parent && !q->levels)
		q->levels = 1; /* the body of /#{x}/o: compile.c names it like a block */
	q->local_type = h.type;
	st = rbsp_mem_word(&r->mem, h.body + r->l->body.label, &label);
	return st == RBSP_OK ? rbsp_object_text(&r->mem, r->l, label, &q->local_label) : st;
}

static enum rbsp_status read_body(struct rbsp_ruby *r, struct rbsp_iseq *q)
{
	const struct rbsp_layout *l = r->l;
	const struct {
		uint16_t off;
		void *to;
		size_t n;
	} field[] = {
		{ l->body.size, &q->size, sizeof(q->size) },
		{ l->body.encoded, &q->encoded, sizeof(q->encoded) },
		{ l->body.label, &q->label_v, sizeof(q->label_v) },
		{ l->body.pathobj, &q->path_v, sizeof(q->path_v) },
		{ l->body.insns_body, &q->insns, sizeof(q->insns) },
		{ l->body.insns_size, &q->n_insns, sizeof(q->n_insns) },
		{ l->body.succ_table, &q->succ, sizeof(q->succ) },
	};
	uint64_t first;
	uint32_t attrs = 0;
	enum rbsp_status st = RBSP_OK;

	for (size_t i = 0; st == RBSP_OK && i < RBSP_COUNT_OF(field); i++)
		st = rbsp_mem_read(&r->mem, q->body + field[i].off, field[i].to, field[i].n);
	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, q->body + l->body.first_lineno, &first);
	if (st == RBSP_OK && l->body.builtin_attrs != RBSP_NONE)
		st = rbsp_mem_read(&r->mem, q->body + l->body.builtin_attrs, &attrs, sizeof(attrs));
	if (st != RBSP_OK)
		return st;
	if (!q->size || q->size > SIZE_MAX_WORDS || !q->encoded)
		return RBSP_E_TORN;
	q->first_line = (uint32_t)(l->body.first_lineno_value ? first >> 1 : first);
	q->c_trace = attrs & ATTR_C_TRACE;
	return RBSP_OK;
}

static void free_texts(struct rbsp_iseq *q)
{
	free(q->label);
	free(q->path);
	free(q->local_label);
	q->label = q->path = q->local_label = NULL;
}

static enum rbsp_status read_iseq(struct rbsp_ruby *r, struct rbsp_iseq *q)
{
	struct rbsp_iseq_head h;
	enum rbsp_status st = rbsp_iseq_head(r, q->addr, &h);

	free_texts(q);
	q->gen = ++r->gen;
	if (st != RBSP_OK)
		return st;
	q->body = h.body;
	q->type = h.type;
	q->parent = h.parent;
	q->local = h.local;
	st = read_body(r, q);
	if (st == RBSP_OK)
		st = rbsp_object_text(&r->mem, r->l, q->label_v, &q->label);
	if (st == RBSP_OK)
		st = read_path(r, q->path_v, &q->path);
	if (st == RBSP_OK)
		st = read_local(r, q);
	return st;
}

enum rbsp_status rbsp_iseq_get(struct rbsp_ruby *r, rbsp_addr addr, const struct rbsp_iseq **out)
{
	struct rbsp_iseq *q;
	enum rbsp_status st;

	HASH_FIND(hh, r->iseqs, &addr, sizeof(addr), q);
	if (q && rbsp_trusted(r, &q->trust)) {
		*out = q;
		return RBSP_OK;
	}
	if (!q) {
		q = calloc(1, sizeof(*q));
		if (!q)
			return RBSP_E_NOMEM;
		q->addr = addr;
		HASH_ADD(hh, r->iseqs, addr, sizeof(q->addr), q);
		if (!q->hh.tbl) {
			free(q);
			return RBSP_E_NOMEM;
		}
	}
	q->trust = (struct rbsp_trust){ 0 };
	st = read_iseq(r, q);
	if (st != RBSP_OK)
		return st;
	rbsp_trust_now(r, &q->trust);
	*out = q;
	return RBSP_OK;
}

bool rbsp_iseq_known(const struct rbsp_ruby *r, rbsp_addr addr)
{
	struct rbsp_iseq *e;

	HASH_FIND(hh, r->iseqs, &addr, sizeof(addr), e);
	return e && rbsp_trusted(r, &e->trust);
}

void rbsp_iseqs_free(struct rbsp_ruby *r)
{
	struct rbsp_iseq *q, *next;

	HASH_ITER (hh, r->iseqs, q, next) {
		HASH_DEL(r->iseqs, q);
		free_texts(q);
		free(q);
	}
}
