/* `dump -f json`: one object a process, on one line. */
#include "output/json.h"
#include "output/output.h"

/* The place that a frame is at: its own, or for a C function the one it was called from. */
static const struct rbsp_frame *place_of(const struct rbsp_dump_thread *t, size_t i,
					 const struct rbsp_frames *frames,
					 const struct rbsp_output_options *o)
{
	const struct rbsp_frame *f = rbsp_frames_get(frames, t->frames[i]);

	if (!o->caller_lines || f->kind != RBSP_FRAME_CFUNC)
		return f;
	for (size_t k = i + 1; k < t->n_frames; k++) {
		const struct rbsp_frame *caller = rbsp_frames_get(frames, t->frames[k]);

		if (caller->kind == RBSP_FRAME_RUBY)
			return caller;
	}
	return f;
}

static void put_frame(struct rbsp_json *j, const struct rbsp_frame *f,
		      const struct rbsp_frame *place, bool lines)
{
	rbsp_json_open(j, '{');
	rbsp_json_key(j, "kind");
	rbsp_json_str(j, rbsp_frame_kind_name(f->kind));
	rbsp_json_key(j, "name");
	rbsp_json_str(j, f->name);
	rbsp_json_key(j, "path");
	rbsp_json_str(j, place->path);
	rbsp_json_key(j, "line");
	rbsp_json_known(j, lines ? place->line : 0);
	rbsp_json_key(j, "module");
	rbsp_json_str(j, f->module);
	rbsp_json_key(j, "address");
	rbsp_json_hex(j, f->address);
	rbsp_json_close(j, '}');
}

static void put_thread(struct rbsp_json *j, const struct rbsp_dump_thread *t,
		       const struct rbsp_frames *frames, const struct rbsp_output_options *o)
{
	rbsp_json_open(j, '{');
	rbsp_json_key(j, "tid");
	rbsp_json_known(j, t->thread.tid > 0 ? (uint64_t)t->thread.tid : 0);
	rbsp_json_key(j, "name");
	rbsp_json_str(j, t->thread.name);
	rbsp_json_key(j, "main");
	rbsp_json_bool(j, t->thread.main);
	rbsp_json_key(j, "state");
	rbsp_json_str(j, rbsp_thread_state_name(t->state));
	rbsp_json_key(j, "frames");
	rbsp_json_open(j, '[');
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct rbsp_frame *f = rbsp_frames_get(frames, t->frames[i]);

		if (rbsp_frame_shown(f, o))
			put_frame(j, f, place_of(t, i, frames, o), o->lines);
	}
	rbsp_json_close(j, ']');
	rbsp_json_close(j, '}');
}

enum rbsp_status rbsp_dump_json(const struct rbsp_dump *d, const struct rbsp_frames *frames,
				const struct rbsp_output_options *o, FILE *out,
				struct rbsp_err *err)
{
	struct rbsp_output_options own = rbsp_output_options_of(o);
	struct rbsp_json j = { .out = out };

	rbsp_json_open(&j, '{');
	rbsp_json_key(&j, "pid");
	rbsp_json_int(&j, d->process.pid);
	rbsp_json_key(&j, "ruby");
	rbsp_json_str(&j, d->process.ruby);
	rbsp_json_key(&j, "threads");
	rbsp_json_open(&j, '[');
	for (size_t i = 0; i < d->n; i++)
		put_thread(&j, &d->thread[i], frames, &own);
	rbsp_json_close(&j, ']');
	rbsp_json_close(&j, '}');
	putc('\n', out);
	return rbsp_output_flush(out, err);
}
