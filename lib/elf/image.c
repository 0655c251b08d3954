/* ELF images: opening, headers, PT_DYNAMIC, build-id, bytes by address. */
#include "elf/image.h"

#include <endian.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NATIVE_DATA (BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

static const struct {
	int64_t tag;
	size_t field; /* in struct rbsp_elf_dyn */
	bool addr;
} dyn_tags[] = {
	{ DT_SYMTAB, offsetof(struct rbsp_elf_dyn, symtab), true },
	{ DT_STRTAB, offsetof(struct rbsp_elf_dyn, strtab), true },
	{ DT_STRSZ, offsetof(struct rbsp_elf_dyn, strsz), false },
	{ DT_HASH, offsetof(struct rbsp_elf_dyn, hash), true },
	{ DT_GNU_HASH, offsetof(struct rbsp_elf_dyn, gnu_hash), true },
	{ DT_RELA, offsetof(struct rbsp_elf_dyn, rela), true },
	{ DT_RELASZ, offsetof(struct rbsp_elf_dyn, relasz), false },
	{ DT_JMPREL, offsetof(struct rbsp_elf_dyn, jmprel), true },
	{ DT_PLTRELSZ, offsetof(struct rbsp_elf_dyn, pltrelsz), false },
	{ DT_SONAME, offsetof(struct rbsp_elf_dyn, soname), false },
};

bool rbsp_elf_dyn_is_addr(int64_t tag)
{
	for (size_t i = 0; i < RBSP_COUNT_OF(dyn_tags); i++) {
		if (dyn_tags[i].tag == tag)
			return dyn_tags[i].addr;
	}
	return false;
}

static void lazy_free(struct rbsp_elf_lazy *l)
{
	if (!l)
		return;
	rbsp_elf_close(l->debug);
	rbsp_strtab_free(l->names);
	free(l->func);
	free(l->func_outer);
	free(l->fde);
	free(l->linear);
	free(l);
}

void rbsp_elf_close(struct rbsp_elf *e)
{
	if (!e)
		return;
	lazy_free(e->lazy);
	if (e->elf)
		elf_end(e->elf);
	if (e->mapped)
		munmap((void *)e->file, e->size);
	else
		free((void *)e->file);
	free(e->seg);
	free(e->name);
	free(e);
}

const unsigned char *rbsp_elf_span(const struct rbsp_elf *e, uint64_t vaddr, size_t *n)
{
	for (size_t i = 0; i < e->n_seg; i++) {
		const struct rbsp_elf_segment *s = &e->seg[i];
		uint64_t off, left;

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		left = s->filesz - (vaddr - s->vaddr);
		off = s->offset +
		      (vaddr - s->vaddr); /* cannot wrap: checked when the segment was read */
		if (off >= e->size)
			return NULL;
		*n = left < e->size - off ? (size_t)left : e->size - (size_t)off;
		return e->file + off;
	}
	return NULL;
}

const void *rbsp_elf_bytes(const struct rbsp_elf *e, uint64_t vaddr, size_t n)
{
	size_t have;
	const unsigned char *p = rbsp_elf_span(e, vaddr, &have);

	return p && n <= have ? p : NULL;
}

const void *rbsp_elf_file(const struct rbsp_elf *e, size_t *n)
{
	*n = e->size;
	return e->file;
}

const struct rbsp_elf_info *rbsp_elf_info(const struct rbsp_elf *e)
{
	return &e->info;
}

size_t rbsp_elf_segments(const struct rbsp_elf *e, const struct rbsp_elf_segment **out)
{
	*out = e->seg;
	return e->n_seg;
}

static uint64_t page_size(void)
{
	long n = sysconf(_SC_PAGESIZE);

	return n > 0 ? (uint64_t)n : 4096;
}

bool rbsp_elf_bias(const struct rbsp_elf *e, rbsp_addr map_start, uint64_t map_offset,
		   uint64_t *bias)
{
	uint64_t page = page_size();
	const struct rbsp_elf_segment *found = NULL;

	/* A file page may belong to two segments; the mapping is of the one that begins in it. */
	for (size_t i = 0; i < e->n_seg && !found; i++) {
		if (map_offset == (e->seg[i].offset & ~(page - 1)))
			found = &e->seg[i];
	}
	for (size_t i = 0; i < e->n_seg && !found; i++) {
		if (map_offset >= e->seg[i].offset &&
		    map_offset - e->seg[i].offset < e->seg[i].filesz)
			found = &e->seg[i];
	}
	if (!found)
		return false;
	*bias = map_start - (found->vaddr + map_offset - found->offset);
	return true;
}

