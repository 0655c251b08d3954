/* uthash as it is used here: tables that say when they cannot grow, and a hash that reads eight
 * bytes at a time. */
#ifndef RBSP_HASH_H
#define RBSP_HASH_H

#include <stdint.h>
#include <string.h>

/* After a HASH_ADD that found no memory the element is not in the table and its hh.tbl is NULL. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, n, out) ((out) = rbsp_hash(key, n))
#include <uthash.h>

/** One step of a hash over words; start with any value. */
static inline uint64_t rbsp_hash_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 32);
}

/** Hash of @p n bytes, good in its low bits. */
static inline unsigned rbsp_hash(const void *key, size_t n)
{
	const unsigned char *p = key;
	uint64_t h = n, word;

	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = rbsp_hash_word(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	return (unsigned)rbsp_hash_word(h, word);
}

#endif
