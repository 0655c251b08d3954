/* Named invariants of a layout row, held against the live process. */
#include "locate/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads looked at by checks that read for each thread. */
#define THREADS_MAX 64
/* Oldest control frames of a thread that are looked at. */
#define FRAMES_MAX 16

/* vm_core.h: VM_FRAME_MAGIC_MASK, _DUMMY, VM_FRAME_FLAG_CFRAME; the same from 2.6 on. */
#define MAGIC_MASK 0x7fff0001
#define MAGIC_DUMMY 0x79990001
#define FLAG_CFRAME 0x80
/* ruby/internal/value_type.h, internal/imemo.h */
#define T_MASK 0x1f
#define T_CLASS 2
#define T_DATA 0xc
#define T_IMEMO 0x1a
#define IMEMO_ISEQ 7

enum outcome { FAILS, HOLDS, NOTHING_TO_SEE };

struct check {
	const char *name;
	enum outcome (*run)(struct rbsp_finder *f, char *detail, size_t cap);
	bool needed; /* of a row on trial: nothing to see is not enough */
};

static bool read_word(struct rbsp_finder *f, rbsp_addr at, uint64_t *v)
{
	return rbsp_read_word(f->t, at, v) == RBSP_OK;
}

static bool listed(const struct rbsp_finder *f, rbsp_addr th)
{
	for (size_t i = 0; i < f->n_thread; i++) {
		if (f->thread[i].th == th)
			return true;
	}
	return false;
}

/**
 * Threads start and end while they are looked at, so single ones may look wrong; a wrong layout
 * makes all of them wrong.
 */
static enum outcome verdict(size_t good, size_t bad, const char *what, char *detail, size_t cap)
{
	snprintf(detail, cap, bad ? "%zu %s, %zu not" : "%zu %s", good, what, bad);
	return good > bad ? HOLDS : good + bad ? FAILS : NOTHING_TO_SEE;
}

static enum outcome thread_list(struct rbsp_finder *f, char *detail, size_t cap)
{
	size_t good = 0, bad = 0;

	for (size_t i = 0; i < f->n_lwp; i++) {
		if (!f->lwp[i].seen.valid)
			continue;
		if (listed(f, f->lwp[i].seen.th))
			good++;
		else
			bad++;
	}
	if (f->torn && !good) {
		snprintf(detail, cap, "the list changed while it was read, after %zu threads",
			 f->n_thread);
		return NOTHING_TO_SEE;
	}
	return verdict(good, bad, "listed", detail, cap);
}

/** Where a listed thread names a thread pointer, that thread's own word must name the listed
 * thread. */
static enum outcome thread_pointers(struct rbsp_finder *f, char *detail, size_t cap)
{
	size_t good = 0, bad = 0;

	for (size_t i = 0; i < f->n_thread; i++) {
		for (size_t k = 0; k < f->n_lwp; k++) {
			const struct rbsp_lwp *w = &f->lwp[k];

			if (!w->tp || w->tp != f->thread[i].pthread || !w->seen.valid)
				continue;
			if (w->seen.th == f->thread[i].th)
				good++;
			else
				bad++;
		}
	}
	if (!good && !bad && f->n_tp && !f->torn) {
		snprintf(detail, cap, "no pthread_t of %zu Ruby threads is a thread pointer",
			 f->n_thread);
		return FAILS;
	}
	return verdict(good, bad, "matched by pthread_t", detail, cap);
}

/** Ask @p one of each seen execution context, at most THREADS_MAX. */
static enum outcome each_ec(struct rbsp_finder *f,
			    enum outcome (*one)(struct rbsp_finder *f,
						const struct rbsp_ec_seen *s),
			    char *detail, size_t cap)
{
	size_t count[3] = { 0, 0, 0 }, n = 0;

	for (size_t i = 0; i < f->n_lwp && n < THREADS_MAX; i++) {
		if (!f->lwp[i].seen.valid)
			continue;
		count[one(f, &f->lwp[i].seen)]++;
		n++;
	}
	return verdict(count[HOLDS], count[FAILS], "threads", detail, cap);
}

static enum outcome dummy_at_end(struct rbsp_finder *f, const struct rbsp_ec_seen *s)
{
	const struct rbsp_layout *l = f->l->layout;
	uint64_t ep, flags;

	/* The environment of the main thread's dummy frame is on the heap once TOPLEVEL_BINDING was
	 * used. */
	if (!read_word(f, s->end - l->cfp.size + l->cfp.ep, &ep) ||
	    !rbsp_locate_plausible(&f->maps, ep, 8) || !read_word(f, ep, &flags))
		return FAILS;
	return (flags & MAGIC_MASK) == MAGIC_DUMMY ? HOLDS : FAILS;
}

