/* Bounds of functions from .eh_frame_hdr and .eh_frame: lengths only, no CFI is interpreted. */
#include "elf/image.h"

#include <stdlib.h>
#include <string.h>

/* DWARF pointer encodings (LSB, "DWARF Exception Header Encoding"). */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* Bytes not yet read, and the address of the first of them. */
struct cursor {
	const unsigned char *p;
	size_t n;
	uint64_t vaddr;
};

static bool cursor_at(const struct rbsp_elf *e, uint64_t vaddr, struct cursor *c)
{
	c->p = rbsp_elf_span(e, vaddr, &c->n);
	c->vaddr = vaddr;
	return c->p;
}

static bool take(struct cursor *c, void *to, size_t n)
{
	if (n > c->n)
		return false;
	if (to)
		memcpy(to, c->p, n);
	c->p += n;
	c->n -= n;
	c->vaddr += n;
	return true;
}

static bool take_leb(struct cursor *c, bool is_signed, uint64_t *out)
{
	unsigned shift = 0;
	unsigned char byte;

	*out = 0;
	do {
		if (!take(c, &byte, 1) || shift > 63)
			return false;
		*out |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		*out |= UINT64_MAX << shift;
	return true;
}

/* A number in one of the formats, without its base. */
static bool take_format(struct cursor *c, unsigned encoding, uint64_t *out)
{
	union {
		uint16_t u2;
		uint32_t u4;
		int16_t s2;
		int32_t s4;
	} v;

	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return take(c, out, sizeof(*out));
	case PE_ULEB128:
	case PE_SLEB128:
		return take_leb(c, (encoding & PE_FORMAT) == PE_SLEB128, out);
	case PE_UDATA2:
		return take(c, &v.u2, 2) && (*out = v.u2, true);
	case PE_UDATA4:
		return take(c, &v.u4, 4) && (*out = v.u4, true);
	case PE_SDATA2:
		return take(c, &v.s2, 2) && (*out = (uint64_t)(int64_t)v.s2, true);
	case PE_SDATA4:
		return take(c, &v.s4, 4) && (*out = (uint64_t)(int64_t)v.s4, true);
	default:
		return false;
	}
}

/* An encoded address. @data: what datarel counts from */
static bool take_encoded(struct cursor *c, unsigned encoding, uint64_t data, uint64_t *out)
{
	uint64_t field = c->vaddr;

	if (encoding == PE_OMIT || (encoding & PE_INDIRECT) || !take_format(c, encoding, out))
		return false;
	switch (encoding & PE_BASE) {
	case 0:
		return true;
	case PE_PCREL:
		*out += field;
		return true;
	case PE_DATAREL:
		*out += data;
		return data != 0;
	default:
		return false;
	}
}

/* The body of a CIE or FDE. */
struct record {
	struct cursor body; /* behind the id field, to the record's end */
	uint64_t cie;       /* address of its CIE; 0: it is one itself */
	uint64_t next;      /* address of the record behind it */
};

/* @return false: the terminator, or malformed */
static bool read_record(const struct rbsp_elf *e, uint64_t vaddr, struct record *r)
{
	uint32_t length32, id32;
	uint64_t length, id, id_at;
	struct cursor c;

	if (!cursor_at(e, vaddr, &c) || !take(&c, &length32, sizeof(length32)) || length32 == 0)
		return false;
	length = length32;
	if (length32 == UINT32_MAX && !take(&c, &length, sizeof(length)))
		return false;
	if (length > c.n)
		return false;
	c.n = (size_t)length;
	r->next = c.vaddr + length;
	id_at = c.vaddr;
	if (length32 == UINT32_MAX) {
		if (!take(&c, &id, sizeof(id)))
			return false;
	} else {
		if (!take(&c, &id32, sizeof(id32)))
			return false;
		id = id32;
	}
	r->cie = id ? id_at - id : 0;
	r->body = c;
	return true;
}

