/* What a capture says of its thread: whether it is Ruby's, what it does, and whether it collects
 * garbage. */
#include "ruby/internal.h"

#include <elf.h>

/* vm_core.h: rb_thread_t.status, two bits. */
enum { RUNNABLE, STOPPED, STOPPED_FOREVER, KILLED };
#define STATUS_MASK 3u

/* gc.c: objspace->flags, bits 0-1. */
enum { MODE_NONE, MODE_MARKING, MODE_SWEEPING, MODE_COMPACTING };
#define MODE_MASK 3u

/* A word of a captured range. @return false: not captured */
static bool word(const struct rbsp_capture *cap, enum rbsp_range_id id, uint32_t off, uint64_t *out)
{
	const struct rbsp_range *g = &cap->range[id];

	if (!g->addr || g->len < 8 || off > g->len - 8)
		return false;
	memcpy(out, cap->data + g->off + off, sizeof(*out));
	return true;
}

static bool half(const struct rbsp_capture *cap, enum rbsp_range_id id, uint32_t off, uint32_t *out)
{
	const struct rbsp_range *g = &cap->range[id];

	if (!g->addr || g->len < 4 || off > g->len - 4)
		return false;
	memcpy(out, cap->data + g->off + off, sizeof(*out));
	return true;
}

/* pthread_t of the captured thread; 0: not known, or parked. */
static rbsp_addr pthread_of(const struct rbsp_layout *l, const struct rbsp_capture *cap)
{
	rbsp_addr id = 0;

	if (l->th.pthread != RBSP_NONE)
		return word(cap, RBSP_RANGE_TH, l->th.pthread, &id) ? id : 0;
	return word(cap, RBSP_RANGE_NT, l->nt.pthread, &id) ? id : 0;
}

enum rbsp_status rbsp_ruby_check(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				 rbsp_addr thread_pointer)
{
	const struct rbsp_layout *l = r->l;
	uint64_t ec, stack, size, cfp, th, th_ec;
	uint32_t status;
	rbsp_addr pthread;

	if (cap->flags & RBSP_CAP_NO_EC || !word(cap, RBSP_RANGE_SLOT, 0, &ec) || !ec)
		return RBSP_E_NOT_FOUND;
	if (!word(cap, RBSP_RANGE_EC, l->ec.vm_stack, &stack) ||
	    !word(cap, RBSP_RANGE_EC, l->ec.vm_stack_size, &size) ||
	    !word(cap, RBSP_RANGE_EC, l->ec.cfp, &cfp) ||
	    !word(cap, RBSP_RANGE_EC, l->ec.thread, &th) || cap->range[RBSP_RANGE_EC].addr != ec)
		return RBSP_E_TORN;
	if (!th || cap->range[RBSP_RANGE_TH].addr != th ||
	    !word(cap, RBSP_RANGE_TH, l->th.ec, &th_ec) ||
	    !half(cap, RBSP_RANGE_TH, l->th.status, &status))
		return RBSP_E_NOT_FOUND;
	/* A finished thread's pthread keeps a pointer to what was its ec (3.1). */
	if (th_ec != ec || (status & STATUS_MASK) == KILLED || !stack || !cfp)
		return RBSP_E_NOT_FOUND;
	pthread = pthread_of(l, cap);
	/* Elsewhere than on x86-64 pthread_t is not the thread pointer. */
	if (l->machine == EM_X86_64 && thread_pointer && pthread && pthread != thread_pointer)
		return RBSP_E_NOT_FOUND;
	if ((stack | cfp) & 7 || size > (UINT64_MAX >> 4) || stack > UINT64_MAX - size * 8 ||
	    cfp < stack || cfp > stack + size * 8)
		return RBSP_E_RANGE;
	if ((stack + size * 8 - cfp) % l->cfp.size)
		return RBSP_E_TORN;
	return RBSP_OK;
}

/* The GVL's owner as captured, 0: free. @return false: not known for this thread's ractor */
static bool owner_of(const struct rbsp_ruby *r, const struct rbsp_capture *cap, rbsp_addr *owner)
{
	uint64_t ractor;

	if (!word(cap, RBSP_RANGE_SCHED, 0, owner))
		return false;
	return r->l->th.ractor == RBSP_NONE || !r->addrs.ractor ||
	       (word(cap, RBSP_RANGE_TH, r->l->th.ractor, &ractor) && ractor == r->addrs.ractor);
}

/* 3.3+: the GVL was handed to the owner, which is not awake yet. */
static bool handed_over(const struct rbsp_layout *l, const struct rbsp_capture *cap)
{
	const struct rbsp_range *g = &cap->range[RBSP_RANGE_SCHED];
	uint32_t off;

	if (l->ractor.is_running == RBSP_NONE)
		return false;
	off = l->ractor.is_running - l->ractor.gvl_owner;
	return off < g->len && !cap->data[g->off + off];
}

