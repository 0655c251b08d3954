/* A tape as a target: what a process showed, moment by moment. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include <zlib.h>

#include "target/tape.h"
#include "target/tape_format.h"

/* What a page held from a moment on. */
struct version {
	uint32_t moment, content;
};

struct page {
	rbsp_addr addr;
	struct version *version; /* ascending moments */
	size_t n;
	UT_hash_handle hh;
};

/* A record whose payload is kept: maps, threads, images, captures. */
struct item {
	uint32_t moment, type, size;
	unsigned char *bytes;
	struct rbsp_elf *elf; /* of an image, opened when asked for */
};

struct tape {
	struct rbsp_target base;
	struct page *pages;
	unsigned char **content;
	uint32_t n_contents, cap_contents;
	struct item *item;
	size_t n_items, cap_items;
	uint32_t moment; /* captures handed out so far */
	size_t next;     /* item to look for the next capture from */
	struct rbsp_capture capture;
	rbsp_addr missing; /* first address asked for that is not here */
	bool is_missing;
};

static struct tape *tape_of(const struct rbsp_target *t)
{
	return (struct tape *)(uintptr_t)t;
}

/* The last item of a type up to this moment, from @p before on downwards; n_items: none. */
static const struct item *latest(const struct tape *t, uint32_t type)
{
	const struct item *found = NULL;

	for (size_t i = 0; i < t->n_items && t->item[i].moment <= t->moment; i++) {
		if (t->item[i].type == type)
			found = &t->item[i];
	}
	return found;
}

static enum rbsp_status tape_maps(struct rbsp_target *t, struct rbsp_maps *out,
				  struct rbsp_err *err)
{
	const struct item *it = latest(tape_of(t), RBSP_TAPE_MAPS);

	if (!it)
		return rbsp_fail(err, RBSP_E_TAPE, "the tape has no mappings");
	return rbsp_maps_parse((const char *)it->bytes, it->size, out, err);
}

static enum rbsp_status tape_threads(struct rbsp_target *t, int **tids, size_t *n,
				     struct rbsp_err *err)
{
	const struct item *it = latest(tape_of(t), RBSP_TAPE_THREADS);

	if (!it)
		return rbsp_fail(err, RBSP_E_TAPE, "the tape has no list of threads");
	*tids = malloc(it->size + 1);
	if (!*tids)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the list of threads");
	memcpy(*tids, it->bytes, it->size);
	*n = it->size / sizeof(**tids);
	return RBSP_OK;
}

static enum rbsp_status tape_pointer(struct rbsp_target *t, int tid, rbsp_addr *tp)
{
	const struct tape *tape = tape_of(t);
	struct rbsp_tape_pointer p, found = { .status = RBSP_E_NOT_FOUND };

	for (size_t i = 0; i < tape->n_items && tape->item[i].moment <= tape->moment; i++) {
		if (tape->item[i].type != RBSP_TAPE_POINTER || tape->item[i].size != sizeof(p))
			continue;
		memcpy(&p, tape->item[i].bytes, sizeof(p));
		if (p.tid == tid)
			found = p;
	}
	*tp = found.tp;
	return (enum rbsp_status)found.status;
}

static bool is_of_map(const struct rbsp_tape_image *im, const struct rbsp_map *m)
{
	return m->ino ? im->ino == m->ino && im->dev == m->dev : !im->ino && im->start == m->start;
}

static enum rbsp_status tape_image(struct rbsp_target *t, const struct rbsp_map *m,
				   const struct rbsp_elf **out, struct rbsp_err *err)
{
	struct tape *tape = tape_of(t);
	struct rbsp_tape_image head;
	enum rbsp_status st;

	for (size_t i = 0; i < tape->n_items; i++) {
		struct item *it = &tape->item[i];

		if (it->type != RBSP_TAPE_IMAGE || it->size < sizeof(head))
			continue;
		memcpy(&head, it->bytes, sizeof(head));
		if (!is_of_map(&head, m))
			continue;
		if (head.absent)
			return rbsp_fail(err, RBSP_E_NOT_FOUND,
					 "%s could not be opened when the tape was made", m->path);
		if (!it->elf) {
			st = rbsp_elf_open_bytes(it->bytes + sizeof(head), it->size - sizeof(head),
						 m->path, &it->elf, err);
			if (st != RBSP_OK)
				return st;
		}
		*out = it->elf;
		return RBSP_OK;
	}
	return rbsp_fail(err, RBSP_E_TAPE, "the tape has no image of %s", m->path);
}

static const struct version *find_version(const struct tape *t, rbsp_addr page)
{
	const struct version *found = NULL;
	struct page *p;

	HASH_FIND(hh, t->pages, &page, sizeof(page), p);
	for (size_t i = 0; p && i < p->n && p->version[i].moment <= t->moment; i++)
		found = &p->version[i];
	return found;
}

