/* Ruby Strings and Arrays of the target. */
#include "ruby/object.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT_WORDS 5 /* the smallest heap slot of every version */

enum rbsp_status rbsp_object_string(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr str,
				    char *buf, size_t cap, size_t *len)
{
	uint64_t w[OBJECT_WORDS];
	uint64_t n;
	rbsp_addr at;
	enum rbsp_status st;

	*len = 0;
	if (!cap || !rbsp_is_object(str))
		return RBSP_E_RANGE;
	buf[0] = 0;
	st = rbsp_mem_read(m, str, w,
			   3 * sizeof(w[0])); /* flags, klass, length or the first data */
	if (st != RBSP_OK)
		return st;
	if ((w[0] & RBSP_T_MASK) != RBSP_T_STRING)
		return RBSP_E_TORN;
	if (w[0] & RBSP_FL_USER1) {
		n = w[2];
		st = rbsp_mem_word(m, str + 24, &at);
		if (st != RBSP_OK)
			return st;
	} else {
		n = l->str.len_field ? w[2] : w[0] >> l->str.len_shift & 0x1f;
		at = str + l->str.data;
	}
	if (n > INT64_MAX)
		return RBSP_E_TORN;
	if (n > cap - 1)
		n = cap - 1;
	st = n ? rbsp_mem_read(m, at, buf, n) : RBSP_OK;
	if (st != RBSP_OK)
		return st;
	buf[n] = 0;
	*len = n;
	return RBSP_OK;
}

enum rbsp_status rbsp_object_text(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr str,
				  char **out)
{
	char buf[RBSP_STRING_MAX + 1];
	size_t len, nuls = 0, k = 0;
	enum rbsp_status st = rbsp_object_string(m, l, str, buf, sizeof(buf), &len);
	char *s;

	if (st != RBSP_OK)
		return st;
	for (size_t i = 0; i < len; i++)
		nuls += !buf[i];
	s = malloc(len + 2 * nuls + 1);
	if (!s)
		return RBSP_E_NOMEM;
	for (size_t i = 0; i < len; i++) {
		if (buf[i]) {
			s[k++] = buf[i];
		} else {
			memcpy(s + k, "\xef\xbf\xbd", 3); /* U+FFFD: our strings end at a NUL */
			k += 3;
		}
	}
	s[k] = 0;
	*out = s;
	return RBSP_OK;
}

enum rbsp_status rbsp_object_element(struct rbsp_mem *m, const struct rbsp_layout *l, rbsp_addr ary,
				     uint64_t i, uint64_t *v)
{
	uint64_t w[OBJECT_WORDS];
	uint64_t n, mask = l->ary.embed_len_mask;
	rbsp_addr at;
	enum rbsp_status st;

	if (!rbsp_is_object(ary))
		return RBSP_E_RANGE;
	st = rbsp_mem_word(m, ary, &w[0]);
	if (st != RBSP_OK)
		return st;
	if ((w[0] & RBSP_T_MASK) != RBSP_T_ARRAY)
		return RBSP_E_TORN;
	if (w[0] & RBSP_FL_USER1) {
		n = (w[0] & mask) / (mask & -mask);
		at = ary + 16;
	} else {
		st = rbsp_mem_read(m, ary + 16, w, 3 * sizeof(w[0]));
		if (st != RBSP_OK)
			return st;
		n = w[0];
		at = w[2];
	}
	if (i >= n || i > UINT32_MAX)
		return RBSP_E_NOT_FOUND;
	return rbsp_mem_word(m, at + i * sizeof(*v), v);
}

enum rbsp_status rbsp_ruby_string(struct rbsp_target *t, const struct rbsp_layout *l, rbsp_addr str,
				  char *buf, size_t cap, size_t *len)
{
	struct rbsp_mem m = rbsp_mem_direct(t);

	return rbsp_object_string(&m, l, str, buf, cap, len);
}