#define AUGMENTATION_MAX 16

/* How a CIE's FDEs encode their addresses. */
static bool cie_encoding(const struct rbsp_elf *e, uint64_t vaddr, unsigned *encoding)
{
	char augmentation[AUGMENTATION_MAX];
	struct record r;
	uint64_t skip;
	unsigned char version, byte;
	size_t n = 0;

	if (!read_record(e, vaddr, &r) || r.cie || !take(&r.body, &version, 1) ||
	    (version != 1 && version != 3))
		return false;
	do {
		if (n == sizeof(augmentation) || !take(&r.body, &augmentation[n], 1))
			return false;
	} while (augmentation[n++]);
	*encoding = PE_ABSPTR;
	if (augmentation[0] != 'z')
		return augmentation[0] == '\0';
	/* Code and data alignment, return address register, length of the augmentation's data. */
	if (!take_leb(&r.body, false, &skip) || !take_leb(&r.body, true, &skip))
		return false;
	if (!(version == 1 ? take(&r.body, NULL, 1) : take_leb(&r.body, false, &skip)) ||
	    !take_leb(&r.body, false, &skip))
		return false;
	for (const char *a = augmentation + 1; *a; a++) {
		switch (*a) {
		case 'R':
			if (!take(&r.body, &byte, 1))
				return false;
			*encoding = byte;
			return true;
		case 'L':
			if (!take(&r.body, NULL, 1))
				return false;
			break;
		case 'P':
			if (!take(&r.body, &byte, 1) || !take_format(&r.body, byte, &skip))
				return false;
			break;
		case 'S': /* a signal's frame */
		case 'B': /* aarch64: return addresses signed with the B key */
		case 'G': /* aarch64: memory tagging */
			break;
		default: /* its data's length is not known, and R may lie behind it */
			return false;
		}
	}
	return true;
}

/* Range of an FDE's record. */
static bool fde_range(const struct rbsp_elf *e, struct record *r, struct rbsp_fde *out)
{
	unsigned encoding;
	uint64_t length;

	if (!r->cie || !cie_encoding(e, r->cie, &encoding) ||
	    !take_encoded(&r->body, encoding, 0, &out->start) ||
	    !take_format(&r->body, encoding, &length))
		return false;
	return length > 0 && !__builtin_add_overflow(out->start, length, &out->end);
}

/* .eh_frame_hdr. */
struct header {
	uint64_t vaddr, eh_frame;
	const unsigned char
		*table; /* n pairs of int32: function, FDE; NULL: none that can be searched */
	size_t n;
};

static bool read_header(const struct rbsp_elf *e, struct header *h)
{
	unsigned char encodings[4]; /* version, .eh_frame's address, number of entries, table */
	struct cursor c;
	uint64_t n;

	*h = (struct header){ .vaddr = e->info.eh_frame_hdr };
	if (!h->vaddr || !cursor_at(e, h->vaddr, &c))
		return false;
	if (c.n > e->info.eh_frame_hdr_size)
		c.n = (size_t)e->info.eh_frame_hdr_size;
	if (!take(&c, encodings, sizeof(encodings)) || encodings[0] != 1 ||
	    !take_encoded(&c, encodings[1], h->vaddr, &h->eh_frame))
		return false;
	if (encodings[3] == (PE_DATAREL | PE_SDATA4) &&
	    take_encoded(&c, encodings[2], h->vaddr, &n) && n > 0 && n <= c.n / 8) {
		h->table = c.p;
		h->n = (size_t)n;
	}
	return true;
}

static uint64_t table_word(const struct header *h, size_t entry, size_t which)
{
	int32_t w;

	memcpy(&w, h->table + 8 * entry + 4 * which, sizeof(w));
	return h->vaddr + (uint64_t)(int64_t)w;
}

