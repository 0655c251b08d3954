/* Environments: the way from a frame to its method. */
#include "ruby/internal.h"

#include <stdlib.h>

/* Words of an environment, from ep - 16 on. */
enum { ME_CREF, SPECVAL, FLAGS };

/* vm_core.h: the low bits of a parent's address in specval. */
#define SPECVAL_BITS 3u

static struct rbsp_env *env_entry(struct rbsp_ruby *r, rbsp_addr ep)
{
	struct rbsp_env *e;

	HASH_FIND(hh, r->envs, &ep, sizeof(ep), e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->ep = ep;
	HASH_ADD(hh, r->envs, ep, sizeof(e->ep), e);
	if (e->hh.tbl)
		return e;
	free(e);
	return NULL;
}

enum rbsp_status rbsp_env_words(struct rbsp_ruby *r, rbsp_addr ep, uint64_t word[3])
{
	const unsigned char *captured = rbsp_env_captured(r, ep);
	struct rbsp_env *e;
	enum rbsp_status st;

	if (captured) {
		memcpy(word, captured, RBSP_ENV_BYTES);
		return RBSP_OK;
	}
	/* The VM stack itself has changed since: what was not captured of it is lost. */
	if (ep & 7 || ep < 4096 || (ep >= r->stack && ep < r->stack_end))
		return RBSP_E_RANGE;
	e = env_entry(r, ep);
	if (!e)
		return RBSP_E_NOMEM;
	if (!rbsp_trusted(r, &e->trust)) {
		e->trust = (struct rbsp_trust){ 0 };
		st = rbsp_mem_read(&r->mem, ep - 16, e->word, RBSP_ENV_BYTES);
		if (st != RBSP_OK)
			return st;
		rbsp_trust_now(r, &e->trust);
	}
	memcpy(word, e->word, RBSP_ENV_BYTES);
	return RBSP_OK;
}

/* check_method_entry: a method entry, or at the method's own environment an svar that holds one. */
static enum rbsp_status method_of(struct rbsp_ruby *r, uint64_t v, bool local,
				  const struct rbsp_ment **out)
{
	enum rbsp_status st;

	*out = NULL;
	for (int hop = 0; hop < 2 && rbsp_is_object(v); hop++) {
		const struct rbsp_ment *m;

		st = rbsp_ment_get(r, v, &m);
		if (st != RBSP_OK)
			return st;
		if (m->kind == RBSP_IMEMO_MENT) {
			*out = m;
			return RBSP_OK;
		}
		if (m->kind == RBSP_IMEMO_CREF)
			return RBSP_OK;
		/* Anything else was freed or moved since the capture. */
		if (m->kind != RBSP_IMEMO_SVAR || !local)
			return RBSP_E_TORN;
		v = m->word[1];
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_env_method(struct rbsp_ruby *r, const struct rbsp_raw *f,
				 const struct rbsp_ment **out, unsigned *hops)
{
	uint64_t word[3] = { f->env[ME_CREF], f->env[SPECVAL], f->env[FLAGS] };

	*out = NULL;
	for (*hops = 0; *hops < RBSP_EP_MAX; ++*hops) {
		bool local = word[FLAGS] & RBSP_ENV_LOCAL;
		enum rbsp_status st = method_of(r, word[ME_CREF], local, out);

		if (st != RBSP_OK || *out || local)
			return st;
		st = rbsp_env_words(r, word[SPECVAL] & ~(uint64_t)SPECVAL_BITS, word);
		if (st != RBSP_OK)
			return st;
	}
	return RBSP_E_RANGE;
}

bool rbsp_env_known(const struct rbsp_ruby *r, rbsp_addr ep)
{
	struct rbsp_env *e;

	HASH_FIND(hh, r->envs, &ep, sizeof(ep), e);
	return e && rbsp_trusted(r, &e->trust);
}

void rbsp_envs_free(struct rbsp_ruby *r)
{
	struct rbsp_env *e, *next;

	HASH_ITER (hh, r->envs, e, next) {
		HASH_DEL(r->envs, e);
		free(e);
	}
}
