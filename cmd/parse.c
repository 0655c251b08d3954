/* Numbers and durations of the command line. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define MOST_SECONDS (10 * 366 * 86400.0)

static const struct {
	const char *name;
	double seconds;
} units[] = { { "", 1 },   { "s", 1 },    { "ms", 1e-3 }, { "us", 1e-6 },
	      { "m", 60 }, { "min", 60 }, { "h", 3600 } };

bool parse_duration(const char *s, uint64_t *ns)
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*s) && *s != '.')
		return false;
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return false;
	v = strtod(s, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double seconds = v * units[i].seconds;

		if (strcmp(end, units[i].name) != 0)
			continue;
		if (end == s || !isfinite(seconds) || seconds > MOST_SECONDS || seconds * 1e9 < 1)
			return false;
		*ns = (uint64_t)(seconds * 1e9);
		return true;
	}
	return false;
}

bool parse_number(const char *s, uint64_t least, uint64_t most, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end || v < least || v > most)
		return false;
	*out = v;
	return true;
}
