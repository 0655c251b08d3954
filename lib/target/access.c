/* Why we may not look into a process: gathers the facts, lib/proc draws the conclusion. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "target/live.h"

static long read_proc(int pid, const char *name, char *buf, size_t cap)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return rbsp_live_path(path, buf, cap);
}

static bool read_status(int pid, struct rbsp_proc_status *out)
{
	char text[4096];
	long n = read_proc(pid, "status", text, sizeof(text));

	return n > 0 && rbsp_proc_status_parse(text, (size_t)n, out) == RBSP_OK;
}

static int parent_of(int pid)
{
	struct rbsp_proc_stat st;
	char text[1024];
	long n = read_proc(pid, "stat", text, sizeof(text));

	return n > 0 && rbsp_proc_stat_parse(text, (size_t)n, &st) == RBSP_OK ? st.ppid : 0;
}

static bool is_descendant(int pid)
{
	for (int depth = 0; pid > 1 && depth < 64; depth++) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

static bool same_userns(int pid)
{
	char path[64], theirs[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/ns/user", ours, sizeof(ours));
	return n <= 0 || m <= 0 || (n == m && memcmp(theirs, ours, (size_t)n) == 0);
}

static int yama_scope(void)
{
	char text[16];

	return rbsp_live_path("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) > 0
		       ? atoi(text)
		       : -1;
}

/* The kernel gives the files in /proc/PID (not the folder) to root when the process is not
 * dumpable: task_dump_owner. */
static bool is_dumpable(int pid, const struct rbsp_proc_status *status)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return stat(path, &st) != 0 || st.st_uid == status->uid[1];
}

enum rbsp_status rbsp_live_explain(int pid, struct rbsp_err *err)
{
	struct rbsp_access a = { .yama = yama_scope(),
				 .same_userns = same_userns(pid),
				 .descendant = is_descendant(pid) };
	char command[64] = "";

	if (!read_status(getpid(), &a.self) || !read_status(pid, &a.target))
		return rbsp_fail(err, RBSP_E_NO_PID, "no such process");
	if (a.target.state == 'Z' || a.target.state == 'X')
		return rbsp_fail(err, RBSP_E_NO_PID, "it has ended");
	a.dumpable = is_dumpable(pid, &a.target);
	if (a.target.tracer_pid &&
	    read_proc(a.target.tracer_pid, "comm", command, sizeof(command)) > 0)
		command[strcspn(command, "\n")] = 0;
	return rbsp_access_explain(&a, command[0] ? command : NULL, err);
}

enum rbsp_status rbsp_live_untraced(int pid, struct rbsp_err *err)
{
	struct timespec pause = { 0, 10 * 1000 * 1000 };
	struct rbsp_proc_status status;

	for (int i = 0; i < 6; i++) {
		if (!read_status(pid, &status) || !status.tracer_pid)
			return RBSP_OK;
		nanosleep(&pause, NULL);
	}
	return rbsp_live_explain(pid, err);
}
