/* Somebody else's program: built against the installed library, uses its public headers only. */
#include <stdio.h>

#include <rbsample/frame.h>
#include <rbsample/log.h>
#include <rbsample/output.h>
#include <rbsample/sample.h>
#include <rbsample/sampler.h>
#include <rbsample/status.h>

static int fails(const char *what)
{
	fprintf(stderr, "consumer: %s\n", what);
	return 1;
}

int main(void)
{
	const struct rbsp_frame frame = { .kind = RBSP_FRAME_RUBY, .name = "Foo#bar", .line = 1 };
	const struct rbsp_process process = { .pid = 1, .command = "ruby", .ruby = "3.1.2" };
	const struct rbsp_thread thread = { .tid = 1, .main = true };
	const struct rbsp_format *folded = rbsp_format_find("folded");
	struct rbsp_output_options options;
	struct rbsp_sampler_options so;
	struct rbsp_frames *frames = rbsp_frames_new();
	struct rbsp_sampler *sampler = NULL;
	struct rbsp_sink *sink = NULL;
	struct rbsp_err err = { .status = RBSP_OK };

	rbsp_output_options_init(&options);
	rbsp_sampler_options_init(&so);
	if (!frames || !folded)
		return fails("no frame table, or no format folded");

	rbsp_frame_id id = rbsp_frames_intern(frames, &frame);
	const struct rbsp_sample sample = {
		.weight_ns = 10000000,
		.process = &process,
		.thread = &thread,
		.state = RBSP_STATE_RUNNING,
		.frames = &id,
		.n_frames = 1,
	};

	if (folded->open(stdout, &options, frames, &sink, &err) != RBSP_OK)
		return fails(err.text);
	if (rbsp_sink_sample(sink, &sample) != RBSP_OK || rbsp_sink_finish(sink, &err) != RBSP_OK)
		return fails("the sample was not written");
	rbsp_sink_free(sink);

	if (rbsp_sampler_new(&so, frames, &sampler, &err) != RBSP_OK)
		return fails(err.text);
	/* No process has this number: it is above the kernel's limit. */
	if (rbsp_sampler_add(sampler, 0x7fffffff, &err) != RBSP_E_NO_PID)
		return fails("a process that does not exist was not refused");
	rbsp_sampler_free(sampler);
	rbsp_frames_free(frames);
	return 0;
}
