/* /proc text to structs: pure functions over text that somebody else read. */
#ifndef RBSP_PROC_H
#define RBSP_PROC_H

#include <sys/types.h>

#include "base/base.h"

/** One line of /proc/PID/maps. */
struct rbsp_map {
	rbsp_addr start, end; /* [start, end) */
	uint64_t offset;      /* in the file, bytes */
	uint64_t dev, ino;    /* dev as makedev(major, minor); ino 0: no file */
	bool read, write, exec, shared;
	const char *path; /* "" for anonymous; " (deleted)" kept; octal escapes undone; borrowed
			     from the maps */
};

/** Sorted by address, as the kernel prints them. */
struct rbsp_maps {
	struct rbsp_map *map;
	size_t n;
	char *text; /* holds the paths */
};

/** Parse a whole maps text of @p n bytes (copied). @return RBSP_OK, RBSP_E_NOMEM, RBSP_E_FORMAT.
 * Give back with rbsp_maps_fini. */
enum rbsp_status rbsp_maps_parse(const char *text, size_t n, struct rbsp_maps *out,
				 struct rbsp_err *err);
void rbsp_maps_fini(struct rbsp_maps *m);
/** The mapping that holds @p a, borrowed; NULL: none. */
const struct rbsp_map *rbsp_maps_find(const struct rbsp_maps *m, rbsp_addr a);
/** Whether [a, a+n) lies in readable mappings that follow each other without a hole and have the
 * same permissions and file. */
bool rbsp_maps_one_area(const struct rbsp_maps *m, rbsp_addr a, uint64_t n);

/** /proc/PID/stat; fields after the last ')'. */
struct rbsp_proc_stat {
	char state; /* R S D T t Z X I */
	int ppid;
	uint64_t flags;      /* PF_* of the kernel; PF_KTHREAD 0x200000 */
	uint64_t start_time; /* clock ticks since boot: with the pid, the process's identity */
	int cpu;             /* last run on */
	char comm[64];
};
enum rbsp_status rbsp_proc_stat_parse(const char *text, size_t n, struct rbsp_proc_stat *out);

/** /proc/PID/status: the fields that decide permissions and namespaces. */
struct rbsp_proc_status {
	char state;
	int tgid, tracer_pid;
	int ns_pid;              /* last of NSpid */
	uint32_t uid[4], gid[4]; /* real, effective, saved, fs */
	uint64_t cap_eff, cap_prm;
};
enum rbsp_status rbsp_proc_status_parse(const char *text, size_t n, struct rbsp_proc_status *out);

/** /proc/TID/schedstat: "run_ns wait_ns timeslices". */
struct rbsp_schedstat {
	uint64_t run_ns;  /* on a cpu */
	uint64_t wait_ns; /* runnable, waiting for a cpu */
	uint64_t count;   /* times it was put on a cpu */
};
enum rbsp_status rbsp_schedstat_parse(const char *text, size_t n, struct rbsp_schedstat *out);

/**
 * When a task was last accounted on a cpu, from the head of /proc/TID/sched ("se.exec_start :
 * MS.NS"), in ns of the scheduler's clock: the instant at which it left its cpu, for a task that is
 * on none.
 */
enum rbsp_status rbsp_exec_start_parse(const char *text, size_t n, uint64_t *ns);

/** /proc/TID/syscall: "running", or "-1 sp pc" (blocked outside a call), or "nr a0..a5 sp pc". */
struct rbsp_proc_syscall {
	bool blocked; /* false: running or runnable */
	int64_t nr;   /* -1: blocked outside a system call (page fault) */
	uint64_t arg[6];
	rbsp_addr sp, pc;
};
enum rbsp_status rbsp_proc_syscall_parse(const char *text, size_t n, struct rbsp_proc_syscall *out);

/** Name of a system call of this machine ("read"); NULL: not in the table. */
const char *rbsp_syscall_name(int64_t nr);
/** Whether a ptrace stop makes this call return EINTR to the program (facts of the kernel:
 * signal(7), "never restarted"). */
bool rbsp_syscall_eintr(int64_t nr);

/** What decides whether we may look into a process; gathered by somebody else. */
struct rbsp_access {
	struct rbsp_proc_status self, target;
	int yama;      /* /proc/sys/kernel/yama/ptrace_scope, -1: no Yama */
	bool dumpable; /* /proc/PID/mem's owner is the target's user */
	bool same_userns;
	bool kthread;
	bool descendant; /* the target is our child, grandchild... */
};
/**
 * Say why a refusal (EPERM, EACCES) happened and what to do: one line into @p err with
 * RBSP_E_DENIED or RBSP_E_TRACED. Pure; @p tracer_command names the process of target.tracer_pid,
 * may be NULL.
 */
enum rbsp_status rbsp_access_explain(const struct rbsp_access *a, const char *tracer_command,
				     struct rbsp_err *err);

#endif