static enum outcome oldest_frame(struct rbsp_finder *f, char *detail, size_t cap)
{
	return each_ec(f, dummy_at_end, detail, cap);
}

static enum outcome stack_of_thread(struct rbsp_finder *f, const struct rbsp_ec_seen *s)
{
	uint64_t start;

	if (!read_word(f, s->ec + f->l->layout->ec.stack_start, &start))
		return FAILS;
	if (!start) /* a thread that has not run yet, or has ended */
		return NOTHING_TO_SEE;
	/* It may be the end of the stack's mapping itself. */
	return rbsp_locate_plausible(&f->maps, (start - 8) & ~7ull, 8) ? HOLDS : FAILS;
}

static enum outcome native_stack(struct rbsp_finder *f, char *detail, size_t cap)
{
	return each_ec(f, stack_of_thread, detail, cap);
}

static enum outcome object_of_thread(struct rbsp_finder *f, const struct rbsp_ec_seen *s)
{
	uint64_t self, w[7];

	if (!read_word(f, s->th + f->l->layout->th.self, &self) ||
	    !rbsp_locate_plausible(&f->maps, self, sizeof(w)) ||
	    rbsp_read(f->t, self, w, sizeof(w)) != RBSP_OK || (w[0] & T_MASK) != T_DATA)
		return FAILS;
	for (size_t i = 2; i < RBSP_COUNT_OF(w); i++) {
		if (w[i] == s->th)
			return HOLDS;
	}
	return FAILS;
}

static enum outcome thread_object(struct rbsp_finder *f, char *detail, size_t cap)
{
	return each_ec(f, object_of_thread, detail, cap);
}

static bool printable(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	}
	return n > 0;
}

/** A Ruby frame's iseq: its type, its body, the label in it, and the pc (0: not looked at) inside
 * it. */
static bool iseq_reads(struct rbsp_finder *f, rbsp_addr iseq, uint64_t pc, char *detail, size_t cap)
{
	const struct rbsp_layout *l = f->l->layout;
	uint64_t flags, body, encoded, label;
	char text[96];
	uint32_t size;
	size_t len;

	if (!read_word(f, iseq, &flags) || (flags & T_MASK) != T_IMEMO ||
	    (flags >> 12 & 15) != IMEMO_ISEQ || !read_word(f, iseq + l->iseq.body, &body) ||
	    !rbsp_locate_plausible(&f->maps, body, 8) ||
	    rbsp_read(f->t, body + l->body.size, &size, sizeof(size)) != RBSP_OK || !size ||
	    size > 1u << 24 || !read_word(f, body + l->body.encoded, &encoded) ||
	    !read_word(f, body + l->body.label, &label))
		return false;
	if (pc && (pc < encoded || pc > encoded + 8ull * size))
		return false;
	if (rbsp_ruby_string(f->t, l, label, text, sizeof(text), &len) != RBSP_OK ||
	    !printable(text, len))
		return false;
	snprintf(detail, cap, "\"%.*s\"", (int)(len < 80 ? len : 80), text);
	return true;
}

/** The oldest frames of one thread. HOLDS: one of them reads as a Ruby frame; FAILS: there are
 * some, none reads. */
static enum outcome frames_read(struct rbsp_finder *f, const struct rbsp_ec_seen *s, char *detail,
				size_t cap)
{
	const struct rbsp_layout *l = f->l->layout;
	size_t n = (s->end - s->cfp) / l->cfp.size;
	unsigned char frame[128];
	enum outcome out = NOTHING_TO_SEE;

	for (size_t i = 2; i <= n && i < FRAMES_MAX && l->cfp.size <= sizeof(frame); i++) {
		rbsp_addr at = s->end - i * l->cfp.size;
		uint64_t ep, iseq, pc, flags;

		if (rbsp_read(f->t, at, frame, l->cfp.size) != RBSP_OK)
			return FAILS;
		memcpy(&ep, frame + l->cfp.ep, 8);
		memcpy(&iseq, frame + l->cfp.iseq, 8);
		memcpy(&pc, frame + l->cfp.pc, 8);
		if (!rbsp_locate_plausible(&f->maps, ep, 8) || !read_word(f, ep, &flags))
			return FAILS;
		if ((flags & FLAG_CFRAME) || (flags & MAGIC_MASK) == MAGIC_DUMMY || !iseq)
			continue;
		if (iseq_reads(f, iseq, at > s->cfp ? pc : 0, detail, cap))
			return HOLDS;
		out = FAILS;
	}
	return out;
}

