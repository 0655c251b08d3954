/* A run of the whole sampler through the public interface: what a sample costs once it is warm, and
 * how soon the first one comes. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "sampler/core.h"

struct probe {
	struct rbsp_sink sink;
	const struct rbsp_sampler *s;
	uint64_t start_ns, first_ns, warm_ns;
	uint64_t samples;
	struct rbsp_decoder_counts before;
};

/* Called by the thread that decodes, so the counters stand still. */
static enum rbsp_status take(struct rbsp_sink *self, const struct rbsp_sample *sample)
{
	struct probe *p = (struct probe *)self;

	(void)sample;
	if (!p->first_ns)
		p->first_ns = rbsp_now_ns();
	if (rbsp_now_ns() < p->warm_ns)
		p->before = *rbsp_decoder_counts(p->s->decoder);
	else
		p->samples++;
	return RBSP_OK;
}

static enum rbsp_status finish(struct rbsp_sink *self, struct rbsp_err *err)
{
	(void)self;
	(void)err;
	return RBSP_OK;
}

static void free_nothing(struct rbsp_sink *self)
{
	(void)self;
}

static double per(uint64_t ns, uint64_t n)
{
	return n ? (double)ns / (double)n : 0;
}

static void print(const struct probe *p)
{
	const struct rbsp_decoder_counts *c = rbsp_decoder_counts(p->s->decoder), *b = &p->before;
	uint64_t unwind = c->unwind_ns - b->unwind_ns, decode = c->decode_ns - b->decode_ns,
		 merge = c->merge_ns - b->merge_ns, native = c->native_frames - b->native_frames,
		 ruby = c->ruby_frames - b->ruby_frames;

	printf("{\"first_ms\": %.3f, \"samples\": %llu, \"native_frames\": %.2f, "
	       "\"ruby_frames\": %.2f, \"unwind_ns\": %.2f, \"decode_ns\": %.2f, "
	       "\"merge_us_per_sample\": %.3f, \"us_per_sample\": %.3f}\n",
	       p->first_ns ? (double)(p->first_ns - p->start_ns) / 1e6 : 0,
	       (unsigned long long)p->samples, per(native, p->samples), per(ruby, p->samples),
	       per(unwind, native), per(decode, ruby), per(merge, p->samples) / 1e3,
	       per(unwind + decode + merge, p->samples) / 1e3);
}

int main(int argc, char **argv)
{
	static const struct rbsp_sink_ops ops = { take, finish, free_nothing };
	struct probe p = { .sink = { &ops }, .start_ns = rbsp_now_ns() };
	struct rbsp_frames *frames = rbsp_frames_new();
	struct rbsp_sampler *s = NULL;
	struct rbsp_sampler_options o;
	struct rbsp_err err = { 0 };
	double warm, seconds;

	if (argc != 6)
		die("usage: live PID HZ WARM_SECONDS SECONDS off|leaf|full");
	rbsp_sampler_options_init(&o);
	o.rate_hz = number_of(argv[2], "HZ");
	o.native = native_mode_of(argv[5]);
	warm = number_of(argv[3], "WARM_SECONDS");
	seconds = number_of(argv[4], "SECONDS");
	if (!frames || rbsp_sampler_new(&o, frames, &s, &err) != RBSP_OK ||
	    rbsp_sampler_add(s, (int)number_of(argv[1], "PID"), &err) != RBSP_OK)
		die("%s", err.text);
	p.s = s;
	p.warm_ns = rbsp_now_ns() + (uint64_t)(warm * 1e9);
	if (rbsp_sampler_run(s, (uint64_t)((warm + seconds) * 1e9), 0, &p.sink, &err) != RBSP_OK)
		die("%s", err.text);
	print(&p);
	rbsp_sampler_free(s);
	rbsp_frames_free(frames);
	return 0;
}
