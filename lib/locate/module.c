/* The Ruby module: the image that DEFINES ruby_version and ruby_init, whatever its name; its
 * version and relocations. */
#include "locate/internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool defines_ruby(const struct rbsp_elf *e)
{
	struct rbsp_symbol s;

	return rbsp_elf_symbol(e, "ruby_version", &s) && rbsp_elf_symbol(e, "ruby_init", &s);
}

/** Whether this is the first mapping with code of its file. */
static bool first_of_file(const struct rbsp_maps *maps, size_t i)
{
	const struct rbsp_map *m = &maps->map[i];

	if (!m->exec || !m->ino)
		return false;
	for (size_t k = 0; k < i; k++) {
		if (maps->map[k].exec && maps->map[k].ino == m->ino && maps->map[k].dev == m->dev)
			return false;
	}
	return true;
}

struct looked {
	size_t images, unreadable;
	char why[512]; /* the first image that could not be opened */
};

/** Look at the images whose name contains "ruby", or at the others. */
static enum rbsp_status look(struct rbsp_finder *f, bool named, struct looked *n)
{
	for (size_t i = 0; i < f->maps.n; i++) {
		const struct rbsp_map *m = &f->maps.map[i];
		const struct rbsp_elf *e;
		struct rbsp_err why = { .status = RBSP_OK };
		enum rbsp_status st;

		if (!first_of_file(&f->maps, i) ||
		    (strstr(base_name(m->path), "ruby") != NULL) != named)
			continue;
		n->images++;
		st = f->t->ops->image(f->t, m, &e, &why);
		if (rbsp_locate_hard(st))
			return st;
		if (st != RBSP_OK) {
			if (!n->unreadable++)
				snprintf(n->why, sizeof(n->why), "%s", why.text);
			continue;
		}
		if (!defines_ruby(e) || !rbsp_elf_bias(e, m->start, m->offset, &f->l->bias))
			continue;
		f->l->elf = e;
		snprintf(f->l->path, sizeof(f->l->path), "%s", m->path);
		return RBSP_OK;
	}
	return RBSP_E_NOT_FOUND;
}

/** The dynamic linker is mapped, libc not yet, or not even the program itself: it has not started.
 */
static bool still_loading(const struct rbsp_maps *maps, size_t images)
{
	bool linker = images == 0, libc = false;

	for (size_t i = 0; i < maps->n; i++) {
		const char *name = base_name(maps->map[i].path);

		linker |= strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0;
		libc |= strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0;
	}
	return linker && !libc;
}

static enum rbsp_status not_ruby(struct rbsp_finder *f, const struct looked *n,
				 struct rbsp_err *err)
{
	if (still_loading(&f->maps, n->images)) {
		rbsp_locate_step(f, "module", "by defined symbols", false,
				 "the program is still being loaded");
		return rbsp_fail(err, RBSP_E_BOOTING, "process %d is still being loaded",
				 f->t->pid);
	}
	rbsp_locate_step(f, "module", "by defined symbols", false,
			 "%zu images, %zu unreadable%s%.80s", n->images, n->unreadable,
			 n->unreadable ? ": " : "", n->why);
	if (n->unreadable)
		return rbsp_fail(
			err, RBSP_E_NOT_RUBY,
			"no Ruby in process %d: none of %zu images defines ruby_init, %zu could not be opened (%s)",
			f->t->pid, n->images, n->unreadable, n->why);
	return rbsp_fail(err, RBSP_E_NOT_RUBY,
			 "no Ruby in process %d: none of its %zu images defines ruby_init",
			 f->t->pid, n->images);
}

uint32_t rbsp_locate_parse_version(const char *text)
{
	unsigned major, minor, teeny;
	int end = 0;

	if (sscanf(text, "%3u.%3u.%3u%n", &major, &minor, &teeny, &end) != 3 || !end ||
	    major > 255 || minor > 255 || teeny > 255)
		return 0;
	return RBSP_RUBY(major, minor, teeny);
}

