/* The live target: a running process, looked at from outside and never stopped by what is here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "target/images.h"
#include "target/live.h"

struct live {
	struct rbsp_target base;
	int mem;   /* /proc/PID/mem, opened at attach: reads 0 bytes after an exec */
	int dir;   /* /proc/PID */
	int pidfd; /* -1: the kernel has none */
	int ns_pid;
	bool by_mem;            /* process_vm_readv is refused: read through mem */
	uint16_t tcb_of_robust; /* distance of the thread pointer below the robust list head, 0: not
				   yet known */
	rbsp_addr probe;        /* an address that was readable at attach, for rbsp_live_execed */
	struct rbsp_images images;
};

static struct live *live_of(const struct rbsp_target *t)
{
	return (struct live *)(uintptr_t)t;
}

/* Read a whole /proc file that may be large. *out is malloc'ed. */
static enum rbsp_status slurp(int dir, const char *name, char **out, size_t *n)
{
	size_t cap = 1 << 16, len = 0;
	char *buf = NULL, *bigger;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	enum rbsp_status st = RBSP_E_GONE;
	long got;

	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? RBSP_E_GONE : RBSP_E_DENIED;
	do {
		if (!buf || len + 1 >= cap) {
			cap *= 2;
			bigger = realloc(buf, cap);
			if (!bigger) {
				st = RBSP_E_NOMEM;
				goto out;
			}
			buf = bigger;
		}
		got = read(fd, buf + len, cap - len - 1);
		len += got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		goto out;
	buf[len] = 0;
	*out = buf;
	*n = len;
	buf = NULL;
	st = RBSP_OK;
out:
	free(buf);
	close(fd);
	return st;
}

static enum rbsp_status live_maps(struct rbsp_target *t, struct rbsp_maps *out,
				  struct rbsp_err *err)
{
	char *text = NULL;
	size_t n = 0;
	enum rbsp_status st = slurp(live_of(t)->dir, "maps", &text, &n);

	if (st != RBSP_OK)
		return rbsp_fail(err, st, "cannot read the mappings of process %d", t->pid);
	st = n ? rbsp_maps_parse(text, n, out, err)
	       : rbsp_fail(err, RBSP_E_GONE, "process %d has no memory any more", t->pid);
	free(text);
	return st;
}

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static enum rbsp_status live_threads(struct rbsp_target *t, int **tids, size_t *n,
				     struct rbsp_err *err)
{
	int fd = openat(live_of(t)->dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t cap = 0, len = 0;
	int *list = NULL, *bigger;
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return rbsp_fail(err, RBSP_E_GONE, "process %d has no threads any more", t->pid);
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		if (len == cap) {
			cap = cap ? 2 * cap : 64;
			bigger = realloc(list, cap * sizeof(*list));
			if (!bigger) {
				free(list);
				closedir(d);
				return rbsp_fail(err, RBSP_E_NOMEM,
						 "no memory for the list of threads");
			}
			list = bigger;
		}
		list[len++] = atoi(e->d_name);
	}
	closedir(d);
	if (len)
		qsort(list, len, sizeof(*list), by_value);
	*tids = list;
	*n = len;
	return RBSP_OK;
}

static enum rbsp_status read_by_mem(struct live *l, const struct rbsp_piece *v, size_t n,
				    size_t *done)
{
	*done = 0;
	for (size_t i = 0; i < n; i++) {
		long got = pread(l->mem, v[i].to, v[i].n, (off_t)v[i].addr);

		*done += got > 0 ? (size_t)got : 0;
		if (got != (long)v[i].n)
			return got == 0 ? RBSP_E_GONE : RBSP_E_FAULT;
	}
	return RBSP_OK;
}

/* One process_vm_readv; a partial count says where it faulted. */
static enum rbsp_status read_some(struct live *l, const struct rbsp_piece *v, size_t n,
				  size_t *done)
{
	struct iovec local[64], remote[64];
	size_t want = 0;
	long got;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){ v[i].to, v[i].n };
		remote[i] = (struct iovec){ (void *)(uintptr_t)v[i].addr, v[i].n };
		want += v[i].n;
	}
	got = process_vm_readv(l->base.pid, local, n, remote, n, 0);
	*done = got > 0 ? (size_t)got : 0;
	if (*done == want)
		return RBSP_OK;
	if (got < 0 && errno == ESRCH)
		return RBSP_E_GONE;
	if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
		l->by_mem = true;
		return read_by_mem(l, v, n, done);
	}
	return RBSP_E_FAULT;
}

