/* Class paths where no class stores its own in reach (3.2): by walking the constants from
 * rb_cObject. */
#include "ruby/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* id_table.c: struct rb_id_table {capa, num, used, items}; an item is {32-bit serial, collision,
 * value}. */
#define TABLE_BYTES 16
#define ITEM_BYTES 16
#define CAPA_MAX (1u << 20)
/* constant.h: rb_const_entry_t {flag, line, value, file}. */
#define ENTRY_VALUE 8

/* Pages for one walk, and how long a class that was not found waits for the next: doubled while it
 * is not there. */
#define WALK_PAGES 200000u
#define WALK_AGAIN_NS UINT64_C(1000000000)
#define WALK_RARELY_NS (64 * WALK_AGAIN_NS)
#define IV_SLOTS 4
#define BATCH 64

/** A class or module that a constant names. */
struct rbsp_const {
	rbsp_addr klass;
	char *path;
	struct rbsp_const *next; /* to visit */
	bool queued;
	UT_hash_handle hh;
};

struct walk {
	struct rbsp_ruby *r;
	struct rbsp_mem mem;
	struct rbsp_const *first, **last; /* breadth first: the shortest of several paths */
	unsigned left;                    /* constants that may still be looked at */
};

static void enqueue(struct walk *w, struct rbsp_const *c)
{
	if (c->queued)
		return;
	c->queued = true;
	c->next = NULL;
	*w->last = c;
	w->last = &c->next;
}

/* Whether a class keeps this very path among its first ivars: the name it was given, not an alias.
 */
static bool calls_itself(struct walk *w, rbsp_addr klass, const char *path)
{
	const struct rbsp_layout *l = w->r->l;
	rbsp_addr ivars;

	if (l->klass.iv_ptr == RBSP_NONE ||
	    rbsp_mem_word(&w->mem, klass + l->klass.ext + l->klass.iv_ptr, &ivars) != RBSP_OK ||
	    !ivars)
		return false;
	for (int i = 0; i < IV_SLOTS; i++) {
		uint64_t v;
		char *text;
		bool same;

		if (rbsp_mem_word(&w->mem, ivars + (rbsp_addr)i * 8, &v) != RBSP_OK ||
		    rbsp_object_text(&w->mem, l, v, &text) != RBSP_OK)
			continue;
		same = !strcmp(text, path);
		free(text);
		if (same)
			return true;
	}
	return false;
}

/* Add an entry; takes the path. @return NULL: no memory */
static struct rbsp_const *add(struct walk *w, rbsp_addr klass, char *path)
{
	struct rbsp_const *c = calloc(1, sizeof(*c));

	if (c) {
		c->klass = klass;
		c->path = path;
		HASH_ADD(hh, w->r->consts, klass, sizeof(c->klass), c);
		if (c->hh.tbl)
			return c;
	}
	free(path);
	free(c);
	return NULL;
}

/* The singleton class of a class is found under its path too. */
static void note_singleton(struct walk *w, rbsp_addr klass, const char *path)
{
	const struct rbsp_layout *l = w->r->l;
	struct rbsp_const *c;
	uint64_t meta, flags;
	char *copy;

	if (rbsp_mem_word(&w->mem, klass + 8, &meta) != RBSP_OK || !rbsp_is_object(meta) ||
	    rbsp_mem_word(&w->mem, meta, &flags) != RBSP_OK ||
	    (flags & RBSP_T_MASK) != RBSP_T_CLASS || !(flags & l->klass.singleton_flag))
		return;
	HASH_FIND(hh, w->r->consts, &meta, sizeof(meta), c);
	copy = strdup(path);
	if (copy && !c) {
		add(w, meta, copy);
	} else if (copy) {
		free(c->path);
		c->path = copy;
	}
}

/* Note the path of a class; takes it. */
static void note(struct walk *w, rbsp_addr klass, char *path)
{
	struct rbsp_const *c;

	HASH_FIND(hh, w->r->consts, &klass, sizeof(klass), c);
	if (c) {
		if (strcmp(c->path, path) != 0 && calls_itself(w, klass, path)) {
			free(c->path);
			c->path = path;
			note_singleton(w, klass, path);
			enqueue(w, c);
		} else {
			free(path);
		}
		return;
	}
	c = add(w, klass, path);
	if (!c)
		return;
	note_singleton(w, klass, path);
	enqueue(w, c);
}

