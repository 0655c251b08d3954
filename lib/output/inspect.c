/* `inspect`: what was found in a process, by which step, for people and as JSON. */
#include "output/json.h"
#include "output/output.h"
#include "output/text.h"

static void put_row(struct rbsp_buf *b, const char *what, const char *value)
{
	rbsp_buf_printf(b, "%-12s ", what);
	rbsp_text_add(b, value ? value : "not found", RBSP_TEXT_LINE);
	rbsp_buf_str(b, "\n");
}

static void put_step(struct rbsp_buf *b, const struct rbsp_inspect_step *s)
{
	rbsp_buf_str(b, s->found ? "  found  " : "  -      ");
	rbsp_text_add(b, s->what, RBSP_TEXT_LINE);
	if (s->how && *s->how) {
		rbsp_buf_str(b, ": ");
		rbsp_text_add(b, s->how, RBSP_TEXT_LINE);
	}
	if (s->detail && *s->detail) {
		rbsp_buf_str(b, " (");
		rbsp_text_add(b, s->detail, RBSP_TEXT_LINE);
		rbsp_buf_str(b, ")");
	}
	rbsp_buf_str(b, "\n");
}

enum rbsp_status rbsp_inspect_text(const struct rbsp_inspect *i, FILE *out, struct rbsp_err *err)
{
	struct rbsp_buf b = { 0 };
	enum rbsp_status st;

	rbsp_buf_printf(&b, "%-12s %d\n", "process", i->pid);
	put_row(&b, "ruby", i->ruby);
	if (i->description)
		put_row(&b, "description", i->description);
	put_row(&b, "module", i->module);
	put_row(&b, "layout", i->layout);
	if (i->layout && !i->layout_run)
		rbsp_buf_printf(&b, "%-12s from headers, never run\n", "");
	rbsp_buf_printf(&b, "%-12s %zu\n", "threads", i->ruby_threads);
	rbsp_buf_str(&b, "steps\n");
	for (size_t k = 0; k < i->n_steps; k++)
		put_step(&b, &i->step[k]);
	if (i->failure[0])
		put_row(&b, "failure", i->failure);
	if (b.failed) {
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for the text");
	} else {
		fwrite(b.data, 1, b.len, out);
		st = rbsp_output_flush(out, err);
	}
	rbsp_buf_fini(&b);
	return st;
}

static void put_str(struct rbsp_json *j, const char *key, const char *s)
{
	rbsp_json_key(j, key);
	rbsp_json_str(j, s);
}

enum rbsp_status rbsp_inspect_json(const struct rbsp_inspect *i, FILE *out, struct rbsp_err *err)
{
	struct rbsp_json j = { .out = out };

	rbsp_json_open(&j, '{');
	rbsp_json_key(&j, "pid");
	rbsp_json_int(&j, i->pid);
	put_str(&j, "ruby", i->ruby);
	put_str(&j, "description", i->description);
	put_str(&j, "module", i->module);
	put_str(&j, "layout", i->layout);
	rbsp_json_key(&j, "layout_run");
	rbsp_json_bool(&j, i->layout_run);
	rbsp_json_key(&j, "ruby_threads");
	rbsp_json_int(&j, (int64_t)i->ruby_threads);
	rbsp_json_key(&j, "steps");
	rbsp_json_open(&j, '[');
	for (size_t k = 0; k < i->n_steps; k++) {
		rbsp_json_open(&j, '{');
		put_str(&j, "what", i->step[k].what);
		put_str(&j, "how", i->step[k].how);
		put_str(&j, "detail", i->step[k].detail);
		rbsp_json_key(&j, "found");
		rbsp_json_bool(&j, i->step[k].found);
		rbsp_json_close(&j, '}');
	}
	rbsp_json_close(&j, ']');
	put_str(&j, "failure", i->failure[0] ? i->failure : NULL);
	rbsp_json_close(&j, '}');
	putc('\n', out);
	return rbsp_output_flush(out, err);
}
