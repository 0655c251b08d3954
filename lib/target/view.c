/* Filling a capture: see view.h. Runs inside stop windows: reads only. */
#include <string.h>

#include "target/view.h"

/* Vectored read into the free end of a capture's data; remembers which piece is which range. */
struct fill {
	struct rbsp_target *t;
	struct rbsp_capture *c;
	size_t room;
	struct rbsp_piece piece[RBSP_RANGES + RBSP_STACK_ENTRY / 4096];
	enum rbsp_range_id id[RBSP_RANGES + RBSP_STACK_ENTRY / 4096];
	size_t n;
};

/* Plan a piece of a range. A second piece of the same range must follow the first directly. @return
 * bytes planned: less than asked when the room ends */
static size_t plan(struct fill *f, enum rbsp_range_id id, rbsp_addr addr, size_t n)
{
	struct rbsp_range *r = &f->c->range[id];
	size_t free_bytes = f->room - f->c->size;

	if (n > free_bytes)
		n = free_bytes & ~(size_t)7;
	if (!addr || !n)
		return 0;
	if (!r->addr)
		*r = (struct rbsp_range){ .addr = addr, .off = f->c->size };
	f->piece[f->n] = (struct rbsp_piece){ addr, f->c->data + f->c->size, n };
	f->id[f->n++] = id;
	f->c->size += (uint32_t)n;
	return n;
}

static enum rbsp_status run(struct fill *f)
{
	size_t done = 0;
	enum rbsp_status st = f->n ? f->t->ops->readv(f->t, f->piece, f->n, &done) : RBSP_OK;

	for (size_t i = 0; i < f->n; i++) {
		size_t got = done < f->piece[i].n ? done : f->piece[i].n;
		struct rbsp_range *r = &f->c->range[f->id[i]];

		r->len += (uint32_t)got;
		if (!r->len)
			r->addr = 0;
		done -= got;
	}
	f->n = 0;
	return st;
}

static void forget(struct fill *f, enum rbsp_range_id id)
{
	f->c->range[id] = (struct rbsp_range){ 0 };
}

static uint64_t word_of(const struct rbsp_capture *c, enum rbsp_range_id id, uint32_t offset)
{
	const struct rbsp_range *r = &c->range[id];
	uint64_t w = 0;

	if (r->addr && offset + sizeof(w) <= r->len)
		memcpy(&w, c->data + r->off + offset, sizeof(w));
	return w;
}

/* Entry frames: on 2.7 to 3.1 a thread's VM stack lies inside its native stack, right above
 * machine.stack_start. */
static void plan_entry(struct fill *f, const struct rbsp_view *v)
{
	bool inside = v->vm_stack >= v->stack_start && v->vm_stack - v->stack_start < 4096;
	rbsp_addr at = inside ? v->vm_end : v->stack_start;

	/* Page by page: what lies beyond the stack's end may fault. */
	for (size_t done = 0; at && done < RBSP_STACK_ENTRY;) {
		size_t step = 4096 - (at & 4095);

		if (step > RBSP_STACK_ENTRY - done)
			step = RBSP_STACK_ENTRY - done;
		if (plan(f, RBSP_RANGE_ENTRY, at, step) < step)
			return;
		at += step;
		done += step;
	}
}

/* x86-64 leaf functions may use 128 bytes below sp (the red zone). */
static void plan_stack(struct fill *f, const struct rbsp_capture_spec *spec,
		       const struct rbsp_view *v)
{
	rbsp_addr low = (f->c->regs.sp - 128) & ~(rbsp_addr)7;
	bool inside = v->stack_start > f->c->regs.sp && v->stack_start - low < RBSP_STACK_MAX;
	size_t want = inside ? v->stack_start - low : RBSP_STACK_PLAIN;

	if (!spec->native || !f->c->regs.sp)
		return;
	if (plan(f, RBSP_RANGE_STACK, low, want) < want)
		f->c->flags |= RBSP_CAP_CUT_STACK;
	if (spec->native_full && inside)
		plan_entry(f, v);
}

static void plan_thread(struct fill *f, const struct rbsp_capture_spec *spec,
			const struct rbsp_view *v)
{
	plan(f, RBSP_RANGE_EC, v->ec, spec->ec_size);
	plan(f, RBSP_RANGE_TH, v->th, spec->th_size);
	if (spec->nt_size)
		plan(f, RBSP_RANGE_NT, v->nt, spec->nt_size);
}

/* After the first read: did the plan meet the truth? Corrects the view. @return false: what hangs
 * on the ec must be read again */
static bool view_holds(const struct rbsp_capture *c, const struct rbsp_capture_spec *spec,
		       struct rbsp_view *v)
{
	struct rbsp_view now = *v;

