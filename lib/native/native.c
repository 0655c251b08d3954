/* The native side of a capture: walking the frames, names. */
#include <stdlib.h>

#include "native/impl.h"

enum rbsp_status rbsp_native_new(struct rbsp_target *target, struct rbsp_native **out,
				 struct rbsp_err *err)
{
	struct rbsp_native *nat = calloc(1, sizeof(*nat));
	enum rbsp_status st;
	bool lost;

	if (!nat)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for an unwinder");
	nat->modules.target = target;
	elf_version(EV_CURRENT);
	nat->space = rbsp_cursor_space();
	if (!nat->space) {
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for libunwind");
		goto out;
	}
	st = rbsp_modules_read(&nat->modules, &lost, err);
	if (st != RBSP_OK)
		goto out;
	*out = nat;
	nat = NULL; /* the caller owns it now */
out:
	rbsp_native_free(nat);
	return st;
}

void rbsp_native_free(struct rbsp_native *nat)
{
	if (!nat)
		return;
	if (nat->space)
		unw_destroy_addr_space(nat->space);
	rbsp_rows_fini(&nat->rows);
	rbsp_modules_fini(&nat->modules);
	free(nat);
}

void rbsp_native_only_libunwind(struct rbsp_native *nat, bool only)
{
	nat->only_libunwind = only;
}

/* The module of an address; the mappings are read again, once in a call, when it is new. NULL:
 * nowhere. */
static struct rbsp_module *module_at(struct rbsp_native *nat, rbsp_addr a)
{
	struct rbsp_modules *m = &nat->modules;
	struct rbsp_module *mod = rbsp_modules_find(m, a);
	bool lost;

	if (mod || !rbsp_modules_worth_reading(m, a))
		return mod;
	m->reread = true;
	if (rbsp_modules_read(m, &lost, NULL) != RBSP_OK)
		return NULL;
	if (lost)
		rbsp_rows_clear(&nat->rows);
	mod = rbsp_modules_find(m, a);
	if (!mod)
		rbsp_modules_note_nowhere(m, a);
	return mod;
}

/* The row of a program counter, filled at its first use. NULL: it is in no image, @p kind says in
 * what else. */
static struct rbsp_row *row_at(struct rbsp_native *nat, rbsp_addr pc, bool is_return,
			       enum rbsp_module_kind *kind)
{
	rbsp_addr key = rbsp_pc_lookup(pc, is_return);
	struct rbsp_row *row = rbsp_rows_find(&nat->rows, key);
	struct rbsp_module *mod;

	if (row)
		return row;
	mod = module_at(nat, key);
	*kind = mod ? mod->kind : RBSP_MODULE_NONE;
	if (!mod || mod->kind != RBSP_MODULE_IMAGE)
		return NULL;
	row = rbsp_rows_add(&nat->rows, key);
	if (!row)
		return NULL;
	row->image = mod->image;
	rbsp_row_fill(row, pc);
	return row;
}

static struct rbsp_area area_of(const struct rbsp_capture *c, enum rbsp_range_id id)
{
	const struct rbsp_range *r = &c->range[id];

	return (struct rbsp_area){ r->addr, r->addr ? r->len : 0, c->data + r->off };
}

static void walk_start(struct rbsp_walk *w, const struct rbsp_capture *c)
{
	memcpy(w->r, c->regs.r, sizeof(w->r));
	w->r[RBSP_DW_PC] = c->regs.pc;
	w->r[RBSP_DW_SP] = c->regs.sp;
	w->known = c->regs.known | UINT64_C(1) << RBSP_DW_PC | UINT64_C(1) << RBSP_DW_SP;
	w->area[0] = area_of(c, RBSP_RANGE_STACK);
	w->area[1] = area_of(c, RBSP_RANGE_ENTRY);
}

/* Apply a simple row: replace the registers by the caller's. */
static enum rbsp_step step_simple(const struct rbsp_row *row, struct rbsp_walk *w, rbsp_addr *cfa)
{
	uint64_t known = w->known & row->keep;

	if (!rbsp_walk_knows(w, row->cfa_reg))
		return RBSP_STEP_FAILED;
	*cfa = w->r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;
	if (row->deref && !rbsp_walk_word(w, *cfa, cfa)) {
		*cfa = 0;
		return RBSP_STEP_FAILED;
	}
	if (row->bottom)
		return RBSP_STEP_BOTTOM;
	for (size_t i = 0; i < row->n_saved; i++) {
		unsigned reg = row->saved[i];

		if (rbsp_walk_word(w, *cfa + (uint64_t)(int64_t)row->off[i], &w->r[reg]))
			known |= UINT64_C(1) << reg;
	}
	if ((known >> RBSP_DW_RA & 1) == 0)
		return RBSP_STEP_FAILED;
	w->r[RBSP_DW_SP] = *cfa;
	w->r[RBSP_DW_PC] = rbsp_dw_plain_pc(w->r[RBSP_DW_RA]);
	w->known = known | UINT64_C(1) << RBSP_DW_SP | UINT64_C(1) << RBSP_DW_PC;
	return RBSP_STEP_OK;
}

