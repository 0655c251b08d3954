/* Interned strings, hashed by their bytes. */
#include "base/strtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct entry {
	UT_hash_handle hh;
	char text[];
};

struct rbsp_strtab {
	struct entry *by_text;
};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
#define REPLACEMENT_LEN (sizeof(replacement) - 1)

struct rbsp_strtab *rbsp_strtab_new(void)
{
	return calloc(1, sizeof(struct rbsp_strtab));
}

void rbsp_strtab_free(struct rbsp_strtab *t)
{
	struct entry *e, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->by_text, e, next) {
		HASH_DEL(t->by_text, e);
		free(e);
	}
	free(t);
}

static const char *add_clean(struct rbsp_strtab *t, const char *s, size_t n)
{
	struct entry *e;
	unsigned hash = rbsp_hash(s, n);

	if (n > UINT32_MAX) /* uthash counts bytes in an unsigned */
		return NULL;
	HASH_FIND_BYHASHVALUE(hh, t->by_text, s, n, hash, e);
	if (e)
		return e->text;
	e = malloc(sizeof(*e) + n + 1);
	if (!e)
		return NULL;
	memcpy(e->text, s, n);
	e->text[n] = '\0';
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->by_text, e->text, n, hash, e);
	if (!e->hh.tbl) { /* the table could not grow */
		free(e);
		return NULL;
	}
	return e->text;
}

const char *rbsp_strtab_add(struct rbsp_strtab *t, const char *s, size_t n)
{
	const char *result;
	char *clean, *to;
	size_t nuls = 0;

	if (n == 0)
		return add_clean(t, "", 0);
	if (!memchr(s, '\0', n))
		return add_clean(t, s, n);
	for (size_t i = 0; i < n; i++)
		nuls += s[i] == '\0';
	if (nuls > (SIZE_MAX - n) / REPLACEMENT_LEN)
		return NULL;
	clean = malloc(n + nuls * REPLACEMENT_LEN);
	if (!clean)
		return NULL;
	to = clean;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\0')
			to = mempcpy(to, replacement, REPLACEMENT_LEN);
		else
			*to++ = s[i];
	}
	result = add_clean(t, clean, (size_t)(to - clean));
	free(clean);
	return result;
}
