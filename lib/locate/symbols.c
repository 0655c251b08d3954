/* ruby_global_symbols, the table of IDs: by symbol, else the one place in the module's data where
 * operators name themselves. */
#include "locate/internal.h"

#include <stdlib.h>
#include <string.h>

#define T_MASK 0x1f
#define T_ARRAY 7
#define IDS_MAX (1u << 26)

/** The ID of a one-character operator is its character. */
static bool names_operators(struct rbsp_finder *f, rbsp_addr at)
{
	static const char operators[] = "+-*/<>!%&";
	char name[8];
	size_t len;

	for (size_t i = 0; operators[i]; i++) {
		if (rbsp_ruby_id_name(f->t, f->l->layout, at, (unsigned char)operators[i], name,
				      sizeof(name), &len) != RBSP_OK ||
		    len != 1 || name[0] != operators[i])
			return false;
	}
	return true;
}

/** Which of the candidates have an array where the ids are: the others get address 0. */
static enum rbsp_status keep_arrays(struct rbsp_finder *f, rbsp_addr *at, const rbsp_addr *ids,
				    size_t n)
{
	struct rbsp_piece *v = calloc(n, sizeof(*v));
	uint64_t *flags = calloc(n, sizeof(*flags));
	bool *ok = calloc(n, sizeof(*ok));
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!v || !flags || !ok)
		goto out;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct rbsp_piece){ ids[i], &flags[i], 8 };
	st = rbsp_locate_read_many(f->t, v, n, ok);
	for (size_t i = 0; i < n; i++) {
		if (!ok[i] || (flags[i] & T_MASK) != T_ARRAY)
			at[i] = 0;
	}
out:
	free(v);
	free(flags);
	free(ok);
	return st;
}

static enum rbsp_status search_data(struct rbsp_finder *f, rbsp_addr base, const uint64_t *w,
				    size_t n, void *arg)
{
	const struct rbsp_layout *l = f->l->layout;
	size_t ids_at = l->symbols.ids / 8u, first = l->symbols.first_word / 8u, found = 0,
	       *tried = arg;
	rbsp_addr *at = calloc(2 * n + 2, sizeof(*at)), *ids = at ? at + n + 1 : NULL;
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!at)
		return st;
	for (size_t i = 0; i + ids_at < n && i + first < n; i++) {
		if (w[i + first] <= l->symbols.last_op_id || w[i + first] >= IDS_MAX ||
		    !rbsp_locate_plausible(&f->maps, w[i + ids_at], 40))
			continue;
		at[found] = base + 8 * i;
		ids[found++] = w[i + ids_at];
	}
	st = found ? keep_arrays(f, at, ids, found) : RBSP_OK;
	for (size_t i = 0; st == RBSP_OK && i < found; i++) {
		*tried += at[i] != 0;
		if (!at[i] || !names_operators(f, at[i]))
			continue;
		f->l->addrs.symbols = at[i];
		free(at);
		return RBSP_OK;
	}
	free(at);
	return st == RBSP_OK ? RBSP_E_NOT_FOUND : st;
}

enum rbsp_status rbsp_locate_symbols(struct rbsp_finder *f)
{
	rbsp_addr named = rbsp_locate_symbol(f, "ruby_global_symbols");
	bool good = named && names_operators(f, named);
	size_t tried = 0;
	enum rbsp_status st;

	rbsp_locate_step(f, "symbols", "by symbol ruby_global_symbols", good, "%s",
			 named ? good ? "operators name themselves"
				      : "operators do not name themselves"
			       : "no such symbol");
	if (good) {
		f->l->addrs.symbols = named;
		return RBSP_OK;
	}
	st = rbsp_locate_data(f, search_data, &tried);
	if (rbsp_locate_hard(st))
		return st;
	rbsp_locate_step(f, "symbols", "by search of the module's data", st == RBSP_OK,
			 "%zu candidates, %#llx", tried, (unsigned long long)f->l->addrs.symbols);
	return RBSP_OK;
}
