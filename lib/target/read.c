/* Reading single things through the seam. */
#include <string.h>

#include "target/target.h"

enum rbsp_status rbsp_read(struct rbsp_target *t, rbsp_addr addr, void *to, size_t n)
{
	struct rbsp_piece p = { addr, to, n };

	return t->ops->readv(t, &p, 1, NULL);
}

enum rbsp_status rbsp_read_word(struct rbsp_target *t, rbsp_addr addr, uint64_t *to)
{
	return rbsp_read(t, addr, to, sizeof(*to));
}

enum rbsp_status rbsp_read_cstr(struct rbsp_target *t, rbsp_addr addr, char *to, size_t cap)
{
	size_t len = 0;

	/* Never past the end of a page before the string itself goes there. */
	while (len + 1 < cap) {
		size_t some = 4096 - ((addr + len) & 4095);
		enum rbsp_status st;

		if (some > cap - 1 - len)
			some = cap - 1 - len;
		st = rbsp_read(t, addr + len, to + len, some);
		if (st != RBSP_OK)
			return st;
		if (memchr(to + len, 0, some))
			return RBSP_OK;
		len += some;
	}
	to[len] = 0;
	return RBSP_OK;
}
