/* From a capture to a stack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/hash.h"

#include "base/clock.h"
#include "sampler/decode.h"
#include "sampler/merge.h"

/* More native frames than any stack of 8 MiB holds. */
#define NATIVE_MAX 131072

/* What is known of a program counter; the same for the life of the process. */
struct place {
	struct {
		const struct rbsp_proc *proc;
		rbsp_addr pc;
		uint64_t is_return;
	} key;
	enum rbsp_role role;
	struct rbsp_frame frame;  /* strings borrowed from the frame table */
	rbsp_frame_id id, interp; /* as a native frame, as the interpreter's own; 0: not yet made */
	rbsp_addr func;
	UT_hash_handle hh;
};

struct rbsp_decoder {
	enum rbsp_native_mode native_mode;
	struct rbsp_frames *frames;
	struct rbsp_ruby_stack ruby;
	struct rbsp_native_frame *native;
	struct place **at; /* of native[i] */
	struct rbsp_merge_native *mn;
	struct rbsp_merge_ruby *mr;
	struct rbsp_merged *merged;
	rbsp_frame_id *out;
	size_t cap_native, cap_ruby;
	struct place *places;
	struct rbsp_decoder_counts counts;
};

const struct rbsp_decoder_counts *rbsp_decoder_counts(const struct rbsp_decoder *d)
{
	return &d->counts;
}

struct rbsp_decoder *rbsp_decoder_new(enum rbsp_native_mode native, struct rbsp_frames *frames)
{
	struct rbsp_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->native_mode = native;
	d->frames = frames;
	d->native = malloc(NATIVE_MAX * sizeof(*d->native));
	if (!d->native) {
		free(d);
		return NULL;
	}
	return d;
}

void rbsp_decoder_free(struct rbsp_decoder *d)
{
	struct place *p, *next;

	if (!d)
		return;
	HASH_ITER (hh, d->places, p, next) {
		HASH_DEL(d->places, p);
		free(p);
	}
	rbsp_ruby_stack_fini(&d->ruby);
	free(d->native);
	free(d->at);
	free(d->mn);
	free(d->mr);
	free(d->merged);
	free(d->out);
	free(d);
}

static bool grow(void **p, size_t n, size_t size)
{
	void *bigger = realloc(*p, n * size);

	if (bigger)
		*p = bigger;
	return bigger != NULL;
}

static bool make_room(struct rbsp_decoder *d, size_t n_native, size_t n_ruby)
{
	size_t native = d->cap_native, ruby = d->cap_ruby;

	if (n_native <= native && n_ruby <= ruby && d->out)
		return true;
	while (native < n_native + 64)
		native = native ? 2 * native : 256;
	while (ruby < n_ruby + 64)
		ruby = ruby ? 2 * ruby : 256;
	/* and three more for markers, gc and state */
	if (!grow((void **)&d->at, native, sizeof(*d->at)) ||
	    !grow((void **)&d->mn, native, sizeof(*d->mn)) ||
	    !grow((void **)&d->mr, ruby, sizeof(*d->mr)) ||
	    !grow((void **)&d->merged, native + ruby, sizeof(*d->merged)) ||
	    !grow((void **)&d->out, native + ruby + 4, sizeof(*d->out)))
		return false;
	d->cap_native = native;
	d->cap_ruby = ruby;
	return true;
}

static bool in_ranges(const struct rbsp_code_range *r, size_t n, rbsp_addr a)
{
	for (size_t i = 0; i < n; i++) {
		if (a >= r[i].start && a < r[i].end)
			return true;
	}
	return false;
}

static enum rbsp_role role_of(const struct rbsp_located *l, rbsp_addr lookup,
			      const struct rbsp_frame *f)
{
	const char *base = strrchr(l->path, '/');

	if (in_ranges(l->vm_exec, l->n_vm_exec, lookup))
		return RBSP_ROLE_EXEC;
	if (in_ranges(l->interp, l->n_interp, lookup))
		return RBSP_ROLE_LOOP;
	base = base ? base + 1 : l->path;
	return f->module && strncmp(base, f->module, strlen(f->module)) == 0 ? RBSP_ROLE_RUBY_LIB
									     : RBSP_ROLE_PLAIN;
}

static rbsp_frame_id intern_as(struct rbsp_decoder *d, struct place *p, enum rbsp_frame_kind kind)
{
	struct rbsp_frame f = p->frame;

	f.kind = kind;
	return rbsp_frames_intern(d->frames, &f);
}

