/* Unwinding and decoding, warm: every capture of a tape many times through the decoder, without a
 * process. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench.h"
#include "sampler/decode.h"
#include "target/tape.h"

struct sums {
	uint64_t captures, frames;
	struct rbsp_decoder_counts warm;
};

static void add_difference(struct rbsp_decoder_counts *to, const struct rbsp_decoder_counts *before,
			   const struct rbsp_decoder_counts *after)
{
	to->native_frames += after->native_frames - before->native_frames;
	to->unwind_ns += after->unwind_ns - before->unwind_ns;
	to->ruby_frames += after->ruby_frames - before->ruby_frames;
	to->decode_ns += after->decode_ns - before->decode_ns;
	to->merge_ns += after->merge_ns - before->merge_ns;
}

/*
 * What is read of the target belongs to the moment of one capture, so a capture is decoded again
 * and again before the next is taken: the first times to warm the caches, the others to be timed.
 */
static void replay(struct rbsp_target *tape, struct rbsp_proc *p, struct rbsp_decoder *d,
		   unsigned repeats, struct sums *s)
{
	const struct rbsp_capture *c;

	while ((c = rbsp_tape_next(tape))) {
		struct rbsp_decoder_counts before;
		struct rbsp_decoded out;

		if (!(c->flags & RBSP_CAP_STOPPED) || rbsp_decode(d, p, c, &out) != RBSP_OK ||
		    rbsp_decode(d, p, c, &out) != RBSP_OK)
			continue;
		before = *rbsp_decoder_counts(d);
		for (unsigned i = 0; i < repeats; i++)
			rbsp_decode(d, p, c, &out);
		add_difference(&s->warm, &before, rbsp_decoder_counts(d));
		s->captures++;
		s->frames += out.n;
	}
}

static void print(const struct sums *s, unsigned repeats)
{
	const struct rbsp_decoder_counts *w = &s->warm;
	double samples = (double)s->captures * repeats;

	if (!s->captures)
		die("no capture of a stopped thread on this tape");
	printf("{\"captures\": %llu, \"native_frames\": %.2f, \"ruby_frames\": %.2f",
	       (unsigned long long)s->captures, (double)w->native_frames / samples,
	       (double)w->ruby_frames / samples);
	if (w->native_frames)
		printf(", \"unwind_ns\": %.2f", (double)w->unwind_ns / (double)w->native_frames);
	if (w->ruby_frames)
		printf(", \"decode_ns\": %.2f", (double)w->decode_ns / (double)w->ruby_frames);
	printf(", \"merge_ns\": %.2f}\n", (double)w->merge_ns / ((double)s->frames * repeats));
}

int main(int argc, char **argv)
{
	struct rbsp_frames *frames = rbsp_frames_new();
	struct rbsp_target *tape = NULL;
	struct rbsp_decoder *d = NULL;
	struct rbsp_sampler_options o;
	struct rbsp_proc *p = NULL;
	struct rbsp_err err = { 0 };
	struct sums s = { 0 };
	unsigned repeats;

	if (argc != 4)
		die("usage: decode TAPE off|leaf|full REPEATS");
	repeats = (unsigned)number_of(argv[3], "REPEATS");
	rbsp_sampler_options_init(&o);
	o.native = native_mode_of(argv[2]);
	if (!frames || rbsp_tape_open(argv[1], &tape, &err) != RBSP_OK ||
	    rbsp_proc_of_target(tape, &o, frames, &p, &err) != RBSP_OK)
		die("%s", err.text);
	d = rbsp_decoder_new(o.native, frames);
	if (!d)
		die("out of memory");
	replay(tape, p, d, repeats, &s);
	if (rbsp_tape_missing(tape, &err) != RBSP_OK)
		die("%s", err.text);
	print(&s, repeats);
	rbsp_decoder_free(d);
	rbsp_proc_free(p);
	rbsp_frames_free(frames);
	return 0;
}
