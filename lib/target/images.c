/* The ELF images of a live process. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/images.h"

struct rbsp_image_entry {
	uint64_t dev, ino;
	rbsp_addr start;      /* of a mapping without a file (the vdso) */
	struct rbsp_elf *elf; /* NULL: it cannot be had */
	enum rbsp_status st;  /* then: why */
};

/* The largest image that is rebuilt from memory. */
#define IMAGE_MAX (UINT64_C(512) << 20)

static bool same_file(int fd, const struct rbsp_map *m)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == m->ino && st.st_dev == m->dev;
}

static int open_map_file(int dir, const struct rbsp_map *m)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%lx-%lx", (unsigned long)m->start,
		 (unsigned long)m->end);
	return openat(dir, name, O_RDONLY | O_CLOEXEC);
}

/* The image as the process has it in memory; section headers are not loaded, so .symtab is not
 * there. */
static enum rbsp_status open_memory(struct rbsp_target *t, const struct rbsp_map *m,
				    struct rbsp_elf **out, struct rbsp_err *err)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[64];
	uint64_t size = 0, low = UINT64_MAX;
	unsigned char *bytes;
	enum rbsp_status st;

	if (rbsp_read(t, m->start, &eh, sizeof(eh)) != RBSP_OK ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_phnum > RBSP_COUNT_OF(ph) ||
	    eh.e_phentsize != sizeof(ph[0]) ||
	    rbsp_read(t, m->start + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])) != RBSP_OK)
		return rbsp_fail(err, RBSP_E_FORMAT, "no ELF image at 0x%lx in memory",
				 (unsigned long)m->start);
	for (size_t i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD)
			continue;
		if (ph[i].p_offset > IMAGE_MAX || ph[i].p_filesz > IMAGE_MAX)
			return rbsp_fail(err, RBSP_E_FORMAT, "the image at 0x%lx is too large",
					 (unsigned long)m->start);
		if (ph[i].p_offset == 0)
			low = ph[i].p_vaddr;
		if (ph[i].p_offset + ph[i].p_filesz > size)
			size = ph[i].p_offset + ph[i].p_filesz;
	}
	if (low == UINT64_MAX || size < sizeof(eh))
		return rbsp_fail(err, RBSP_E_FORMAT,
				 "the image at 0x%lx does not load its own header",
				 (unsigned long)m->start);
	bytes = calloc(1, size);
	if (!bytes)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for an image of %lu bytes",
				 (unsigned long)size);
	for (size_t i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD) /* what faults stays zero, and its parser refuses it */
			rbsp_read(t, m->start - low + ph[i].p_vaddr, bytes + ph[i].p_offset,
				  ph[i].p_filesz);
	}
	eh.e_shoff = 0;
	eh.e_shnum = eh.e_shstrndx = 0;
	memcpy(bytes, &eh, sizeof(eh));
	st = rbsp_elf_open_memory(bytes, size, m->start - low, m->path[0] ? m->path : "[memory]",
				  out, err);
	free(bytes);
	return st;
}

static bool same_build(struct rbsp_target *t, const struct rbsp_map *m, const struct rbsp_elf *e)
{
	struct rbsp_elf *in_memory = NULL;
	bool same;

	if (m->offset != 0 || open_memory(t, m, &in_memory, NULL) != RBSP_OK)
		return false;
	same = rbsp_elf_info(e)->build_id[0] &&
	       strcmp(rbsp_elf_info(e)->build_id, rbsp_elf_info(in_memory)->build_id) == 0;
	rbsp_elf_close(in_memory);
	return same;
}

/* From memory, where the file's first bytes are mapped: @p m may be another mapping of it. */
static enum rbsp_status open_first_mapping(struct rbsp_target *t, const struct rbsp_map *m,
					   struct rbsp_elf **out, struct rbsp_err *err)
{
	struct rbsp_maps maps = { 0 };
	enum rbsp_status st;

