/* GC flags and count: what the exported rb_during_gc and rb_gc_count load, followed in the live
 * process. */
#include "locate/code.h"
#include "locate/internal.h"

#include <elf.h>
#include <string.h>

/* rb_vm_t and rb_objspace_t are smaller. */
#define VM_MAX 16384
#define OBJSPACE_MAX 8192
/* An accessor has a handful of instructions, and at most one call in it. */
#define INSNS_MAX 48
#define CALLS_MAX 3
#define TEXT_MAX 256

struct run {
	struct rbsp_finder *f;
	struct rbsp_loads *out;
	uint64_t reg[32];
	uint32_t known; /* bit i: reg[i] is a value of the target */
	uint64_t tested;
	bool tested_known;
	size_t budget;
};

static bool get(const struct run *r, uint8_t reg, uint64_t *v)
{
	*v = 0;
	if (reg == RBSP_NO_REG)
		return true;
	*v = r->reg[reg & 31];
	return r->known >> (reg & 31) & 1;
}

static void set(struct run *r, uint8_t reg, uint64_t v, bool known)
{
	r->reg[reg & 31] = v;
	r->known = known ? r->known | 1u << (reg & 31) : r->known & ~(1u << (reg & 31));
}

/** @return false: the load cannot be followed */
static bool load(struct run *r, const struct rbsp_insn *in)
{
	uint64_t base, value = 0;
	rbsp_addr at;

	if (!get(r, in->base, &base) || r->out->n == RBSP_COUNT_OF(r->out->at))
		return false;
	at = base + in->value;
	if (rbsp_read(r->f->t, at, &value, in->size) != RBSP_OK)
		return false;
	r->out->at[r->out->n] = at;
	r->out->value[r->out->n++] = value;
	set(r, in->to, value, true);
	return true;
}

/** One instruction but calls and returns. @return false: the end of what can be followed */
static bool execute(struct run *r, const struct rbsp_insn *in, uint64_t *pc)
{
	uint64_t v = 0;
	bool known;

	*pc += in->len;
	switch (in->kind) {
	case RBSP_INSN_SKIP:
		return true;
	case RBSP_INSN_ADDR:
		known = get(r, in->base, &v);
		set(r, in->to, v + in->value, known);
		return true;
	case RBSP_INSN_LOAD:
		return load(r, in);
	case RBSP_INSN_ZERO:
		set(r, in->to, 0, true);
		return true;
	case RBSP_INSN_TEST:
		r->tested_known = get(r, in->to, &r->tested);
		return true;
	case RBSP_INSN_IF_ZERO:
	case RBSP_INSN_IF_NOT_ZERO:
		known = r->tested_known;
		v = r->tested;
		if (in->to != RBSP_NO_REG)
			known = get(r, in->to, &v);
		if (known && (v == 0) == (in->kind == RBSP_INSN_IF_ZERO))
			*pc = in->value;
		return known;
	case RBSP_INSN_JUMP:
		*pc = in->value;
		return true;
	default:
		return false;
	}
}

/** The text of the function at a runtime address. */
static size_t text_of(struct rbsp_finder *f, rbsp_addr at, unsigned char *code, rbsp_addr *start)
{
	uint64_t lo, hi;
	size_t n;

	if (!rbsp_elf_fde_at(f->l->elf, at - f->l->bias, &lo, &hi) || hi <= lo)
		return 0;
	n = hi - lo < TEXT_MAX ? hi - lo : TEXT_MAX;
	*start = lo + f->l->bias;
	return rbsp_read(f->t, *start, code, n) == RBSP_OK ? n : 0;
}

/** Follow one function, and the calls in it as far as they can be followed. @return whether its
 * return was reached */