/* Leave a signal trampoline without CFI: every register is where the kernel put it. */
static enum rbsp_step step_sigreturn(struct rbsp_walk *w, rbsp_addr *cfa)
{
	rbsp_addr frame = w->r[RBSP_DW_SP];

	for (size_t reg = 0; reg < RBSP_DW_REGS; reg++) {
		if (!rbsp_walk_word(w, frame + rbsp_dw_sigframe[reg], &w->r[reg]))
			return RBSP_STEP_FAILED;
	}
	w->known = (UINT64_C(1) << RBSP_DW_REGS) - 1;
	*cfa = w->r[RBSP_DW_SP];
	return RBSP_STEP_OK;
}

static enum rbsp_step step(struct rbsp_native *nat, const struct rbsp_row *row, struct rbsp_walk *w,
			   rbsp_addr *cfa)
{
	if (row->kind == RBSP_ROW_NO_CFI)
		return RBSP_STEP_FAILED;
	if (row->kind == RBSP_ROW_SIGRETURN)
		return step_sigreturn(w, cfa);
	if (row->kind == RBSP_ROW_SIMPLE && !nat->only_libunwind)
		return step_simple(row, w, cfa);
	return rbsp_cursor_step(nat->space, w, row, cfa);
}

static bool inside(const struct rbsp_code_range *range, size_t n, rbsp_addr a)
{
	for (size_t i = 0; i < n; i++) {
		if (a >= range[i].start && a < range[i].end)
			return true;
	}
	return false;
}

enum rbsp_unwind_end rbsp_native_unwind(struct rbsp_native *nat, const struct rbsp_capture *c,
					const struct rbsp_code_range *until, size_t n_until,
					struct rbsp_native_frame *out, size_t cap, size_t *n)
{
	struct rbsp_walk w;
	rbsp_addr below = c->regs.sp ? c->regs.sp - 1 : 0; /* every CFA lies above the one before */
	bool is_return = false;

	*n = 0;
	nat->modules.reread = false;
	walk_start(&w, c);
	while (*n < cap) {
		struct rbsp_native_frame *f = &out[*n];
		enum rbsp_module_kind kind = RBSP_MODULE_NONE;
		const struct rbsp_row *row;
		enum rbsp_step st;

		if (w.r[RBSP_DW_PC] == 0)
			return RBSP_UNWIND_BOTTOM;
		row = row_at(nat, w.r[RBSP_DW_PC], is_return, &kind);
		if (!row)
			return kind == RBSP_MODULE_JIT ? RBSP_UNWIND_JIT : RBSP_UNWIND_CUT;
		f->pc = w.r[RBSP_DW_PC];
		f->func = row->func;
		f->is_return = is_return;
		f->cfa = 0;
		(*n)++;
		st = step(nat, row, &w, &f->cfa);
		if (inside(until, n_until, row->key))
			return RBSP_UNWIND_STOPPED;
		if (st == RBSP_STEP_BOTTOM)
			return RBSP_UNWIND_BOTTOM;
		/* A handler may run on a stack of its own, above or below the interrupted one. */
		if (st == RBSP_STEP_FAILED || (f->cfa <= below && !row->signal))
			return RBSP_UNWIND_CUT;
		below = f->cfa;
		is_return = !row->signal;
	}
	return RBSP_UNWIND_CUT;
}

void rbsp_native_describe(struct rbsp_native *nat, const struct rbsp_native_frame *f,
			  struct rbsp_frame *out)
{
	enum rbsp_module_kind kind = RBSP_MODULE_NONE;
	struct rbsp_symbol sym;
	const struct rbsp_elf_info *info;
	struct rbsp_row *row;

	nat->modules.reread = false;
	memset(out, 0, sizeof(*out));
	out->kind = RBSP_FRAME_NATIVE;
	out->address = f->pc;
	row = row_at(nat, f->pc, f->is_return, &kind);
	if (!row) {
		if (kind == RBSP_MODULE_JIT)
			out->kind = RBSP_FRAME_JIT;
		return;
	}
	if (!row->named) {
		/* A handler returns to the start of a trampoline: one byte less is a neighbour's.
		 */
		rbsp_addr at = row->signal ? f->pc : row->key;

		row->named = true;
		if (rbsp_elf_symbol_at(row->image->elf, at - row->image->bias, &sym))
			row->name = sym.name;
	}
	info = rbsp_elf_info(row->image->elf);
	out->name = row->name;
	out->module = row->image->name;
	out->build_id = info->build_id[0] ? info->build_id : NULL;
	out->offset = f->pc - row->image->bias;
	out->func = row->func ? row->func - row->image->bias : 0;
}

bool rbsp_native_is_jit(struct rbsp_native *nat, rbsp_addr pc)
{
	struct rbsp_module *mod;

	nat->modules.reread = false;
	mod = module_at(nat, pc);
	return mod && mod->kind == RBSP_MODULE_JIT;
}
