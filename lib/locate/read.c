/* Batched reads of the target, and what makes an address plausible. */
#include "locate/internal.h"

#include <stdlib.h>

/* Pieces in one call. */
#define PIECES 256

/** The next pieces with an address, at most PIECES; *next is where to go on. */
static size_t gather(const struct rbsp_piece *v, size_t n, bool *ok, size_t *next,
		     struct rbsp_piece *piece, size_t *of)
{
	size_t k = 0, i = *next;

	for (; i < n && k < PIECES; i++) {
		ok[i] = false;
		if (!v[i].addr)
			continue;
		piece[k] = v[i];
		of[k++] = i;
	}
	*next = i;
	return k;
}

enum rbsp_status rbsp_locate_read_many(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				       bool *ok)
{
	struct rbsp_piece piece[PIECES];
	size_t of[PIECES], next = 0, batch;

	while ((batch = gather(v, n, ok, &next, piece, of)) > 0) {
		for (size_t from = 0; from < batch;) {
			size_t done = 0;
			enum rbsp_status st = t->ops->readv(t, piece + from, batch - from, &done);

			if (rbsp_locate_hard(st))
				return st;
			for (; from < batch && (st == RBSP_OK || done >= piece[from].n); from++) {
				ok[of[from]] = true;
				done -= st == RBSP_OK ? 0 : piece[from].n;
			}
			from += st != RBSP_OK; /* the piece that faulted */
		}
	}
	return RBSP_OK;
}

bool rbsp_locate_plausible(const struct rbsp_maps *maps, rbsp_addr a, uint64_t n)
{
	const struct rbsp_map *m;

	if (!a || a % 8)
		return false;
	m = rbsp_maps_find(maps, a);
	return m && m->read && m->write && n <= m->end - a;
}

/* A writable segment larger than this is not searched: libruby's have 100 to 200 KiB. */
#define DATA_MAX (16u << 20)

enum rbsp_status rbsp_locate_data(struct rbsp_finder *f,
				  enum rbsp_status (*fn)(struct rbsp_finder *f, rbsp_addr at,
							 const uint64_t *word, size_t n, void *arg),
				  void *arg)
{
	const struct rbsp_elf_segment *seg;
	size_t n = rbsp_elf_segments(f->l->elf, &seg);
	enum rbsp_status st = RBSP_E_NOT_FOUND;

	for (size_t i = 0; i < n && st == RBSP_E_NOT_FOUND; i++) {
		rbsp_addr start = (seg[i].vaddr + f->l->bias + 7) & ~7ull;
		rbsp_addr end = (seg[i].vaddr + seg[i].memsz + f->l->bias) & ~7ull;
		uint64_t *word;

		if (!seg[i].write || end <= start || end - start > DATA_MAX)
			continue;
		word = malloc(end - start);
		if (!word)
			return RBSP_E_NOMEM;
		st = rbsp_read(f->t, start, word, end - start);
		st = st == RBSP_OK        ? fn(f, start, word, (end - start) / 8, arg)
		     : st == RBSP_E_FAULT ? RBSP_E_NOT_FOUND
					  : st;
		free(word);
	}
	return st;
}