static bool follow(struct run *r, rbsp_addr pc)
{
	rbsp_addr back[CALLS_MAX], start = 0;
	unsigned char code[TEXT_MAX];
	size_t depth = 0, n = text_of(r->f, pc, code, &start);

	while (n && r->budget--) {
		struct rbsp_insn in;

		if (pc < start || pc >= start + n) { /* another function */
			n = text_of(r->f, pc, code, &start);
			if (!n || pc < start || pc >= start + n)
				return false;
		}
		in = rbsp_insn_decode(r->f->machine, code + (pc - start), n - (pc - start), pc);
		if (in.kind == RBSP_INSN_RETURN) {
			if (!depth)
				return true;
			pc = back[--depth];
		} else if (in.kind == RBSP_INSN_CALL) {
			uint64_t to = rbsp_locate_follow(r->f, in.value - r->f->l->bias, false);

			if (!to || depth == CALLS_MAX)
				return false;
			back[depth++] = pc + in.len;
			pc = to + r->f->l->bias;
		} else if (!execute(r, &in, &pc)) {
			return false;
		}
	}
	return false;
}

enum rbsp_status rbsp_locate_follow_loads(struct rbsp_finder *f, const char *name,
					  struct rbsp_loads *out)
{
	struct run r = { .f = f, .out = out, .budget = INSNS_MAX };
	rbsp_addr at = rbsp_locate_symbol(f, name);

	*out = (struct rbsp_loads){ .n = 0 };
	if (!at)
		return RBSP_E_NOT_FOUND;
	follow(&r, at);
	return out->n ? RBSP_OK : RBSP_E_NOT_FOUND;
}

/** The last loads must be: a word of the VM, the objspace; then a word of that. */
static bool vm_objspace_word(struct rbsp_finder *f, const char *name, rbsp_addr *objspace,
			     rbsp_addr *at)
{
	rbsp_addr vm = f->l->addrs.vm;
	struct rbsp_loads l;

	if (rbsp_locate_follow_loads(f, name, &l) != RBSP_OK || l.n < 2)
		return false;
	*objspace = l.value[l.n - 2];
	*at = l.at[l.n - 1];
	return l.at[l.n - 2] >= vm && l.at[l.n - 2] < vm + VM_MAX &&
	       rbsp_locate_plausible(&f->maps, *objspace, 8) && *at >= *objspace &&
	       *at < *objspace + OBJSPACE_MAX;
}

static enum rbsp_status by_table(struct rbsp_finder *f)
{
	const struct rbsp_layout *l = f->l->layout;
	uint64_t objspace = 0;
	bool good;

	good = l->vm.objspace != RBSP_NONE && l->gc.flags != RBSP_NONE &&
	       rbsp_read_word(f->t, f->l->addrs.vm + l->vm.objspace, &objspace) == RBSP_OK &&
	       rbsp_locate_plausible(&f->maps, objspace, l->gc.flags + 8u);
	if (good)
		f->l->addrs.gc_flags = objspace + l->gc.flags;
	rbsp_locate_step(f, "gc", "flags by the layout table", good, "vm + %u, objspace + %u",
			 l->vm.objspace, l->gc.flags);
	return RBSP_OK;
}

enum rbsp_status rbsp_locate_gc(struct rbsp_finder *f)
{
	rbsp_addr objspace = 0, other = 0, at = 0, vm = f->l->addrs.vm;
	bool good = vm_objspace_word(f, "rb_during_gc", &objspace, &at);

	rbsp_locate_step(f, "gc", "flags by the loads of rb_during_gc", good,
			 "objspace %#llx + %lld", (unsigned long long)objspace,
			 (long long)(at - objspace));
	if (good)
		f->l->addrs.gc_flags = at & ~3ull; /* the flags are a word of 4 bytes */
	else if (vm)
		by_table(f);
	good = vm_objspace_word(f, "rb_gc_count", &other, &at) && (!objspace || other == objspace);
	rbsp_locate_step(f, "gc", "count by the loads of rb_gc_count", good,
			 "objspace %#llx + %lld", (unsigned long long)other,
			 (long long)(at - other));
	if (good)
		f->l->addrs.gc_count = at;
	return RBSP_OK;
}
