/* Folded stacks: `root;..;leaf COUNT`, sorted as `LC_ALL=C sort` does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/labels.h"
#include "output/output.h"
#include "profile/trie.h"

/* Lines go out in pieces of whole lines, so that a disk that fills up costs no half line. */
#define PIECE_BYTES 65536

struct folded {
	struct rbsp_sink sink;
	FILE *out;
	struct rbsp_labels *labels;
	struct rbsp_trie *trie;
	struct rbsp_buf piece;
};

static enum rbsp_status folded_sample(struct rbsp_sink *self, const struct rbsp_sample *s)
{
	struct folded *f = (struct folded *)self;
	const uint32_t *stack;
	size_t n;
	enum rbsp_status st = rbsp_labels_stack(f->labels, s, &stack, &n);

	return st == RBSP_OK ? rbsp_trie_add(f->trie, stack, n, 1) : st;
}

/* What stands behind a key in its lines. */
static const char *tail_of(const struct rbsp_trie_item *item, char *buf, size_t size)
{
	if (!item->count)
		return ";";
	snprintf(buf, size, " %" PRIu64 "\n", item->count);
	return buf;
}

static int by_line(const struct rbsp_trie_item *a, const struct rbsp_trie_item *b, void *arg)
{
	const struct folded *f = arg;
	const unsigned char *p = (const unsigned char *)rbsp_labels_text(f->labels, a->key);
	const unsigned char *q = (const unsigned char *)rbsp_labels_text(f->labels, b->key);
	char pbuf[32], qbuf[32];

	while (*p && *p == *q) {
		p++;
		q++;
	}
	if (!*p)
		p = (const unsigned char *)tail_of(a, pbuf, sizeof(pbuf));
	if (!*q)
		q = (const unsigned char *)tail_of(b, qbuf, sizeof(qbuf));
	return strcmp((const char *)p, (const char *)q);
}

/* After a failed write of a regular file: end it where its last whole line ends. */
static void cut_half_line(struct folded *f, off_t start)
{
	int fd = fileno(f->out);
	struct stat st;
	size_t kept;

	__fpurge(f->out);
	if (start < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= start)
		return;
	kept = (size_t)(st.st_size - start);
	if (kept > f->piece.len)
		return;
	while (kept && f->piece.data[kept - 1] != '\n')
		kept--;
	if (ftruncate(fd, start + (off_t)kept) != 0)
		rbsp_log(RBSP_LOG_WARN, "the last line of the output may be cut");
}

static enum rbsp_status write_piece(struct folded *f)
{
	off_t start = ftello(f->out);
	int saved;

	if (f->piece.failed)
		return RBSP_E_NOMEM;
	if (fwrite(f->piece.data, 1, f->piece.len, f->out) == f->piece.len && fflush(f->out) == 0) {
		rbsp_buf_clear(&f->piece);
		return RBSP_OK;
	}
	saved = errno;
	cut_half_line(f, start);
	errno = saved;
	return RBSP_E_OUTPUT;
}

static enum rbsp_status add_line(void *arg, const uint32_t *keys, size_t n, uint64_t count)
{
	struct folded *f = arg;

	for (size_t i = 0; i < n; i++) {
		if (i)
			rbsp_buf_add(&f->piece, ";", 1);
		rbsp_buf_str(&f->piece, rbsp_labels_text(f->labels, keys[i]));
	}
	rbsp_buf_printf(&f->piece, " %" PRIu64 "\n", count);
	return f->piece.len >= PIECE_BYTES || f->piece.failed ? write_piece(f) : RBSP_OK;
}

static enum rbsp_status folded_finish(struct rbsp_sink *self, struct rbsp_err *err)
{
	struct folded *f = (struct folded *)self;
	enum rbsp_status st = rbsp_trie_walk(f->trie, by_line, add_line, f);

	if (st == RBSP_OK && f->piece.len)
		st = write_piece(f);
	if (st == RBSP_OK)
		return rbsp_output_flush(f->out, err);
	return rbsp_fail(err, st,
			 st == RBSP_E_OUTPUT ? "cannot write the stacks"
					     : "no memory to write the stacks");
}

static void folded_free(struct rbsp_sink *self)
{
	struct folded *f = (struct folded *)self;

	rbsp_labels_free(f->labels);
	rbsp_trie_free(f->trie);
	rbsp_buf_fini(&f->piece);
	free(f);
}

static const struct rbsp_sink_ops folded_ops = {
	.sample = folded_sample,
	.finish = folded_finish,
	.free = folded_free,
};

enum rbsp_status rbsp_folded_open(FILE *out, const struct rbsp_output_options *o,
				  const struct rbsp_frames *frames, struct rbsp_sink **sink,
				  struct rbsp_err *err)
{
	struct folded *f = calloc(1, sizeof(*f));

	if (!f)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the profile");
	*f = (struct folded){ .sink = { &folded_ops }, .out = out };
	f->labels = rbsp_labels_new(frames, o, RBSP_TEXT_FOLDED);
	f->trie = rbsp_trie_new();
	if (!f->labels || !f->trie) {
		folded_free(&f->sink);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the profile");
	}
	*sink = &f->sink;
	return RBSP_OK;
}
