/* Looking things up in a capture. */
#include <string.h>

#include "target/capture.h"

const void *rbsp_capture_at(const struct rbsp_capture *c, rbsp_addr addr, size_t n)
{
	for (size_t i = 0; i < RBSP_RANGES; i++) {
		const struct rbsp_range *r = &c->range[i];

		if (r->addr && addr >= r->addr && n <= r->len && addr - r->addr <= r->len - n)
			return c->data + r->off + (addr - r->addr);
	}
	return NULL;
}

bool rbsp_capture_word(const struct rbsp_capture *c, rbsp_addr addr, uint64_t *out)
{
	const void *p = rbsp_capture_at(c, addr, sizeof(*out));

	if (p)
		memcpy(out, p, sizeof(*out));
	return p != NULL;
}