static struct place *place_of(struct rbsp_decoder *d, struct rbsp_proc *proc,
			      const struct rbsp_native_frame *f)
{
	struct place *p, key = { 0 };

	key.key.proc = proc;
	key.key.pc = f->pc;
	key.key.is_return = f->is_return;
	HASH_FIND(hh, d->places, &key.key, sizeof(key.key), p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->key = key.key;
	p->func = f->func;
	rbsp_native_describe(proc->native, f, &p->frame);
	p->role = role_of(&proc->loc, rbsp_pc_lookup(f->pc, f->is_return), &p->frame);
	if (rbsp_native_is_jit(proc->native, f->pc))
		p->frame.kind = RBSP_FRAME_JIT;
	p->id = intern_as(d, p, p->frame.kind);
	p->frame = *rbsp_frames_get(d->frames, p->id); /* strings that stay */
	HASH_ADD(hh, d->places, key, sizeof(p->key), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

/* A C function and its native frame are one frame: the method's name, the function's place. */
static rbsp_frame_id join(struct rbsp_decoder *d, rbsp_frame_id ruby, const struct place *p)
{
	struct rbsp_frame f = *rbsp_frames_get(d->frames, ruby);

	f.module = p->frame.module;
	f.build_id = p->frame.build_id;
	f.offset = p->frame.offset;
	f.func = p->frame.func;
	f.address = p->frame.address;
	return rbsp_frames_intern(d->frames, &f);
}

static rbsp_frame_id named_frame(struct rbsp_decoder *d, enum rbsp_frame_kind kind,
				 const char *name)
{
	struct rbsp_frame f = { .kind = kind, .name = name };

	return rbsp_frames_intern(d->frames, &f);
}

static bool is_waiting(enum rbsp_thread_state s)
{
	return s != RBSP_STATE_RUNNING && s != RBSP_STATE_NATIVE && s != RBSP_STATE_UNKNOWN;
}

/* What Ruby's memory says of a thread, and what the kernel says of it at that instant. */
static enum rbsp_thread_state state_now(const struct rbsp_capture *c, enum rbsp_thread_state ruby)
{
	bool off_cpu = c->flags & (RBSP_CAP_BLOCKED | RBSP_CAP_QUEUED);

	if (ruby == RBSP_STATE_RUNNING && off_cpu && c->syscall == SYS_futex)
		return RBSP_STATE_GVL_WAIT; /* it was handed the GVL and is not awake yet */
	if (ruby == RBSP_STATE_NATIVE && off_cpu && c->syscall >= 0)
		return RBSP_STATE_BLOCKED; /* the call has ended, the thread has no cpu yet */
	if (is_waiting(ruby) && !off_cpu)
		return RBSP_STATE_NATIVE; /* on its way into the wait, or out of it: it uses a cpu
					   */
	return ruby;
}

static rbsp_frame_id state_frame(struct rbsp_decoder *d, const struct rbsp_capture *c,
				 enum rbsp_thread_state state)
{
	const char *call = rbsp_syscall_name(c->syscall);
	char name[64];

	switch (state) {
	case RBSP_STATE_GVL_WAIT:
	case RBSP_STATE_MUTEX_WAIT:
	case RBSP_STATE_SLEEP:
	case RBSP_STATE_PARKED:
	case RBSP_STATE_IO_WAIT:
		return named_frame(d, RBSP_FRAME_STATE, rbsp_thread_state_name(state));
	default:
		break;
	}
	/* A page fault is part of the code that meets it. */
	if (state != RBSP_STATE_BLOCKED && (!(c->flags & RBSP_CAP_BLOCKED) || c->syscall < 0))
		return 0;
	if (!call)
		return named_frame(d, RBSP_FRAME_STATE, "blocked");
	snprintf(name, sizeof(name), "blocked in %s", call);
	return named_frame(d, RBSP_FRAME_STATE, name);
}

/* How the native stack of a capture came out. */
struct unwound {
	size_t n;
	bool whole; /* from the leaf to the oldest frame */
	bool cut;   /* it ends where nobody asked it to */
};

static struct unwound unwind(struct rbsp_decoder *d, struct rbsp_proc *p,
			     const struct rbsp_capture *c)
{
	struct unwound u = { 0 };
	bool leaf = d->native_mode == RBSP_NATIVE_LEAF;
	uint64_t start = rbsp_now_ns();
	enum rbsp_unwind_end end;

	if (d->native_mode == RBSP_NATIVE_OFF || !c->range[RBSP_RANGE_STACK].addr)
		return u;
	end = rbsp_native_unwind(p->native, c, leaf ? p->loc.vm_exec : NULL,
				 leaf ? p->loc.n_vm_exec : 0, d->native, NATIVE_MAX, &u.n);
	d->counts.unwind_ns += rbsp_now_ns() - start;
	d->counts.native_frames += u.n;
	u.whole = end == RBSP_UNWIND_BOTTOM;
	u.cut = end == RBSP_UNWIND_CUT || end == RBSP_UNWIND_JIT;
	/* Read without a stop only sp and pc are known: what needs more than those is not worth a
	 * marker. */
	if (u.cut && !(c->flags & RBSP_CAP_STOPPED))
		u = (struct unwound){ 0 };
	return u;
}

static bool prepare_natives(struct rbsp_decoder *d, struct rbsp_proc *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		d->at[i] = place_of(d, p, &d->native[i]);
		if (!d->at[i])
			return false;
		d->mn[i] = (struct rbsp_merge_native){ d->at[i]->role, d->at[i]->frame.name != NULL,
						       d->at[i]->func };
	}
	return true;
}

static rbsp_frame_id native_frame(struct rbsp_decoder *d, struct place *p, bool interp)
{
	if (!interp)
		return p->id;
	if (!p->interp)
		p->interp = intern_as(d, p, RBSP_FRAME_INTERP);
	return p->interp;
}

static rbsp_frame_id frame_of(struct rbsp_decoder *d, const struct rbsp_merged *m)
{
	if (m->ruby < 0)
		return native_frame(d, d->at[m->native], m->interp);
	if (m->native < 0)
		return d->ruby.frame[m->ruby].id;
	return join(d, d->ruby.frame[m->ruby].id, d->at[m->native]);
}

static enum rbsp_status merge(struct rbsp_decoder *d, struct rbsp_proc *p, const struct unwound *u,
			      struct rbsp_decoded *out)
{
	size_t n_ruby = d->ruby.n, n = 0;
	/* Without its oldest end a `full` stack cannot be paired: what lies above the newest run
	 * still can. */
	bool leaf = !u->whole;

	if (!make_room(d, u->n, n_ruby) || !prepare_natives(d, p, u->n))
		return RBSP_E_NOMEM;
	for (size_t i = 0; i < n_ruby; i++) {
		const struct rbsp_ruby_frame *f = &d->ruby.frame[i];

		d->mr[i] = (struct rbsp_merge_ruby){ f->id != 0, f->finish, f->cfunc, f->func };
	}
	if (rbsp_merge(d->mn, u->n, d->mr, n_ruby, !leaf, d->merged, &n) == RBSP_MERGE_MISMATCH)
		out->flags |= RBSP_SAMPLE_UNMERGED;
	out->n = 0;
	for (size_t i = 0; i < n; i++)
		d->out[out->n++] = frame_of(d, &d->merged[i]);
	if (u->cut) {
		d->out[out->n++] = named_frame(d, RBSP_FRAME_MARKER, "native frames cut");
		out->flags |= RBSP_SAMPLE_CUT;
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_decode(struct rbsp_decoder *d, struct rbsp_proc *p,
			     const struct rbsp_capture *c, struct rbsp_decoded *out)
{
	enum rbsp_status st = c->flags & RBSP_CAP_NO_EC ? RBSP_E_NOT_FOUND
							: rbsp_ruby_check(p->ruby, c, c->regs.tp);
	rbsp_frame_id leaf[2] = { 0, 0 };
	struct unwound u;
	uint64_t start;

	*out = (struct rbsp_decoded){ .flags = c->flags & RBSP_CAP_EXACT ? RBSP_SAMPLE_EXACT : 0 };
	d->ruby.n = 0;
	if (st == RBSP_OK) {
		start = rbsp_now_ns();
		st = rbsp_ruby_decode(p->ruby, c, &d->ruby);
		d->counts.decode_ns += rbsp_now_ns() - start;
		d->counts.ruby_frames += d->ruby.n;
		d->counts.unread += d->ruby.unread;
		d->counts.bare_names += d->ruby.bare_names;
		if (st != RBSP_OK)
			return st;
		out->th = c->range[RBSP_RANGE_TH].addr;
		out->state = rbsp_ruby_state(p->ruby, c, &out->owner);
		out->state = state_now(c, out->state);
		leaf[0] = rbsp_ruby_gc(p->ruby, c);
		leaf[1] = state_frame(d, c, out->state);
	} else if (st != RBSP_E_NOT_FOUND) {
		return st;
	} else {
		out->state = state_now(c, c->flags & RBSP_CAP_BLOCKED ? RBSP_STATE_BLOCKED
								      : RBSP_STATE_NATIVE);
		leaf[1] = state_frame(d, c, out->state);
	}
	u = unwind(d, p, c);
	start = rbsp_now_ns();
	st = merge(d, p, &u, out);
	if (st != RBSP_OK)
		return st;
	for (size_t i = 0; i < RBSP_COUNT_OF(leaf); i++) {
		if (leaf[i])
			d->out[out->n++] = leaf[i];
	}
	d->counts.merge_ns += rbsp_now_ns() - start;
	out->frames = d->out;
	return out->n ? RBSP_OK : RBSP_E_NOT_FOUND;
}