static enum rbsp_status live_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	struct live *l = live_of(t);
	enum rbsp_status st = RBSP_OK;
	size_t total = 0;

	for (size_t at = 0; at < n && st == RBSP_OK; at += 64) {
		size_t some = n - at < 64 ? n - at : 64, got;

		st = l->by_mem ? read_by_mem(l, v + at, some, &got)
			       : read_some(l, v + at, some, &got);
		total += got;
	}
	if (done)
		*done = total;
	return st;
}

/* A thread control block of glibc, x86-64: word 0 and word 2 are its own address (nptl/descr.h,
 * tcbhead_t). */
static bool is_tcb(struct rbsp_target *t, rbsp_addr a)
{
	uint64_t w[3];

	return rbsp_read(t, a, w, sizeof(w)) == RBSP_OK && w[0] == a && w[2] == a;
}

/*
 * get_robust_list(2) tells where a thread's robust futex list starts without stopping it, and glibc
 * keeps that list in the thread control block: its distance from the block is one number for the
 * whole process, found by the block's pointers to itself. musl sets the list only when it is used,
 * so there a stop is needed.
 */
static enum rbsp_status live_thread_pointer(struct rbsp_target *t, int tid, rbsp_addr *tp)
{
	struct live *l = live_of(t);
	void *head = NULL;
	size_t len = 0;
	rbsp_addr at;

	if (syscall(SYS_get_robust_list, tid, &head, &len) != 0)
		return errno == ESRCH ? RBSP_E_GONE : RBSP_E_NOT_FOUND;
	at = (rbsp_addr)(uintptr_t)head;
	if (!at)
		return RBSP_E_NOT_FOUND;
	if (l->tcb_of_robust && is_tcb(t, at - l->tcb_of_robust)) {
		*tp = at - l->tcb_of_robust;
		return RBSP_OK;
	}
	for (uint16_t k = 16; k < 4096; k += 8) {
		if (is_tcb(t, at - k)) {
			l->tcb_of_robust = k;
			*tp = at - k;
			return RBSP_OK;
		}
	}
	return RBSP_E_NOT_FOUND;
}

static enum rbsp_status live_image(struct rbsp_target *t, const struct rbsp_map *m,
				   const struct rbsp_elf **out, struct rbsp_err *err)
{
	return rbsp_images_get(&live_of(t)->images, t, live_of(t)->dir, m, out, err);
}

static void live_free(struct rbsp_target *t)
{
	struct live *l = live_of(t);

	rbsp_images_fini(&l->images);
	if (l->mem >= 0)
		close(l->mem);
	if (l->dir >= 0)
		close(l->dir);
	if (l->pidfd >= 0)
		close(l->pidfd);
	free(l);
}

static const struct rbsp_target_ops live_ops = {
	.maps = live_maps,
	.threads = live_threads,
	.readv = live_readv,
	.thread_pointer = live_thread_pointer,
	.image = live_image,
	.free = live_free,
};

int rbsp_live_pidfd(const struct rbsp_target *t)
{
	return live_of(t)->pidfd;
}

int rbsp_live_ns_pid(const struct rbsp_target *t)
{
	return live_of(t)->ns_pid;
}

bool rbsp_live_execed(struct rbsp_target *t)
{
	struct live *l = live_of(t);
	char byte;

	return pread(l->mem, &byte, 1, (off_t)l->probe) == 0;
}

