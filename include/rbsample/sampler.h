/* Sampling of running Ruby processes: options, the run, its counters; one look at all threads; what
 * was found in a process. */
#ifndef RBSAMPLE_SAMPLER_H
#define RBSAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rbsample/frame.h>
#include <rbsample/sample.h>
#include <rbsample/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rbsp_native_mode {
	RBSP_NATIVE_LEAF, /* native frames above the newest Ruby run */
	RBSP_NATIVE_FULL, /* the whole native stack, merged */
	RBSP_NATIVE_OFF,
};

enum rbsp_label_mode { RBSP_LABEL_DEFAULT, RBSP_LABEL_RUBY };

/** Fill with rbsp_sampler_options_init, then change. */
struct rbsp_sampler_options {
	size_t size; /* sizeof, for versions to come */
	double rate_hz;
	enum rbsp_native_mode native;
	enum rbsp_label_mode labels;
	bool lines;
	bool idle;               /* also threads that do not run */
	bool gvl_only;           /* only threads that hold the GVL */
	bool main_only;          /* only Ruby's main thread */
	const char *thread_name; /* POSIX extended regex over thread names, NULL: all; borrowed */
	bool realtime;           /* use real-time priority where allowed */
	const char
		*tape; /* also write a tape to this file, NULL: none; borrowed; one process only */
	uint64_t seed; /* of the ticks' jitter, 0: from the clock */
};
void rbsp_sampler_options_init(struct rbsp_sampler_options *o);

/** What a run counted. samples + late + lost == due. */
struct rbsp_sampler_stats {
	uint64_t ticks, missed_ticks;
	uint64_t due, samples, late;
	uint64_t lost_gone, lost_deadline, lost_unreadable, lost_inconsistent, lost_traced,
		lost_behind;
	uint64_t exact; /* samples held at the tick's own instant */
	uint64_t stops;
	uint64_t cut, unmerged, unread_frames, bare_names;
	double stop_mean_us, stop_p99_us, stop_max_us;
	double seconds;       /* from the first tick to the last */
	double cpu_covered_s; /* cpu time of the samples */
	double cpu_process_s; /* of the process CPU clocks over the same time */
	int other_tracer;     /* pid that held threads lost to RBSP_E_TRACED, 0: none */
	bool realtime;        /* real-time priority was granted */
	double decode_us;     /* mean time of unwinding, decoding and merging a sample */
	double unwind_ns_per_frame, decode_ns_per_frame;
};

struct rbsp_sampler;

/** @p frames is borrowed and outlives it. */
enum rbsp_status rbsp_sampler_new(const struct rbsp_sampler_options *o, struct rbsp_frames *frames,
				  struct rbsp_sampler **out, struct rbsp_err *err);
void rbsp_sampler_free(struct rbsp_sampler *s);

/** Add a process: opens it and locates Ruby in it, stops nothing. RBSP_E_BOOTING: no Ruby VM yet,
 * try again. */
enum rbsp_status rbsp_sampler_add(struct rbsp_sampler *s, int pid, struct rbsp_err *err);

/**
 * Sample until the duration ends, @p max_samples (0: no limit) were taken, every process ended or
 * rbsp_sampler_stop is called.
 *
 * @param duration_ns  0: no limit
 * @param sink         borrowed; called from this thread only
 * @return RBSP_OK, also when the targets ended; what the sink returned if it failed
 */
enum rbsp_status rbsp_sampler_run(struct rbsp_sampler *s, uint64_t duration_ns,
				  uint64_t max_samples, struct rbsp_sink *sink,
				  struct rbsp_err *err);

/** End a run soon; async-signal-safe, from any thread. */
void rbsp_sampler_stop(struct rbsp_sampler *s);

/** Counters so far; from any thread. */
void rbsp_sampler_stats(const struct rbsp_sampler *s, struct rbsp_sampler_stats *out);

/** Read a tape again: every capture through the same decoder into @p sink. Fails with RBSP_E_TAPE
 * if a page is missing. */
enum rbsp_status rbsp_tape_replay(const char *path, const struct rbsp_sampler_options *o,
				  struct rbsp_frames *frames, struct rbsp_sink *sink,
				  struct rbsp_sampler_stats *stats, struct rbsp_err *err);

/** One look at one thread; frames are innermost first. */
struct rbsp_dump_thread {
	struct rbsp_thread thread;
	enum rbsp_thread_state state;
	rbsp_frame_id *frames;
	size_t n_frames;
};

struct rbsp_dump {
	struct rbsp_process process;
	struct rbsp_dump_thread *thread; /* main first, then by tid */
	size_t n;
};

struct rbsp_dump_options {
	size_t size;
	enum rbsp_native_mode native;
	bool native_given; /* the user asked for native frames: also threads in calls that a stop
			      interrupts are stopped */
	enum rbsp_label_mode labels;
	bool lines;
};
void rbsp_dump_options_init(struct rbsp_dump_options *o);

/** Look once at every Ruby thread; a stopped process stays stopped. Give back with rbsp_dump_free.
 */
enum rbsp_status rbsp_dump_take(int pid, const struct rbsp_dump_options *o,
				struct rbsp_frames *frames, struct rbsp_dump **out,
				struct rbsp_err *err);
void rbsp_dump_free(struct rbsp_dump *d);

/** What was found in a process, for people: rows in the order in which they were tried. */
struct rbsp_inspect_step {
	const char *what, *how, *detail;
	bool found;
};
struct rbsp_inspect {
	int pid;
	const char *ruby, *description, *module, *layout; /* NULL: not found */
	bool layout_run; /* false: the row comes from headers and was never run */
	struct rbsp_inspect_step *step;
	size_t n_steps;
	size_t ruby_threads;
	char failure[512]; /* "": everything needed was found */
};
/** Steps are there also when it fails: *out is set unless the process cannot be opened. */
enum rbsp_status rbsp_inspect_process(int pid, struct rbsp_inspect **out, struct rbsp_err *err);
void rbsp_inspect_free(struct rbsp_inspect *i);

#ifdef __cplusplus
}
#endif
#endif
