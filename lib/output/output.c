/* What the writers share: options, which frames are shown, the end of a file, colours. */
#include "output/output.h"

#include <errno.h>
#include <string.h>

void rbsp_output_options_init(struct rbsp_output_options *o)
{
	*o = (struct rbsp_output_options){ .size = sizeof(*o), .lines = true };
}

struct rbsp_output_options rbsp_output_options_of(const struct rbsp_output_options *o)
{
	struct rbsp_output_options own;

	rbsp_output_options_init(&own);
	if (o)
		memcpy(&own, o, o->size < sizeof(own) ? o->size : sizeof(own));
	own.size = sizeof(own);
	return own;
}

bool rbsp_frame_shown(const struct rbsp_frame *f, const struct rbsp_output_options *o)
{
	return f->kind != RBSP_FRAME_INTERP || o->interp;
}

enum rbsp_status rbsp_output_flush(FILE *out, struct rbsp_err *err)
{
	bool bad = ferror(out) != 0;

	if (bad && !errno)
		errno = EIO;
	if (!bad && fflush(out) == 0)
		return RBSP_OK;
	return rbsp_fail(err, RBSP_E_OUTPUT, "cannot write the output");
}

const char *rbsp_color(bool color, const char *code)
{
	return color ? code : "";
}

const char *rbsp_frame_color(enum rbsp_frame_kind kind)
{
	static const char *const colors[] = {
		[RBSP_FRAME_RUBY] = "\033[31m",   [RBSP_FRAME_CFUNC] = "\033[33m",
		[RBSP_FRAME_NATIVE] = "\033[36m", [RBSP_FRAME_INTERP] = "\033[2m",
		[RBSP_FRAME_JIT] = "\033[35m",    [RBSP_FRAME_GC] = "\033[34m",
		[RBSP_FRAME_STATE] = "\033[32m",  [RBSP_FRAME_MARKER] = "\033[2m",
	};

	return (size_t)kind < RBSP_COUNT_OF(colors) && colors[kind] ? colors[kind] : "";
}
