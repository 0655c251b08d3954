/* A small JSON writer: streams, escapes, and repairs what is not UTF-8. */
#ifndef RBSP_JSON_H
#define RBSP_JSON_H

#include <stdio.h>

#include "base/base.h"

/** Zero-initialised but for `out`. Write errors stay in the FILE: check once, at the end. */
struct rbsp_json {
	FILE *out;
	bool comma; /* a value stands before the next one */
};

/** Begin an object or array: @p bracket is '{' or '['. */
void rbsp_json_open(struct rbsp_json *j, char bracket);
/** End it: @p bracket is '}' or ']'. */
void rbsp_json_close(struct rbsp_json *j, char bracket);
/** The key of the next value. */
void rbsp_json_key(struct rbsp_json *j, const char *key);
/** A string; NULL: null. */
void rbsp_json_str(struct rbsp_json *j, const char *s);
void rbsp_json_int(struct rbsp_json *j, int64_t v);
void rbsp_json_bool(struct rbsp_json *j, bool v);
/** 0 means not known: null. */
void rbsp_json_known(struct rbsp_json *j, uint64_t v);
/** "0x1f"; 0: null. */
void rbsp_json_hex(struct rbsp_json *j, uint64_t v);

#endif
