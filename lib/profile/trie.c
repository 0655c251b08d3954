/* A stack trie: nodes in one array, children found by a hash of (parent, key). */
#include "profile/trie.h"

#include <stdlib.h>
#include <string.h>

struct node {
	uint64_t count;
	uint32_t parent, key;
	uint32_t child, next; /* 0: none, the top is nobody's child */
};

struct rbsp_trie {
	struct node *node;
	uint32_t n, cap;
	uint32_t *slot; /* node numbers, 0: free; open addressing */
	uint32_t slots; /* a power of two, at least twice n */
};

struct rbsp_trie *rbsp_trie_new(void)
{
	struct rbsp_trie *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->cap = 256;
	t->slots = 512;
	t->node = calloc(t->cap, sizeof(*t->node));
	t->slot = calloc(t->slots, sizeof(*t->slot));
	if (!t->node || !t->slot) {
		rbsp_trie_free(t);
		return NULL;
	}
	t->n = 1; /* the top */
	return t;
}

void rbsp_trie_free(struct rbsp_trie *t)
{
	if (!t)
		return;
	free(t->node);
	free(t->slot);
	free(t);
}

static uint32_t hash(uint32_t parent, uint32_t key)
{
	uint64_t h = (((uint64_t)parent << 32) | key) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/* The slot of a child: where it is, or the free one where it belongs. */
static uint32_t *slot_of(const struct rbsp_trie *t, uint32_t parent, uint32_t key)
{
	uint32_t i = hash(parent, key) & (t->slots - 1);

	while (t->slot[i]) {
		const struct node *n = &t->node[t->slot[i]];

		if (n->parent == parent && n->key == key)
			break;
		i = (i + 1) & (t->slots - 1);
	}
	return &t->slot[i];
}

static bool grow(struct rbsp_trie *t)
{
	struct node *node;
	uint32_t *slot;

	if (t->cap > UINT32_MAX / 4)
		return false;
	node = realloc(t->node, 2 * (size_t)t->cap * sizeof(*node));
	if (!node)
		return false;
	t->node = node;
	slot = calloc(2 * (size_t)t->slots, sizeof(*slot));
	if (!slot)
		return false;
	free(t->slot);
	t->slot = slot;
	t->cap *= 2;
	t->slots *= 2;
	for (uint32_t i = 1; i < t->n; i++)
		*slot_of(t, t->node[i].parent, t->node[i].key) = i;
	return true;
}

/* The child of a node, made if it is not there; 0: out of memory. */
static uint32_t child_of(struct rbsp_trie *t, uint32_t parent, uint32_t key)
{
	uint32_t *slot = slot_of(t, parent, key);
	uint32_t id = *slot;

	if (id)
		return id;
	if (t->n == t->cap) {
		if (!grow(t))
			return 0;
		slot = slot_of(t, parent, key);
	}
	id = t->n++;
	t->node[id] = (struct node){ .parent = parent, .key = key, .next = t->node[parent].child };
	t->node[parent].child = id;
	*slot = id;
	return id;
}

enum rbsp_status rbsp_trie_add(struct rbsp_trie *t, const uint32_t *keys, size_t n, uint64_t count)
{
	uint32_t at = RBSP_TRIE_TOP;

	for (size_t i = 0; i < n; i++) {
		at = child_of(t, at, keys[i]);
		if (!at)
			return RBSP_E_NOMEM;
	}
	t->node[at].count += count;
	return RBSP_OK;
}

uint32_t rbsp_trie_nodes(const struct rbsp_trie *t)
{
	return t->n;
}

/* The siblings that a walk still has to visit at one depth: a part of walk.item. */
struct level {
	size_t begin, at;
};

struct walk {
	const struct rbsp_trie *t;
	rbsp_trie_cmp cmp;
	void *arg;
	struct rbsp_trie_item *item;
	size_t n_items, cap_items;
	struct level *level;
	uint32_t *key; /* key[i]: the key that level[i + 1] lies under */
	size_t depth, cap_depth;
};

static bool push_item(struct walk *w, struct rbsp_trie_item item)
{
	if (w->n_items == w->cap_items) {
		size_t cap = w->cap_items ? 2 * w->cap_items : 64;
		struct rbsp_trie_item *p = realloc(w->item, cap * sizeof(*p));

		if (!p)
			return false;
		w->item = p;
		w->cap_items = cap;
	}
	w->item[w->n_items++] = item;
	return true;
}

static bool deeper(struct walk *w)
{
	size_t cap = w->cap_depth ? 2 * w->cap_depth : 64;
	struct level *level;
	uint32_t *key;

	if (w->depth < w->cap_depth)
		return true;
	level = realloc(w->level, cap * sizeof(*level));
	if (!level)
		return false;
	w->level = level;
	key = realloc(w->key, cap * sizeof(*key));
	if (!key)
		return false;
	w->key = key;
	w->cap_depth = cap;
	return true;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct walk *w = arg;

	return w->cmp(a, b, w->arg);
}

/* Begin a level with the children of a node, in order. */
static bool enter(struct walk *w, uint32_t parent)
{
	size_t begin = w->n_items;

	if (!deeper(w))
		return false;
	for (uint32_t c = w->t->node[parent].child; c; c = w->t->node[c].next) {
		const struct node *n = &w->t->node[c];

		if (n->count && !push_item(w, (struct rbsp_trie_item){ n->count, n->key, c }))
			return false;
		if (n->child && !push_item(w, (struct rbsp_trie_item){ 0, n->key, c }))
			return false;
	}
	if (w->cmp && w->n_items > begin)
		qsort_r(w->item + begin, w->n_items - begin, sizeof(*w->item), compare, w);
	w->level[w->depth++] = (struct level){ begin, begin };
	return true;
}

static enum rbsp_status visit(struct walk *w, rbsp_trie_fn fn)
{
	if (w->t->node[RBSP_TRIE_TOP].count) {
		enum rbsp_status st = fn(w->arg, NULL, 0, w->t->node[RBSP_TRIE_TOP].count);

		if (st != RBSP_OK)
			return st;
	}
	if (!enter(w, RBSP_TRIE_TOP))
		return RBSP_E_NOMEM;
	while (w->depth) {
		struct level *l = &w->level[w->depth - 1];
		struct rbsp_trie_item item;
		enum rbsp_status st;

		if (l->at == w->n_items) {
			w->n_items = l->begin;
			w->depth--;
			continue;
		}
		item = w->item[l->at++];
		w->key[w->depth - 1] = item.key;
		if (!item.count) {
			if (!enter(w, item.node))
				return RBSP_E_NOMEM;
			continue;
		}
		st = fn(w->arg, w->key, w->depth, item.count);
		if (st != RBSP_OK)
			return st;
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_trie_walk(const struct rbsp_trie *t, rbsp_trie_cmp cmp, rbsp_trie_fn fn,
				void *arg)
{
	struct walk w = { .t = t, .cmp = cmp, .arg = arg };
	enum rbsp_status st = visit(&w, fn);

	free(w.item);
	free(w.level);
	free(w.key);
	return st;
}
