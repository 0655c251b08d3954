/* rb_vm_exec: by symbol, else the function that rb_iseq_eval and rb_iseq_eval_main both call; and
 * the dispatch loop under it. */
#include "locate/code.h"
#include "locate/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define REFS_MAX 4096
/* The dispatch loop jumps through a table at the end of every instruction: 145 jumps on 3.3,
 * compilers make at least 40. */
#define LOOP_JUMPS 40
/* The dispatch loop is 16 to 60 KiB. */
#define FUNC_MAX (512u << 10)
#define CALLEES_MAX 64

/** A function's text, from memory. */
struct func {
	uint64_t start, end; /* vaddrs */
	unsigned char *code; /* owned */
};

static void func_fini(struct func *fn)
{
	free(fn->code);
	fn->code = NULL;
}

static enum rbsp_status func_read(struct rbsp_finder *f, uint64_t vaddr, struct func *fn)
{
	enum rbsp_status st;

	*fn = (struct func){ .code = NULL };
	if (!rbsp_elf_fde_at(f->l->elf, vaddr, &fn->start, &fn->end) || fn->end <= fn->start ||
	    fn->end - fn->start > FUNC_MAX)
		return RBSP_E_NOT_FOUND;
	fn->code = malloc(fn->end - fn->start);
	if (!fn->code)
		return RBSP_E_NOMEM;
	st = rbsp_read(f->t, fn->start + f->l->bias, fn->code, fn->end - fn->start);
	if (st != RBSP_OK)
		func_fini(fn);
	return st == RBSP_E_FAULT ? RBSP_E_NOT_FOUND : st;
}

/** The executable segments as one range. */
static void text_range(const struct rbsp_finder *f, uint64_t *lo, uint64_t *hi)
{
	const struct rbsp_elf_segment *seg;
	size_t n = rbsp_elf_segments(f->l->elf, &seg);

	*lo = UINT64_MAX;
	*hi = 0;
	for (size_t i = 0; i < n; i++) {
		if (!seg[i].exec)
			continue;
		*lo = seg[i].vaddr < *lo ? seg[i].vaddr : *lo;
		*hi = seg[i].vaddr + seg[i].memsz > *hi ? seg[i].vaddr + seg[i].memsz : *hi;
	}
}

static bool starts_function(const struct rbsp_finder *f, uint64_t vaddr)
{
	uint64_t start, end;

	return vaddr && rbsp_elf_fde_at(f->l->elf, vaddr, &start, &end) && start == vaddr;
}

