/* Thread-local storage of the Ruby module: its module id, and its block for a thread, in glibc and
 * musl. */
#include "locate/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A link map list longer than this is not walked to its end. */
#define LINK_MAPS 4096
/* More modules with TLS than this do not exist. */
#define MODULES 65536

/** Where the pointer to the thread's vector of TLS blocks is, from the thread pointer. */
static const struct dtv_place {
	uint16_t machine;
	int8_t glibc, musl;
} dtv_place[] = {
	{ EM_X86_64, 8, 8 },   /* glibc tcbhead_t.dtv; musl struct pthread.dtv */
	{ EM_AARCH64, 0, -8 }, /* glibc tcbhead_t.dtv; musl: the end of struct pthread */
};

static const struct dtv_place *place_of(uint16_t machine)
{
	for (size_t i = 0; i < RBSP_COUNT_OF(dtv_place); i++) {
		if (dtv_place[i].machine == machine)
			return &dtv_place[i];
	}
	return NULL;
}

enum rbsp_status rbsp_tls_blocks(struct rbsp_target *t, uint16_t machine, uint64_t module,
				 bool musl, const rbsp_addr *tp, size_t n, rbsp_addr *block)
{
	const struct dtv_place *place = place_of(machine);
	uint64_t entry_bytes = musl ? 8 : 16;
	struct rbsp_piece *v = calloc(2 * n + 1, sizeof(*v));
	uint64_t *got = calloc(2 * n + 1, sizeof(*got)), *dtv = calloc(n + 1, sizeof(*dtv));
	bool *ok = calloc(2 * n + 1, sizeof(*ok));
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!v || !got || !dtv || !ok)
		goto out;
	memset(block, 0, n * sizeof(*block));
	st = RBSP_E_NOT_FOUND;
	if (!place || !module || module >= MODULES)
		goto out;
	for (size_t i = 0; i < n; i++) {
		int64_t at = musl ? place->musl : place->glibc;

		v[i] = (struct rbsp_piece){ tp[i] ? tp[i] + (uint64_t)at : 0, &dtv[i], 8 };
	}
	st = rbsp_locate_read_many(t, v, n, ok);
	if (st != RBSP_OK)
		goto out;
	for (size_t i = 0; i < n; i++) {
		rbsp_addr at = ok[i] ? dtv[i] : 0;

		/* The number of entries: glibc's lies before entry 0, musl's is entry 0. */
		v[2 * i] = (struct rbsp_piece){ at && !musl ? at - 16 : at, &got[2 * i], 8 };
		v[2 * i + 1] = (struct rbsp_piece){ at ? at + entry_bytes * module : 0,
						    &got[2 * i + 1], 8 };
	}
	st = rbsp_locate_read_many(t, v, 2 * n, ok);
	for (size_t i = 0; st == RBSP_OK && i < n; i++) {
		uint64_t at = got[2 * i + 1];

		if (ok[2 * i] && ok[2 * i + 1] && got[2 * i] >= module && got[2 * i] < MODULES &&
		    at % 8 == 0)
			block[i] = at;
	}
out:
	free(v);
	free(got);
	free(dtv);
	free(ok);
	return st;
}

/** The runtime address of @p name in an image whose base name starts with one of @p prefix; 0:
 * none. */
static rbsp_addr symbol_of_image(struct rbsp_finder *f, const char *const *prefix, size_t n_prefix,
				 const char *name)
{
	for (size_t i = 0; i < f->maps.n; i++) {
		const struct rbsp_map *m = &f->maps.map[i];
		const char *slash = strrchr(m->path, '/'), *base = slash ? slash + 1 : m->path;
		const struct rbsp_elf *e;
		struct rbsp_symbol s;
		uint64_t bias;

		if (!m->exec || !m->ino)
			continue;
		for (size_t k = 0; k < n_prefix; k++) {
			if (strncmp(base, prefix[k], strlen(prefix[k])) != 0)
				continue;
			if (f->t->ops->image(f->t, m, &e, NULL) == RBSP_OK &&
			    rbsp_elf_symbol(e, name, &s) &&
			    rbsp_elf_bias(e, m->start, m->offset, &bias))
				return s.value + bias;
		}
	}
	return 0;
}

