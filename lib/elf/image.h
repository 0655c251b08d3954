/* Private to lib/elf: an image in memory, and bounded access to its pieces. */
#ifndef RBSP_ELF_IMAGE_H
#define RBSP_ELF_IMAGE_H

#include <elf.h>
#include <libelf.h>

#include "base/strtab.h"
#include "elf/elf.h"

/** What PT_DYNAMIC says; vaddrs, 0: absent. */
struct rbsp_elf_dyn {
	uint64_t symtab, strtab, strsz;
	uint64_t hash, gnu_hash;
	uint64_t rela, relasz, jmprel, pltrelsz;
	uint64_t soname; /* offset in strtab */
};

/** A symbol table in the file, bounded. */
struct rbsp_elf_symtab {
	const unsigned char *sym; /* n Elf64_Sym, not always aligned */
	size_t n;
	const char *str;
	size_t str_n;
	bool dynamic;
};

/** Range of one FDE. */
struct rbsp_fde {
	uint64_t start, end;
};

/** What is built at its first use. */
struct rbsp_elf_lazy {
	bool dynsym_done, symtab_done, debug_done, funcs_done, fdes_done, linear_done;
	struct rbsp_elf_symtab dynsym, symtab;
	struct rbsp_elf *debug;    /* separate debug file, NULL: none */
	struct rbsp_strtab *names; /* names cut at their version suffix */
	struct rbsp_symbol *func;  /* function symbols by value, the best of equals last */
	uint32_t *func_outer; /* index of the nearest one before with a greater end, UINT32_MAX:
				 none */
	size_t n_func;
	uint64_t *fde; /* starts, ascending */
	size_t n_fde;
	struct rbsp_fde
		*linear; /* by start; only where .eh_frame_hdr has no table that can be used */
	size_t n_linear;
};

struct rbsp_elf {
	const unsigned char *file;
	size_t size;
	bool mapped;       /* by mmap, else by malloc */
	bool wants_debug;  /* opened from a file: a separate debug file may be looked for */
	uint64_t mem_bias; /* what a dynamic linker may have added to the addresses in PT_DYNAMIC */
	char *name;
	Elf *elf; /* for headers and sections */
	struct rbsp_elf_info info;
	struct rbsp_elf_segment *seg;
	size_t n_seg;
	struct rbsp_elf_dyn dyn;
	struct rbsp_elf_lazy *lazy;
};

/** Bytes from @p vaddr to the end of what the file holds of its segment, borrowed. @return NULL:
 * not in the file */
const unsigned char *rbsp_elf_span(const struct rbsp_elf *e, uint64_t vaddr, size_t *n);

/** Bytes [off, off+n) of the file, borrowed. @return NULL: the file is shorter */
static inline const unsigned char *rbsp_elf_at(const struct rbsp_elf *e, uint64_t off, uint64_t n)
{
	return off <= e->size && n <= e->size - off ? e->file + off : NULL;
}

/** An address of PT_DYNAMIC as the image states it, also where a dynamic linker has relocated it.
 */
uint64_t rbsp_elf_dyn_addr(const struct rbsp_elf *e, uint64_t addr);

/** Whether a tag of PT_DYNAMIC holds an address that lib/elf uses. */
bool rbsp_elf_dyn_is_addr(int64_t tag);

/** Open a debug file: only its sections are looked at. */
struct rbsp_elf *rbsp_elf_open_debug(const char *path);

/** .dynsym, by PT_DYNAMIC. */
const struct rbsp_elf_symtab *rbsp_elf_dynsym(const struct rbsp_elf *e);
/** .symtab, by sections; n 0: stripped. */
const struct rbsp_elf_symtab *rbsp_elf_static_symtab(const struct rbsp_elf *e);
/** Fill @p out from entry @p i. @return false: no such entry, or its name leaves the string table
 */
bool rbsp_elf_symtab_get(const struct rbsp_elf_symtab *t, size_t i, struct rbsp_symbol *out);

/** The whole of .eh_frame, by its own terminator. @return false: no .eh_frame_hdr or it leads
 * nowhere */
bool rbsp_elf_eh_frame(const struct rbsp_elf *e, uint64_t *vaddr, size_t *n);

#endif
