/* The last line of a run. */
#include "summary.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd.h"

static const struct {
	const char *name;
	size_t offset; /* of a uint64_t in the counters */
} causes[] = {
	{ "gone", offsetof(struct rbsp_sampler_stats, lost_gone) },
	{ "deadline", offsetof(struct rbsp_sampler_stats, lost_deadline) },
	{ "unreadable", offsetof(struct rbsp_sampler_stats, lost_unreadable) },
	{ "inconsistent", offsetof(struct rbsp_sampler_stats, lost_inconsistent) },
	{ "traced by another", offsetof(struct rbsp_sampler_stats, lost_traced) },
	{ "decoder behind", offsetof(struct rbsp_sampler_stats, lost_behind) },
};

#define N_CAUSES (sizeof(causes) / sizeof(causes[0]))

static uint64_t lost_by(const struct rbsp_sampler_stats *s, size_t cause)
{
	return *(const uint64_t *)((const char *)s + causes[cause].offset);
}

/* Rounded down: 100 % is said only of all, and not of nothing. */
static uint64_t percent(uint64_t part, uint64_t all)
{
	return all ? 100 * part / all : 0;
}

void summary_print(const struct rbsp_sampler_stats *s)
{
	char lost_text[320] = "";
	uint64_t lost = 0;
	size_t at = 0;

	for (size_t i = 0; i < N_CAUSES; i++) {
		uint64_t n = lost_by(s, i);

		if (!n)
			continue;
		at += (size_t)snprintf(lost_text + at, sizeof(lost_text) - at, "%s %s %" PRIu64,
				       lost ? "," : "; lost:", causes[i].name, n);
		lost += n;
	}
	if (s->lost_traced && s->other_tracer > 0)
		snprintf(lost_text + at, sizeof(lost_text) - at, "; the other tracer is %d",
			 s->other_tracer);
	say("%" PRIu64 " samples, %.1f s, %" PRIu64 " late, %" PRIu64
	    " lost, stop %.0f us mean %.0f us p99 %.0f us max, "
	    "%" PRIu64 " %% exact, %.2f of %.2f CPU seconds covered%s",
	    s->samples, s->seconds, s->late, lost, s->stop_mean_us, s->stop_p99_us, s->stop_max_us,
	    percent(s->exact, s->samples), s->cpu_covered_s, s->cpu_process_s, lost_text);
}

void summary_print_more(const struct rbsp_sampler_stats *s)
{
	say("%" PRIu64 " ticks, %" PRIu64 " missed, %" PRIu64 " due, %" PRIu64
	    " stops, %s priority",
	    s->ticks, s->missed_ticks, s->due, s->stops, s->realtime ? "real-time" : "normal");
	say("%" PRIu64 " stacks cut, %" PRIu64 " not merged, %" PRIu64 " frames not read, %" PRIu64
	    " names without a class",
	    s->cut, s->unmerged, s->unread_frames, s->bare_names);
	say("%.0f us to decode a sample, %.0f ns a native frame, %.0f ns a Ruby frame",
	    s->decode_us, s->unwind_ns_per_frame, s->decode_ns_per_frame);
}
