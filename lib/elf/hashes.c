/* DT_HASH and DT_GNU_HASH: how many entries .dynsym has, and where a name is. */
#include "elf/hashes.h"

#include <string.h>

static uint32_t word_at(const unsigned char *p, size_t i)
{
	uint32_t w;

	memcpy(&w, p + i * sizeof(w), sizeof(w));
	return w;
}

size_t rbsp_elf_hash_count(const struct rbsp_elf *e)
{
	size_t have;
	const unsigned char *p = e->dyn.hash ? rbsp_elf_span(e, e->dyn.hash, &have) : NULL;

	return p && have >= 8 ? word_at(p, 1) : 0; /* nchain */
}

void rbsp_elf_hash_extent(const struct rbsp_elf *e, size_t *n)
{
	size_t have;
	const unsigned char *p = e->dyn.hash ? rbsp_elf_span(e, e->dyn.hash, &have) : NULL;

	*n = p && have >= 8 ? 4 * (2 + (size_t)word_at(p, 0) + word_at(p, 1)) : 0;
}

/* The table's parts, all bounded. */
struct gnu_hash {
	uint32_t n_buckets, first, bloom_words, bloom_shift;
	const unsigned char *bloom, *buckets, *chain;
	size_t n_chain; /* words of the file from chain on: more than the table has */
};

#define GNU_HEADER 16

static bool gnu_open(const struct rbsp_elf *e, struct gnu_hash *h)
{
	size_t have, need;
	const unsigned char *p = e->dyn.gnu_hash ? rbsp_elf_span(e, e->dyn.gnu_hash, &have) : NULL;

	if (!p || have < GNU_HEADER)
		return false;
	*h = (struct gnu_hash){ word_at(p, 0), word_at(p, 1), word_at(p, 2), word_at(p, 3),
				NULL,          NULL,          NULL,          0 };
	need = GNU_HEADER + 8 * (size_t)h->bloom_words + 4 * (size_t)h->n_buckets;
	if (h->n_buckets == 0 || h->bloom_words == 0 || (h->bloom_words & (h->bloom_words - 1)) ||
	    need > have)
		return false;
	h->bloom = p + GNU_HEADER;
	h->buckets = h->bloom + 8 * (size_t)h->bloom_words;
	h->chain = h->buckets + 4 * (size_t)h->n_buckets;
	h->n_chain = (have - need) / 4;
	return true;
}

/* Number of entries of the chain array. */
static size_t gnu_chain_length(const struct gnu_hash *h)
{
	uint32_t last = 0;
	size_t i;

	for (size_t b = 0; b < h->n_buckets; b++) {
		uint32_t w = word_at(h->buckets, b);

		if (w > last)
			last = w;
	}
	if (last < h->first)
		return 0;
	i = last - h->first;
	while (i < h->n_chain && !(word_at(h->chain, i) & 1))
		i++;
	return i < h->n_chain ? i + 1 : h->n_chain;
}

size_t rbsp_elf_gnu_hash_count(const struct rbsp_elf *e)
{
	struct gnu_hash h;
	size_t n;

	if (!gnu_open(e, &h))
		return 0;
	n = gnu_chain_length(&h);
	if (n)
		return h.first + n;
	/* Nothing is exported, so the table knows no entry; linkers put .dynstr behind .dynsym. */
	return e->dyn.strtab > e->dyn.symtab
		       ? (size_t)((e->dyn.strtab - e->dyn.symtab) / sizeof(Elf64_Sym))
		       : h.first;
}

void rbsp_elf_gnu_hash_extent(const struct rbsp_elf *e, size_t *n)
{
	struct gnu_hash h;

	*n = gnu_open(e, &h) ? GNU_HEADER + 8 * (size_t)h.bloom_words + 4 * (size_t)h.n_buckets +
				       4 * gnu_chain_length(&h)
			     : 0;
}

/* Bernstein's hash, as the dynamic linker uses it. */
static uint32_t gnu_name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

bool rbsp_elf_gnu_hash_find(const struct rbsp_elf *e, const char *name, struct rbsp_symbol *out)
{
	uint32_t hash = gnu_name_hash(name), index;
	struct gnu_hash h;
	uint64_t bloom;

	if (!gnu_open(e, &h))
		return false;
	memcpy(&bloom, h.bloom + 8 * ((hash / 64) & (h.bloom_words - 1)), sizeof(bloom));
	if (!(bloom >> (hash % 64) & 1) || !(bloom >> ((hash >> (h.bloom_shift % 32)) % 64) & 1))
		return false;
	index = word_at(h.buckets, hash % h.n_buckets);
	if (index < h.first)
		return false;
	for (size_t i = index - h.first; i < h.n_chain; i++) {
		uint32_t w = word_at(h.chain, i);

		if ((w | 1) == (hash | 1) &&
		    rbsp_elf_symtab_get(rbsp_elf_dynsym(e), h.first + i, out) && out->defined &&
		    strcmp(out->name, name) == 0)
			return true;
		if (w & 1)
			break;
	}
	return false;
}
