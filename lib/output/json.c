/* A small JSON writer. */
#include "output/json.h"

#include <inttypes.h>
#include <string.h>

#include "output/text.h"

static void begin_value(struct rbsp_json *j)
{
	if (j->comma)
		putc_unlocked(',', j->out);
	j->comma = true;
}

void rbsp_json_open(struct rbsp_json *j, char bracket)
{
	begin_value(j);
	putc_unlocked(bracket, j->out);
	j->comma = false;
}

void rbsp_json_close(struct rbsp_json *j, char bracket)
{
	putc_unlocked(bracket, j->out);
	j->comma = true;
}

static void put_escaped(FILE *out, uint32_t c)
{
	static const char named[] = "\"\\\b\f\n\r\t";
	static const char letter[] = "\"\\bfnrt";
	const char *p = c && c < 0x80 ? strchr(named, (int)c) : NULL;

	if (p)
		fprintf(out, "\\%c", letter[p - named]);
	else
		fprintf(out, "\\u%04" PRIx32, c);
}

static void put_string(FILE *out, const char *s)
{
	putc_unlocked('"', out);
	while (*s) {
		const char *at = s;
		uint32_t c;

		s += rbsp_utf8_next(s, &c);
		/* C1, and what JavaScript before 2019 took for an end of line, are escaped too. */
		if (c < 0x20 || c == '"' || c == '\\' || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
		    c == 0x2029)
			put_escaped(out, c);
		else if (c == 0xfffd)
			fputs("\xef\xbf\xbd", out); /* whatever the bytes were */
		else
			fwrite(at, 1, (size_t)(s - at), out);
	}
	putc_unlocked('"', out);
}

void rbsp_json_key(struct rbsp_json *j, const char *key)
{
	begin_value(j);
	put_string(j->out, key);
	putc_unlocked(':', j->out);
	j->comma = false;
}

void rbsp_json_str(struct rbsp_json *j, const char *s)
{
	begin_value(j);
	if (s)
		put_string(j->out, s);
	else
		fputs("null", j->out);
}

void rbsp_json_int(struct rbsp_json *j, int64_t v)
{
	begin_value(j);
	fprintf(j->out, "%" PRId64, v);
}

void rbsp_json_bool(struct rbsp_json *j, bool v)
{
	begin_value(j);
	fputs(v ? "true" : "false", j->out);
}

void rbsp_json_known(struct rbsp_json *j, uint64_t v)
{
	if (v) {
		begin_value(j);
		fprintf(j->out, "%" PRIu64, v);
	} else {
		rbsp_json_str(j, NULL);
	}
}

void rbsp_json_hex(struct rbsp_json *j, uint64_t v)
{
	if (v) {
		begin_value(j);
		fprintf(j->out, "\"0x%" PRIx64 "\"", v);
	} else {
		rbsp_json_str(j, NULL);
	}
}
