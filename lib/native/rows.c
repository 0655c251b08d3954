/* Unwind rows: a table by address, and filling a row from an image's CFI with libdw. */
#include <stdlib.h>

#include <dwarf.h>

#include "native/impl.h"

/* A program that runs through more call sites than this starts again: 8 MiB at the most. */
#define MAX_ROWS ((size_t)1 << 16)
#define FIRST_CAP ((size_t)1 << 10)

static size_t slot_of(const struct rbsp_rows *t, rbsp_addr key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->cap - 1);
}

/* The row of a key, or the free row where it belongs. */
static struct rbsp_row *probe(const struct rbsp_rows *t, rbsp_addr key)
{
	size_t i = slot_of(t, key);

	while (t->row[i].key != 0 && t->row[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return &t->row[i];
}

struct rbsp_row *rbsp_rows_find(const struct rbsp_rows *t, rbsp_addr key)
{
	struct rbsp_row *row;

	if (t->cap == 0)
		return NULL;
	row = probe(t, key);
	return row->key == key ? row : NULL;
}

static bool grow(struct rbsp_rows *t)
{
	struct rbsp_rows to = { .cap = t->cap ? t->cap * 2 : FIRST_CAP, .n = t->n };

	to.row = calloc(to.cap, sizeof(*to.row));
	if (!to.row)
		return false;
	for (size_t i = 0; i < t->cap; i++) {
		if (t->row[i].key != 0)
			*probe(&to, t->row[i].key) = t->row[i];
	}
	free(t->row);
	*t = to;
	return true;
}

struct rbsp_row *rbsp_rows_add(struct rbsp_rows *t, rbsp_addr key)
{
	struct rbsp_row *row;

	if (t->n == MAX_ROWS)
		rbsp_rows_clear(t);
	if (t->n * 2 >= t->cap && !grow(t))
		return NULL;
	row = probe(t, key);
	row->key = key;
	t->n++;
	return row;
}

void rbsp_rows_clear(struct rbsp_rows *t)
{
	if (t->cap)
		memset(t->row, 0, t->cap * sizeof(*t->row));
	t->n = 0;
}

void rbsp_rows_fini(struct rbsp_rows *t)
{
	free(t->row);
}

/* CFA = register + offset, or the word there. */
static bool fill_cfa(struct rbsp_row *row, Dwarf_Frame *frame)
{
	Dwarf_Op *op;
	size_t n;
	uint64_t reg;
	int64_t off;

	if (dwarf_frame_cfa(frame, &op, &n) != 0 || n < 1 || n > 2)
		return false;
	if (op[0].atom == DW_OP_bregx) {
		reg = op[0].number;
		off = (int64_t)op[0].number2;
	} else if (op[0].atom >= DW_OP_breg0 && op[0].atom <= DW_OP_breg31) {
		reg = op[0].atom - DW_OP_breg0;
		off = (int64_t)op[0].number;
	} else {
		return false;
	}
	if (n == 2 && op[1].atom != DW_OP_deref)
		return false;
	if (reg >= RBSP_DW_REGS || off < INT32_MIN || off > INT32_MAX)
		return false;
	row->cfa_reg = (uint8_t)reg;
	row->cfa_off = (int32_t)off;
	row->deref = n == 2;
	return true;
}

/* One register of the caller: the same, undefined, or saved at CFA + offset. */
static bool fill_register(struct rbsp_row *row, Dwarf_Frame *frame, unsigned reg)
{
	Dwarf_Op mem[3];
	Dwarf_Op *op;
	size_t n;
	int64_t off;

	if (dwarf_frame_register(frame, (int)reg, mem, &op, &n) != 0)
		return false;
	if (n == 0) {
		if (!op)
			row->keep |= UINT32_C(1) << reg;
		else if (reg == RBSP_DW_RA)
			row->bottom = true;
		return true;
	}
	if (op[0].atom != DW_OP_call_frame_cfa || n > 2 ||
	    (n == 2 && op[1].atom != DW_OP_plus_uconst))
		return false;
	off = n == 2 ? (int64_t)op[1].number : 0;
	if (off < INT16_MIN || off > INT16_MAX)
		return false;
	row->off[row->n_saved] = (int16_t)off;
	row->saved[row->n_saved++] = (uint8_t)reg;
	return true;
}

/* The caller's stack pointer is the CFA: what every ABI says, and what a row means. */
static bool sp_is_cfa(Dwarf_Frame *frame)
{
	Dwarf_Op mem[3];
	Dwarf_Op *op;
	size_t n;

	if (dwarf_frame_register(frame, RBSP_DW_SP, mem, &op, &n) != 0)
		return false;
	return n == 0 ||
	       (n == 2 && op[0].atom == DW_OP_call_frame_cfa && op[1].atom == DW_OP_stack_value);
}

static bool fill_simple(struct rbsp_row *row, Dwarf_Frame *frame, int ra)
{
	if (row->signal || ra != RBSP_DW_RA || !fill_cfa(row, frame) || !sp_is_cfa(frame))
		return false;
	for (size_t i = 0; i < RBSP_DW_SAVED; i++) {
		if (!fill_register(row, frame, rbsp_dw_saved[i]))
			return false;
	}
	return true;
}

static bool is_sigreturn(const struct rbsp_image *im, uint64_t vaddr)
{
	static const char code[] = RBSP_DW_SIGRETURN;
	const void *there = rbsp_elf_bytes(im->elf, vaddr, sizeof(code) - 1);

	return there && memcmp(there, code, sizeof(code) - 1) == 0;
}

void rbsp_row_fill(struct rbsp_row *row, rbsp_addr pc)
{
	const struct rbsp_image *im = row->image;
	uint64_t at = row->key - im->bias;
	Dwarf_Frame *frame = NULL;
	struct rbsp_symbol sym;
	uint64_t start, end;
	bool fde = rbsp_elf_fde_at(im->elf, at, &start, &end);

	/*
	 * A handler returns to the first instruction of the trampoline. CFI made for that starts
	 * one byte before it; what covers only the byte before belongs to a neighbour.
	 */
	if (is_sigreturn(im, pc - im->bias) && !(fde && pc - im->bias < end)) {
		row->kind = RBSP_ROW_SIGRETURN;
		row->signal = true;
		row->func = pc;
		return;
	}
	if (fde)
		row->func = start + im->bias;
	else if (rbsp_elf_symbol_at(im->elf, at, &sym))
		row->func = sym.value + im->bias;

	row->kind = RBSP_ROW_NO_CFI;
	if (im->cfi && dwarf_cfi_addrframe(im->cfi, at, &frame) == 0) {
		bool signal;
		int ra = dwarf_frame_info(frame, NULL, NULL, &signal);

		row->signal = signal;
		row->kind = fill_simple(row, frame, ra) ? RBSP_ROW_SIMPLE : RBSP_ROW_OTHER;
		free(frame);
	}
}
