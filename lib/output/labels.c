/* Texts of frames, threads and processes as numbers. */
#include "output/labels.h"

#include <stdlib.h>
#include <string.h>

#include "output/output.h"

/* Of a frame that is not shown. */
#define HIDDEN UINT32_MAX

struct rbsp_labels {
	const struct rbsp_frames *frames;
	struct rbsp_output_options o;
	enum rbsp_text_form form;
	char **text; /* text[label - 1] */
	uint32_t n, cap;
	uint32_t *slot;     /* labels by the hash of their text, 0: free */
	uint32_t slots;     /* a power of two, at least twice cap */
	uint32_t *of_frame; /* by frame id; 0: not asked yet */
	size_t frames_cap;
	uint32_t *stack;
	size_t stack_cap;
	struct rbsp_buf buf;
};

struct rbsp_labels *rbsp_labels_new(const struct rbsp_frames *frames,
				    const struct rbsp_output_options *o, enum rbsp_text_form form)
{
	struct rbsp_labels *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct rbsp_labels){ .frames = frames,
				   .o = rbsp_output_options_of(o),
				   .form = form,
				   .cap = 128,
				   .slots = 256 };
	l->text = calloc(l->cap, sizeof(*l->text));
	l->slot = calloc(l->slots, sizeof(*l->slot));
	if (!l->text || !l->slot) {
		rbsp_labels_free(l);
		return NULL;
	}
	return l;
}

void rbsp_labels_free(struct rbsp_labels *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->n; i++)
		free(l->text[i]);
	free(l->text);
	free(l->slot);
	free(l->of_frame);
	free(l->stack);
	rbsp_buf_fini(&l->buf);
	free(l);
}

static uint32_t *slot_of(const struct rbsp_labels *l, const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	uint32_t i;

	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	i = (uint32_t)(h ^ h >> 32) & (l->slots - 1);
	while (l->slot[i] && strcmp(l->text[l->slot[i] - 1], text) != 0)
		i = (i + 1) & (l->slots - 1);
	return &l->slot[i];
}

static bool grow(struct rbsp_labels *l)
{
	char **text;
	uint32_t *slot;

	if (l->cap > UINT32_MAX / 8)
		return false;
	text = realloc(l->text, 2 * (size_t)l->cap * sizeof(*text));
	if (!text)
		return false;
	l->text = text;
	slot = calloc(2 * (size_t)l->slots, sizeof(*slot));
	if (!slot)
		return false;
	free(l->slot);
	l->slot = slot;
	l->cap *= 2;
	l->slots *= 2;
	for (uint32_t i = 0; i < l->n; i++)
		*slot_of(l, l->text[i]) = i + 1;
	return true;
}

/* The label of the text in l->buf; 0: out of memory. */
static uint32_t label_of_buf(struct rbsp_labels *l)
{
	const char *text = rbsp_buf_text(&l->buf);
	uint32_t *slot;

	if (l->buf.failed)
		return 0;
	slot = slot_of(l, text);
	if (*slot)
		return *slot;
	if (l->n == l->cap) {
		if (!grow(l))
			return 0;
		slot = slot_of(l, text);
	}
	l->text[l->n] = strdup(text);
	if (!l->text[l->n])
		return 0;
	*slot = ++l->n;
	return l->n;
}

static uint32_t label_of_frame(struct rbsp_labels *l, rbsp_frame_id id)
{
	const struct rbsp_frame *f;

	if (id >= l->frames_cap) {
		size_t cap = 2 * (size_t)id + 64;
		uint32_t *p = realloc(l->of_frame, cap * sizeof(*p));

		if (!p)
			return 0;
		memset(p + l->frames_cap, 0, (cap - l->frames_cap) * sizeof(*p));
		l->of_frame = p;
		l->frames_cap = cap;
	}
	if (l->of_frame[id])
		return l->of_frame[id];
	f = id ? rbsp_frames_get(l->frames, id) : NULL;
	if (!f || !rbsp_frame_shown(f, &l->o))
		return l->of_frame[id] = HIDDEN;
	rbsp_buf_clear(&l->buf);
	rbsp_text_frame(&l->buf, f, l->o.lines, l->form);
	return l->of_frame[id] = label_of_buf(l);
}

/* "thread NAME (TID)"; a name or a number that is not known is left out. */
static uint32_t label_of_root(struct rbsp_labels *l, const char *what, const char *name, int number)
{
	rbsp_buf_clear(&l->buf);
	rbsp_buf_str(&l->buf, what);
	if (name && *name) {
		rbsp_buf_str(&l->buf, " ");
		rbsp_text_add(&l->buf, name, l->form);
	}
	if (number > 0)
		rbsp_buf_printf(&l->buf, " (%d)", number);
	if (l->form == RBSP_TEXT_FOLDED)
		rbsp_text_harmless(&l->buf, 0);
	return label_of_buf(l);
}

enum rbsp_status rbsp_labels_stack(struct rbsp_labels *l, const struct rbsp_sample *s,
				   const uint32_t **out, size_t *n)
{
	size_t k = 0, first;

	if (s->n_frames + 3 > l->stack_cap) {
		size_t cap = 2 * (s->n_frames + 3);
		uint32_t *p = realloc(l->stack, cap * sizeof(*p));

		if (!p)
			return RBSP_E_NOMEM;
		l->stack = p;
		l->stack_cap = cap;
	}
	if (l->o.processes && s->process)
		l->stack[k++] = label_of_root(l, "process", s->process->command, s->process->pid);
	if (l->o.threads && s->thread)
		l->stack[k++] = label_of_root(l, "thread", s->thread->name, s->thread->tid);
	first = k;
	for (size_t i = 0; i < s->n_frames; i++) {
		uint32_t label = label_of_frame(l, s->frames[i]);

		if (label != HIDDEN)
			l->stack[k++] = label;
	}
	if (k == first) { /* a stack without a frame still counts */
		rbsp_buf_clear(&l->buf);
		rbsp_buf_str(&l->buf, RBSP_TEXT_UNKNOWN);
		l->stack[k++] = label_of_buf(l);
	}
	for (size_t i = 0; i < k; i++) {
		if (!l->stack[i])
			return RBSP_E_NOMEM;
	}
	*out = l->stack;
	*n = k;
	return RBSP_OK;
}

size_t rbsp_labels_count(const struct rbsp_labels *l)
{
	return l->n;
}

const char *rbsp_labels_text(const struct rbsp_labels *l, uint32_t label)
{
	return l->text[label - 1];
}
