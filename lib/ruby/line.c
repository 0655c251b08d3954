/* Lines: the table of instructions and its succinct index. */
#include "ruby/internal.h"

/*
 * iseq.c, struct succ_index_table (2.6+): 6 words of immediate part, nine 7-bit counts each, for
 * the first 54 positions; then blocks of 512 positions: a rank, eight 9-bit ranks of 64 positions,
 * 512 bits. Short tables are allocated short, so only the words that a position needs are read.
 */
#define IMM_WORDS 6
#define IMM_PER_WORD 9
#define IMM_POSITIONS (IMM_WORDS * IMM_PER_WORD)
#define IMM_BYTES (IMM_WORDS * 8)
#define BLOCK_BYTES 80
#define BLOCK_POSITIONS 512
#define BLOCK_RANKS 8 /* offset of the small ranks */
#define BLOCK_BITS 16 /* offset of the bits */

uint32_t rbsp_succ_lookup(struct rbsp_mem *m, rbsp_addr table, uint64_t pos)
{
	uint64_t block, off, word, ranks, bits, small;
	uint32_t rank;
	rbsp_addr at;

	if (pos < IMM_POSITIONS) {
		if (rbsp_mem_word(m, table + pos / IMM_PER_WORD * 8, &word) != RBSP_OK)
			return 0;
		return word >> (7 * (pos % IMM_PER_WORD)) & 0x7f;
	}
	block = (pos - IMM_POSITIONS) / BLOCK_POSITIONS;
	off = (pos - IMM_POSITIONS) % BLOCK_POSITIONS;
	word = off / 64;
	at = table + IMM_BYTES + block * BLOCK_BYTES;
	if (rbsp_mem_read(m, at, &rank, sizeof(rank)) != RBSP_OK ||
	    rbsp_mem_word(m, at + BLOCK_RANKS, &ranks) != RBSP_OK ||
	    rbsp_mem_word(m, at + BLOCK_BITS + word * 8, &bits) != RBSP_OK)
		return 0;
	small = word ? ranks >> (9 * (word - 1)) & 0x1ff : 0;
	return rank + (uint32_t)small + (uint32_t)__builtin_popcountll(bits << (63 - off % 64));
}

uint32_t rbsp_iseq_line(struct rbsp_ruby *r, const struct rbsp_iseq *q, rbsp_addr pc)
{
	uint64_t pos;
	uint32_t index = 1;
	int32_t line = 0;

	if (!pc)
		return q->type == RBSP_ISEQ_TOP ? 0 : q->first_line;
	if (pc < q->encoded || pc > q->encoded + q->size * UINT64_C(8) || !q->n_insns || !q->insns)
		return 0;
	/* The pc of a frame points behind the instruction that it executes. */
	pos = (pc - q->encoded) / 8;
	if (pos)
		pos--;
	if (q->n_insns > 1)
		index = rbsp_succ_lookup(&r->mem, q->succ, pos);
	if (!index || index > q->n_insns)
		return 0;
	/* 2.7 puts nops without a line behind a block's body: they belong to the line before. */
	for (; index && !line; index--)
		if (rbsp_mem_read(&r->mem,
				  q->insns + (index - 1) * (rbsp_addr)r->l->body.insn_stride, &line,
				  sizeof(line)) != RBSP_OK)
			return 0;
	return line > 0 ? (uint32_t)line : 0;
}
