/* Single objects of the target: strings, arrays, names of IDs. */
#ifndef RBSP_RUBY_OBJECT_H
#define RBSP_RUBY_OBJECT_H

#include "ruby/mem.h"
#include "ruby/ruby.h"

/** Longest name or path that is kept, in bytes; the rest is cut. */
#define RBSP_STRING_MAX 4096

/**
 * Bytes of a String, cut at @p cap - 1, NUL-terminated.
 * @return RBSP_OK; RBSP_E_TORN: not a String; RBSP_E_RANGE: not an object; or why it cannot be read
 */
enum rbsp_status rbsp_object_string(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr str,
				    char *buf, size_t cap, size_t *len);
/** The same, malloc'ed, at most RBSP_STRING_MAX bytes, NUL bytes inside as U+FFFD. The caller
 * frees. */
enum rbsp_status rbsp_object_text(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr str,
				  char **out);
/** Element @p i of an Array. @return RBSP_E_NOT_FOUND: behind its end; RBSP_E_TORN: not an Array */
enum rbsp_status rbsp_object_element(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr ary,
				     uint64_t i, uint64_t *v);
/** Serial number of an ID: its index in the ID table. */
uint64_t rbsp_object_id_serial(const struct rbsp_layout *l, uint64_t id);
/** The String VALUE that names an ID. @return RBSP_E_NOT_FOUND: no such ID */
enum rbsp_status rbsp_object_id_string(struct rbsp_mem *m, const struct rbsp_layout *l,
				       rbsp_addr symbols, uint64_t serial, rbsp_addr *str);
/** The name of an ID, malloc'ed. @return RBSP_E_NOT_FOUND: no such ID, or @p symbols is 0 */
enum rbsp_status rbsp_object_id_text(struct rbsp_mem *m, const struct rbsp_layout *l,
				     rbsp_addr symbols, uint64_t id, char **out);

#endif