	now.ec = word_of(c, RBSP_RANGE_SLOT, 0);
	if (now.ec != v->ec || !c->range[RBSP_RANGE_EC].addr) {
		*v = (struct rbsp_view){ .slot = v->slot, .ec = now.ec };
		return false;
	}
	now.th = word_of(c, RBSP_RANGE_EC, spec->ec_thread);
	now.stack_start = word_of(c, RBSP_RANGE_EC, spec->ec_stack_start);
	now.vm_stack = word_of(c, RBSP_RANGE_EC, spec->ec_vm_stack);
	now.vm_end = now.vm_stack + 8 * word_of(c, RBSP_RANGE_EC, spec->ec_vm_stack_size);
	if (now.vm_stack != v->vm_stack)
		now.values = 0;
	now.nt = spec->nt_size ? word_of(c, RBSP_RANGE_TH, spec->th_nt) : 0;
	if (memcmp(&now, v, sizeof(now)) == 0)
		return true;
	if (now.th != v->th)
		now.nt = 0;
	*v = now;
	return false;
}

static void read_again(struct fill *f, const struct rbsp_capture_spec *spec, struct rbsp_view *v,
		       uint32_t head)
{
	for (int round = 0; round < 3 && v->ec; round++) {
		forget(f, RBSP_RANGE_EC);
		forget(f, RBSP_RANGE_TH);
		forget(f, RBSP_RANGE_NT);
		forget(f, RBSP_RANGE_STACK);
		forget(f, RBSP_RANGE_ENTRY);
		f->c->size = head;
		f->c->flags &= ~(unsigned)RBSP_CAP_CUT_STACK;
		plan_thread(f, spec, v);
		if (v->stack_start)
			plan_stack(f, spec, v);
		run(f);
		if (view_holds(f->c, spec, v))
			return;
	}
}

/* Control frames and value stack: [cfp, end) whole, the values up to the newest frame's sp. */
static void read_frames(struct fill *f, const struct rbsp_capture_spec *spec, struct rbsp_view *v)
{
	struct rbsp_capture *c = f->c;
	rbsp_addr stack = v->vm_stack, cfp = word_of(c, RBSP_RANGE_EC, spec->ec_cfp), sp;
	size_t values, frames;

	if (!stack || v->vm_end <= stack || cfp < stack || cfp >= v->vm_end) {
		c->flags |= RBSP_CAP_NO_EC;
		run(f);
		return;
	}
	frames = v->vm_end - cfp;
	values = v->values ? v->values + 1024 : 4096;
	if (values > cfp - stack)
		values = cfp - stack;
	if (plan(f, RBSP_RANGE_CFP, cfp, frames) < frames)
		c->flags |= RBSP_CAP_CUT_VALUES;
	plan(f, RBSP_RANGE_VALUES, stack, values);
	run(f);
	sp = word_of(c, RBSP_RANGE_CFP, spec->cfp_sp);
	if (sp < stack || sp > cfp)
		return; /* torn: decoding says so */
	v->values = sp - stack;
	if (v->values > values && c->range[RBSP_RANGE_VALUES].len == values) {
		size_t more = v->values - values;

		if (plan(f, RBSP_RANGE_VALUES, stack + values, more) < more)
			c->flags |= RBSP_CAP_CUT_VALUES;
		run(f);
	}
}

/*
 * Whether the stack is worth planning before the ec is known: a thread that has switched fibers has
 * its sp in one stack and the remembered bound in another, and what lies between may be anything.
 */
static bool stack_is_likely(const struct rbsp_capture *c, const struct rbsp_view *v)
{
	return !v->slot || (v->stack_start > c->regs.sp &&
			    v->stack_start - c->regs.sp < v->stack_used + RBSP_STACK_PLAIN);
}

enum rbsp_status rbsp_view_read(struct rbsp_target *t, const struct rbsp_capture_spec *spec,
				struct rbsp_view *v, struct rbsp_capture *c, size_t room)
{
	struct fill f = { .t = t, .c = c, .room = room };
	enum rbsp_status st;
	uint32_t head;

	memset(c->range, 0, sizeof(c->range));
	c->size = 0;
	plan(&f, RBSP_RANGE_SLOT, v->slot, 8);
	plan(&f, RBSP_RANGE_SCHED, spec->sched, spec->sched_size);
	plan(&f, RBSP_RANGE_GC, spec->gc, spec->gc ? 8 : 0);
	plan(&f, RBSP_RANGE_GC_COUNT, spec->gc_count, spec->gc_count ? 8 : 0);
	head = c->size;
	if (v->ec)
		plan_thread(&f, spec, v);
	if (stack_is_likely(c, v))
		plan_stack(&f, spec, v);
	st = run(&f);
	if (st == RBSP_E_GONE || (v->slot && !c->range[RBSP_RANGE_SLOT].addr))
		return st == RBSP_OK ? RBSP_E_FAULT : st;
	if (v->slot && !view_holds(c, spec, v))
		read_again(&f, spec, v, head);
	if (!c->range[RBSP_RANGE_STACK].addr)
		plan_stack(&f, spec, v);
	if (v->ec && c->range[RBSP_RANGE_EC].addr) {
		read_frames(&f, spec, v);
	} else {
		c->flags |= RBSP_CAP_NO_EC;
		run(&f);
	}
	v->stack_used = c->range[RBSP_RANGE_STACK].len;
	return RBSP_OK;
}
