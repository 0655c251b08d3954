/* Names of IDs, through ruby_global_symbols. */
#include "ruby/object.h"

/* symbol.c: ID_ENTRY_UNIT serials share an Array of {String, Symbol} pairs. */
#define ENTRY_UNIT 512u
#define ENTRY_SIZE 2u

/* id.h: above the last operator an ID carries scope bits below its serial. */
#define SCOPE_SHIFT 4

uint64_t rbsp_object_id_serial(const struct rbsp_layout *l, uint64_t id)
{
	return id > l->symbols.last_op_id ? id >> SCOPE_SHIFT : id;
}

enum rbsp_status rbsp_object_id_string(struct rbsp_mem *m, const struct rbsp_layout *l,
				       rbsp_addr symbols, uint64_t serial, rbsp_addr *str)
{
	rbsp_addr ids, unit;
	uint32_t last;
	enum rbsp_status st;

	if (!symbols || !serial)
		return RBSP_E_NOT_FOUND;
	/* The array moves with GC.compact: it is read each time. */
	st = rbsp_mem_read(m, symbols + l->symbols.first_word, &last, sizeof(last));
	if (st == RBSP_OK)
		st = rbsp_mem_word(m, symbols + l->symbols.ids, &ids);
	if (st != RBSP_OK)
		return st;
	if (serial > last)
		return RBSP_E_NOT_FOUND;
	st = rbsp_object_element(m, l, ids, serial / ENTRY_UNIT, &unit);
	if (st == RBSP_OK)
		st = rbsp_object_element(m, l, unit, serial % ENTRY_UNIT * ENTRY_SIZE, str);
	if (st == RBSP_OK && !rbsp_is_object(*str))
		st = RBSP_E_NOT_FOUND;
	return st;
}

enum rbsp_status rbsp_object_id_text(struct rbsp_mem *m, const struct rbsp_layout *l,
				     rbsp_addr symbols, uint64_t id, char **out)
{
	rbsp_addr str;
	enum rbsp_status st =
		rbsp_object_id_string(m, l, symbols, rbsp_object_id_serial(l, id), &str);

	return st == RBSP_OK ? rbsp_object_text(m, l, str, out) : st;
}

enum rbsp_status rbsp_ruby_id_name(struct rbsp_target *t, const struct rbsp_layout *l,
				   rbsp_addr symbols, uint64_t id, char *buf, size_t cap,
				   size_t *len)
{
	struct rbsp_mem m = rbsp_mem_direct(t);
	rbsp_addr str;
	enum rbsp_status st =
		rbsp_object_id_string(&m, l, symbols, rbsp_object_id_serial(l, id), &str);

	*len = 0;
	return st == RBSP_OK ? rbsp_object_string(&m, l, str, buf, cap, len) : st;
}
