/* `dump` for people: a paragraph a thread, innermost frame first. */
#include "output/output.h"
#include "output/text.h"

static void put_name(struct rbsp_buf *b, const char *what, const char *name, int number)
{
	rbsp_buf_str(b, what);
	if (name && *name) {
		rbsp_buf_str(b, " ");
		rbsp_text_add(b, name, RBSP_TEXT_LINE);
	}
	if (number > 0)
		rbsp_buf_printf(b, " (%d)", number);
}

static void put_process(struct rbsp_buf *b, const struct rbsp_process *p, bool color)
{
	rbsp_buf_str(b, rbsp_color(color, RBSP_COLOR_BOLD));
	put_name(b, "process", p->command, p->pid);
	rbsp_buf_str(b, rbsp_color(color, RBSP_COLOR_END));
	if (p->ns_pid > 0 && p->ns_pid != p->pid)
		rbsp_buf_printf(b, ", pid %d in its own namespace", p->ns_pid);
	if (p->ruby) {
		rbsp_buf_str(b, ", ruby ");
		rbsp_text_add(b, p->ruby, RBSP_TEXT_LINE);
	}
	rbsp_buf_str(b, "\n");
}

static void put_frame(struct rbsp_buf *b, const struct rbsp_frame *f, bool lines, bool color)
{
	rbsp_buf_str(b, "    ");
	rbsp_buf_str(b, rbsp_color(color, rbsp_frame_color(f->kind)));
	rbsp_text_frame(b, f, lines, RBSP_TEXT_LINE);
	rbsp_buf_str(b, rbsp_color(color, RBSP_COLOR_END));
	rbsp_buf_str(b, "\n");
}

static void put_thread(struct rbsp_buf *b, const struct rbsp_dump_thread *t,
		       const struct rbsp_frames *frames, const struct rbsp_output_options *o,
		       bool color)
{
	bool none = true;

	rbsp_buf_str(b, "\n");
	rbsp_buf_str(b, rbsp_color(color, RBSP_COLOR_BOLD));
	put_name(b, "thread", t->thread.name, t->thread.tid);
	rbsp_buf_str(b, rbsp_color(color, RBSP_COLOR_END));
	rbsp_buf_printf(b, ": %s%s\n", t->thread.main ? "main, " : "",
			rbsp_thread_state_name(t->state));
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct rbsp_frame *f = rbsp_frames_get(frames, t->frames[i]);

		if (!rbsp_frame_shown(f, o))
			continue;
		put_frame(b, f, o->lines, color);
		none = false;
	}
	if (none)
		rbsp_buf_str(b, "    (no frames)\n");
}

enum rbsp_status rbsp_dump_text(const struct rbsp_dump *d, const struct rbsp_frames *frames,
				const struct rbsp_output_options *o, bool color, FILE *out,
				struct rbsp_err *err)
{
	struct rbsp_output_options own = rbsp_output_options_of(o);
	struct rbsp_buf b = { 0 };
	enum rbsp_status st = RBSP_OK;

	put_process(&b, &d->process, color);
	for (size_t i = 0; i < d->n; i++) {
		put_thread(&b, &d->thread[i], frames, &own, color);
		if (b.failed)
			break;
		fwrite(b.data, 1, b.len, out);
		rbsp_buf_clear(&b);
	}
	if (b.failed)
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for the text of a thread");
	else
		fputs(rbsp_buf_text(&b), out);
	rbsp_buf_fini(&b);
	return st == RBSP_OK ? rbsp_output_flush(out, err) : st;
}
