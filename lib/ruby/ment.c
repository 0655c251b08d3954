/* Method entries and the other internal objects that control frames lead to: their cache. */
#include "ruby/internal.h"

#include <stdlib.h>

/* An internal object's type and kind; the other flags change with its age. */
#define KIND_MASK (RBSP_T_MASK | 0xf000u)

/* internal/imemo.h: the word of an svar that ep[-2] held before, vm_ifunc.func. */
#define SVAR_CREF_OR_ME 1
#define IFUNC_FUNC 2

static int kind_of(uint64_t flags)
{
	return (flags & RBSP_T_MASK) == RBSP_T_IMEMO ? (int)(flags >> 12 & 15) : 0;
}

bool rbsp_ment_same(const struct rbsp_ment *m, const uint64_t word[5])
{
	if ((word[0] ^ m->word[0]) & KIND_MASK)
		return false;
	switch (m->kind) {
	case RBSP_IMEMO_SVAR:
		return word[SVAR_CREF_OR_ME] == m->word[SVAR_CREF_OR_ME];
	case RBSP_IMEMO_IFUNC:
		return word[IFUNC_FUNC] == m->word[IFUNC_FUNC];
	case RBSP_IMEMO_MENT:
		return !memcmp(word + 1, m->word + 1, 4 * sizeof(word[0]));
	default:
		return true;
	}
}

static void free_texts(struct rbsp_ment *m)
{
	free(m->name);
	free(m->owner.path);
	m->name = NULL;
	m->owner = (struct rbsp_owner){ 0 };
}

/* Name, owner and C function; a name or owner that cannot be found is left out. */
static enum rbsp_status read_method(struct rbsp_ruby *r, struct rbsp_ment *m)
{
	const struct rbsp_layout *l = r->l;
	rbsp_addr def = m->word[l->me.def / 8];
	uint64_t type, id;
	enum rbsp_status st = rbsp_mem_word(&r->mem, def, &type);

	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, def + l->def.original_id, &id);
	if (st != RBSP_OK)
		return st;
	m->def_type = type & 15;
	if (m->def_type == RBSP_METHOD_CFUNC)
		st = rbsp_mem_word(&r->mem, def + l->def.cfunc, &m->func);
	if (st == RBSP_OK)
		st = rbsp_object_id_text(&r->mem, l, r->addrs.symbols, id, &m->name);
	if (st != RBSP_OK && st != RBSP_E_NOT_FOUND)
		return st;
	return rbsp_class_owner(r, m->word[l->me.owner / 8], &m->owner);
}

static enum rbsp_status read_ment(struct rbsp_ruby *r, struct rbsp_ment *m)
{
	enum rbsp_status st = rbsp_mem_read(&r->mem, m->addr, m->word, sizeof(m->word));

	m->func = 0;
	m->def_type = 0;
	m->kind = st == RBSP_OK ? kind_of(m->word[0]) : 0;
	if (st != RBSP_OK)
		return st;
	if (m->kind == RBSP_IMEMO_IFUNC)
		m->func = m->word[IFUNC_FUNC];
	return m->kind == RBSP_IMEMO_MENT ? read_method(r, m) : RBSP_OK;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Read an entry; what frames were made of it stays good if it says the same as before. */
static enum rbsp_status refresh(struct rbsp_ruby *r, struct rbsp_ment *m)
{
	struct rbsp_ment old = *m;
	enum rbsp_status st;

	m->name = NULL;
	m->owner = (struct rbsp_owner){ 0 };
	st = read_ment(r, m);
	if (st != RBSP_OK || old.kind != m->kind || old.def_type != m->def_type ||
	    old.func != m->func || !same_text(old.name, m->name) ||
	    !same_text(old.owner.path, m->owner.path) ||
	    old.owner.separator != m->owner.separator || old.owner.qualifies != m->owner.qualifies)
		m->gen = ++r->gen;
	free_texts(&old);
	return st;
}

enum rbsp_status rbsp_ment_get(struct rbsp_ruby *r, rbsp_addr addr, const struct rbsp_ment **out)
{
	struct rbsp_ment *m;
	enum rbsp_status st;

	HASH_FIND(hh, r->ments, &addr, sizeof(addr), m);
	if (m && rbsp_trusted(r, &m->trust)) {
		*out = m;
		return RBSP_OK;
	}
	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return RBSP_E_NOMEM;
		m->addr = addr;
		HASH_ADD(hh, r->ments, addr, sizeof(m->addr), m);
		if (!m->hh.tbl) {
			free(m);
			return RBSP_E_NOMEM;
		}
	}
	m->trust = (struct rbsp_trust){ 0 };
	st = refresh(r, m);
	if (st != RBSP_OK)
		return st;
	/* A class without a name can get one at any time: its methods are read anew for every
	 * sample. */
	if (m->kind == RBSP_IMEMO_MENT && !m->owner.permanent)
		m->trust.serial = r->serial;
	else
		rbsp_trust_now(r, &m->trust);
	*out = m;
	return RBSP_OK;
}

bool rbsp_ment_known(const struct rbsp_ruby *r, rbsp_addr addr)
{
	struct rbsp_ment *e;

	HASH_FIND(hh, r->ments, &addr, sizeof(addr), e);
	return e && rbsp_trusted(r, &e->trust);
}

void rbsp_ments_free(struct rbsp_ruby *r)
{
	struct rbsp_ment *m, *next;

	HASH_ITER (hh, r->ments, m, next) {
		HASH_DEL(r->ments, m);
		free_texts(m);
		free(m);
	}
}