static bool in_load(const struct rbsp_elf *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->n_seg; i++) {
		if (vaddr >= e->seg[i].vaddr && vaddr - e->seg[i].vaddr < e->seg[i].memsz)
			return true;
	}
	return false;
}

uint64_t rbsp_elf_dyn_addr(const struct rbsp_elf *e, uint64_t addr)
{
	return !in_load(e, addr) && in_load(e, addr - e->mem_bias) ? addr - e->mem_bias : addr;
}

static void read_dynamic(struct rbsp_elf *e)
{
	size_t have;
	const unsigned char *p = rbsp_elf_span(e, e->info.dynamic, &have);
	const struct rbsp_elf_symtab *names;

	if (!e->info.dynamic || !p)
		return;
	if (have > e->info.dynamic_size)
		have = (size_t)e->info.dynamic_size;
	for (; have >= sizeof(Elf64_Dyn); have -= sizeof(Elf64_Dyn), p += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, p, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		for (size_t i = 0; i < RBSP_COUNT_OF(dyn_tags); i++) {
			if (dyn_tags[i].tag == d.d_tag)
				*(uint64_t *)((char *)&e->dyn + dyn_tags[i].field) =
					dyn_tags[i].addr ? rbsp_elf_dyn_addr(e, d.d_un.d_ptr)
							 : d.d_un.d_val;
		}
	}
	names = rbsp_elf_dynsym(e);
	if (e->dyn.soname && e->dyn.soname < names->str_n &&
	    memchr(names->str + e->dyn.soname, '\0', names->str_n - (size_t)e->dyn.soname))
		e->info.soname = names->str + e->dyn.soname;
}

static void hex(char *to, const unsigned char *from, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	*to = '\0';
}

/* Look for NT_GNU_BUILD_ID among notes. */
static void read_notes(struct rbsp_elf *e, const unsigned char *p, uint64_t n, uint64_t align)
{
	uint64_t pad = align == 8 ? 7 : 3;
	Elf64_Nhdr note;

	while (p && n >= sizeof(note)) {
		uint64_t desc, next;

		memcpy(&note, p, sizeof(note));
		desc = (sizeof(note) + note.n_namesz + pad) & ~pad;
		next = (desc + note.n_descsz + pad) & ~pad;
		if (desc + note.n_descsz > n)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(p + sizeof(note), "GNU", 4) == 0 && note.n_descsz > 0 &&
		    2 * (size_t)note.n_descsz < sizeof(e->info.build_id)) {
			hex(e->info.build_id, p + desc, note.n_descsz);
			return;
		}
		if (next >= n)
			return;
		p += next;
		n -= next;
	}
}

static void add_load(struct rbsp_elf *e, const GElf_Phdr *ph)
{
	struct rbsp_elf_segment *s = &e->seg[e->n_seg];
	uint64_t end;

	if (__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) ||
	    __builtin_add_overflow(ph->p_offset, ph->p_filesz, &end))
		return;
	*s = (struct rbsp_elf_segment){
		.vaddr = ph->p_vaddr,
		.memsz = ph->p_memsz,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz < ph->p_memsz ? ph->p_filesz : ph->p_memsz,
		.read = ph->p_flags & PF_R,
		.write = ph->p_flags & PF_W,
		.exec = ph->p_flags & PF_X,
	};
	if (e->n_seg++ == 0)
		e->info.low_vaddr = s->vaddr & ~(page_size() - 1);
}

static void read_header(struct rbsp_elf *e, const GElf_Phdr *ph)
{
	switch (ph->p_type) {
	case PT_LOAD:
		add_load(e, ph);
		break;
	case PT_DYNAMIC:
		e->info.dynamic = ph->p_vaddr;
		e->info.dynamic_size = ph->p_memsz;
		break;
	case PT_GNU_EH_FRAME:
		e->info.eh_frame_hdr = ph->p_vaddr;
		e->info.eh_frame_hdr_size = ph->p_memsz;
		break;
	case PT_TLS:
		e->info.tls_memsz = ph->p_memsz;
		e->info.tls_align = ph->p_align;
		break;
	case PT_NOTE:
		if (!e->info.build_id[0])
			read_notes(e, rbsp_elf_at(e, ph->p_offset, ph->p_filesz), ph->p_filesz,
				   ph->p_align);
		break;
	default:
		break;
	}
}

