/* Dynamic relocations, by PT_DYNAMIC. */
#include "elf/image.h"

#include <string.h>

static bool walk(const struct rbsp_elf *e, uint64_t table, uint64_t size, rbsp_elf_reloc_fn fn,
		 void *arg)
{
	const struct rbsp_elf_symtab *symbols = rbsp_elf_dynsym(e);
	size_t have;
	const unsigned char *p = table ? rbsp_elf_span(e, table, &have) : NULL;
	Elf64_Rela r;

	if (!p)
		return true;
	if (have > size)
		have = (size_t)size;
	for (; have >= sizeof(r); have -= sizeof(r), p += sizeof(r)) {
		struct rbsp_symbol sym;
		size_t index;

		memcpy(&r, p, sizeof(r));
		index = (size_t)ELF64_R_SYM(r.r_info);
		if (!fn(arg, r.r_offset, (uint32_t)ELF64_R_TYPE(r.r_info),
			index && rbsp_elf_symtab_get(symbols, index, &sym) && *sym.name ? &sym
											: NULL,
			r.r_addend))
			return false;
	}
	return true;
}

void rbsp_elf_relocs(const struct rbsp_elf *e, rbsp_elf_reloc_fn fn, void *arg)
{
	if (walk(e, e->dyn.rela, e->dyn.relasz, fn, arg))
		walk(e, e->dyn.jmprel, e->dyn.pltrelsz, fn, arg);
}
