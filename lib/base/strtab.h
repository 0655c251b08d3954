/* Interned strings: equal strings have one address. */
#ifndef RBSP_STRTAB_H
#define RBSP_STRTAB_H

#include "base/base.h"

struct rbsp_strtab;

struct rbsp_strtab *rbsp_strtab_new(void);
void rbsp_strtab_free(struct rbsp_strtab *t);

/** The one copy of @p n bytes, NUL-terminated, borrowed for the life of the table; NULL: out of
 * memory. NUL bytes inside become U+FFFD. */
const char *rbsp_strtab_add(struct rbsp_strtab *t, const char *s, size_t n);

#endif
