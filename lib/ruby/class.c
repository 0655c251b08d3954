/* Class paths: what stands in front of a method's name. */
#include "ruby/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* st.h (2.4+): struct st_table and its entries {hash, key, record}; the entries are there with and
 * without bins. */
#define ST_TABLE_START 32
#define ST_TABLE_BOUND 40
#define ST_TABLE_ENTRIES 48
#define ST_ENTRY_BYTES 24
#define ST_DELETED UINT64_MAX

/* variable.c, class.c: names of the internal ivars of a class, up to 3.1. */
enum iv_kind { IV_OTHER, IV_CLASSPATH, IV_TMP_CLASSPATH, IV_ATTACHED };
static const char *const iv_names[] = {
	[IV_CLASSPATH] = "__classpath__",
	[IV_TMP_CLASSPATH] = "__tmp_classpath__",
	[IV_ATTACHED] = "__attached__",
};

/** What an ID is the name of; an ID of an ivar never goes away. */
struct rbsp_iv_id {
	uint64_t id;
	enum iv_kind kind;
	UT_hash_handle hh;
};

/* The head of a class: RBasic, and where its extension is. */
struct klass {
	rbsp_addr addr, meta, ext;
	uint64_t flags;
};

static enum rbsp_status read_class(struct rbsp_ruby *r, rbsp_addr addr, struct klass *k)
{
	const struct rbsp_layout *l = r->l;
	uint64_t w[2];
	enum rbsp_status st;

	if (!rbsp_is_object(addr))
		return RBSP_E_TORN;
	st = rbsp_mem_read(&r->mem, addr, w, sizeof(w));
	if (st != RBSP_OK)
		return st;
	*k = (struct klass){ .addr = addr, .flags = w[0], .meta = w[1] };
	switch (w[0] & RBSP_T_MASK) {
	case RBSP_T_CLASS:
	case RBSP_T_MODULE:
	case RBSP_T_ICLASS:
		break;
	default:
		return RBSP_E_TORN;
	}
	if (l->klass.ext_embedded) {
		k->ext = addr + l->klass.ext;
		return RBSP_OK;
	}
	return rbsp_mem_word(&r->mem, addr + l->klass.ext, &k->ext);
}

static bool is_type(const struct klass *k, unsigned type)
{
	return (k->flags & RBSP_T_MASK) == type;
}

static bool is_singleton(const struct rbsp_ruby *r, const struct klass *k)
{
	return is_type(k, RBSP_T_CLASS) && (k->flags & r->l->klass.singleton_flag);
}

static enum iv_kind kind_of_id(struct rbsp_ruby *r, uint64_t id)
{
	struct rbsp_iv_id *e;
	enum iv_kind kind = IV_OTHER;
	char *name;

	HASH_FIND(hh, r->iv_ids, &id, sizeof(id), e);
	if (e)
		return e->kind;
	if (rbsp_object_id_text(&r->mem, r->l, r->addrs.symbols, id, &name) != RBSP_OK)
		return IV_OTHER;
	for (unsigned k = IV_CLASSPATH; k < RBSP_COUNT_OF(iv_names); k++)
		if (!strcmp(name, iv_names[k]))
			kind = (enum iv_kind)k;
	free(name);
	e = calloc(1, sizeof(*e));
	if (!e)
		return kind;
	e->id = id;
	e->kind = kind;
	HASH_ADD(hh, r->iv_ids, id, sizeof(e->id), e);
	if (!e->hh.tbl)
		free(e);
	return kind;
}

/* The values of a class's internal ivars, by kind; 0: it has none. */
static enum rbsp_status read_ivars(struct rbsp_ruby *r, const struct klass *k, uint64_t value[4])
{
	uint64_t table, start, bound, entries, e[3];
	enum rbsp_status st;

