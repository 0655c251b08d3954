/* One sampled process: its target, what was located in it, and the table of its kernel threads. */
#ifndef RBSP_PROCESS_H
#define RBSP_PROCESS_H

#include <stdatomic.h>

#include <rbsample/sampler.h>

#include "locate/locate.h"
#include "target/view.h"

struct rbsp_proc;

/**
 * One kernel thread of a process. The first part belongs to whoever owns the tick (or, while it is
 * not yet in the table, to the decoder), the second to the decoder alone.
 */
struct rbsp_entry {
	int tid;
	struct rbsp_proc *proc;
	int schedstat, syscall, sched; /* descriptors of /proc/PID/task/TID/..., kept open */
	rbsp_addr tp;                  /* thread pointer, 0: unknown */
	struct rbsp_view view;
	struct rbsp_schedstat base; /* when it was last seen blocked */
	bool blocked;               /* it was seen blocked when base was set */
	uint64_t slept_ns;          /* tick at which it was last seen blocked, 0: never */
	bool read;                  /* its stack was read since it last ran */
	uint64_t tick_ns;           /* its last tick */
	_Atomic bool held;     /* a tracer waits for its stop: until then nobody else touches what
				  stands above */
	_Atomic uint32_t owed; /* ticks that passed meanwhile: it has not run, so its stack counts
				  for them too */
	_Atomic int wanted;    /* by --thread-name: 0 not yet known, 1 yes, -1 no */
	_Atomic unsigned in_ring; /* events that refer to it */

	bool seen;           /* in the last list of threads */
	rbsp_addr late_slot; /* a slot found after the entry was made */
	rbsp_addr th;        /* the Ruby thread when its name was read, 0: none */
	bool main;
	uint64_t cpu_ns;   /* cpu time at its last sample */
	uint64_t named_ns; /* when the name was read */
	char name[64];
	rbsp_frame_id *stack; /* its last stack, to be counted again */
	size_t n_stack, cap_stack;
	enum rbsp_thread_state state;
	unsigned flags;
	struct rbsp_entry *next; /* retired, waits for in_ring to become 0 */
};

struct rbsp_proc {
	struct rbsp_target *live;
	struct rbsp_target *cold; /* what the decoder reads through: live itself, or a tape's
				     recorder around it */
	struct rbsp_located loc;
	struct rbsp_capture_spec spec;
	struct rbsp_ruby *ruby;
	struct rbsp_native *native;
	struct rbsp_process info;
	char command[128];
	rbsp_addr main_th;
	struct rbsp_entry *
		*entry; /* ascending tid; changed only by the decoder while it owns the tick */
	size_t n, cap;
	struct rbsp_entry *retired;
	uint64_t listed_ns;                /* when the threads were last listed */
	_Atomic bool unlisted;             /* the GVL's owner was not in the table */
	uint64_t links;                    /* st_nlink of /proc/PID/task then */
	uint64_t cpu_start_ns, cpu_end_ns; /* process CPU clock */
	bool ended;
};

/** Open a process, locate Ruby in it and make its decoder. */
enum rbsp_status rbsp_proc_open(int pid, const struct rbsp_sampler_options *o,
				struct rbsp_frames *frames, struct rbsp_proc **out,
				struct rbsp_err *err);
/** The same over a target that is there already (a tape); owned afterwards, also on failure. */
enum rbsp_status rbsp_proc_of_target(struct rbsp_target *t, const struct rbsp_sampler_options *o,
				     struct rbsp_frames *frames, struct rbsp_proc **out,
				     struct rbsp_err *err);
void rbsp_proc_free(struct rbsp_proc *p);

/** Whether the list of threads may have changed since it was last read, or is older than 100 ms. */
bool rbsp_proc_is_stale(struct rbsp_proc *p, uint64_t now_ns);

/**
 * The table that the threads of now ask for: entries of threads that go on are kept, new ones
 * opened. Needs no ownership of the tick; rbsp_proc_install does.
 */
enum rbsp_status rbsp_proc_list(struct rbsp_proc *p, struct rbsp_entry ***table, size_t *n);
/** Put a table in place of the old one. The caller owns the tick. */
void rbsp_proc_install(struct rbsp_proc *p, struct rbsp_entry **table, size_t n,
		       struct rbsp_entry ***old, size_t *n_old);
/** Retire what only the old table had; free what no event refers to any more. */
void rbsp_proc_retire(struct rbsp_proc *p, struct rbsp_entry **old, size_t n_old);

/** Read the name of the entry's thread, at most once a second and when another Ruby thread @p th
 * (0: none) runs in it. */
void rbsp_entry_name(struct rbsp_entry *e, rbsp_addr th, uint64_t now_ns);

/** Process CPU clock in ns, 0: ended. */
uint64_t rbsp_proc_cpu_ns(const struct rbsp_proc *p);

/** pread and parse an entry's schedstat; @return false: the thread is gone. */
bool rbsp_entry_schedstat(const struct rbsp_entry *e, struct rbsp_schedstat *out);
/** When an entry's thread was last on a cpu, see rbsp_exec_start_parse. @return false: gone, or the
 * kernel does not tell. */
bool rbsp_entry_on_cpu(const struct rbsp_entry *e, uint64_t *ns);
/** The same for the calling thread, whose /proc/thread-self/sched is open as @p fd: when it came on
 * its cpu. */
bool rbsp_self_on_cpu(int fd, uint64_t *ns);
/** pread and parse an entry's syscall file; @return false: gone, or not permitted. */
bool rbsp_entry_syscall(const struct rbsp_entry *e, struct rbsp_proc_syscall *out);

#endif
