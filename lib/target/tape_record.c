/* Recording a tape: a target that passes on and writes down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/hash.h"
#include <zlib.h>

#include "base/buf.h"
#include "target/tape.h"
#include "target/tape_format.h"

/* A page's content, once; found by a hash of its bytes and compared. */
struct content {
	uint64_t hash;
	uint32_t id;
	unsigned char bytes[RBSP_TAPE_PAGE];
	struct content *older; /* in the list of those whose hash another content has taken */
	UT_hash_handle hh;
};

/*
 * What a page held when it was last written down. Within the moment of one capture it is read only
 * once, so that a target that runs on cannot show two states of a page where the tape has room for
 * one. Locating (moment 0) reads afresh: it tries again until what it sees fits together.
 */
struct last {
	rbsp_addr page;
	uint32_t moment;
	uint32_t id;             /* of the content, or RBSP_TAPE_UNREADABLE */
	struct content *content; /* NULL: unreadable */
	UT_hash_handle hh;
};

struct image {
	uint64_t dev, ino, start;
};

struct recorder {
	struct rbsp_target base;
	struct rbsp_target *live;
	gzFile file;
	char *path;
	bool failed;
	struct content *contents, *shadowed;
	uint32_t n_contents;
	uint32_t moment; /* captures added so far */
	struct last *last;
	struct image *image;
	size_t n_images;
};

static struct recorder *recorder_of(struct rbsp_target *t)
{
	return (struct recorder *)t;
}

static void put(struct recorder *r, uint32_t type, const void *a, size_t n_a, const void *b,
		size_t n_b)
{
	struct rbsp_tape_head head = { type, (uint32_t)(n_a + n_b) };

	if (n_a + n_b > RBSP_TAPE_RECORD_MAX ||
	    gzwrite(r->file, &head, sizeof(head)) != (int)sizeof(head) ||
	    (n_a && gzwrite(r->file, a, (unsigned)n_a) != (int)n_a) ||
	    (n_b && gzwrite(r->file, b, (unsigned)n_b) != (int)n_b))
		r->failed = true;
}

static enum rbsp_status record_maps(struct rbsp_target *t, struct rbsp_maps *out,
				    struct rbsp_err *err)
{
	struct recorder *r = recorder_of(t);
	enum rbsp_status st = r->live->ops->maps(r->live, out, err);
	struct rbsp_buf text = { 0 };

	if (st != RBSP_OK)
		return st;
	for (size_t i = 0; i < out->n; i++) {
		const struct rbsp_map *m = &out->map[i];

		rbsp_buf_printf(&text, "%lx-%lx %c%c%c%c %08lx %02x:%02x %lu %s\n",
				(unsigned long)m->start, (unsigned long)m->end, m->read ? 'r' : '-',
				m->write ? 'w' : '-', m->exec ? 'x' : '-', m->shared ? 's' : 'p',
				(unsigned long)m->offset, major(m->dev), minor(m->dev),
				(unsigned long)m->ino, m->path);
	}
	r->failed |= text.failed;
	put(r, RBSP_TAPE_MAPS, text.data, text.len, NULL, 0);
	rbsp_buf_fini(&text);
	return st;
}

static enum rbsp_status record_threads(struct rbsp_target *t, int **tids, size_t *n,
				       struct rbsp_err *err)
{
	struct recorder *r = recorder_of(t);
	enum rbsp_status st = r->live->ops->threads(r->live, tids, n, err);

	if (st == RBSP_OK)
		put(r, RBSP_TAPE_THREADS, *tids, *n * sizeof(**tids), NULL, 0);
	return st;
}

static enum rbsp_status record_pointer(struct rbsp_target *t, int tid, rbsp_addr *tp)
{
	struct recorder *r = recorder_of(t);
	struct rbsp_tape_pointer p = { .tid = tid };

	p.status = (int32_t)r->live->ops->thread_pointer(r->live, tid, tp);
	p.tp = p.status == RBSP_OK ? *tp : 0;
	put(r, RBSP_TAPE_POINTER, &p, sizeof(p), NULL, 0);
	return (enum rbsp_status)p.status;
}

static bool image_is_known(struct recorder *r, const struct rbsp_map *m)
{
	struct image key = { m->ino ? m->dev : 0, m->ino, m->ino ? 0 : m->start }, *bigger;

	for (size_t i = 0; i < r->n_images; i++) {
		if (memcmp(&r->image[i], &key, sizeof(key)) == 0)
			return true;
	}
	bigger = realloc(r->image, (r->n_images + 1) * sizeof(*bigger));
	if (!bigger) {
		r->failed = true;
		return true;
	}
	r->image = bigger;
	r->image[r->n_images++] = key;
	return false;
}

static enum rbsp_status record_image(struct rbsp_target *t, const struct rbsp_map *m,
				     const struct rbsp_elf **out, struct rbsp_err *err)
{
	struct recorder *r = recorder_of(t);
	enum rbsp_status st = r->live->ops->image(r->live, m, out, err);
	struct rbsp_tape_image head = { m->dev, m->ino, m->start, st != RBSP_OK, "" };
	void *bytes = NULL;
	size_t n = 0;

	if (image_is_known(r, m))
		return st;
	snprintf(head.name, sizeof(head.name), "%s", m->path);
	if (st == RBSP_OK && rbsp_elf_skeleton(*out, &bytes, &n) != RBSP_OK)
		r->failed = true;
	put(r, RBSP_TAPE_IMAGE, &head, sizeof(head), bytes, n);
	free(bytes);
	return st;
}