static enum rbsp_status tape_page(void *arg, rbsp_addr page, const unsigned char **bytes)
{
	struct tape *t = arg;
	const struct version *version = find_version(t, page);

	if (!version) {
		if (!t->is_missing)
			t->missing = page;
		t->is_missing = true;
		return RBSP_E_TAPE;
	}
	if (version->content == RBSP_TAPE_UNREADABLE)
		return RBSP_E_FAULT;
	*bytes = t->content[version->content];
	return RBSP_OK;
}

static enum rbsp_status read_piece(const struct rbsp_piece *v, size_t *done, rbsp_tape_page_fn page,
				   void *arg)
{
	unsigned char *to = v->to;
	size_t at = 0;

	while (at < v->n) {
		rbsp_addr base = (v->addr + at) & ~(rbsp_addr)(RBSP_TAPE_PAGE - 1);
		size_t skip = v->addr + at - base, some = RBSP_TAPE_PAGE - skip;
		const unsigned char *bytes;
		enum rbsp_status st = page(arg, base, &bytes);

		if (st != RBSP_OK)
			return st;
		some = some < v->n - at ? some : v->n - at;
		memcpy(to + at, bytes + skip, some);
		at += some;
		*done += some;
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_tape_readv(const struct rbsp_piece *v, size_t n, size_t *done,
				 rbsp_tape_page_fn page, void *arg)
{
	enum rbsp_status st = RBSP_OK;
	size_t total = 0;

	for (size_t i = 0; i < n && st == RBSP_OK; i++)
		st = read_piece(&v[i], &total, page, arg);
	if (done)
		*done = total;
	return st;
}

static enum rbsp_status tape_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	return rbsp_tape_readv(v, n, done, tape_page, tape_of(t));
}

static void tape_free(struct rbsp_target *t)
{
	struct tape *tape = tape_of(t);
	struct page *p, *next;

	HASH_ITER (hh, tape->pages, p, next) {
		HASH_DEL(tape->pages, p);
		free(p->version);
		free(p);
	}
	for (uint32_t i = 0; i < tape->n_contents; i++)
		free(tape->content[i]);
	free(tape->content);
	for (size_t i = 0; i < tape->n_items; i++) {
		rbsp_elf_close(tape->item[i].elf);
		free(tape->item[i].bytes);
	}
	free(tape->item);
	free(tape);
}

static const struct rbsp_target_ops tape_ops = {
	.maps = tape_maps,
	.threads = tape_threads,
	.readv = tape_readv,
	.thread_pointer = tape_pointer,
	.image = tape_image,
	.free = tape_free,
};

static enum rbsp_status add_content(struct tape *t, unsigned char *bytes, uint32_t size)
{
	unsigned char **bigger;

	if (size != RBSP_TAPE_PAGE)
		return RBSP_E_FORMAT;
	if (t->n_contents == t->cap_contents) {
		t->cap_contents = t->cap_contents ? 2 * t->cap_contents : 256;
		bigger = realloc(t->content, t->cap_contents * sizeof(*bigger));
		if (!bigger)
			return RBSP_E_NOMEM;
		t->content = bigger;
	}
	t->content[t->n_contents++] = bytes;
	return RBSP_OK;
}

static enum rbsp_status add_page(struct tape *t, const unsigned char *bytes, uint32_t size,
				 uint32_t moment)
{
	struct rbsp_tape_page rec;
	struct version *bigger;
	struct page *p;

	if (size != sizeof(rec))
		return RBSP_E_FORMAT;
	memcpy(&rec, bytes, sizeof(rec));
	if (rec.content != RBSP_TAPE_UNREADABLE && rec.content >= t->n_contents)
		return RBSP_E_FORMAT;
	HASH_FIND(hh, t->pages, &rec.addr, sizeof(rec.addr), p);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return RBSP_E_NOMEM;
		p->addr = rec.addr;
		HASH_ADD(hh, t->pages, addr, sizeof(p->addr), p);
		if (!p->hh.tbl) {
			free(p);
			return RBSP_E_NOMEM;
		}
	}
	bigger = realloc(p->version, (p->n + 1) * sizeof(*bigger));
	if (!bigger)
		return RBSP_E_NOMEM;
	p->version = bigger;
	p->version[p->n++] = (struct version){ moment, rec.content };
	return RBSP_OK;
}

static enum rbsp_status add_item(struct tape *t, uint32_t type, unsigned char *bytes, uint32_t size,
				 uint32_t moment)
{
	struct item *bigger;

	if (t->n_items == t->cap_items) {
		t->cap_items = t->cap_items ? 2 * t->cap_items : 64;
		bigger = realloc(t->item, t->cap_items * sizeof(*bigger));
		if (!bigger)
			return RBSP_E_NOMEM;
		t->item = bigger;
	}
	t->item[t->n_items++] = (struct item){ moment, type, size, bytes, NULL };
	return RBSP_OK;
}

