/* Opening a process for sampling, and the table of its kernel threads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/process.h"
#include "target/live.h"
#include "target/tape.h"

#define LIST_EVERY_NS 100000000u
#define NAME_EVERY_NS 1000000000u
/* A Ruby is up after this, also on a slow machine. */
#define BOOT_S 3.0
#define EXEC_TRIES 20

/* The process CPU clock of another process: clock_getcpuclockid(3), as the kernel encodes it. */
static clockid_t cpu_clock_of(int pid)
{
	return (clockid_t)((~(unsigned)pid << 3) | 2u);
}

uint64_t rbsp_proc_cpu_ns(const struct rbsp_proc *p)
{
	struct timespec ts;

	if (clock_gettime(cpu_clock_of(p->info.pid), &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void read_command(struct rbsp_proc *p)
{
	long n = rbsp_live_file(p->live, "cmdline", p->command, sizeof(p->command));

	for (long i = 0; i + 1 < n; i++) {
		if (!p->command[i])
			p->command[i] = ' ';
	}
	p->info.command = p->command;
	p->info.ns_pid = rbsp_live_ns_pid(p->live);
}

/* Seconds since a process was started; old, where that cannot be told. */
static double age_s(const struct rbsp_target *live)
{
	struct rbsp_proc_stat st;
	struct timespec now;
	char text[1024];
	long n = live ? rbsp_live_file(live, "stat", text, sizeof(text)) : 0;

	if (n <= 0 || rbsp_proc_stat_parse(text, (size_t)n, &st) != RBSP_OK)
		return BOOT_S;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
	       (double)st.start_time / (double)sysconf(_SC_CLK_TCK);
}

/* While a Ruby boots its structures may be anything: in its first seconds a refusal is not believed
 * at once. */
static enum rbsp_status locate(struct rbsp_proc *p, struct rbsp_err *err)
{
	struct timespec pause = { 0, 5000000 };
	enum rbsp_status st = rbsp_locate(p->cold, &p->loc, err);

	while ((st == RBSP_E_BOOTING || st == RBSP_E_LAYOUT) && age_s(p->live) < BOOT_S) {
		nanosleep(&pause, NULL);
		rbsp_located_fini(&p->loc);
		st = rbsp_locate(p->cold, &p->loc, err);
	}
	return st;
}

static enum rbsp_status prepare(struct rbsp_proc *p, const struct rbsp_sampler_options *o,
				struct rbsp_frames *frames, struct rbsp_err *err)
{
	struct rbsp_ruby_options ro = {
		.labels = o->labels == RBSP_LABEL_RUBY ? RBSP_LABELS_RUBY : RBSP_LABELS_DEFAULT,
		.lines = o->lines,
	};
	struct rbsp_ruby_thread *threads = NULL;
	enum rbsp_status st = locate(p, err);
	size_t n = 0;

	p->info.pid = p->cold->pid;
	if (st != RBSP_OK)
		return st;
	p->info.ruby = p->loc.version_text;
	rbsp_layout_spec(p->loc.layout, &p->spec);
	p->spec.sched = p->loc.sched;
	p->spec.sched_size = p->loc.sched_size;
	p->spec.gc = p->loc.addrs.gc_flags;
	p->spec.gc_count = p->loc.addrs.gc_count;
	p->spec.native = o->native != RBSP_NATIVE_OFF;
	p->spec.native_full = o->native == RBSP_NATIVE_FULL;
	rbsp_ruby_threads(p->cold, p->loc.layout, p->loc.addrs.vm, &threads, &n);
	for (size_t i = 0; i < n; i++) {
		if (threads[i].main && (!p->main_th || threads[i].ractor == p->loc.addrs.ractor))
			p->main_th = threads[i].th;
	}
	free(threads);
	st = rbsp_native_new(p->cold, &p->native, err);
	if (st != RBSP_OK)
		return st;
	return rbsp_ruby_new(p->cold, p->loc.layout, &p->loc.addrs, &ro, frames, &p->ruby, err);
}

enum rbsp_status rbsp_proc_of_target(struct rbsp_target *t, const struct rbsp_sampler_options *o,
				     struct rbsp_frames *frames, struct rbsp_proc **out,
				     struct rbsp_err *err)
{
	struct rbsp_proc *p = calloc(1, sizeof(*p));
	enum rbsp_status st;

	if (!p) {
		rbsp_target_free(t);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for process %d", t->pid);
	}
	p->cold = t;
	p->info.command = p->command;
	st = prepare(p, o, frames, err);
	if (st != RBSP_OK)
		rbsp_proc_free(p);
	else
		*out = p;
	return st;
}

/* Three descriptors a thread. */
static void raise_descriptor_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static enum rbsp_status open_once(int pid, const struct rbsp_sampler_options *o,
				  struct rbsp_frames *frames, struct rbsp_proc **out,
				  struct rbsp_err *err)
{
	struct rbsp_proc *p = calloc(1, sizeof(*p));
	enum rbsp_status st;

	if (!p)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for process %d", pid);
	raise_descriptor_limit();
	st = rbsp_live_open(pid, &p->live, err);
	if (st != RBSP_OK)
		goto out;
	p->cold = p->live;
	if (o->tape) {
		st = rbsp_tape_record(o->tape, p->live, &p->cold, err);
		if (st != RBSP_OK)
			goto out;
	}
	read_command(p);
	st = prepare(p, o, frames, err);
	if (st != RBSP_OK)
		goto out;
	p->cpu_start_ns = rbsp_proc_cpu_ns(p);
	*out = p;
	p = NULL;
out:
	rbsp_proc_free(p);
	return st;
}

/* What execs while it is looked at is another program by then: look again. */
enum rbsp_status rbsp_proc_open(int pid, const struct rbsp_sampler_options *o,
				struct rbsp_frames *frames, struct rbsp_proc **out,
				struct rbsp_err *err)
{
	for (int tries = 0; tries < EXEC_TRIES; tries++) {
		struct rbsp_proc *p = NULL;
		enum rbsp_status st = open_once(pid, o, frames, &p, err);

		if (!p)
			return st;
		if (!rbsp_live_execed(p->live) || rbsp_live_ended(p->live)) {
			*out = p;
			return RBSP_OK;
		}
		rbsp_proc_free(p);
	}
	return rbsp_fail(err, RBSP_E_BOOTING, "process %d calls exec again and again", pid);
}

static void entry_free(struct rbsp_entry *e)
{
	if (e->schedstat >= 0)
		close(e->schedstat);
	if (e->syscall >= 0)
		close(e->syscall);
	if (e->sched >= 0)
		close(e->sched);
	free(e->stack);
	free(e);
}

void rbsp_proc_free(struct rbsp_proc *p)
{
	struct rbsp_entry *next;

	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		entry_free(p->entry[i]);
	free(p->entry);
	for (struct rbsp_entry *e = p->retired; e; e = next) {
		next = e->next;
		entry_free(e);
	}
	rbsp_ruby_free(p->ruby);
	rbsp_native_free(p->native);
	rbsp_located_fini(&p->loc);
	if (p->cold != p->live)
		rbsp_target_free(p->cold);
	rbsp_target_free(p->live);
	free(p);
}

static uint64_t task_links(const struct rbsp_proc *p)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", p->info.pid);
	return stat(path, &st) == 0 ? (uint64_t)st.st_nlink : 0;
}

bool rbsp_proc_is_stale(struct rbsp_proc *p, uint64_t now_ns)
{
	return now_ns - p->listed_ns >= LIST_EVERY_NS || task_links(p) != p->links;
}

static int open_task_file(int pid, int tid, const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The word that holds the thread's ec, 0: not (yet) a Ruby thread. */
static rbsp_addr find_slot(struct rbsp_entry *e)
{
	struct rbsp_proc *p = e->proc;
	rbsp_addr slot = 0;

	if (!e->tp && p->live->ops->thread_pointer(p->live, e->tid, &e->tp) != RBSP_OK)
		return 0;
	return rbsp_locate_slot(p->live, &p->loc, e->tp, &slot) == RBSP_OK ? slot : 0;
}

/* The Ruby thread now, so that it can be found as the GVL's owner before its first capture. */
static rbsp_addr find_th(const struct rbsp_entry *e)
{
	struct rbsp_target *t = e->proc->live;
	uint64_t ec = 0, th = 0;

	if (!e->view.slot || rbsp_read_word(t, e->view.slot, &ec) != RBSP_OK || !ec ||
	    rbsp_read_word(t, ec + e->proc->spec.ec_thread, &th) != RBSP_OK)
		return 0;
	return th;
}

static struct rbsp_entry *entry_new(struct rbsp_proc *p, int tid)
{
	struct rbsp_entry *e = calloc(1, sizeof(*e));
	struct rbsp_schedstat s;

	if (!e)
		return NULL;
	e->tid = tid;
	e->proc = p;
	e->syscall = open_task_file(p->info.pid, tid, "syscall");
	e->sched = open_task_file(p->info.pid, tid, "sched");
	e->schedstat = open_task_file(p->info.pid, tid, "schedstat");
	if (e->schedstat < 0) {
		if (errno == EMFILE || errno == ENFILE)
			rbsp_log(RBSP_LOG_WARN,
				 "thread %d is left out: too many open files (see ulimit -n)", tid);
		entry_free(e);
		return NULL;
	}
	e->view.slot = find_slot(e);
	e->view.th = find_th(e);
	if (rbsp_entry_schedstat(e, &s))
		e->cpu_ns = s.run_ns;
	return e;
}

static struct rbsp_entry *find_entry(const struct rbsp_proc *p, int tid)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->entry[mid]->tid == tid)
			return p->entry[mid];
		if (p->entry[mid]->tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

enum rbsp_status rbsp_proc_list(struct rbsp_proc *p, struct rbsp_entry ***table, size_t *n)
{
	struct rbsp_entry **list;
	size_t n_tids = 0, filled = 0;
	int *tids = NULL;
	enum rbsp_status st = p->live->ops->threads(p->live, &tids, &n_tids, NULL);

	if (st != RBSP_OK)
		return st;
	p->links = task_links(p);
	p->listed_ns = rbsp_now_ns();
	list = calloc(n_tids + 1, sizeof(struct rbsp_entry *));
	for (size_t i = 0; i < p->n; i++)
		p->entry[i]->seen = false;
	for (size_t i = 0; list && i < n_tids; i++) {
		struct rbsp_entry *e = find_entry(p, tids[i]);

		if (!e)
			e = entry_new(p, tids[i]);
		else if (!e->view.slot || p->loc.slot_kind == RBSP_SLOT_THREAD)
			e->late_slot = find_slot(e);
		if (!e)
			continue;
		e->seen = true;
		list[filled++] = e;
	}
	free(tids);
	*table = list;
	*n = filled;
	return list ? RBSP_OK : RBSP_E_NOMEM;
}

void rbsp_proc_install(struct rbsp_proc *p, struct rbsp_entry **table, size_t n,
		       struct rbsp_entry ***old, size_t *n_old)
{
	*old = p->entry;
	*n_old = p->n;
	p->entry = table;
	p->n = n;
	/* On 2.7 the slot lies in the Ruby thread, and one native thread serves many. */
	for (size_t i = 0; i < n; i++) {
		struct rbsp_entry *e = table[i];

		if (e->late_slot && e->late_slot != e->view.slot)
			e->view = (struct rbsp_view){ .slot = e->late_slot };
	}
}

void rbsp_proc_retire(struct rbsp_proc *p, struct rbsp_entry **old, size_t n_old)
{
	struct rbsp_entry **at;

	for (size_t i = 0; i < n_old; i++) {
		if (!old[i]->seen) {
			old[i]->next = p->retired;
			p->retired = old[i];
		}
	}
	free(old);
	at = &p->retired;
	while (*at) {
		struct rbsp_entry *e = *at;

		if (atomic_load(&e->in_ring) || atomic_load(&e->held)) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		entry_free(e);
	}
}

bool rbsp_entry_schedstat(const struct rbsp_entry *e, struct rbsp_schedstat *out)
{
	char text[96];
	ssize_t n = pread(e->schedstat, text, sizeof(text) - 1, 0);

	return n > 0 && rbsp_schedstat_parse(text, (size_t)n, out) == RBSP_OK;
}

bool rbsp_self_on_cpu(int fd, uint64_t *ns)
{
	char text[384]; /* the figure stands in the third line, behind the task's name */
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);

	return n > 0 && rbsp_exec_start_parse(text, (size_t)n, ns) == RBSP_OK;
}

bool rbsp_entry_on_cpu(const struct rbsp_entry *e, uint64_t *ns)
{
	return rbsp_self_on_cpu(e->sched, ns);
}

bool rbsp_entry_syscall(const struct rbsp_entry *e, struct rbsp_proc_syscall *out)
{
	char text[256];
	ssize_t n = e->syscall < 0 ? -1 : pread(e->syscall, text, sizeof(text) - 1, 0);

	return n > 0 && rbsp_proc_syscall_parse(text, (size_t)n, out) == RBSP_OK;
}

void rbsp_entry_name(struct rbsp_entry *e, rbsp_addr th, uint64_t now_ns)
{
	struct rbsp_proc *p = e->proc;
	char path[64];
	long n;

	if (e->named_ns && now_ns - e->named_ns < NAME_EVERY_NS && e->th == th)
		return;
	e->named_ns = now_ns;
	e->th = th;
	e->main = th && th == p->main_th;
	e->name[0] = 0;
	if (th && rbsp_ruby_thread_name(p->ruby, th, e->name, sizeof(e->name)) == RBSP_OK &&
	    e->name[0])
		return;
	snprintf(path, sizeof(path), "task/%d/comm", e->tid);
	n = p->live ? rbsp_live_file(p->live, path, e->name, sizeof(e->name)) : 0;
	if (n > 0)
		e->name[strcspn(e->name, "\n")] = 0;
}
