/* Bounded reads of the target's heap through a page cache that lives for one decoding. */
#include "ruby/mem.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define PAGES 256u /* slots of the cache, a power of two */
#define BATCH 64   /* pages in one vectored read */

struct rbsp_mem_page {
	rbsp_addr addr;
	uint32_t serial;
	unsigned char byte[PAGE];
};

enum rbsp_status rbsp_mem_init(struct rbsp_mem *m, struct rbsp_target *target)
{
	*m = rbsp_mem_direct(target);
	m->page = calloc(PAGES, sizeof(*m->page));
	return m->page ? RBSP_OK : RBSP_E_NOMEM;
}

void rbsp_mem_fini(struct rbsp_mem *m)
{
	free(m->page);
	m->page = NULL;
}

void rbsp_mem_begin(struct rbsp_mem *m, unsigned budget)
{
	m->serial++;
	m->reads = 0;
	m->budget = budget;
	m->tape_short = false;
}

static struct rbsp_mem_page *slot_of(struct rbsp_mem *m, rbsp_addr page)
{
	uint64_t h = page / PAGE * 0x9e3779b97f4a7c15u;

	return &m->page[(h >> 32) & (PAGES - 1)];
}

static enum rbsp_status page_at(struct rbsp_mem *m, rbsp_addr page, const unsigned char **bytes)
{
	struct rbsp_mem_page *p = slot_of(m, page);
	enum rbsp_status st;

	*bytes = p->byte;
	if (p->addr == page && p->serial == m->serial)
		return RBSP_OK;
	if (m->reads >= m->budget)
		return RBSP_E_FAULT;
	m->reads++;
	p->addr = 0;
	st = rbsp_read(m->target, page, p->byte, PAGE);
	m->tape_short |= st == RBSP_E_TAPE;
	if (st != RBSP_OK)
		return st;
	p->addr = page;
	p->serial = m->serial;
	return RBSP_OK;
}

enum rbsp_status rbsp_mem_read(struct rbsp_mem *m, rbsp_addr addr, void *to, size_t n)
{
	unsigned char *out = to;

	if (addr < PAGE || addr > UINT64_MAX - n)
		return RBSP_E_FAULT;
	if (!m->page)
		return rbsp_read(m->target, addr, to, n);
	while (n) {
		rbsp_addr page = addr & ~(rbsp_addr)(PAGE - 1);
		size_t some = PAGE - (addr - page);
		const unsigned char *bytes;
		enum rbsp_status st = page_at(m, page, &bytes);

		if (st != RBSP_OK)
			return st;
		if (some > n)
			some = n;
		memcpy(out, bytes + (addr - page), some);
		out += some;
		addr += some;
		n -= some;
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_mem_word(struct rbsp_mem *m, rbsp_addr addr, uint64_t *to)
{
	return rbsp_mem_read(m, addr, to, sizeof(*to));
}

/* Read the pages that stand in these slots; a page that faults is left empty and the others go on.
 */
static void fill(struct rbsp_mem *m, struct rbsp_mem_page **slot, size_t n)
{
	struct rbsp_piece piece[BATCH];
	size_t from = 0;

	for (size_t i = 0; i < n; i++)
		piece[i] = (struct rbsp_piece){ slot[i]->addr, slot[i]->byte, PAGE };
	while (from < n) {
		size_t done = 0, whole;
		enum rbsp_status st =
			m->target->ops->readv(m->target, piece + from, n - from, &done);

		whole = st == RBSP_OK ? n - from : done / PAGE;
		if (from + whole < n)
			slot[from + whole]->addr = 0;
		from += whole + 1;
	}
}

void rbsp_mem_prefetch(struct rbsp_mem *m, const rbsp_addr *addr, size_t n)
{
	struct rbsp_mem_page *slot[BATCH];
	size_t used = 0;

	if (!m->page)
		return;
	for (size_t i = 0; i < n; i++) {
		rbsp_addr page = addr[i] & ~(rbsp_addr)(PAGE - 1);
		struct rbsp_mem_page *p = slot_of(m, page);

		/* A slot that holds a page of this decoding, also one of this batch, stays. */
		if (!page || (p->serial == m->serial && p->addr))
			continue;
		if (m->reads >= m->budget)
			break;
		m->reads++;
		p->addr = page;
		p->serial = m->serial;
		slot[used++] = p;
		if (used == BATCH) {
			fill(m, slot, used);
			used = 0;
		}
	}
	if (used)
		fill(m, slot, used);
}