/* Take in one record. @p bytes is kept (NULL'ed) or stays the caller's. */
static enum rbsp_status add_record(struct tape *t, const struct rbsp_tape_head *h,
				   unsigned char **bytes, uint32_t *moment)
{
	struct rbsp_tape_process proc;
	enum rbsp_status st;

	switch (h->type) {
	case RBSP_TAPE_PROCESS:
		if (h->size != sizeof(proc))
			return RBSP_E_FORMAT;
		memcpy(&proc, *bytes, sizeof(proc));
		if (memcmp(proc.magic, RBSP_TAPE_MAGIC, sizeof(proc.magic)) != 0 ||
		    proc.version != RBSP_TAPE_VERSION)
			return RBSP_E_FORMAT;
		t->base.pid = proc.pid;
		return RBSP_OK;
	case RBSP_TAPE_PAGE_AT:
		return add_page(t, *bytes, h->size, *moment);
	case RBSP_TAPE_CONTENT:
		st = add_content(t, *bytes, h->size);
		break;
	case RBSP_TAPE_CAPTURE:
		++*moment;
		if (h->size < sizeof(struct rbsp_capture))
			return RBSP_E_FORMAT;
		st = add_item(t, h->type, *bytes, h->size, *moment);
		break;
	default:
		st = add_item(t, h->type, *bytes, h->size, *moment);
	}
	if (st == RBSP_OK)
		*bytes = NULL;
	return st;
}

static enum rbsp_status read_records(struct tape *t, gzFile f)
{
	enum rbsp_status st = RBSP_OK;
	struct rbsp_tape_head h;
	uint32_t moment = 0;
	int got;

	while (st == RBSP_OK && (got = gzread(f, &h, sizeof(h))) > 0) {
		unsigned char *bytes;

		if (got != (int)sizeof(h) || h.size > RBSP_TAPE_RECORD_MAX)
			return RBSP_E_FORMAT;
		bytes = malloc(h.size + 1u);
		if (!bytes)
			return RBSP_E_NOMEM;
		if (gzread(f, bytes, h.size) != (int)h.size)
			st = RBSP_E_FORMAT;
		else
			st = add_record(t, &h, &bytes, &moment);
		free(bytes);
	}
	return st == RBSP_OK && (!gzeof(f) || !t->base.pid) ? RBSP_E_FORMAT : st;
}

enum rbsp_status rbsp_tape_open(const char *path, struct rbsp_target **out, struct rbsp_err *err)
{
	struct tape *t = calloc(1, sizeof(*t));
	gzFile f = gzopen(path, "rb");
	enum rbsp_status st;

	if (!t || !f) {
		st = rbsp_fail(err, RBSP_E_SYS, "cannot open the tape %s", path);
	} else {
		t->base.ops = &tape_ops;
		st = read_records(t, f);
		if (st != RBSP_OK)
			rbsp_fail(err, st, "%s is not a tape, or it is damaged", path);
	}
	if (f)
		gzclose(f);
	if (st == RBSP_OK)
		*out = &t->base;
	else if (t)
		tape_free(&t->base);
	return st;
}

const struct rbsp_capture *rbsp_tape_next(struct rbsp_target *target)
{
	struct tape *t = tape_of(target);

	for (; t->next < t->n_items; t->next++) {
		struct item *it = &t->item[t->next];

		if (it->type != RBSP_TAPE_CAPTURE)
			continue;
		memcpy(&t->capture, it->bytes, sizeof(t->capture));
		t->capture.data = it->bytes + sizeof(t->capture);
		if (t->capture.size > it->size - sizeof(t->capture))
			t->capture.size = it->size - (uint32_t)sizeof(t->capture);
		for (size_t i = 0; i < RBSP_RANGES; i++) {
			struct rbsp_range *r = &t->capture.range[i];

			if (r->off > t->capture.size || r->len > t->capture.size - r->off)
				*r = (struct rbsp_range){ 0 };
		}
		t->moment = it->moment;
		t->next++;
		return &t->capture;
	}
	return NULL;
}

enum rbsp_status rbsp_tape_missing(const struct rbsp_target *target, struct rbsp_err *err)
{
	const struct tape *t = tape_of(target);

	if (!t->is_missing)
		return RBSP_OK;
	return rbsp_fail(
		err, RBSP_E_TAPE,
		"the tape lacks the page of 0x%lx at capture %u: record it again with scripts/tapes",
		(unsigned long)t->missing, t->moment);
}