	if (m->offset == 0)
		return open_memory(t, m, out, err);
	st = t->ops->maps(t, &maps, err);
	if (st != RBSP_OK)
		return st;
	st = RBSP_E_NOT_FOUND;
	for (size_t i = 0; i < maps.n && st == RBSP_E_NOT_FOUND; i++) {
		const struct rbsp_map *first = &maps.map[i];

		if (first->offset == 0 && first->ino == m->ino && first->dev == m->dev &&
		    first->start <= m->start)
			st = open_memory(t, first, out, err);
	}
	rbsp_maps_fini(&maps);
	return st;
}

/*
 * By name, in the target's root and then in ours: only if it is the mapped file. The maps of a
 * process in a chroot of our own mount namespace show paths from our root, so the path of its root
 * is taken off their front.
 */
static enum rbsp_status open_named(struct rbsp_target *t, const struct rbsp_map *m,
				   struct rbsp_elf **out)
{
	char root[32], chroot[4096], path[4400];
	ssize_t n;

	snprintf(root, sizeof(root), "/proc/%d/root", t->pid);
	n = readlink(root, chroot, sizeof(chroot));
	if (n <= 1 || (size_t)n >= sizeof(chroot) || strncmp(m->path, chroot, (size_t)n) != 0 ||
	    m->path[n] != '/')
		n = 0;
	for (int ours = 0; ours < 2; ours++) {
		struct rbsp_elf *e = NULL;
		int fd;
		bool same;

		if ((size_t)snprintf(path, sizeof(path), "%s%s", ours ? "" : root,
				     m->path + (ours ? 0 : n)) >= sizeof(path))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		same = same_file(fd, m);
		if (rbsp_elf_open_fd(fd, m->path, &e, NULL) == RBSP_OK &&
		    (same || same_build(t, m, e))) {
			close(fd);
			*out = e;
			return RBSP_OK;
		}
		rbsp_elf_close(e);
		close(fd);
	}
	return RBSP_E_NOT_FOUND;
}

static enum rbsp_status open_image(struct rbsp_target *t, int dir, const struct rbsp_map *m,
				   struct rbsp_elf **out, struct rbsp_err *err)
{
	enum rbsp_status st = RBSP_E_NOT_FOUND;
	int fd;

	if (m->ino) {
		fd = open_map_file(dir, m);
		if (fd >= 0) {
			st = rbsp_elf_open_fd(fd, m->path, out, err);
			close(fd);
		}
		if (st != RBSP_OK && m->path[0] == '/')
			st = open_named(t, m, out);
	}
	if (st != RBSP_OK)
		st = open_first_mapping(t, m, out, err);
	if (st == RBSP_E_NOT_FOUND)
		return rbsp_fail(err, st, "%s cannot be opened, neither as a file nor from memory",
				 m->path);
	return st;
}

enum rbsp_status rbsp_images_get(struct rbsp_images *im, struct rbsp_target *t, int dir,
				 const struct rbsp_map *m, const struct rbsp_elf **out,
				 struct rbsp_err *err)
{
	struct rbsp_image_entry *bigger;
	struct rbsp_elf *elf = NULL;
	enum rbsp_status st;

	for (size_t i = 0; i < im->n; i++) {
		const struct rbsp_image_entry *e = &im->entry[i];

		if (m->ino ? (e->ino == m->ino && e->dev == m->dev)
			   : (!e->ino && e->start == m->start)) {
			*out = e->elf;
			return e->elf ? RBSP_OK
				      : rbsp_fail(err, e->st, "%s could not be opened", m->path);
		}
	}
	if (im->n == im->cap) {
		im->cap = im->cap ? 2 * im->cap : 32;
		bigger = realloc(im->entry, im->cap * sizeof(*bigger));
		if (!bigger)
			return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the table of images");
		im->entry = bigger;
	}
	st = open_image(t, dir, m, &elf, err);
	im->entry[im->n++] = (struct rbsp_image_entry){ m->dev, m->ino, m->start, elf, st };
	*out = elf;
	return st;
}

void rbsp_images_fini(struct rbsp_images *im)
{
	for (size_t i = 0; i < im->n; i++)
		rbsp_elf_close(im->entry[i].elf);
	free(im->entry);
	*im = (struct rbsp_images){ 0 };
}