static enum outcome label_reads(struct rbsp_finder *f, char *detail, size_t cap)
{
	enum outcome out = NOTHING_TO_SEE;
	size_t n = 0;

	snprintf(detail, cap, "no Ruby frame to look at");
	for (size_t i = 0; i < f->n_lwp && n < THREADS_MAX; i++) {
		enum outcome one;

		if (!f->lwp[i].seen.valid)
			continue;
		n++;
		one = frames_read(f, &f->lwp[i].seen, detail, cap);
		if (one == HOLDS)
			return HOLDS;
		if (one == FAILS) {
			snprintf(detail, cap, "not in thread %d", f->lwp[i].tid);
			out = FAILS;
		}
	}
	return out;
}

static enum outcome metaclass(struct rbsp_finder *f, char *detail, size_t cap)
{
	const struct rbsp_layout *l = f->l->layout;
	uint64_t object = f->l->addrs.object, flags, meta, meta_flags, ext, attached;

	if (!object) {
		snprintf(detail, cap, "rb_cObject is not exported");
		return NOTHING_TO_SEE;
	}
	if (!read_word(f, object, &flags) || (flags & T_MASK) != T_CLASS ||
	    !read_word(f, object + 8, &meta) || !rbsp_locate_plausible(&f->maps, meta, 16) ||
	    !read_word(f, meta, &meta_flags))
		return FAILS;
	snprintf(detail, cap, "flags %#llx", (unsigned long long)meta_flags);
	if ((meta_flags & T_MASK) != T_CLASS || !(meta_flags & l->klass.singleton_flag) ||
	    (flags & l->klass.singleton_flag))
		return FAILS;
	if (l->klass.attached == RBSP_NONE)
		return HOLDS;
	ext = meta + l->klass.ext;
	if (!l->klass.ext_embedded && !read_word(f, ext, &ext))
		return FAILS;
	return read_word(f, ext + l->klass.attached, &attached) && attached == object ? HOLDS
										      : FAILS;
}

static enum outcome gvl_owner(struct rbsp_finder *f, char *detail, size_t cap)
{
	uint64_t owner;

	if (!f->l->sched)
		return NOTHING_TO_SEE;
	if (!read_word(f, f->l->sched, &owner))
		return FAILS;
	snprintf(detail, cap, "%#llx", (unsigned long long)owner);
	return !owner || listed(f, owner) ? HOLDS : f->torn ? NOTHING_TO_SEE : FAILS;
}

static enum outcome gc_word(struct rbsp_finder *f, char *detail, size_t cap)
{
	const struct rbsp_layout *l = f->l->layout;
	struct rbsp_loads loads;
	uint64_t offset;

	if (rbsp_locate_follow_loads(f, "rb_during_gc", &loads) != RBSP_OK || loads.n < 2 ||
	    l->gc.flags == RBSP_NONE) {
		snprintf(detail, cap, "the loads of rb_during_gc could not be followed");
		return NOTHING_TO_SEE;
	}
	offset = loads.at[loads.n - 1] - loads.value[loads.n - 2];
	snprintf(detail, cap, "%llu in the code, %u in the row", (unsigned long long)offset,
		 l->gc.flags);
	return offset / 4 == l->gc.flags / 4u ? HOLDS : FAILS;
}

static const struct check checks[] = {
	{ "the VM's list has every thread with an execution context", thread_list, true },
	{ "pthread_t and execution context name the same thread", thread_pointers, false },
	{ "the oldest control frame ends the VM stack", oldest_frame, true },
	{ "the native stack starts in memory", native_stack, true },
	{ "the thread's object is a Thread", thread_object, true },
	{ "a label reads as a string", label_reads, true },
	{ "rb_cObject's metaclass is a singleton", metaclass, false },
	{ "the GVL's owner is a thread of the list", gvl_owner, true },
	{ "the flags word is the one that rb_during_gc loads", gc_word, false },
};

enum rbsp_status rbsp_locate_check(struct rbsp_finder *f)
{
	enum rbsp_status st = RBSP_OK;

	for (size_t i = 0; i < RBSP_COUNT_OF(checks) && st == RBSP_OK; i++) {
		const struct check *c = &checks[i];
		char detail[120] = "";
		enum outcome out = c->run(f, detail, sizeof(detail));

		if (out == FAILS || (out == NOTHING_TO_SEE && c->needed && f->l->on_trial)) {
			f->failed = c->name;
			snprintf(f->failure, sizeof(f->failure), "%s", detail);
			st = RBSP_E_LAYOUT;
		}
		rbsp_locate_step(f, "layout", c->name, out == HOLDS, "%s", detail);
	}
	return st;
}