static long read_small(int dir, const char *path, char *buf, size_t cap)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -errno : read(fd, buf, cap - 1);

	if (fd >= 0) {
		n = n < 0 ? -errno : n;
		close(fd);
	}
	buf[n > 0 ? n : 0] = 0;
	return n;
}

long rbsp_live_file(const struct rbsp_target *t, const char *name, char *buf, size_t cap)
{
	return read_small(live_of(t)->dir, name, buf, cap);
}

long rbsp_live_path(const char *path, char *buf, size_t cap)
{
	return read_small(AT_FDCWD, path, buf, cap);
}

bool rbsp_live_ended(struct rbsp_target *t)
{
	struct live *l = live_of(t);
	struct pollfd p = { .fd = l->pidfd, .events = POLLIN };
	struct rbsp_proc_stat st;
	char text[1024];
	long n;

	if (l->pidfd >= 0 && poll(&p, 1, 0) == 1)
		return true;
	if (l->pidfd >= 0)
		return false;
	n = rbsp_live_file(t, "stat", text, sizeof(text));
	return n <= 0 || rbsp_proc_stat_parse(text, (size_t)n, &st) != RBSP_OK || st.state == 'Z' ||
	       st.state == 'X';
}

static enum rbsp_status open_checked(struct live *l, struct rbsp_err *err)
{
	struct rbsp_proc_status status;
	struct rbsp_proc_stat stat;
	struct rbsp_maps maps = { 0 };
	enum rbsp_status st;
	char text[4096];
	int pid = l->base.pid;
	long n = rbsp_live_file(&l->base, "stat", text, sizeof(text));

	if (n <= 0 || rbsp_proc_stat_parse(text, (size_t)n, &stat) != RBSP_OK)
		return rbsp_fail(err, RBSP_E_NO_PID, "no such process");
	if (stat.state == 'Z' || stat.state == 'X')
		return rbsp_fail(
			err, RBSP_E_NO_PID,
			"it is a zombie: it has ended, and its parent %d has not waited for it",
			stat.ppid);
	if (stat.flags & 0x200000) /* PF_KTHREAD, include/linux/sched.h */
		return rbsp_fail(err, RBSP_E_NOT_RUBY, "it is a kernel thread (%s), not a program",
				 stat.comm);
	n = rbsp_live_file(&l->base, "status", text, sizeof(text));
	if (n <= 0 || rbsp_proc_status_parse(text, (size_t)n, &status) != RBSP_OK)
		return rbsp_fail(err, RBSP_E_NO_PID, "no such process");
	if (status.tgid != pid)
		return rbsp_fail(err, RBSP_E_NO_PID, "it is a thread of process %d: give that",
				 status.tgid);
	l->ns_pid = status.ns_pid;
	st = rbsp_live_untraced(pid, err);
	if (st != RBSP_OK)
		return st;
	l->mem = openat(l->dir, "mem", O_RDONLY | O_CLOEXEC);
	if (l->mem < 0)
		return rbsp_live_explain(pid, err);
	st = live_maps(&l->base, &maps, err);
	if (st != RBSP_OK)
		return st;
	for (size_t i = 0; i < maps.n && !l->probe; i++) {
		if (maps.map[i].read)
			l->probe = maps.map[i].start;
	}
	rbsp_maps_fini(&maps);
	return RBSP_OK;
}

enum rbsp_status rbsp_live_open(int pid, struct rbsp_target **out, struct rbsp_err *err)
{
	struct live *l = calloc(1, sizeof(*l));
	enum rbsp_status st;
	char path[32];

	if (!l)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for process %d", pid);
	l->base = (struct rbsp_target){ &live_ops, pid };
	l->mem = -1;
	l->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (l->pidfd >= 0)
		fcntl(l->pidfd, F_SETFD, FD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	l->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir < 0)
		st = rbsp_fail(err, RBSP_E_NO_PID, "no such process");
	else
		st = open_checked(l, err);
	if (st != RBSP_OK) {
		live_free(&l->base);
		return st;
	}
	*out = &l->base;
	return RBSP_OK;
}
