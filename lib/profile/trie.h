/* A stack trie: stacks of ids with counts, each common beginning stored once. */
#ifndef RBSP_TRIE_H
#define RBSP_TRIE_H

#include "base/base.h"

struct rbsp_trie;

/** The node that every stack starts from; it has no key. */
#define RBSP_TRIE_TOP 0u

/** An empty trie; NULL: out of memory. */
struct rbsp_trie *rbsp_trie_new(void);
void rbsp_trie_free(struct rbsp_trie *t);

/**
 * Add a stack.
 *
 * @param t      trie
 * @param keys   ids, root first: frame ids or any other numbers that their owner can read again
 * @param n      how many; 0: counted at the top node
 * @param count  added to the stack's count
 * @return RBSP_OK; RBSP_E_NOMEM: nothing was counted
 */
enum rbsp_status rbsp_trie_add(struct rbsp_trie *t, const uint32_t *keys, size_t n, uint64_t count);

/** How many nodes there are, the top included. */
uint32_t rbsp_trie_nodes(const struct rbsp_trie *t);

/** Called for each stack that has a count, @p keys is root first and borrowed. Anything but RBSP_OK
 * ends the walk. */
typedef enum rbsp_status (*rbsp_trie_fn)(void *arg, const uint32_t *keys, size_t n, uint64_t count);

/** What siblings are ordered by: the stack that ends with a key, or all stacks that go on after it.
 */
struct rbsp_trie_item {
	uint64_t count; /* of the stack that ends here; 0: the stacks that go on */
	uint32_t key;
	uint32_t node;
};
typedef int (*rbsp_trie_cmp)(const struct rbsp_trie_item *a, const struct rbsp_trie_item *b,
			     void *arg);

/**
 * Visit every stack that has a count, depth first, without recursion.
 *
 * @param t    trie
 * @param cmp  order of siblings, as for qsort; NULL: any order
 * @param fn   called for each stack
 * @param arg  handed to both
 * @return RBSP_OK; RBSP_E_NOMEM; what @p fn returned
 */
enum rbsp_status rbsp_trie_walk(const struct rbsp_trie *t, rbsp_trie_cmp cmp, rbsp_trie_fn fn,
				void *arg);

#endif
