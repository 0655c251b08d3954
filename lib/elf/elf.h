/* ELF images: symbols, build-id, relocations, function bounds. By program headers and PT_DYNAMIC
 * wherever possible, so that an image read back from memory works too. */
#ifndef RBSP_ELF_H
#define RBSP_ELF_H

#include "base/base.h"

/**
 * An ELF image, used by one thread at a time (tables are built at their first use). "vaddr" below
 * is an address as the image states it; runtime address = vaddr + bias.
 */
struct rbsp_elf;

/**
 * Open an image. The descriptor stays the caller's and may be closed afterwards. @p name is for
 * messages (copied).
 * @return RBSP_OK, RBSP_E_SYS, RBSP_E_FORMAT (not an ELF file of this machine's word size),
 * RBSP_E_NOMEM
 */
enum rbsp_status rbsp_elf_open_fd(int fd, const char *name, struct rbsp_elf **out,
				  struct rbsp_err *err);
/** The same from bytes of a file (possibly sparse: a tape's), copied. */
enum rbsp_status rbsp_elf_open_bytes(const void *bytes, size_t n, const char *name,
				     struct rbsp_elf **out, struct rbsp_err *err);
/**
 * The same from a process's memory, laid out by file offset (what no PT_LOAD covers is zero). @p
 * bias: its load bias, because a dynamic linker adds it to the addresses in PT_DYNAMIC.
 */
enum rbsp_status rbsp_elf_open_memory(const void *bytes, size_t n, uint64_t bias, const char *name,
				      struct rbsp_elf **out, struct rbsp_err *err);
void rbsp_elf_close(struct rbsp_elf *e);

/** Where the image's pieces are; all vaddrs, 0: absent. */
struct rbsp_elf_info {
	uint16_t machine;   /* EM_* */
	bool exec;          /* ET_EXEC */
	uint64_t low_vaddr; /* page-aligned vaddr of the first PT_LOAD */
	uint64_t eh_frame_hdr, eh_frame_hdr_size;
	uint64_t dynamic, dynamic_size;
	uint64_t tls_memsz, tls_align; /* of PT_TLS, 0: none */
	const char *soname;            /* borrowed; NULL: none */
	char build_id[2 * 64 + 1];     /* lower-case hex, "": none */
};
const struct rbsp_elf_info *rbsp_elf_info(const struct rbsp_elf *e);

struct rbsp_elf_segment {
	uint64_t vaddr, memsz, filesz, offset;
	bool read, write, exec;
};
/** The PT_LOADs in order. @return number; *out borrowed */
size_t rbsp_elf_segments(const struct rbsp_elf *e, const struct rbsp_elf_segment **out);

/** load bias of a mapping of this image: map.start - (vaddr of the file offset map.offset). @return
 * false: the offset is in no PT_LOAD */
bool rbsp_elf_bias(const struct rbsp_elf *e, rbsp_addr map_start, uint64_t map_offset,
		   uint64_t *bias);

struct rbsp_symbol {
	const char *name; /* borrowed; without a version suffix */
	uint64_t value, size;
	unsigned char type, bind, visibility; /* STT_, STB_, STV_ */
	bool defined;
	bool dynamic; /* from .dynsym, else from .symtab or a debug file */
};
/** A DEFINED symbol by name: .dynsym, then .symtab, then the debug file. */
bool rbsp_elf_symbol(const struct rbsp_elf *e, const char *name, struct rbsp_symbol *out);
/** The function symbol with value <= vaddr < value + size (GLOBAL before WEAK before LOCAL; sorted
 * table, O(log n)). Never a neighbour. */
bool rbsp_elf_symbol_at(const struct rbsp_elf *e, uint64_t vaddr, struct rbsp_symbol *out);

/** Bounds of the function whose FDE covers @p vaddr, from .eh_frame_hdr's table and the FDE's own
 * length. */
bool rbsp_elf_fde_at(const struct rbsp_elf *e, uint64_t vaddr, uint64_t *start, uint64_t *end);
/** All FDE starts in ascending order (built once). @return number; *out borrowed */
size_t rbsp_elf_fdes(const struct rbsp_elf *e, const uint64_t **out);

/** Bytes that the file holds for [vaddr, vaddr+n), borrowed; NULL: not in the file. */
const void *rbsp_elf_bytes(const struct rbsp_elf *e, uint64_t vaddr, size_t n);
/** The whole file as opened, borrowed. */
const void *rbsp_elf_file(const struct rbsp_elf *e, size_t *n);

/** One dynamic relocation (RELA, PLT included); @p symbol NULL: nameless. @return false to end the
 * walk */
typedef bool (*rbsp_elf_reloc_fn)(void *arg, uint64_t vaddr, uint32_t type,
				  const struct rbsp_symbol *symbol, int64_t addend);
void rbsp_elf_relocs(const struct rbsp_elf *e, rbsp_elf_reloc_fn fn, void *arg);

/**
 * A copy of the file in which only what locating and unwinding need is kept: headers, the dynamic
 * segment, .dynsym, .dynstr, hashes, relocations, notes, .eh_frame_hdr, .eh_frame; the rest is
 * zero. malloc'ed, the caller frees.
 */
enum rbsp_status rbsp_elf_skeleton(const struct rbsp_elf *e, void **bytes, size_t *n);

#endif