static enum rbsp_status read_version(struct rbsp_finder *f, struct rbsp_err *err)
{
	struct rbsp_located *l = f->l;
	rbsp_addr at = rbsp_locate_symbol(f, "ruby_version"),
		  description = rbsp_locate_symbol(f, "ruby_description");
	enum rbsp_status st = rbsp_read_cstr(f->t, at, l->version_text, sizeof(l->version_text));

	if (st == RBSP_OK)
		l->version = rbsp_locate_parse_version(l->version_text);
	if (st != RBSP_OK || !l->version) {
		rbsp_locate_step(f, "version", "string at ruby_version", false, "%s",
				 rbsp_status_text(st));
		return rbsp_fail(err, rbsp_locate_hard(st) ? st : RBSP_E_LAYOUT,
				 "cannot read the version of %s in process %d: %s", l->path,
				 f->t->pid,
				 st == RBSP_OK ? "not a version number" : rbsp_status_text(st));
	}
	if (description &&
	    rbsp_read_cstr(f->t, description, l->description, sizeof(l->description)) != RBSP_OK)
		l->description[0] = '\0';
	rbsp_locate_step(f, "version", "string at ruby_version", true, "%s", l->version_text);
	return RBSP_OK;
}

enum rbsp_status rbsp_locate_module(struct rbsp_finder *f, struct rbsp_err *err)
{
	struct looked n = { .images = 0 };
	enum rbsp_status st = look(f, true, &n);
	const char *id;

	if (st == RBSP_E_NOT_FOUND)
		st = look(f, false, &n);
	if (st == RBSP_E_NOT_FOUND)
		return not_ruby(f, &n, err);
	if (st != RBSP_OK)
		return rbsp_fail(err, st, "cannot look at the images of process %d", f->t->pid);
	f->machine = rbsp_elf_info(f->l->elf)->machine;
	id = rbsp_elf_info(f->l->elf)->build_id;
	rbsp_locate_step(f, "module", "by defined symbols", true, "%.90s, build-id %.12s",
			 f->l->path, *id ? id : "none");
	return read_version(f, err);
}

bool rbsp_locate_booted(struct rbsp_finder *f)
{
	static const char *const late[] = { "rb_cThread", "rb_cObject" };
	uint64_t v = 0;

	for (size_t i = 0; i < RBSP_COUNT_OF(late); i++) {
		rbsp_addr at = rbsp_locate_symbol(f, late[i]);

		if (at)
			return rbsp_read_word(f->t, at, &v) == RBSP_OK && v != 0;
	}
	return true;
}

static bool followed(uint16_t machine, uint32_t type)
{
	if (machine == EM_AARCH64)
		return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT ||
		       type == R_AARCH64_TLS_DTPMOD;
	return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT || type == R_X86_64_DTPMOD64;
}

struct collect {
	struct rbsp_finder *f;
	size_t cap;
	bool failed;
};

static bool collect_reloc(void *arg, uint64_t vaddr, uint32_t type,
			  const struct rbsp_symbol *symbol, int64_t addend)
{
	struct collect *c = arg;
	struct rbsp_finder *f = c->f;

	(void)addend;
	if (!followed(f->machine, type))
		return true;
	if (f->n_got == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 1024;
		struct rbsp_got *grown = reallocarray(f->got, cap, sizeof(*grown));

		if (!grown) {
			c->failed = true;
			return false;
		}
		f->got = grown;
		c->cap = cap;
	}
	f->got[f->n_got++] =
		(struct rbsp_got){ .vaddr = vaddr,
				   .type = type,
				   .target = symbol && symbol->defined ? symbol->value : 0 };
	return true;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct rbsp_got *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

enum rbsp_status rbsp_locate_got(struct rbsp_finder *f)
{
	struct collect c = { .f = f };

	rbsp_elf_relocs(f->l->elf, collect_reloc, &c);
	if (f->n_got)
		qsort(f->got, f->n_got, sizeof(*f->got), by_vaddr);
	return c.failed ? RBSP_E_NOMEM : RBSP_OK;
}