/** The function that a GOT word names: its symbol's, else what the word holds. */
static uint64_t got_target(struct rbsp_finder *f, uint64_t vaddr)
{
	size_t lo = 0, hi = f->n_got;
	uint64_t value = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->got[mid].vaddr == vaddr && f->got[mid].target)
			return f->got[mid].target;
		if (f->got[mid].vaddr == vaddr)
			break;
		if (f->got[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (rbsp_read_word(f->t, vaddr + f->l->bias, &value) != RBSP_OK || value < f->l->bias)
		return 0;
	return value - f->l->bias;
}

/** Whether a word at this address can be a GOT slot: in a writable segment. */
static bool in_data(const struct rbsp_finder *f, uint64_t vaddr)
{
	const struct rbsp_elf_segment *seg;
	size_t n = rbsp_elf_segments(f->l->elf, &seg);

	for (size_t i = 0; i < n; i++) {
		if (seg[i].write && vaddr >= seg[i].vaddr &&
		    vaddr + 8 <= seg[i].vaddr + seg[i].memsz)
			return true;
	}
	return false;
}

uint64_t rbsp_locate_follow(struct rbsp_finder *f, uint64_t target, bool word)
{
	unsigned char stub[16];
	uint64_t lo, hi, slot;

	if (word) {
		target = in_data(f, target) ? got_target(f, target) : 0;
		return starts_function(f, target) ? target : 0;
	}
	if (starts_function(f, target))
		return target;
	text_range(f, &lo, &hi);
	if (target < lo || target + sizeof(stub) > hi || target % 8 ||
	    rbsp_read(f->t, target + f->l->bias, stub, sizeof(stub)) != RBSP_OK)
		return 0;
	slot = rbsp_code_plt_slot(f->machine, stub, sizeof(stub), target);
	target = slot && in_data(f, slot) ? got_target(f, slot) : 0;
	return starts_function(f, target) ? target : 0;
}

/** Distinct functions of the module that @p fn calls or jumps to, itself left out. */
static size_t callees(struct rbsp_finder *f, const struct func *fn, uint64_t *out, size_t cap)
{
	struct rbsp_code_ref *ref = calloc(REFS_MAX, sizeof(*ref));
	size_t n_ref, n = 0;

	if (!ref)
		return 0;
	n_ref = rbsp_code_refs(f->machine, fn->code, fn->end - fn->start, fn->start, RBSP_REF_CALL,
			       rbsp_elf_info(f->l->elf)->low_vaddr, UINT64_MAX, ref, REFS_MAX);
	for (size_t i = 0; i < n_ref && n < cap; i++) {
		uint64_t to = ref[i].target;
		size_t k = 0;

		if (!ref[i].word && to >= fn->start && to < fn->end)
			continue;
		to = rbsp_locate_follow(f, to, ref[i].word);
		while (k < n && out[k] != to)
			k++;
		if (to && to != fn->start && k == n)
			out[n++] = to;
	}
	free(ref);
	return n;
}

/** The direct callee that is a dispatch loop: the one with the most jumps, if enough. 0: none */
static uint64_t dispatch_loop(struct rbsp_finder *f, uint64_t vaddr)
{
	uint64_t callee[CALLEES_MAX], best = 0;
	size_t most = LOOP_JUMPS - 1, n;
	struct func fn, to;

	if (func_read(f, vaddr, &fn) != RBSP_OK)
		return 0;
	n = callees(f, &fn, callee, RBSP_COUNT_OF(callee));
	func_fini(&fn);
	for (size_t i = 0; i < n; i++) {
		size_t jumps;

		if (func_read(f, callee[i], &to) != RBSP_OK)
			continue;
		jumps = rbsp_code_indirect_jumps(f->machine, to.code, to.end - to.start);
		if (jumps > most) {
			most = jumps;
			best = callee[i];
		}
		func_fini(&to);
	}
	return best;
}

/** What both entry functions call; several: the one that leads to a dispatch loop, else the
 * largest. */
static uint64_t common_callee(struct rbsp_finder *f, size_t *n_common)
{
	static const char *const entry[2] = { "rb_iseq_eval", "rb_iseq_eval_main" };
	uint64_t callee[2][CALLEES_MAX], best = 0, best_size = 0, start, end;
	size_t n[2] = { 0, 0 };
	bool best_loops = false;

	*n_common = 0;
	for (int i = 0; i < 2; i++) {
		rbsp_addr at = rbsp_locate_symbol(f, entry[i]);
		struct func fn;

		if (!at || func_read(f, at - f->l->bias, &fn) != RBSP_OK)
			return 0;
		n[i] = callees(f, &fn, callee[i], CALLEES_MAX);
		func_fini(&fn);
	}
	for (size_t i = 0; i < n[0]; i++) {
		bool common = false, loops;

		for (size_t k = 0; k < n[1]; k++)
			common |= callee[0][i] == callee[1][k];
		if (!common || !rbsp_elf_fde_at(f->l->elf, callee[0][i], &start, &end))
			continue;
		++*n_common;
		loops = dispatch_loop(f, callee[0][i]) != 0;
		if (!best || loops > best_loops ||
		    (loops == best_loops && end - start > best_size)) {
			best = callee[0][i];
			best_size = end - start;
			best_loops = loops;
		}
	}
	return best;
}

/** Whether @p to jumps into the middle of [start, end). */
static bool jumps_back(struct rbsp_finder *f, const struct func *to, uint64_t start, uint64_t end,
		       struct rbsp_code_ref *ref)
{
	return rbsp_code_refs(f->machine, to->code, to->end - to->start, to->start, RBSP_REF_JUMP,
			      start + 1, end, ref, 1) > 0;
}

/** A function and its cold parts (jumped to from it, and jumping back into its middle) into @p
 * range. */
static size_t with_cold_parts(struct rbsp_finder *f, uint64_t vaddr, struct rbsp_code_range *range,
			      size_t cap)
{
	struct rbsp_code_ref *ref = calloc(REFS_MAX, sizeof(*ref)), back;
	uint64_t lo, hi, bias = f->l->bias;
	struct func fn = { .code = NULL }, to;
	size_t n = 0, n_ref;

	if (!ref || func_read(f, vaddr, &fn) != RBSP_OK)
		goto out;
	range[n++] = (struct rbsp_code_range){ fn.start + bias, fn.end + bias };
	text_range(f, &lo, &hi);
	n_ref = rbsp_code_refs(f->machine, fn.code, fn.end - fn.start, fn.start, RBSP_REF_JUMP, lo,
			       fn.start, ref, REFS_MAX);
	n_ref += rbsp_code_refs(f->machine, fn.code, fn.end - fn.start, fn.start, RBSP_REF_JUMP,
				fn.end, hi, ref + n_ref, REFS_MAX - n_ref);
	for (size_t i = 0; i < n_ref && n < cap; i++) {
		bool known = false;

		for (size_t k = 0; k < n; k++)
			known |= ref[i].target + bias >= range[k].start &&
				 ref[i].target + bias < range[k].end;
		if (known || func_read(f, ref[i].target, &to) != RBSP_OK)
			continue;
		if (to.end - to.start < fn.end - fn.start &&
		    jumps_back(f, &to, fn.start, fn.end, &back))
			range[n++] = (struct rbsp_code_range){ to.start + bias, to.end + bias };
		func_fini(&to);
	}
out:
	func_fini(&fn);
	free(ref);
	return n;
}

/** Log how rb_vm_exec was found. @return its vaddr, 0: not found */
static uint64_t find(struct rbsp_finder *f)
{
	rbsp_addr named = rbsp_locate_symbol(f, "rb_vm_exec");
	size_t n_common;
	uint64_t common = common_callee(f, &n_common), bias = f->l->bias;

	rbsp_locate_step(f, "rb_vm_exec", "by symbol", named != 0, "%#llx, %s",
			 (unsigned long long)(named ? named - bias : 0),
			 !named                   ? "no such symbol"
			 : named - bias == common ? "also the common callee"
						  : "not the common callee");
	if (named)
		return named - bias;
	rbsp_locate_step(f, "rb_vm_exec", "common callee of rb_iseq_eval and rb_iseq_eval_main",
			 common != 0, "%#llx, %zu candidates", (unsigned long long)common,
			 n_common);
	return common;
}

enum rbsp_status rbsp_locate_vm_exec(struct rbsp_finder *f)
{
	struct rbsp_located *l = f->l;
	uint64_t at = find(f), loop;

	if (!at)
		return RBSP_OK;
	l->n_vm_exec = with_cold_parts(f, at, l->vm_exec, RBSP_COUNT_OF(l->vm_exec));
	loop = dispatch_loop(f, at);
	if (loop)
		l->n_interp = with_cold_parts(f, loop, l->interp, RBSP_COUNT_OF(l->interp));
	rbsp_locate_step(f, "rb_vm_exec", "dispatch loop among its callees", loop != 0,
			 "%#llx, rb_vm_exec has %zu parts, the loop %zu", (unsigned long long)loop,
			 l->n_vm_exec, l->n_interp);
	return RBSP_OK;
}
