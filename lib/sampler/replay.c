/* A tape through the decoder: the same samples again, without the process. */
#include <string.h>

#include "base/base.h"
#include "sampler/decode.h"
#include "target/tape.h"

/* The tape knows tids, not names: what needs the live process stays empty. */
static enum rbsp_status send(const struct rbsp_capture *c, struct rbsp_proc *p,
			     const struct rbsp_decoded *d, struct rbsp_sink *sink)
{
	char name[64] = "";
	struct rbsp_thread thread = { .tid = c->tid, .main = d->th && d->th == p->main_th };
	struct rbsp_sample sample = {
		.time_ns = c->time_ns,
		.weight_ns = c->weight_ns,
		.process = &p->info,
		.thread = &thread,
		.state = d->state,
		.flags = d->flags,
		.frames = d->frames,
		.n_frames = d->n,
	};

	if (d->th && rbsp_ruby_thread_name(p->ruby, d->th, name, sizeof(name)) == RBSP_OK &&
	    name[0])
		thread.name = name;
	return rbsp_sink_sample(sink, &sample);
}

static enum rbsp_status replay(struct rbsp_target *tape, struct rbsp_proc *p,
			       struct rbsp_decoder *d, struct rbsp_sink *sink,
			       struct rbsp_sampler_stats *stats)
{
	const struct rbsp_capture *c;
	enum rbsp_status st;

	while ((c = rbsp_tape_next(tape))) {
		struct rbsp_decoded out;

		st = rbsp_decode(d, p, c, &out);
		stats->due++;
		if (st == RBSP_E_NOMEM || st == RBSP_E_TAPE)
			return st;
		if (st == RBSP_E_NOT_FOUND) {
			stats->due--;
			continue;
		}
		if (st != RBSP_OK) {
			stats->lost_inconsistent++;
			continue;
		}
		stats->samples++;
		stats->cut += (out.flags & RBSP_SAMPLE_CUT) != 0;
		stats->unmerged += (out.flags & RBSP_SAMPLE_UNMERGED) != 0;
		st = send(c, p, &out, sink);
		if (st != RBSP_OK)
			return st;
	}
	return RBSP_OK;
}

enum rbsp_status rbsp_tape_replay(const char *path, const struct rbsp_sampler_options *o,
				  struct rbsp_frames *frames, struct rbsp_sink *sink,
				  struct rbsp_sampler_stats *stats, struct rbsp_err *err)
{
	struct rbsp_target *tape = NULL;
	struct rbsp_decoder *d = NULL;
	struct rbsp_proc *p = NULL;
	enum rbsp_status st = rbsp_tape_open(path, &tape, err);

	memset(stats, 0, sizeof(*stats));
	if (st != RBSP_OK)
		return st;
	st = rbsp_proc_of_target(tape, o, frames, &p, err);
	if (st != RBSP_OK)
		return st;
	d = rbsp_decoder_new(o->native, frames);
	st = d ? replay(tape, p, d, sink, stats)
	       : rbsp_fail(err, RBSP_E_NOMEM, "no memory for a decoder");
	if (rbsp_tape_missing(tape, err) != RBSP_OK)
		st = RBSP_E_TAPE;
	rbsp_decoder_free(d);
	rbsp_proc_free(p);
	return st;
}