/* The build-id of a debug file, whose program headers describe another file. */
static void read_note_sections(struct rbsp_elf *e)
{
	Elf_Scn *scn = NULL;

	while (!e->info.build_id[0] && (scn = elf_nextscn(e->elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE)
			read_notes(e, rbsp_elf_at(e, sh.sh_offset, sh.sh_size), sh.sh_size,
				   sh.sh_addralign);
	}
}

/* Read all headers. @return RBSP_E_FORMAT: not an ELF image that this machine could run */
static enum rbsp_status read_headers(struct rbsp_elf *e, bool debug)
{
	size_t n;
	GElf_Ehdr eh;
	GElf_Phdr ph;

	elf_version(EV_CURRENT);
	e->elf = elf_memory((char *)e->file, e->size);
	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || gelf_getclass(e->elf) != ELFCLASS64 ||
	    !gelf_getehdr(e->elf, &eh) || eh.e_ident[EI_DATA] != NATIVE_DATA ||
	    (eh.e_type != ET_EXEC && eh.e_type != ET_DYN))
		return RBSP_E_FORMAT;
	e->info.machine = eh.e_machine;
	e->info.exec = eh.e_type == ET_EXEC;
	if (debug) {
		read_note_sections(e);
		return RBSP_OK;
	}
	if (elf_getphdrnum(e->elf, &n) != 0 || n == 0 || n > e->size / sizeof(Elf64_Phdr))
		return RBSP_E_FORMAT;
	e->seg = calloc(n, sizeof(*e->seg));
	if (!e->seg)
		return RBSP_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(e->elf, (int)i, &ph))
			read_header(e, &ph);
	}
	read_dynamic(e);
	return e->n_seg > 0 ? RBSP_OK : RBSP_E_FORMAT;
}

/* Takes the bytes in any case. */
static enum rbsp_status open_image(const unsigned char *file, size_t size, bool mapped, bool debug,
				   uint64_t bias, const char *name, struct rbsp_elf **out,
				   struct rbsp_err *err)
{
	struct rbsp_elf *e = calloc(1, sizeof(*e));
	enum rbsp_status st = RBSP_OK;

	*out = NULL;
	if (!e) {
		if (mapped)
			munmap((void *)file, size);
		else
			free((void *)file);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the image %s", name);
	}
	e->file = file;
	e->size = size;
	e->mapped = mapped;
	e->mem_bias = bias;
	e->name = strdup(name);
	e->lazy = calloc(1, sizeof(*e->lazy));
	if (e->lazy)
		e->lazy->names = rbsp_strtab_new();
	if (!e->name || !e->lazy || !e->lazy->names) {
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for the image %s", name);
		goto out;
	}
	st = read_headers(e, debug);
	if (st == RBSP_E_FORMAT)
		rbsp_fail(err, st, "%s is not an ELF image of this machine's word size", name);
	else if (st != RBSP_OK)
		rbsp_fail(err, st, "no memory for the image %s", name);
	if (st != RBSP_OK)
		goto out;
	*out = e;
	e = NULL;
out:
	rbsp_elf_close(e);
	return st;
}

static enum rbsp_status open_fd(int fd, const char *name, bool debug, struct rbsp_elf **out,
				struct rbsp_err *err)
{
	struct stat sb;
	void *file;
	enum rbsp_status st;

	*out = NULL;
	if (fstat(fd, &sb) != 0)
		return rbsp_fail(err, RBSP_E_SYS, "cannot look at %s", name);
	if (!S_ISREG(sb.st_mode) || sb.st_size == 0)
		return rbsp_fail(err, RBSP_E_FORMAT, "%s is not an ELF file", name);
	file = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return rbsp_fail(err, RBSP_E_SYS, "cannot map %s", name);
	st = open_image(file, (size_t)sb.st_size, true, debug, 0, name, out, err);
	if (*out)
		(*out)->wants_debug = !debug;
	return st;
}

enum rbsp_status rbsp_elf_open_fd(int fd, const char *name, struct rbsp_elf **out,
				  struct rbsp_err *err)
{
	return open_fd(fd, name, false, out, err);
}

struct rbsp_elf *rbsp_elf_open_debug(const char *path)
{
	struct rbsp_elf *e = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	open_fd(fd, path, true, &e, NULL);
	close(fd);
	return e;
}

enum rbsp_status rbsp_elf_open_memory(const void *bytes, size_t n, uint64_t bias, const char *name,
				      struct rbsp_elf **out, struct rbsp_err *err)
{
	unsigned char *copy;

	*out = NULL;
	if (n == 0)
		return rbsp_fail(err, RBSP_E_FORMAT, "%s is not an ELF image", name);
	copy = malloc(n);
	if (!copy)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for the image %s", name);
	memcpy(copy, bytes, n);
	return open_image(copy, n, false, false, bias, name, out, err);
}

enum rbsp_status rbsp_elf_open_bytes(const void *bytes, size_t n, const char *name,
				     struct rbsp_elf **out, struct rbsp_err *err)
{
	return rbsp_elf_open_memory(bytes, n, 0, name, out, err);
}
