/* Executable mappings of a process and the images in them. */
#include <stdlib.h>

#include "native/impl.h"

static char *base_name(const char *path)
{
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strlen(base);

	if (n >= sizeof(deleted) - 1 && strcmp(base + n - (sizeof(deleted) - 1), deleted) == 0)
		n -= sizeof(deleted) - 1;
	return strndup(base, n);
}

static void image_free(struct rbsp_image *im)
{
	if (!im)
		return;
	if (im->cfi)
		dwarf_cfi_end(im->cfi);
	if (im->libelf)
		elf_end(im->libelf);
	free(im->name);
	free(im);
}

static void image_open_cfi(struct rbsp_image *im)
{
	size_t n;
	const void *bytes = rbsp_elf_file(im->elf, &n);

	if (!bytes || rbsp_elf_info(im->elf)->machine != RBSP_DW_MACHINE)
		return;
	/* elf_memory takes a char * but reads only: elf_update is never called. */
	im->libelf = elf_memory((char *)(uintptr_t)bytes, n);
	if (im->libelf)
		im->cfi = dwarf_getcfi_elf(im->libelf);
}

/* The image of an ELF file at a bias, made at its first use. NULL: out of memory. */
static struct rbsp_image *image_at(struct rbsp_modules *m, const struct rbsp_elf *elf,
				   uint64_t bias, const char *path)
{
	struct rbsp_image *im;
	struct rbsp_image **grown;

	for (size_t i = 0; i < m->n_images; i++) {
		if (m->image[i]->elf == elf && m->image[i]->bias == bias)
			return m->image[i];
	}
	grown = reallocarray(m->image, m->n_images + 1, sizeof(struct rbsp_image *));
	if (!grown)
		return NULL;
	m->image = grown;
	im = calloc(1, sizeof(*im));
	if (!im)
		return NULL;
	im->elf = elf;
	im->bias = bias;
	im->name = base_name(path);
	if (!im->name) {
		image_free(im);
		return NULL;
	}
	image_open_cfi(im);
	m->image[m->n_images++] = im;
	return im;
}

/* The mapping of a file's start: from there an image can be told, and rebuilt, from memory. */
static const struct rbsp_map *first_map(const struct rbsp_modules *m, const struct rbsp_map *map)
{
	for (size_t i = 0; i < m->maps.n; i++) {
		const struct rbsp_map *at = &m->maps.map[i];

		if (map->ino && at->ino == map->ino && at->dev == map->dev && at->offset == 0)
			return at;
	}
	return map;
}

static void module_open(struct rbsp_modules *m, struct rbsp_module *mod)
{
	const struct rbsp_map *map = mod->map;
	const struct rbsp_elf *elf = NULL;
	enum rbsp_status st;
	struct rbsp_err err = { 0 };
	uint64_t bias;

	mod->kind = RBSP_MODULE_OPAQUE;
	st = m->target->ops->image(m->target, first_map(m, map), &elf, &err);
	if (st == RBSP_E_FORMAT || (st != RBSP_OK && err.status == RBSP_E_FORMAT)) {
		mod->kind = RBSP_MODULE_JIT;
	} else if (st != RBSP_OK) {
		rbsp_log(RBSP_LOG_INFO, "no native frames of %s: %s", map->path, err.text);
	} else if (rbsp_elf_bias(elf, map->start, map->offset, &bias)) {
		mod->image = image_at(m, elf, bias, map->path);
		if (mod->image)
			mod->kind = RBSP_MODULE_IMAGE;
	}
}

/* What a mapping is before anything is opened: only the vdso and files have images. */
static enum rbsp_module_kind kind_of(const struct rbsp_map *map)
{
	if (map->ino != 0 || strcmp(map->path, "[vdso]") == 0)
		return RBSP_MODULE_UNTRIED;
	return strcmp(map->path, "[vsyscall]") == 0 ? RBSP_MODULE_OPAQUE : RBSP_MODULE_JIT;
}

static bool same_map(const struct rbsp_map *a, const struct rbsp_map *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->dev == b->dev && a->ino == b->ino;
}

/* Take over from the old list what is known of mappings that are still there. @return whether one
 * is gone */
static bool carry_over(const struct rbsp_module *old, size_t n_old, struct rbsp_module *now,
		       size_t n)
{
	size_t j = 0;
	bool lost = false;

	for (size_t i = 0; i < n_old; i++) {
		while (j < n && now[j].map->start < old[i].map->start)
			j++;
		if (j < n && same_map(now[j].map, old[i].map)) {
			now[j].kind = old[i].kind;
			now[j].image = old[i].image;
		} else {
			/* JIT memory grows and shrinks; no row depends on it. */
			lost = lost || old[i].kind == RBSP_MODULE_IMAGE;
		}
	}
	return lost;
}

enum rbsp_status rbsp_modules_read(struct rbsp_modules *m, bool *lost, struct rbsp_err *err)
{
	struct rbsp_maps maps = { 0 };
	struct rbsp_module *now = NULL;
	size_t n = 0;
	enum rbsp_status st = m->target->ops->maps(m->target, &maps, err);

	if (st != RBSP_OK)
		return st;
	now = calloc(maps.n ? maps.n : 1, sizeof(*now));
	if (!now) {
		rbsp_maps_fini(&maps);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for %zu mappings", maps.n);
	}
	for (size_t i = 0; i < maps.n; i++) {
		if (maps.map[i].exec) {
			now[n].map = &maps.map[i];
			now[n++].kind = kind_of(&maps.map[i]);
		}
	}
	*lost = carry_over(m->module, m->n, now, n);
	free(m->module);
	rbsp_maps_fini(&m->maps);
	m->maps = maps;
	m->module = now;
	m->n = n;
	memset(m->nowhere, 0, sizeof(m->nowhere));
	return RBSP_OK;
}

void rbsp_modules_fini(struct rbsp_modules *m)
{
	for (size_t i = 0; i < m->n_images; i++)
		image_free(m->image[i]);
	free(m->image);
	free(m->module);
	rbsp_maps_fini(&m->maps);
}

struct rbsp_module *rbsp_modules_find(struct rbsp_modules *m, rbsp_addr a)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (a >= m->module[mid].map->end)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == m->n || a < m->module[lo].map->start)
		return NULL;
	if (m->module[lo].kind == RBSP_MODULE_UNTRIED)
		module_open(m, &m->module[lo]);
	return &m->module[lo];
}

static size_t nowhere_slot(const struct rbsp_modules *m, rbsp_addr a)
{
	return (size_t)(a * UINT64_C(0x9e3779b97f4a7c15) >> 32) % RBSP_COUNT_OF(m->nowhere);
}

bool rbsp_modules_worth_reading(const struct rbsp_modules *m, rbsp_addr a)
{
	return !m->reread && m->nowhere[nowhere_slot(m, a)] != a;
}

void rbsp_modules_note_nowhere(struct rbsp_modules *m, rbsp_addr a)
{
	m->nowhere[nowhere_slot(m, a)] = a;
}
