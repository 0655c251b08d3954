/* The counters of a run, put together from the tracers' and the decoder's. */
#include "sampler/core.h"

static uint64_t get(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static double percentile_us(const struct rbsp_tick_counts *c, double share)
{
	uint64_t all = get(&c->stops), seen = 0;

	for (size_t i = 0; i < RBSP_STOP_BUCKETS; i++) {
		seen += get(&c->stop_bucket[i]);
		if (seen && (double)seen >= share * (double)all)
			return i + 1 < RBSP_STOP_BUCKETS ? (double)i + 0.5
							 : (double)get(&c->stop_max_ns) / 1e3;
	}
	return 0;
}

static void decoder_figures(const struct rbsp_decoder *d, struct rbsp_sampler_stats *out)
{
	const struct rbsp_decoder_counts *c = rbsp_decoder_counts(d);

	out->unread_frames = c->unread;
	out->bare_names = c->bare_names;
	if (out->samples)
		out->decode_us = (double)(c->unwind_ns + c->decode_ns + c->merge_ns) / 1e3 /
				 (double)out->samples;
	if (c->native_frames)
		out->unwind_ns_per_frame = (double)c->unwind_ns / (double)c->native_frames;
	if (c->ruby_frames)
		out->decode_ns_per_frame = (double)c->decode_ns / (double)c->ruby_frames;
}

void rbsp_sampler_stats(const struct rbsp_sampler *s, struct rbsp_sampler_stats *out)
{
	const struct rbsp_tick_counts *c = &s->counts;
	uint64_t not_due = get(&s->done.not_due);

	*out = (struct rbsp_sampler_stats){
		.ticks = get(&c->ticks),
		.missed_ticks = get(&c->missed),
		.due = get(&c->due) - not_due,
		.samples = get(&s->done.samples),
		.late = get(&c->late),
		.lost_gone = get(&c->gone),
		.lost_deadline = get(&c->deadline),
		.lost_unreadable = get(&c->unreadable) + get(&s->done.unreadable),
		.lost_inconsistent = get(&c->inconsistent) + get(&s->done.inconsistent),
		.lost_traced = get(&c->traced),
		.lost_behind = get(&c->behind),
		.exact = get(&s->done.exact),
		.stops = get(&c->stops),
		.cut = get(&s->done.cut),
		.unmerged = get(&s->done.unmerged),
		.realtime = atomic_load(&s->realtime),
		.other_tracer = atomic_load(&s->other_tracer),
		.stop_max_us = (double)get(&c->stop_max_ns) / 1e3,
		.stop_p99_us = percentile_us(c, 0.99),
		.cpu_covered_s = (double)get(&s->done.cpu_ns) / 1e9,
		.seconds = (double)(get(&s->last_ns) - get(&s->first_ns)) / 1e9,
	};
	if (out->stop_p99_us > out->stop_max_us)
		out->stop_p99_us = out->stop_max_us; /* the middle of its bucket */
	if (out->stops)
		out->stop_mean_us = (double)get(&c->stop_ns) / 1e3 / (double)out->stops;
	for (size_t i = 0; i < s->n_proc; i++)
		out->cpu_process_s +=
			(double)(s->proc[i]->cpu_end_ns - s->proc[i]->cpu_start_ns) / 1e9;
	decoder_figures(s->decoder, out);
}
