/* Samples, and the sink that takes them: where producers and consumers meet. */
#ifndef RBSAMPLE_SAMPLE_H
#define RBSAMPLE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rbsample/frame.h>
#include <rbsample/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rbsp_thread_state {
	RBSP_STATE_UNKNOWN,
	RBSP_STATE_RUNNING,    /* holds the GVL */
	RBSP_STATE_NATIVE,     /* runs C code without the GVL */
	RBSP_STATE_GVL_WAIT,   /* waits for the GVL */
	RBSP_STATE_MUTEX_WAIT, /* waits for a Mutex or Monitor */
	RBSP_STATE_IO_WAIT,    /* waits for a descriptor */
	RBSP_STATE_SLEEP,      /* sleeps */
	RBSP_STATE_BLOCKED,    /* blocked in a system call */
	RBSP_STATE_PARKED,     /* has no native thread at the moment (M:N) */
};

/** "running", "native", "gvl wait", "mutex wait", "io wait", "sleep", "blocked", "parked",
 * "unknown". */
const char *rbsp_thread_state_name(enum rbsp_thread_state s);

struct rbsp_process {
	int pid;             /* in the sampler's pid namespace */
	int ns_pid;          /* in the target's own pid namespace */
	const char *command; /* its first words, for people */
	const char *ruby;    /* "3.3.8" */
};

struct rbsp_thread {
	int tid;          /* kernel thread id, 0: parked */
	const char *name; /* Thread#name, else the kernel's name; NULL: unknown */
	bool main;        /* Ruby's main thread */
};

enum {
	RBSP_SAMPLE_EXACT = 1,    /* the thread was held at the tick's own instant */
	RBSP_SAMPLE_REPEATED = 2, /* it has not run since: its last stack, counted again */
	RBSP_SAMPLE_CUT = 4,      /* something of the stack is missing, a marker frame says where */
	RBSP_SAMPLE_UNMERGED = 8, /* native and Ruby frames did not match: Ruby frames only */
};

/** One stack of one thread. Borrowed for the call, everything in it. */
struct rbsp_sample {
	uint64_t time_ns;   /* CLOCK_MONOTONIC at the tick */
	uint64_t weight_ns; /* since this thread's last tick, at most 2 periods */
	uint64_t cpu_ns;    /* cpu time of the thread since its last sample, not capped */
	const struct rbsp_process *process;
	const struct rbsp_thread *thread;
	enum rbsp_thread_state state;
	int holder_tid; /* thread that owns what this one waits for, 0: unknown or none */
	unsigned flags; /* RBSP_SAMPLE_* */
	const rbsp_frame_id *frames; /* root first */
	size_t n_frames;
};

/**
 * A consumer of samples: a profile, a writer, a test. Ops are never NULL. The frame table that ids
 * refer to is given at open and outlives the sink. All calls come from one thread.
 */
struct rbsp_sink;
struct rbsp_sink_ops {
	enum rbsp_status (*sample)(struct rbsp_sink *self, const struct rbsp_sample *s);
	enum rbsp_status (*finish)(struct rbsp_sink *self, struct rbsp_err *err);
	void (*free)(struct rbsp_sink *self);
};
struct rbsp_sink {
	const struct rbsp_sink_ops *ops;
};

static inline enum rbsp_status rbsp_sink_sample(struct rbsp_sink *s,
						const struct rbsp_sample *sample)
{
	return s->ops->sample(s, sample);
}

static inline enum rbsp_status rbsp_sink_finish(struct rbsp_sink *s, struct rbsp_err *err)
{
	return s->ops->finish(s, err);
}

static inline void rbsp_sink_free(struct rbsp_sink *s)
{
	if (s)
		s->ops->free(s);
}

#ifdef __cplusplus
}
#endif
#endif