static uint64_t hash_of(const unsigned char *p)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325), w;

	for (size_t i = 0; i < RBSP_TAPE_PAGE; i += sizeof(w)) {
		memcpy(&w, p + i, sizeof(w));
		h = (h ^ w) * UINT64_C(0x100000001b3);
		h ^= h >> 29;
	}
	return h;
}

/* A content, written down if it is new. NULL: out of memory. */
static struct content *content_of(struct recorder *r, const unsigned char *bytes)
{
	uint64_t hash = hash_of(bytes);
	struct content *c;

	HASH_FIND(hh, r->contents, &hash, sizeof(hash), c);
	if (c && memcmp(c->bytes, bytes, RBSP_TAPE_PAGE) == 0)
		return c;
	if (c) { /* another content with this hash: the newer one is found from now on */
		HASH_DEL(r->contents, c);
		c->older = r->shadowed;
		r->shadowed = c;
	}
	c = malloc(sizeof(*c));
	if (!c)
		return NULL;
	c->hash = hash;
	c->id = r->n_contents++;
	memcpy(c->bytes, bytes, RBSP_TAPE_PAGE);
	HASH_ADD(hh, r->contents, hash, sizeof(hash), c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	put(r, RBSP_TAPE_CONTENT, bytes, RBSP_TAPE_PAGE, NULL, 0);
	return c;
}

static struct last *last_of(struct recorder *r, rbsp_addr page)
{
	struct last *l;

	HASH_FIND(hh, r->last, &page, sizeof(page), l);
	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->page = page;
	l->moment = l->id = UINT32_MAX - 1; /* neither is ever used */
	HASH_ADD(hh, r->last, page, sizeof(page), l);
	if (l->hh.tbl)
		return l;
	free(l);
	return NULL;
}

/* One page, read once in a moment and written down if it is not what it was. */
static enum rbsp_status read_page(void *arg, rbsp_addr page, const unsigned char **bytes)
{
	struct recorder *r = arg;
	struct last *l = last_of(r, page);
	unsigned char now[RBSP_TAPE_PAGE];
	struct rbsp_tape_page rec = { page, RBSP_TAPE_UNREADABLE };
	enum rbsp_status st;

	if (!l)
		return RBSP_E_NOMEM;
	if (l->moment != r->moment || r->moment == 0) {
		st = rbsp_read(r->live, page, now, sizeof(now));
		if (st == RBSP_E_GONE)
			return st;
		l->content = st == RBSP_OK ? content_of(r, now) : NULL;
		if (st == RBSP_OK && !l->content)
			return RBSP_E_NOMEM;
		rec.content = l->content ? l->content->id : RBSP_TAPE_UNREADABLE;
		if (rec.content != l->id)
			put(r, RBSP_TAPE_PAGE_AT, &rec, sizeof(rec), NULL, 0);
		l->id = rec.content;
		l->moment = r->moment;
	}
	*bytes = l->content ? l->content->bytes : NULL;
	return l->content ? RBSP_OK : RBSP_E_FAULT;
}

static enum rbsp_status record_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				     size_t *done)
{
	return rbsp_tape_readv(v, n, done, read_page, recorder_of(t));
}

void rbsp_tape_add_capture(struct rbsp_target *t, const struct rbsp_capture *c)
{
	put(recorder_of(t), RBSP_TAPE_CAPTURE, c, sizeof(*c), c->data, c->size);
	recorder_of(t)->moment++;
}

enum rbsp_status rbsp_tape_finish(struct rbsp_target *t, struct rbsp_err *err)
{
	struct recorder *r = recorder_of(t);

	if (r->file && gzclose(r->file) != Z_OK)
		r->failed = true;
	r->file = NULL;
	return r->failed ? rbsp_fail(err, RBSP_E_OUTPUT, "cannot write the tape %s", r->path)
			 : RBSP_OK;
}

static void record_free(struct rbsp_target *t)
{
	struct recorder *r = recorder_of(t);
	struct content *c, *next_c;
	struct last *l, *next_l;

	if (r->file)
		gzclose(r->file);
	HASH_ITER (hh, r->contents, c, next_c) {
		HASH_DEL(r->contents, c);
		free(c);
	}
	for (c = r->shadowed; c; c = next_c) {
		next_c = c->older;
		free(c);
	}
	HASH_ITER (hh, r->last, l, next_l) {
		HASH_DEL(r->last, l);
		free(l);
	}
	free(r->image);
	free(r->path);
	free(r);
}

static const struct rbsp_target_ops record_ops = {
	.maps = record_maps,
	.threads = record_threads,
	.readv = record_readv,
	.thread_pointer = record_pointer,
	.image = record_image,
	.free = record_free,
};

enum rbsp_status rbsp_tape_record(const char *path, struct rbsp_target *live,
				  struct rbsp_target **out, struct rbsp_err *err)
{
	struct rbsp_tape_process head = { RBSP_TAPE_MAGIC, RBSP_TAPE_VERSION, live->pid };
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r || !(r->path = strdup(path))) {
		free(r);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for a tape");
	}
	r->base = (struct rbsp_target){ &record_ops, live->pid };
	r->live = live;
	r->file = gzopen(path, "wb9");
	if (!r->file) {
		record_free(&r->base);
		return rbsp_fail(err, RBSP_E_OUTPUT, "cannot create the tape %s", path);
	}
	put(r, RBSP_TAPE_PROCESS, &head, sizeof(head), NULL, 0);
	*out = &r->base;
	return RBSP_OK;
}