/* Whether the thread stands in the queue for the GVL: its list node is linked and, where the ubf
 * list shares it, not there. */
static bool queued(const struct rbsp_layout *l, const struct rbsp_capture *cap)
{
	rbsp_addr node = cap->range[RBSP_RANGE_TH].addr + l->th.ready_node;
	uint64_t next, ubf;

	return word(cap, RBSP_RANGE_TH, l->th.ready_node, &next) && next && next != node &&
	       word(cap, RBSP_RANGE_TH, l->th.unblock_func, &ubf) && !ubf;
}

enum rbsp_thread_state rbsp_ruby_state(struct rbsp_ruby *r, const struct rbsp_capture *cap,
				       rbsp_addr *owner_th)
{
	const struct rbsp_layout *l = r->l;
	rbsp_addr owner = 0, th = cap->range[RBSP_RANGE_TH].addr;
	bool known = owner_of(r, cap, &owner), blocked = cap->flags & RBSP_CAP_BLOCKED;
	uint64_t region = 0, mutex = 0;
	uint32_t status;

	if (owner_th)
		*owner_th = known ? owner : 0;
	if (!th || !half(cap, RBSP_RANGE_TH, l->th.status, &status))
		return RBSP_STATE_UNKNOWN;
	if (known && owner == th)
		return handed_over(l, cap) ? RBSP_STATE_GVL_WAIT : RBSP_STATE_RUNNING;
	word(cap, RBSP_RANGE_TH, l->th.blocking_region, &region);
	word(cap, RBSP_RANGE_TH, l->th.locking_mutex, &mutex);
	status &= STATUS_MASK;
	if (queued(l, cap))
		return RBSP_STATE_GVL_WAIT;
	if (status == RUNNABLE) {
		if (known)
			return RBSP_STATE_GVL_WAIT;
		return blocked ? RBSP_STATE_UNKNOWN : RBSP_STATE_RUNNING;
	}
	if (region)
		return blocked ? RBSP_STATE_BLOCKED : RBSP_STATE_NATIVE;
	if (status == STOPPED || status == STOPPED_FOREVER)
		return mutex ? RBSP_STATE_MUTEX_WAIT : RBSP_STATE_SLEEP;
	return RBSP_STATE_UNKNOWN;
}

rbsp_frame_id rbsp_ruby_gc(struct rbsp_ruby *r, const struct rbsp_capture *cap)
{
	static const char *const names[] = { "mark", "sweep", "compact" };
	const struct rbsp_layout *l = r->l;
	rbsp_addr owner;
	uint32_t flags;
	unsigned what;

	if (!half(cap, RBSP_RANGE_GC, 0, &flags) || !(flags >> l->gc.during_gc_bit & 1))
		return 0;
	if (owner_of(r, cap, &owner) && owner != cap->range[RBSP_RANGE_TH].addr)
		return 0;
	switch (flags & MODE_MASK) {
	case MODE_SWEEPING:
		/* Up to 3.2 objects are moved while the heap is swept. */
		what = flags >> l->gc.compacting_bit & 1 ? 2 : 1;
		break;
	case MODE_COMPACTING:
		what = 2;
		break;
	default: /* a collection begins before its mode is set */
		what = 0;
		break;
	}
	if (!r->gc[what]) {
		struct rbsp_frame f = { .kind = RBSP_FRAME_GC, .name = names[what] };

		r->gc[what] = rbsp_frames_intern(r->frames, &f);
	}
	return r->gc[what];
}

enum rbsp_status rbsp_ruby_thread_name(struct rbsp_ruby *r, rbsp_addr th, char *buf, size_t cap)
{
	const uint16_t at[] = { r->l->th.name, r->l->th.name_plain };
	enum rbsp_status st = RBSP_E_RANGE;

	if (!cap)
		return st;
	buf[0] = 0;
	/* The word is a String or nil; where it is neither, this Ruby was built the other way. */
	for (size_t i = 0; i < RBSP_COUNT_OF(at) && at[i] != RBSP_NONE; i++) {
		rbsp_addr name;
		size_t len;

		st = rbsp_read_word(r->target, th + at[i], &name);
		if (st == RBSP_OK && name == r->l->qnil)
			return RBSP_OK;
		if (st == RBSP_OK)
			st = rbsp_ruby_string(r->target, r->l, name, buf, cap, &len);
		if (st == RBSP_OK)
			return RBSP_OK;
		buf[0] = 0;
	}
	return st;
}
