/* One step by libunwind over accessors that see a captured stack and an image's file, nothing else.
 */
#include <stdlib.h>

#include "native/impl.h"

/* Exported by libunwind, declared in none of its public headers. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

struct source {
	struct rbsp_walk *walk;
	const struct rbsp_image *image;
	bool found; /* libunwind found an FDE: it does not guess */
};

/*
 * .eh_frame_hdr: version 1, encodings of three fields, pointer to .eh_frame, number of FDEs, table
 * (LSB, "DWARF Extensions"). Only the form that linkers write: 4-byte pieces.
 */
struct header {
	uint8_t version, frame_enc, count_enc, table_enc;
	int32_t frame;
	uint32_t count;
};
#define ENC_UDATA4 0x03
#define ENC_DATAREL_SDATA4 0x3b

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi,
			  int need_unwind_info, void *arg)
{
	struct source *s = arg;
	const struct rbsp_image *im = s->image;
	const struct rbsp_elf_info *info = rbsp_elf_info(im->elf);
	unw_dyn_info_t di = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	struct header h;
	const void *p = NULL;
	int ret;

	if (info->eh_frame_hdr)
		p = rbsp_elf_bytes(im->elf, info->eh_frame_hdr, sizeof(h));
	if (!p)
		return -UNW_ENOINFO;
	memcpy(&h, p, sizeof(h));
	if (h.version != 1 || h.count_enc != ENC_UDATA4 || h.table_enc != ENC_DATAREL_SDATA4 ||
	    !rbsp_elf_bytes(im->elf, info->eh_frame_hdr + sizeof(h), (size_t)h.count * 8))
		return -UNW_ENOINFO;
	di.start_ip = 0;
	di.end_ip = UINT64_MAX;
	di.u.rti.segbase = info->eh_frame_hdr + im->bias;
	di.u.rti.table_data = di.u.rti.segbase + sizeof(h);
	di.u.rti.table_len = (unw_word_t)h.count * 8 / sizeof(unw_word_t);
	ret = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need_unwind_info, arg);
	s->found = s->found || ret >= 0;
	return ret;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as;
	(void)pi;
	(void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	(void)as;
	(void)addr;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg)
{
	const struct source *s = arg;
	unsigned char word[sizeof(*val)] = { 0 };
	const void *whole;
	bool any = false;

	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (rbsp_walk_word(s->walk, addr, val))
		return 0;
	whole = rbsp_elf_bytes(s->image->elf, addr - s->image->bias, sizeof(word));
	if (whole) {
		memcpy(val, whole, sizeof(word));
		return 0;
	}
	/* libunwind reads aligned words, so the first and last of a segment may lie in it only in
	 * part. */
	for (size_t i = 0; i < sizeof(word); i++) {
		const unsigned char *p =
			rbsp_elf_bytes(s->image->elf, addr + i - s->image->bias, 1);

		if (p) {
			word[i] = *p;
			any = true;
		}
	}
	memcpy(val, word, sizeof(word));
	return any ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg)
{
	const struct source *s = arg;

	(void)as;
	/* libunwind's numbers are DWARF's on x86-64 and aarch64. */
	if (write || reg < 0 || reg >= RBSP_DW_REGS || !rbsp_walk_knows(s->walk, (unsigned)reg))
		return -UNW_EBADREG;
	*val = s->walk->r[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
			void *arg)
{
	(void)as;
	(void)reg;
	(void)val;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t len,
			 unw_word_t *off, void *arg)
{
	(void)as;
	(void)addr;
	(void)buf;
	(void)len;
	(void)off;
	(void)arg;
	return -UNW_ENOINFO;
}

unw_addr_space_t rbsp_cursor_space(void)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = get_proc_name,
	};
	unw_addr_space_t as = unw_create_addr_space(&accessors, 0);

	/* Rows are the cache; libunwind's own costs two rt_sigprocmask a frame. */
	if (as)
		unw_set_caching_policy(as, UNW_CACHE_NONE);
	return as;
}

enum rbsp_step rbsp_cursor_step(unw_addr_space_t as, struct rbsp_walk *w,
				const struct rbsp_row *row, rbsp_addr *cfa)
{
	struct rbsp_walk from = *w;
	struct source s = { .walk = &from, .image = row->image };
	unw_cursor_t cursor;
	uint64_t known = 0;
	int ret;

	/* A cursor starts as if at an interrupted instruction, so a return address is moved into
	 * its call. */
	from.r[RBSP_DW_PC] = row->key;
	if (unw_init_remote(&cursor, as, &s) < 0)
		return RBSP_STEP_FAILED;
	ret = unw_step(&cursor);
	if (ret < 0 || !s.found)
		return RBSP_STEP_FAILED;
	for (int i = 0; i < RBSP_DW_REGS; i++) {
		unw_word_t v;

		if (unw_get_reg(&cursor, i, &v) == 0) {
			w->r[i] = v;
			known |= UINT64_C(1) << i;
		}
	}
	w->known = known;
	*cfa = w->r[RBSP_DW_SP];
	return ret == 0 ? RBSP_STEP_BOTTOM : RBSP_STEP_OK;
}
