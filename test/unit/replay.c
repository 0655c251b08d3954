/* A tape to folded stacks. */
#include <rbsample/output.h>
#include <rbsample/sampler.h>

#include "replay.h"

enum rbsp_status replay(const char *path, FILE *out, struct rbsp_err *err)
{
	struct rbsp_frames *frames = rbsp_frames_new();
	struct rbsp_sampler_options so;
	struct rbsp_output_options oo;
	struct rbsp_sampler_stats stats;
	struct rbsp_sink *sink = NULL;
	enum rbsp_status st;

	rbsp_sampler_options_init(&so);
	so.native = RBSP_NATIVE_FULL;
	rbsp_output_options_init(&oo);
	oo.threads = true;
	oo.interp = true;
	st = rbsp_format_find("folded")->open(out, &oo, frames, &sink, err);
	if (st == RBSP_OK)
		st = rbsp_tape_replay(path, &so, frames, sink, &stats, err);
	if (st == RBSP_OK)
		st = rbsp_sink_finish(sink, err);
	rbsp_sink_free(sink);
	rbsp_frames_free(frames);
	return st;
}
