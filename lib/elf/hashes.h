/* Private to lib/elf: the hash tables of .dynsym. */
#ifndef RBSP_ELF_HASHES_H
#define RBSP_ELF_HASHES_H

#include "elf/image.h"

/** Number of .dynsym entries by DT_HASH; 0: there is none. */
size_t rbsp_elf_hash_count(const struct rbsp_elf *e);
/** The same by DT_GNU_HASH: up to the last entry that it reaches. */
size_t rbsp_elf_gnu_hash_count(const struct rbsp_elf *e);
/** A defined symbol of .dynsym by name. */
bool rbsp_elf_gnu_hash_find(const struct rbsp_elf *e, const char *name, struct rbsp_symbol *out);

/** Address and size of the hash tables, for copying them; n 0: absent. */
void rbsp_elf_hash_extent(const struct rbsp_elf *e, size_t *n);
void rbsp_elf_gnu_hash_extent(const struct rbsp_elf *e, size_t *n);

#endif