/** Byte offset of a field from the descriptor that glibc keeps for debuggers: { bits, number,
 * offset }. */
static bool field_offset(struct rbsp_finder *f, const char *name, uint32_t *offset)
{
	static const char *const libs[] = { "libc.so", "libc-2.", "libpthread" };
	rbsp_addr at = symbol_of_image(f, libs, RBSP_COUNT_OF(libs), name);
	uint32_t d[3];

	if (!at || rbsp_read(f->t, at, d, sizeof(d)) != RBSP_OK || d[0] != 64 || d[2] > 8192)
		return false;
	*offset = d[2];
	return true;
}

/** The module's link map in the dynamic linker's list; 0: not there. */
static rbsp_addr link_map(struct rbsp_finder *f)
{
	static const char *const linkers[] = { "ld-linux", "ld-2.", "ld.so", "ld64" };
	rbsp_addr debug = symbol_of_image(f, linkers, RBSP_COUNT_OF(linkers), "_r_debug"), map = 0;
	rbsp_addr dynamic = rbsp_elf_info(f->l->elf)->dynamic + f->l->bias;

	if (!debug || rbsp_read_word(f->t, debug + 8, &map) != RBSP_OK)
		return 0;
	for (size_t i = 0; i < LINK_MAPS && map; i++) {
		uint64_t head[4]; /* l_addr, l_name, l_ld, l_next */

		if (rbsp_read(f->t, map, head, sizeof(head)) != RBSP_OK)
			return 0;
		if (head[2] == dynamic)
			return map;
		map = head[3];
	}
	return 0;
}

static bool by_relocation(struct rbsp_finder *f, struct rbsp_tls *out)
{
	for (size_t i = 0; i < f->n_got; i++) {
		uint32_t type = f->got[i].type;
		uint64_t id = 0;

		if (type != (f->machine == EM_AARCH64 ? R_AARCH64_TLS_DTPMOD : R_X86_64_DTPMOD64))
			continue;
		if (rbsp_read_word(f->t, f->got[i].vaddr + f->l->bias, &id) != RBSP_OK || !id ||
		    id >= MODULES)
			continue;
		*out = (struct rbsp_tls){ .module = id, .how = "module id of a DTPMOD64 word" };
		return true;
	}
	return false;
}

static bool by_link_map(struct rbsp_finder *f, struct rbsp_tls *out)
{
	uint32_t modid_at, offset_at;
	uint64_t id = 0, offset = 0;
	rbsp_addr map;

	if (!field_offset(f, "_thread_db_link_map_l_tls_modid", &modid_at))
		return false;
	map = link_map(f);
	if (!map || rbsp_read_word(f->t, map + modid_at, &id) != RBSP_OK || !id || id >= MODULES)
		return false;
	*out = (struct rbsp_tls){ .module = id, .how = "module id of the link map" };
	if (!field_offset(f, "_thread_db_link_map_l_tls_offset", &offset_at) ||
	    rbsp_read_word(f->t, map + offset_at, &offset) != RBSP_OK)
		return true;
	if (!offset || offset > INT32_MAX) /* not given yet, or -1: no fixed place */
		return true;
	out->fixed = true;
	out->offset = f->machine == EM_AARCH64 ? (int64_t)offset : -(int64_t)offset;
	out->how = "fixed offset of the link map";
	return true;
}

enum rbsp_status rbsp_tls_find(struct rbsp_finder *f, struct rbsp_tls *out)
{
	if (!rbsp_elf_info(f->l->elf)->tls_memsz)
		return RBSP_E_NOT_FOUND;
	if (by_relocation(f, out) || by_link_map(f, out))
		return RBSP_OK;
	/* A program without a dynamic linker, or the program itself: always module 1. */
	*out = (struct rbsp_tls){ .module = 1, .how = "module 1" };
	return RBSP_OK;
}