	memset(value, 0, 4 * sizeof(value[0]));
	if (!k->ext)
		return RBSP_OK;
	st = rbsp_mem_word(&r->mem, k->ext + r->l->klass.iv_tbl, &table);
	if (st != RBSP_OK || !table)
		return st;
	st = rbsp_mem_word(&r->mem, table + ST_TABLE_START, &start);
	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, table + ST_TABLE_BOUND, &bound);
	if (st == RBSP_OK)
		st = rbsp_mem_word(&r->mem, table + ST_TABLE_ENTRIES, &entries);
	if (st != RBSP_OK)
		return st;
	if (start > bound)
		return RBSP_E_TORN;
	if (bound - start > RBSP_IVARS_MAX)
		bound = start + RBSP_IVARS_MAX;
	for (uint64_t i = start; i < bound; i++) {
		st = rbsp_mem_read(&r->mem, entries + i * ST_ENTRY_BYTES, e, sizeof(e));
		if (st != RBSP_OK)
			return st;
		if (e[0] != ST_DELETED)
			value[kind_of_id(r, e[1])] = e[2];
	}
	return RBSP_OK;
}

/*
 * The stored path of a class; NULL: it has no name. "#<Class:0x00007f12>::Foo", the path under a
 * class without a name, is none: not all versions keep it, and it has an address in it.
 */
static enum rbsp_status stored_path(struct rbsp_ruby *r, const struct klass *k, char **path,
				    bool *permanent)
{
	const struct rbsp_layout *l = r->l;
	uint64_t value[4], str = 0;
	unsigned char bits = 0;
	char *text;
	enum rbsp_status st;

	*path = NULL;
	*permanent = false;
	if (l->klass.classpath != RBSP_NONE) {
		st = rbsp_mem_word(&r->mem, k->ext + l->klass.classpath, &str);
		if (st == RBSP_OK)
			st = rbsp_mem_read(&r->mem, k->ext + l->klass.permanent, &bits, 1);
		*permanent = bits & 1;
	} else if (l->klass.iv_tbl != RBSP_NONE) {
		st = read_ivars(r, k, value);
		*permanent = st == RBSP_OK && value[IV_CLASSPATH];
		if (st == RBSP_OK)
			str = value[*permanent ? IV_CLASSPATH : IV_TMP_CLASSPATH];
	} else {
		const char *walked = rbsp_constants_path(r, k->addr);

		*permanent = walked != NULL;
		*path = walked ? strdup(walked) : NULL;
		return walked && !*path ? RBSP_E_NOMEM : RBSP_OK;
	}
	if (st != RBSP_OK || !rbsp_is_object(str))
		return st;
	st = rbsp_object_text(&r->mem, l, str, &text);
	if (st != RBSP_OK)
		return st;
	if (!*permanent && !strncmp(text, "#<", 2))
		free(text);
	else
		*path = text;
	return RBSP_OK;
}

/* object.c, rb_class_real: past singletons and included modules. */
static enum rbsp_status real_class(struct rbsp_ruby *r, rbsp_addr addr, struct klass *k)
{
	for (int i = 0; i < RBSP_SUPER_MAX; i++) {
		enum rbsp_status st = read_class(r, addr, k);

		if (st != RBSP_OK)
			return st;
		if (!is_type(k, RBSP_T_ICLASS) && !is_singleton(r, k))
			return RBSP_OK;
		st = rbsp_mem_word(&r->mem, addr + r->l->klass.super, &addr);
		if (st != RBSP_OK)
			return st;
	}
	return RBSP_E_RANGE;
}

/* "#<Class>", "#<Foo>": an object by its real class; a class without a name is just "#<Class>"
 * there. */
static enum rbsp_status instance_text(struct rbsp_ruby *r, rbsp_addr klass, char **out)
{
	struct klass k;
	char *path;
	bool permanent;
	enum rbsp_status st = real_class(r, klass, &k);

	if (st == RBSP_OK)
		st = stored_path(r, &k, &path, &permanent);
	if (st != RBSP_OK)
		return st;
	if (asprintf(out, "#<%s>", path ? path : "#<Class>") < 0)
		st = RBSP_E_NOMEM;
	free(path);
	return st;
}

/* Whether no class path can be found: up to 3.2 it takes the ID table, and rb_cObject where
 * constants are walked. */
static bool no_paths(const struct rbsp_ruby *r)
{
	if (r->l->klass.classpath != RBSP_NONE)
		return false;
	return !r->addrs.symbols || (r->l->klass.iv_tbl == RBSP_NONE && !r->addrs.object);
}

static enum rbsp_status path_of(struct rbsp_ruby *r, const struct klass *k, struct rbsp_owner *out)
{
	enum rbsp_status st = stored_path(r, k, &out->path, &out->permanent);

