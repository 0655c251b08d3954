/* The frame table: equal frames have one id; and the names of kinds and states. */
#include <rbsample/frame.h>
#include <rbsample/sample.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"

/* Frames are compared field by field: a struct's padding must not tell two of them apart. */
#define HASH_KEYCMP(a, b, n) (!same_frame(a, b))
#include "base/hash.h"

struct entry {
	struct rbsp_frame frame;
	rbsp_frame_id id;
	UT_hash_handle hh;
};

struct rbsp_frames {
	struct rbsp_strtab *strings;
	struct entry *by_frame;
	struct entry **by_id; /* id - 1 */
	size_t n, cap;
};

static const char *const kind_names[] = {
	[RBSP_FRAME_RUBY] = "ruby",     [RBSP_FRAME_CFUNC] = "cfunc",
	[RBSP_FRAME_NATIVE] = "native", [RBSP_FRAME_INTERP] = "interp",
	[RBSP_FRAME_JIT] = "jit",       [RBSP_FRAME_GC] = "gc",
	[RBSP_FRAME_STATE] = "state",   [RBSP_FRAME_MARKER] = "marker",
};

const char *rbsp_frame_kind_name(enum rbsp_frame_kind kind)
{
	return (size_t)kind < RBSP_COUNT_OF(kind_names) ? kind_names[kind] : "unknown";
}

static const char *const state_names[] = {
	[RBSP_STATE_UNKNOWN] = "unknown",       [RBSP_STATE_RUNNING] = "running",
	[RBSP_STATE_NATIVE] = "native",         [RBSP_STATE_GVL_WAIT] = "gvl wait",
	[RBSP_STATE_MUTEX_WAIT] = "mutex wait", [RBSP_STATE_IO_WAIT] = "io wait",
	[RBSP_STATE_SLEEP] = "sleep",           [RBSP_STATE_BLOCKED] = "blocked",
	[RBSP_STATE_PARKED] = "parked",
};

const char *rbsp_thread_state_name(enum rbsp_thread_state s)
{
	return (size_t)s < RBSP_COUNT_OF(state_names) ? state_names[s] : "unknown";
}

struct rbsp_frames *rbsp_frames_new(void)
{
	struct rbsp_frames *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->strings = rbsp_strtab_new();
	if (!t->strings) {
		rbsp_frames_free(t);
		return NULL;
	}
	return t;
}

void rbsp_frames_free(struct rbsp_frames *t)
{
	if (!t)
		return;
	HASH_CLEAR(hh, t->by_frame);
	for (size_t i = 0; i < t->n; i++)
		free(t->by_id[i]);
	free(t->by_id);
	rbsp_strtab_free(t->strings);
	free(t);
}

/* Both with interned strings, so that equal ones have one address. */
static bool same_frame(const void *va, const void *vb)
{
	const struct rbsp_frame *a = va, *b = vb;

	return a->kind == b->kind && a->name == b->name && a->owner == b->owner &&
	       a->path == b->path && a->line == b->line && a->module == b->module &&
	       a->build_id == b->build_id && a->offset == b->offset && a->func == b->func &&
	       a->address == b->address;
}

static unsigned hash_frame(const struct rbsp_frame *f)
{
	uint64_t h = rbsp_hash_word(f->kind, f->line);

	h = rbsp_hash_word(h, (uintptr_t)f->name);
	h = rbsp_hash_word(h, (uintptr_t)f->owner);
	h = rbsp_hash_word(h, (uintptr_t)f->path);
	h = rbsp_hash_word(h, (uintptr_t)f->module);
	h = rbsp_hash_word(h, (uintptr_t)f->build_id);
	h = rbsp_hash_word(h, f->offset);
	h = rbsp_hash_word(h, f->func);
	return (unsigned)rbsp_hash_word(h, f->address);
}

/* @return false: out of memory */
static bool intern(struct rbsp_frames *t, const char *s, const char **out)
{
	*out = s ? rbsp_strtab_add(t->strings, s, strlen(s)) : NULL;
	return !s || *out;
}

static bool intern_strings(struct rbsp_frames *t, const struct rbsp_frame *from,
			   struct rbsp_frame *to)
{
	*to = *from;
	return intern(t, from->name, &to->name) && intern(t, from->owner, &to->owner) &&
	       intern(t, from->path, &to->path) && intern(t, from->module, &to->module) &&
	       intern(t, from->build_id, &to->build_id);
}

/* Room for one id more. */
static bool reserve(struct rbsp_frames *t)
{
	size_t cap = t->cap ? 2 * t->cap : 256;
	struct entry **p;

	if (t->n < t->cap)
		return true;
	p = t->n < UINT32_MAX ? reallocarray(t->by_id, cap, sizeof(*p)) : NULL;
	if (!p)
		return false;
	t->by_id = p;
	t->cap = cap;
	return true;
}

rbsp_frame_id rbsp_frames_intern(struct rbsp_frames *t, const struct rbsp_frame *f)
{
	struct rbsp_frame frame;
	struct entry *e;
	unsigned hash;

	if (!intern_strings(t, f, &frame))
		return 0;
	hash = hash_frame(&frame);
	HASH_FIND_BYHASHVALUE(hh, t->by_frame, &frame, sizeof(frame), hash, e);
	if (e)
		return e->id;
	if (!reserve(t))
		return 0;
	e = malloc(sizeof(*e));
	if (!e)
		return 0;
	e->frame = frame;
	e->id = (rbsp_frame_id)(t->n + 1);
	HASH_ADD_BYHASHVALUE(hh, t->by_frame, frame, sizeof(e->frame), hash, e);
	if (!e->hh.tbl) { /* the table could not grow */
		free(e);
		return 0;
	}
	t->by_id[t->n++] = e;
	return e->id;
}

const struct rbsp_frame *rbsp_frames_get(const struct rbsp_frames *t, rbsp_frame_id id)
{
	assert(id >= 1 && id <= t->n);
	return &t->by_id[id - 1]->frame;
}

size_t rbsp_frames_count(const struct rbsp_frames *t)
{
	return t->n;
}
