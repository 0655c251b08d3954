/* The table of formats. */
#include <string.h>

#include "output/output.h"

const struct rbsp_format rbsp_formats[] = {
	{ "folded", "collapsed", ".folded", "a line for each distinct stack, for flamegraph.pl",
	  rbsp_folded_open },
	{ NULL, NULL, NULL, NULL, NULL },
};

const struct rbsp_format *rbsp_format_find(const char *name)
{
	for (const struct rbsp_format *f = rbsp_formats; name && f->name; f++) {
		if (strcmp(name, f->name) == 0 || (f->alias && strcmp(name, f->alias) == 0))
			return f;
	}
	return NULL;
}

const struct rbsp_format *rbsp_format_of_file(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t n;

	base = base ? base + 1 : path;
	n = strlen(base);
	for (const struct rbsp_format *f = rbsp_formats; f->name; f++) {
		size_t suffix = strlen(f->suffix);

		if (n > suffix && strcmp(base + n - suffix, f->suffix) == 0)
			return f;
	}
	return NULL;
}
