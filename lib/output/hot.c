/* The table of the hottest frames: counts samples by the text of their frames while they pass. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/labels.h"
#include "output/output.h"

struct count {
	uint64_t self, total;
	uint64_t last; /* number of the last sample that was counted in total: recursion counts once
			*/
};

struct hot {
	struct rbsp_sink sink;
	struct rbsp_sink *next; /* NULL: none */
	struct rbsp_labels *labels;
	struct count *count; /* by label */
	size_t cap;
	uint64_t samples;
};

static enum rbsp_status count_stack(struct hot *h, const struct rbsp_sample *s)
{
	const uint32_t *stack;
	size_t n, labels;
	enum rbsp_status st = rbsp_labels_stack(h->labels, s, &stack, &n);

	if (st != RBSP_OK)
		return st;
	labels = rbsp_labels_count(h->labels);
	if (labels >= h->cap) {
		size_t cap = 2 * (labels + 1);
		struct count *p = realloc(h->count, cap * sizeof(*p));

		if (!p)
			return RBSP_E_NOMEM;
		memset(p + h->cap, 0, (cap - h->cap) * sizeof(*p));
		h->count = p;
		h->cap = cap;
	}
	h->samples++;
	for (size_t i = 0; i < n; i++) {
		struct count *c = &h->count[stack[i]];

		if (c->last != h->samples)
			c->total++;
		c->last = h->samples;
	}
	h->count[stack[n - 1]].self++;
	return RBSP_OK;
}

static enum rbsp_status hot_sample(struct rbsp_sink *self, const struct rbsp_sample *s)
{
	struct hot *h = (struct hot *)self;
	enum rbsp_status st = count_stack(h, s);

	if (st != RBSP_OK || !h->next)
		return st;
	return rbsp_sink_sample(h->next, s);
}

static enum rbsp_status hot_finish(struct rbsp_sink *self, struct rbsp_err *err)
{
	struct hot *h = (struct hot *)self;

	return h->next ? rbsp_sink_finish(h->next, err) : RBSP_OK;
}

static void hot_free(struct rbsp_sink *self)
{
	struct hot *h = (struct hot *)self;

	rbsp_sink_free(h->next);
	rbsp_labels_free(h->labels);
	free(h->count);
	free(h);
}

static const struct rbsp_sink_ops hot_ops = {
	.sample = hot_sample,
	.finish = hot_finish,
	.free = hot_free,
};

enum rbsp_status rbsp_hot_open(struct rbsp_sink *next, const struct rbsp_output_options *o,
			       const struct rbsp_frames *frames, struct rbsp_sink **sink,
			       struct rbsp_err *err)
{
	struct hot *h = calloc(1, sizeof(*h));

	if (h)
		*h = (struct hot){ .sink = { &hot_ops },
				   .labels = rbsp_labels_new(frames, o, RBSP_TEXT_LINE) };
	if (!h || !h->labels) {
		free(h);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the table of frames");
	}
	h->next = next;
	*sink = &h->sink;
	return RBSP_OK;
}

static int hottest_first(const void *a, const void *b, void *arg)
{
	const struct hot *h = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct count *p = &h->count[i], *q = &h->count[k];

	if (p->self != q->self)
		return p->self < q->self ? 1 : -1;
	if (p->total != q->total)
		return p->total < q->total ? 1 : -1;
	return strcmp(rbsp_labels_text(h->labels, i), rbsp_labels_text(h->labels, k));
}

void rbsp_hot_print(const struct rbsp_sink *sink, FILE *out, size_t rows, bool color)
{
	struct hot *h = (struct hot *)(uintptr_t)sink;
	size_t n = h->samples ? rbsp_labels_count(h->labels) : 0;
	uint32_t *order = n ? calloc(n, sizeof(*order)) : NULL;

	fprintf(out, "%s  self%%  total%%   samples  frame%s\n", rbsp_color(color, RBSP_COLOR_BOLD),
		rbsp_color(color, RBSP_COLOR_END));
	for (size_t i = 0; order && i < n; i++)
		order[i] = (uint32_t)i + 1;
	if (order)
		qsort_r(order, n, sizeof(*order), hottest_first, h);
	for (size_t i = 0; order && i < n && i < rows; i++) {
		const struct count *c = &h->count[order[i]];
		bool hot = color && 10 * c->self >= h->samples;

		fprintf(out, "%s%6.1f  %6.1f  %8" PRIu64 "  %s%s\n",
			rbsp_color(hot, RBSP_COLOR_BOLD),
			100.0 * (double)c->self / (double)h->samples,
			100.0 * (double)c->total / (double)h->samples, c->self,
			rbsp_labels_text(h->labels, order[i]), rbsp_color(hot, RBSP_COLOR_END));
	}
	free(order);
}