	out->qualifies = out->permanent && out->path;
	if (st != RBSP_OK || out->path)
		return st;
	if (no_paths(r)) {
		out->permanent = true; /* not worth another look */
		return RBSP_OK;
	}
	if (is_type(k, RBSP_T_MODULE) && (k->flags & r->l->klass.refinement_flag)) {
		out->path = strdup("#<Refinement>");
		out->permanent = true;
		return out->path ? RBSP_OK : RBSP_E_NOMEM;
	}
	return instance_text(r, k->meta, &out->path);
}

/* The object that a singleton class belongs to; 0: not found. */
static enum rbsp_status attached_to(struct rbsp_ruby *r, const struct klass *k, rbsp_addr *object)
{
	const struct rbsp_layout *l = r->l;
	uint64_t value[4], ivars, klass;
	enum rbsp_status st;

	*object = 0;
	if (l->klass.attached != RBSP_NONE)
		return rbsp_mem_word(&r->mem, k->ext + l->klass.attached, object);
	if (l->klass.iv_tbl != RBSP_NONE) {
		st = read_ivars(r, k, value);
		*object = value[IV_ATTACHED];
		return st;
	}
	/* 3.2: it is an internal ivar, as a rule the first; the object's class must be this one. */
	st = rbsp_mem_word(&r->mem, k->ext + l->klass.iv_ptr, &ivars);
	for (int i = 0; st == RBSP_OK && ivars && i < 4; i++) {
		uint64_t v;

		if (rbsp_mem_word(&r->mem, ivars + (rbsp_addr)i * 8, &v) == RBSP_OK &&
		    rbsp_is_object(v) && rbsp_mem_word(&r->mem, v + 8, &klass) == RBSP_OK &&
		    klass == k->addr) {
			*object = v;
			break;
		}
	}
	return st;
}

/* 3.2, when no ivar told the object: the class whose singleton it is, among those that constants
 * name. */
static enum rbsp_status walked_singleton(struct rbsp_ruby *r, const struct klass *k,
					 struct rbsp_owner *out)
{
	const char *path;

	if (r->l->klass.attached != RBSP_NONE || r->l->klass.iv_tbl != RBSP_NONE)
		return RBSP_OK;
	path = rbsp_constants_path(r, k->addr);
	if (!path)
		return RBSP_OK;
	out->path = strdup(path);
	out->permanent = out->qualifies = true;
	return out->path ? RBSP_OK : RBSP_E_NOMEM;
}

static enum rbsp_status singleton_owner(struct rbsp_ruby *r, const struct klass *k,
					struct rbsp_owner *out)
{
	rbsp_addr object;
	uint64_t w[2];
	struct klass attached;
	enum rbsp_status st = attached_to(r, k, &object);

	out->separator = '.';
	if (st == RBSP_OK && !rbsp_is_object(object))
		return walked_singleton(r, k, out);
	if (st == RBSP_OK)
		st = rbsp_mem_read(&r->mem, object, w, sizeof(w));
	if (st != RBSP_OK)
		return st;
	if ((w[0] & RBSP_T_MASK) != RBSP_T_CLASS && (w[0] & RBSP_T_MASK) != RBSP_T_MODULE) {
		out->permanent = true;
		return instance_text(r, w[1], &out->path);
	}
	st = read_class(r, object, &attached);
	return st == RBSP_OK ? path_of(r, &attached, out) : st;
}

enum rbsp_status rbsp_class_owner(struct rbsp_ruby *r, rbsp_addr klass, struct rbsp_owner *out)
{
	struct klass k;
	enum rbsp_status st = read_class(r, klass, &k);

	*out = (struct rbsp_owner){ .separator = '#' };
	/* A module that was included is met as its ICLASS; an origin's class is the class. */
	if (st == RBSP_OK && is_type(&k, RBSP_T_ICLASS))
		st = read_class(r, k.meta, &k);
	if (st != RBSP_OK)
		return st;
	st = is_singleton(r, &k) ? singleton_owner(r, &k, out) : path_of(r, &k, out);
	if (st != RBSP_OK) {
		free(out->path);
		*out = (struct rbsp_owner){ .separator = '#' };
	}
	return st;
}

void rbsp_class_free(struct rbsp_ruby *r)
{
	struct rbsp_iv_id *e, *next;

	HASH_ITER (hh, r->iv_ids, e, next) {
		HASH_DEL(r->iv_ids, e);
		free(e);
	}
}
