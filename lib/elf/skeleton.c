/* A copy of an image with only what locating and unwinding need. */
#include "elf/hashes.h"
#include "elf/image.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Keep [off, off+n) of the file, as much of it as there is. */
static void keep_file(const struct rbsp_elf *e, unsigned char *copy, uint64_t off, uint64_t n)
{
	if (off >= e->size)
		return;
	if (n > e->size - off)
		n = e->size - off;
	memcpy(copy + off, e->file + off, (size_t)n);
}

static void keep(const struct rbsp_elf *e, unsigned char *copy, uint64_t vaddr, uint64_t n)
{
	size_t have;
	const unsigned char *p = vaddr ? rbsp_elf_span(e, vaddr, &have) : NULL;

	if (p)
		keep_file(e, copy, (uint64_t)(p - e->file), n < have ? n : have);
}

/* PT_DYNAMIC with the addresses that the image states, also where it was read back from a process.
 */
static void keep_dynamic(const struct rbsp_elf *e, unsigned char *copy)
{
	size_t have;
	const unsigned char *p = e->info.dynamic ? rbsp_elf_span(e, e->info.dynamic, &have) : NULL;

	if (!p)
		return;
	keep(e, copy, e->info.dynamic, e->info.dynamic_size);
	if (have > e->info.dynamic_size)
		have = (size_t)e->info.dynamic_size;
	for (; have >= sizeof(Elf64_Dyn); have -= sizeof(Elf64_Dyn), p += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, p, sizeof(d));
		if (d.d_tag == DT_NULL)
			return;
		if (rbsp_elf_dyn_is_addr(d.d_tag)) {
			d.d_un.d_ptr = rbsp_elf_dyn_addr(e, d.d_un.d_ptr);
			memcpy(copy + (p - e->file), &d, sizeof(d));
		}
	}
}

/* .symtab, its names, and the section headers that lead to them; without .symtab no section is
 * kept. */
static void keep_symtab(const struct rbsp_elf *e, const Elf64_Ehdr *eh, unsigned char *copy)
{
	const struct rbsp_elf_symtab *t = rbsp_elf_static_symtab(e);
	Elf64_Ehdr without = *eh;

	if (t->n) {
		keep_file(e, copy, (uint64_t)(t->sym - e->file), t->n * sizeof(Elf64_Sym));
		keep_file(e, copy, (uint64_t)((const unsigned char *)t->str - e->file), t->str_n);
		keep_file(e, copy, eh->e_shoff, (uint64_t)eh->e_shnum * eh->e_shentsize);
		return;
	}
	without.e_shoff = 0;
	without.e_shnum = 0;
	without.e_shstrndx = SHN_UNDEF;
	memcpy(copy, &without, sizeof(without));
}

enum rbsp_status rbsp_elf_skeleton(const struct rbsp_elf *e, void **bytes, size_t *n)
{
	const struct rbsp_elf_symtab *t = rbsp_elf_dynsym(e);
	unsigned char *copy;
	Elf64_Ehdr eh;
	size_t phnum, extent;
	uint64_t eh_frame;

	*bytes = NULL;
	*n = 0;
	if (e->size < sizeof(eh) || elf_getphdrnum(e->elf, &phnum) != 0)
		return RBSP_E_FORMAT;
	copy = calloc(1, e->size);
	if (!copy)
		return RBSP_E_NOMEM;
	memcpy(&eh, e->file, sizeof(eh));
	keep_file(e, copy, 0, sizeof(eh));
	keep_file(e, copy, eh.e_phoff, (uint64_t)phnum * eh.e_phentsize);
	for (size_t i = 0; i < phnum; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(e->elf, (int)i, &ph) && ph.p_type == PT_NOTE)
			keep_file(e, copy, ph.p_offset, ph.p_filesz);
	}
	keep_dynamic(e, copy);
	keep(e, copy, e->dyn.symtab, t->n * sizeof(Elf64_Sym));
	keep(e, copy, e->dyn.strtab, t->str_n);
	rbsp_elf_hash_extent(e, &extent);
	keep(e, copy, e->dyn.hash, extent);
	rbsp_elf_gnu_hash_extent(e, &extent);
	keep(e, copy, e->dyn.gnu_hash, extent);
	keep(e, copy, e->dyn.rela, e->dyn.relasz);
	keep(e, copy, e->dyn.jmprel, e->dyn.pltrelsz);
	keep(e, copy, e->info.eh_frame_hdr, e->info.eh_frame_hdr_size);
	if (rbsp_elf_eh_frame(e, &eh_frame, &extent))
		keep(e, copy, eh_frame, extent);
	keep_symtab(e, &eh, copy);
	*bytes = copy;
	*n = e->size;
	return RBSP_OK;
}