static int by_start(const void *va, const void *vb)
{
	const struct rbsp_fde *a = va, *b = vb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Every FDE of .eh_frame, where the header has no table that can be searched. */
static void build_linear(const struct rbsp_elf *e, uint64_t vaddr)
{
	struct rbsp_elf_lazy *l = e->lazy;
	size_t cap = 0;
	struct record r;

	l->linear_done = true;
	for (; read_record(e, vaddr, &r); vaddr = r.next) {
		struct rbsp_fde fde;

		if (!fde_range(e, &r, &fde))
			continue;
		if (l->n_linear == cap) {
			size_t bigger = cap ? 2 * cap : 256;
			struct rbsp_fde *p = reallocarray(l->linear, bigger, sizeof(*p));

			if (!p)
				break;
			l->linear = p;
			cap = bigger;
		}
		l->linear[l->n_linear++] = fde;
	}
	if (l->n_linear)
		qsort(l->linear, l->n_linear, sizeof(*l->linear), by_start);
}

static bool linear_at(const struct rbsp_elf *e, uint64_t vaddr, struct rbsp_fde *out)
{
	const struct rbsp_elf_lazy *l = e->lazy;
	size_t low = 0, high = l->n_linear;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->linear[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return false;
	*out = l->linear[low - 1];
	return true;
}

static bool table_at(const struct rbsp_elf *e, const struct header *h, uint64_t vaddr,
		     struct rbsp_fde *out)
{
	size_t low = 0, high = h->n;
	struct record r;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (table_word(h, mid, 0) <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && read_record(e, table_word(h, low - 1, 1), &r) && fde_range(e, &r, out);
}

bool rbsp_elf_fde_at(const struct rbsp_elf *e, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	struct header h;
	struct rbsp_fde fde;

	if (!read_header(e, &h))
		return false;
	if (!h.table && !e->lazy->linear_done)
		build_linear(e, h.eh_frame);
	if (!(h.table ? table_at(e, &h, vaddr, &fde) : linear_at(e, vaddr, &fde)) ||
	    vaddr < fde.start || vaddr >= fde.end)
		return false;
	*start = fde.start;
	*end = fde.end;
	return true;
}

static int by_value(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

static void build_fdes(const struct rbsp_elf *e)
{
	struct rbsp_elf_lazy *l = e->lazy;
	struct header h;
	size_t n, kept = 0;

	l->fdes_done = true;
	if (!read_header(e, &h))
		return;
	if (!h.table && !l->linear_done)
		build_linear(e, h.eh_frame);
	n = h.table ? h.n : l->n_linear;
	l->fde = n ? calloc(n, sizeof(*l->fde)) : NULL;
	if (!l->fde)
		return;
	for (size_t i = 0; i < n; i++)
		l->fde[i] = h.table ? table_word(&h, i, 0) : l->linear[i].start;
	qsort(l->fde, n, sizeof(*l->fde),
	      by_value); /* linkers sort the table; others' tables are not trusted */
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || l->fde[i] != l->fde[kept - 1])
			l->fde[kept++] = l->fde[i];
	}
	l->n_fde = kept;
}

size_t rbsp_elf_fdes(const struct rbsp_elf *e, const uint64_t **out)
{
	if (!e->lazy->fdes_done)
		build_fdes(e);
	*out = e->lazy->fde;
	return e->lazy->n_fde;
}

bool rbsp_elf_eh_frame(const struct rbsp_elf *e, uint64_t *vaddr, size_t *n)
{
	struct header h;
	struct record r;
	uint64_t end;
	size_t have;

	if (!read_header(e, &h) || !rbsp_elf_span(e, h.eh_frame, &have))
		return false;
	for (end = h.eh_frame; read_record(e, end, &r);)
		end = r.next;
	end += sizeof(uint32_t); /* the terminator */
	*vaddr = h.eh_frame;
	*n = end - h.eh_frame < have ? (size_t)(end - h.eh_frame) : have;
	return true;
}
