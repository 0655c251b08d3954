/* Validation by content of all that a stack needs, in one vectored read. */
#include "ruby/internal.h"

#include <stdlib.h>

/* A read that faults is followed by another for the rest, so many times. */
#define RETRIES_MAX 32

/** An entry of a cache and where its bytes are read to. */
struct item {
	enum { ISEQ, MENT, ENV } kind;
	union {
		struct rbsp_iseq *iseq;
		struct rbsp_ment *ment;
		struct rbsp_env *env;
	} of;
	unsigned char bytes[RBSP_ISEQ_PROOF + RBSP_BODY_PROOF];
	unsigned pieces;
	bool read; /* all its pieces */
};

struct list {
	struct item *item;
	size_t n, cap;
};

static struct item *add(struct rbsp_ruby *r, struct list *l, struct rbsp_trust *t)
{
	if (rbsp_trusted(r, t) || t->wanted == r->serial || (!t->epoch && !t->serial))
		return NULL;
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct item *grown = realloc(l->item, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		l->item = grown;
		l->cap = cap;
	}
	t->wanted = r->serial;
	return &l->item[l->n++];
}

static struct rbsp_ment *add_ment(struct rbsp_ruby *r, struct list *l, uint64_t addr)
{
	struct rbsp_ment *m = NULL;
	struct item *i;

	if (rbsp_is_object(addr))
		HASH_FIND(hh, r->ments, &addr, sizeof(addr), m);
	/* The methods of a class without a permanent name are read anew anyhow. */
	if (!m || (m->kind == RBSP_IMEMO_MENT && !m->owner.permanent))
		return NULL;
	i = add(r, l, &m->trust);
	if (i) {
		i->kind = MENT;
		i->of.ment = m;
	}
	return m;
}

static void add_iseq(struct rbsp_ruby *r, struct list *l, rbsp_addr addr)
{
	struct rbsp_iseq *q;
	struct item *i;

	HASH_FIND(hh, r->iseqs, &addr, sizeof(addr), q);
	i = q ? add(r, l, &q->trust) : NULL;
	if (i) {
		i->kind = ISEQ;
		i->of.iseq = q;
	}
}

/* The environments from this one on, by what the cache knows of them. @return its words; NULL:
 * unknown */
static const uint64_t *add_env(struct rbsp_ruby *r, struct list *l, rbsp_addr ep, uint64_t word[3])
{
	const unsigned char *captured = rbsp_env_captured(r, ep);
	struct rbsp_env *e;
	struct item *i;

	if (captured) {
		memcpy(word, captured, 3 * sizeof(word[0]));
		return word;
	}
	HASH_FIND(hh, r->envs, &ep, sizeof(ep), e);
	if (!e)
		return NULL;
	i = add(r, l, &e->trust);
	if (i) {
		i->kind = ENV;
		i->of.env = e;
	}
	return e->word;
}

static void add_frame(struct rbsp_ruby *r, struct list *l, const struct rbsp_raw *f)
{
	uint64_t kept[3];
	const uint64_t *word;
	rbsp_addr ep = f->ep;

	add_iseq(r, l, f->iseq);
	add_ment(r, l, f->iseq); /* an ifunc */
	for (int hop = 0; hop < RBSP_EP_MAX; hop++) {
		const struct rbsp_ment *m;

		word = add_env(r, l, ep, kept);
		if (!word)
			return;
		m = add_ment(r, l, word[0]);
		if (m && m->kind == RBSP_IMEMO_SVAR)
			add_ment(r, l, m->word[1]);
		if (word[2] & RBSP_ENV_LOCAL || (m && m->kind == RBSP_IMEMO_MENT))
			return;
		ep = word[1] & ~UINT64_C(3);
	}
}

static unsigned pieces_of(struct item *i, struct rbsp_piece *p)
{
	switch (i->kind) {
	case ISEQ:
		p[0] = (struct rbsp_piece){ i->of.iseq->addr, i->bytes, RBSP_ISEQ_PROOF };
		p[1] = (struct rbsp_piece){ i->of.iseq->body, i->bytes + RBSP_ISEQ_PROOF,
					    RBSP_BODY_PROOF };
		return 2;
	case MENT:
		p[0] = (struct rbsp_piece){ i->of.ment->addr, i->bytes, sizeof(i->of.ment->word) };
		return 1;
	default:
		p[0] = (struct rbsp_piece){ i->of.env->ep - 16, i->bytes, sizeof(i->of.env->word) };
		return 1;
	}
}

static void judge(struct rbsp_ruby *r, struct item *i)
{
	uint64_t word[5];

	switch (i->kind) {
	case ISEQ:
		if (rbsp_iseq_same(r, i->of.iseq, i->bytes, i->bytes + RBSP_ISEQ_PROOF))
			rbsp_trust_now(r, &i->of.iseq->trust);
		break;
	case MENT:
		memcpy(word, i->bytes, sizeof(word));
		if (rbsp_ment_same(i->of.ment, word))
			rbsp_trust_now(r, &i->of.ment->trust);
		break;
	case ENV:
		memcpy(i->of.env->word, i->bytes, sizeof(i->of.env->word));
		rbsp_trust_now(r, &i->of.env->trust);
		break;
	}
}

/* Read the pieces of the items from *from on; *from is set behind what was read and behind the item
 * that faulted. */
static bool read_some(struct rbsp_ruby *r, struct list *l, struct rbsp_piece *piece, size_t *from)
{
	size_t n = 0, done = 0;
	enum rbsp_status st;

	for (size_t k = *from; k < l->n; k++) {
		l->item[k].pieces = pieces_of(&l->item[k], piece + n);
		n += l->item[k].pieces;
	}
	st = r->target->ops->readv(r->target, piece, n, &done);
	n = 0;
	for (; *from < l->n; ++*from) {
		struct item *i = &l->item[*from];

		for (unsigned p = 0; p < i->pieces; p++, n++) {
			if (st != RBSP_OK && done < piece[n].n) {
				++*from;
				return st == RBSP_E_FAULT;
			}
			done -= piece[n].n;
		}
		i->read = true;
	}
	return false;
}

void rbsp_validate(struct rbsp_ruby *r, const struct rbsp_raw *raw, size_t n)
{
	struct list l = { 0 };
	struct rbsp_piece *piece;
	size_t from = 0;

	for (size_t i = 0; i < n; i++)
		if (raw[i].todo)
			add_frame(r, &l, &raw[i]);
	piece = l.n ? malloc(2 * l.n * sizeof(*piece)) : NULL;
	if (piece) {
		for (size_t i = 0; i < l.n; i++)
			l.item[i].read = false;
		for (int i = 0; i < RETRIES_MAX && from < l.n; i++)
			if (!read_some(r, &l, piece, &from))
				break;
		for (size_t i = 0; i < l.n; i++)
			if (l.item[i].read)
				judge(r, &l.item[i]);
	}
	free(piece);
	free(l.item);
}