/* One constant of a class: {serial, value of its entry}. */
static void visit_constant(struct walk *w, const struct rbsp_const *in, uint32_t serial,
			   rbsp_addr entry)
{
	uint64_t value, flags;
	rbsp_addr str;
	char *name, *path = NULL;

	if (rbsp_mem_word(&w->mem, entry + ENTRY_VALUE, &value) != RBSP_OK ||
	    !rbsp_is_object(value) || rbsp_mem_word(&w->mem, value, &flags) != RBSP_OK)
		return;
	flags &= RBSP_T_MASK;
	if (flags != RBSP_T_CLASS && flags != RBSP_T_MODULE)
		return;
	if (rbsp_object_id_string(&w->mem, w->r->l, w->r->addrs.symbols, serial, &str) != RBSP_OK ||
	    rbsp_object_text(&w->mem, w->r->l, str, &name) != RBSP_OK)
		return;
	if (in->klass == w->r->addrs.object)
		path = strdup(name);
	else if (asprintf(&path, "%s::%s", in->path, name) < 0)
		path = NULL;
	free(name);
	if (path && strlen(path) <= RBSP_STRING_MAX)
		note(w, value, path);
	else
		free(path);
}

static void visit_class(struct walk *w, const struct rbsp_const *c)
{
	const struct rbsp_layout *l = w->r->l;
	rbsp_addr ext = c->klass + l->klass.ext, table, items;
	uint32_t head[TABLE_BYTES / 4];

	if (!l->klass.ext_embedded && (rbsp_mem_word(&w->mem, ext, &ext) != RBSP_OK || !ext))
		return;
	if (rbsp_mem_word(&w->mem, ext + l->klass.const_tbl, &table) != RBSP_OK || !table ||
	    rbsp_mem_read(&w->mem, table, head, sizeof(head)) != RBSP_OK || head[0] > CAPA_MAX ||
	    rbsp_mem_word(&w->mem, table + TABLE_BYTES, &items) != RBSP_OK)
		return;
	for (uint32_t i = 0; i < head[0]; i += BATCH) {
		uint64_t item[BATCH][2];
		rbsp_addr at[BATCH];
		size_t n = head[0] - i < BATCH ? head[0] - i : BATCH, used = 0;

		if (rbsp_mem_read(&w->mem, items + i * (rbsp_addr)ITEM_BYTES, item,
				  n * ITEM_BYTES) != RBSP_OK)
			return;
		for (size_t k = 0; k < n; k++)
			if ((uint32_t)item[k][0])
				at[used++] = item[k][1] + ENTRY_VALUE;
		rbsp_mem_prefetch(&w->mem, at, used);
		for (size_t k = 0; k < n && w->left; k++) {
			if (!(uint32_t)item[k][0])
				continue;
			w->left--;
			visit_constant(w, c, (uint32_t)item[k][0], item[k][1]);
		}
	}
}

static void walk(struct rbsp_ruby *r)
{
	struct walk w = { .r = r, .left = RBSP_LIST_MAX };
	char *object = strdup("Object");

	rbsp_constants_free(r);
	w.last = &w.first;
	if (!object || rbsp_mem_init(&w.mem, r->target) != RBSP_OK) {
		free(object);
		return;
	}
	rbsp_mem_begin(&w.mem, WALK_PAGES);
	note(&w, r->addrs.object, object);
	while (w.first) {
		struct rbsp_const *c = w.first;

		w.first = c->next;
		if (!w.first)
			w.last = &w.first;
		c->queued = false;
		visit_class(&w, c);
	}
	rbsp_mem_fini(&w.mem);
}

const char *rbsp_constants_path(struct rbsp_ruby *r, rbsp_addr klass)
{
	struct rbsp_const *c;

	if (!r->addrs.object || !r->addrs.symbols)
		return NULL;
	HASH_FIND(hh, r->consts, &klass, sizeof(klass), c);
	if (!c && (!r->consts || r->now_ns - r->consts_ns >= r->consts_wait_ns)) {
		walk(r);
		HASH_FIND(hh, r->consts, &klass, sizeof(klass), c);
		r->consts_ns = r->now_ns;
		if (c || !r->consts_wait_ns)
			r->consts_wait_ns = WALK_AGAIN_NS;
		else if (r->consts_wait_ns < WALK_RARELY_NS)
			r->consts_wait_ns *= 2;
	}
	return c ? c->path : NULL;
}

void rbsp_constants_free(struct rbsp_ruby *r)
{
	struct rbsp_const *c, *next;

	HASH_ITER (hh, r->consts, c, next) {
		HASH_DEL(r->consts, c);
		free(c->path);
		free(c);
	}
}
