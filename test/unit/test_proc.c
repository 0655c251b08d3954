/* Tests of lib/proc: mappings, small /proc files, system calls, and what is said when access is
 * refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"

static const char maps_text[] =
	"55d000000000-55d000001000 r--p 00000000 fe:01 1234                       /usr/bin/ruby3.1\n"
	"55d000001000-55d000002000 r-xp 00001000 fe:01 1234                       /usr/bin/ruby3.1\n"
	"55d000002000-55d000004000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
	"7f0000100000-7f0000200000 rw-p 00000000 00:00 0                          [anon:stack]\n"
	"7f0000200000-7f0000300000 r--p 00000000 00:00 0 \n"
	"7f0000400000-7f0000401000 rw-s 00002000 103:a0001 18446744073709551615   /a b\\012c (deleted)\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

START_TEST(maps_are_read)
{
	struct rbsp_maps m;
	struct rbsp_err err;
	const struct rbsp_map *p;

	ck_assert_msg(rbsp_maps_parse(maps_text, strlen(maps_text), &m, &err) == RBSP_OK, "%s",
		      err.text);
	ck_assert_uint_eq(m.n, 8);
	p = &m.map[1];
	ck_assert_uint_eq(p->start, 0x55d000001000);
	ck_assert_uint_eq(p->end, 0x55d000002000);
	ck_assert(p->read && !p->write && p->exec && !p->shared);
	ck_assert_uint_eq(p->offset, 0x1000);
	ck_assert_uint_eq(p->dev, makedev(0xfe, 1));
	ck_assert_uint_eq(p->ino, 1234);
	ck_assert_str_eq(p->path, "/usr/bin/ruby3.1");
	ck_assert_str_eq(m.map[2].path, "[heap]");
	ck_assert_str_eq(m.map[3].path, "");
	p = &m.map[6];
	ck_assert_uint_eq(p->ino, UINT64_MAX);
	ck_assert_uint_eq(p->dev, makedev(0x103, 0xa0001));
	ck_assert(p->shared);
	ck_assert_str_eq(p->path, "/a b\nc (deleted)");
	rbsp_maps_fini(&m);
	rbsp_maps_fini(NULL);
	ck_assert_ptr_null(m.map);
}
END_TEST

static const struct {
	const char *name;
	const char *text;
	int n; /* mappings, -1: refused */
} maps_rows[] = {
	{ "no text, no mapping", "", 0 },
	{ "the last line may lack its newline", "1000-2000 r--p 00000000 00:00 0", 1 },
	{ "a path is kept whole", "1000-2000 r--p 00000000 00:00 0      /x  y", 1 },
	{ "a cut line", "1000-2000 r--p 0000", -1 },
	{ "a cut inode", "1000-2000 r--p 00000000 00:00 ", -1 },
	{ "an empty line", "1000-2000 r--p 00000000 00:00 0\n\n", -1 },
	{ "not hexadecimal", "xyz-2000 r--p 00000000 00:00 0", -1 },
	{ "permissions that are none", "1000-2000 rq-p 00000000 00:00 0", -1 },
	{ "more than 64 bits", "1000-20000000000000000 r--p 00000000 00:00 0", -1 },
	{ "an end before its start", "2000-1000 r--p 00000000 00:00 0", -1 },
	{ "mappings that overlap", "1000-3000 r--p 0 00:00 0\n2000-4000 r--p 0 00:00 0\n", -1 },
	{ "something behind the inode", "1000-2000 r--p 00000000 00:00 0x /a", -1 },
};

START_TEST(a_maps_text_is_read_or_refused)
{
	struct rbsp_maps m;
	struct rbsp_err err = { 0 };
	enum rbsp_status st =
		rbsp_maps_parse(maps_rows[_i].text, strlen(maps_rows[_i].text), &m, &err);

	if (maps_rows[_i].n < 0) {
		ck_assert_msg(st == RBSP_E_FORMAT, "%s", maps_rows[_i].name);
		ck_assert_msg(err.text[0], "%s", maps_rows[_i].name);
		ck_assert_uint_eq(m.n, 0);
	} else {
		ck_assert_msg(st == RBSP_OK && m.n == (size_t)maps_rows[_i].n, "%s: %s",
			      maps_rows[_i].name, err.text);
	}
	rbsp_maps_fini(&m);
}
END_TEST

/* Every prefix of a good text, in a heap block of its own size: a read behind the end is seen by
 * ASan. */
START_TEST(any_prefix_of_maps_is_safe)
{
	for (size_t n = 0; n < sizeof(maps_text); n++) {
		char *text = malloc(n + !n);
		struct rbsp_maps m;

		memcpy(text, maps_text, n);
		rbsp_maps_parse(text, n, &m, NULL);
		rbsp_maps_fini(&m);
		free(text);
	}
}
END_TEST

static const struct {
	const char *name;
	rbsp_addr a;
	uint64_t n;
	int found; /* index of the mapping, -1: none */
	bool one_area;
} areas[] = {
	{ "first byte", 0x55d000000000, 1, 0, true },
	{ "a whole mapping", 0x55d000000000, 0x1000, 0, true },
	{ "across other permissions", 0x55d000000fff, 2, 0, false },
	{ "into a hole", 0x55d000003fff, 2, 2, false },
	{ "before all", 0x1000, 8, -1, false },
	{ "in a hole", 0x7f0000300000, 8, -1, false },
	{ "across two that are alike", 0x7f00000ffff0, 0x20, 3, true },
	{ "across three, the last read-only", 0x7f00000ffff0, 0x200000, 3, false },
	{ "behind the last byte", 0x7f0000401000, 1, -1, false },
	{ "not readable", 0xffffffffff600000, 8, 7, false },
	{ "around the end of addresses", 0x7f0000400000, UINT64_MAX, 6, false },
	{ "nothing, at a readable place", 0x7f0000400010, 0, 6, true },
};

START_TEST(an_address_is_found)
{
	struct rbsp_maps m;
	const struct rbsp_map *found;

	ck_assert_int_eq(rbsp_maps_parse(maps_text, strlen(maps_text), &m, NULL), RBSP_OK);
	found = rbsp_maps_find(&m, areas[_i].a);
	ck_assert_msg(found == (areas[_i].found < 0 ? NULL : &m.map[areas[_i].found]), "%s",
		      areas[_i].name);
	ck_assert_msg(rbsp_maps_one_area(&m, areas[_i].a, areas[_i].n) == areas[_i].one_area, "%s",
		      areas[_i].name);
	rbsp_maps_fini(&m);
}
END_TEST

#define STAT_REST                                                                                  \
	" 1 42 42 0 -1 4194560 1210 0 3 0 11 5 0 0 20 0 2 0 987654 21454848 18446744073709551615 " \
	"18446744073709551615 1 1 0 0 0 0 0 4096 16846850 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static const struct {
	const char *name;
	const char *text;
	const char *comm; /* NULL: refused */
	char state;
} stats[] = {
	{ "a plain command", "42 (ruby) S" STAT_REST, "ruby", 'S' },
	{ "a command with blanks and brackets", "42 (a) R (b c)) Z" STAT_REST, "a) R (b c)", 'Z' },
	{ "an empty command", "42 () R" STAT_REST, "", 'R' },
	{ "a long command is cut",
	  "42 (0123456789012345678901234567890123456789012345678901234567890123456789) R" STAT_REST,
	  "012345678901234567890123456789012345678901234567890123456789012", 'R' },
	{ "a cut text", "42 (ruby) S 1 42 42 0", NULL, 0 },
	{ "no brackets", "42 ruby S" STAT_REST, NULL, 0 },
	{ "nothing after the command", "42 (ruby)", NULL, 0 },
	{ "nothing", "", NULL, 0 },
	{ "words for numbers", "42 (ruby) S x" STAT_REST, NULL, 0 },
};

START_TEST(stat_is_read_behind_the_last_bracket)
{
	struct rbsp_proc_stat s;
	enum rbsp_status st = rbsp_proc_stat_parse(stats[_i].text, strlen(stats[_i].text), &s);

	if (!stats[_i].comm) {
		ck_assert_msg(st == RBSP_E_FORMAT, "%s", stats[_i].name);
		return;
	}
	ck_assert_msg(st == RBSP_OK, "%s", stats[_i].name);
	ck_assert_msg(strcmp(s.comm, stats[_i].comm) == 0, "%s: %s", stats[_i].name, s.comm);
	ck_assert_msg(s.state == stats[_i].state, "%s", stats[_i].name);
	ck_assert_int_eq(s.ppid, 1);
	ck_assert_uint_eq(s.flags, 4194560);
	ck_assert_uint_eq(s.start_time, 987654);
	ck_assert_int_eq(s.cpu, 1);
}
END_TEST

static const char status_text[] = "Name:\tUid: 7\\nx\n"
				  "Umask:\t0022\n"
				  "State:\tt (tracing stop)\n"
				  "Tgid:\t4242\n"
				  "Ngid:\t0\n"
				  "Pid:\t4243\n"
				  "PPid:\t1\n"
				  "TracerPid:\t99\n"
				  "Uid:\t1000\t1001\t1002\t4294967295\n"
				  "Gid:\t5\t6\t7\t8\n"
				  "NSpid:\t4243\t12\t3\n"
				  "CapInh:\t0000000000000000\n"
				  "CapPrm:\t000001ffffffffff\n"
				  "CapEff:\t0000000000080000\n";

START_TEST(status_is_read)
{
	struct rbsp_proc_status s;

	ck_assert_int_eq(rbsp_proc_status_parse(status_text, strlen(status_text), &s), RBSP_OK);
	ck_assert_int_eq(s.state, 't');
	ck_assert_int_eq(s.tgid, 4242);
	ck_assert_int_eq(s.tracer_pid, 99);
	ck_assert_int_eq(s.ns_pid, 3);
	ck_assert_uint_eq(s.uid[0], 1000);
	ck_assert_uint_eq(s.uid[3], UINT32_MAX);
	ck_assert_uint_eq(s.gid[1], 6);
	ck_assert_uint_eq(s.cap_prm, 0x1ffffffffff);
	ck_assert_uint_eq(s.cap_eff, 0x80000);
}
END_TEST

static const struct {
	const char *name;
	const char *drop; /* this line is left out */
	enum rbsp_status st;
} dropped[] = {
	{ "without the user", "Uid:", RBSP_E_FORMAT },
	{ "without capabilities", "CapEff:", RBSP_E_FORMAT },
	{ "without the tracer", "TracerPid:", RBSP_E_FORMAT },
	{ "a kernel without pid namespaces", "NSpid:", RBSP_OK },
	{ "a line nobody reads", "Umask:", RBSP_OK },
};

START_TEST(a_status_without_a_line)
{
	char text[sizeof(status_text)];
	char *at, key[32];
	struct rbsp_proc_status s;

	snprintf(key, sizeof(key), "\n%s", dropped[_i].drop);
	strcpy(text, status_text);
	at = strstr(text, key) + 1;
	memmove(at, strchr(at, '\n') + 1, strlen(strchr(at, '\n') + 1) + 1);
	ck_assert_msg(rbsp_proc_status_parse(text, strlen(text), &s) == dropped[_i].st, "%s",
		      dropped[_i].name);
	if (strcmp(dropped[_i].drop, "NSpid:") == 0)
		ck_assert_int_eq(s.ns_pid, 4242);
}
END_TEST

static const struct {
	const char *name;
	const char *text;
	enum rbsp_status st;
	uint64_t run, wait, count;
} schedstats[] = {
	{ "three numbers", "123456789 42 7\n", RBSP_OK, 123456789, 42, 7 },
	{ "without a newline", "1 2 3", RBSP_OK, 1, 2, 3 },
	{ "no accounting in the kernel", "0 0 0\n", RBSP_OK, 0, 0, 0 },
	{ "two numbers", "1 2\n", RBSP_E_FORMAT, 0, 0, 0 },
	{ "nothing", "", RBSP_E_FORMAT, 0, 0, 0 },
};

static const struct {
	const char *name, *text;
	enum rbsp_status st;
	uint64_t ns;
} exec_starts[] = {
	{ "as the kernel prints it",
	  "ruby (12, #threads: 3)\n-----\nse.exec_start                                :       "
	  "3182879.250308\nse.vruntime : 1.2\n",
	  RBSP_OK, 3182879250308 },
	{ "a task name with blanks and brackets",
	  "a ) b (1, #threads: 1)\n--\nse.exec_start : 1.000002\n", RBSP_OK, 1000002 },
	{ "a task named like the key",
	  "se.exec_start (1, #threads: 1)\n--\nse.exec_start : 1.000002\n", RBSP_OK, 1000002 },
	{ "cut off", "ruby (12, #threads: 3)\n-----\nse.exec_start        :", RBSP_E_FORMAT, 0 },
	{ "another file", "1 2 3\n", RBSP_E_FORMAT, 0 },
};

START_TEST(exec_start_is_read)
{
	uint64_t ns = 0;

	ck_assert_msg(rbsp_exec_start_parse(exec_starts[_i].text, strlen(exec_starts[_i].text),
					    &ns) == exec_starts[_i].st,
		      "%s", exec_starts[_i].name);
	ck_assert_msg(ns == exec_starts[_i].ns, "%s: %lu", exec_starts[_i].name, (unsigned long)ns);
}
END_TEST

START_TEST(schedstat_is_read)
{
	struct rbsp_schedstat s;

	ck_assert_msg(rbsp_schedstat_parse(schedstats[_i].text, strlen(schedstats[_i].text), &s) ==
			      schedstats[_i].st,
		      "%s", schedstats[_i].name);
	if (schedstats[_i].st == RBSP_OK)
		ck_assert_msg(s.run_ns == schedstats[_i].run && s.wait_ns == schedstats[_i].wait &&
				      s.count == schedstats[_i].count,
			      "%s", schedstats[_i].name);
}
END_TEST

static const struct {
	const char *name;
	const char *text;
	enum rbsp_status st;
	bool blocked;
	int64_t nr;
	uint64_t arg1, sp, pc;
} syscalls[] = {
	{ "running", "running\n", RBSP_OK, false, -1, 0, 0, 0 },
	{ "in a call",
	  "7 0x7ffd00001000 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x7ffd00000ff0 0x7f0000001234\n",
	  RBSP_OK, true, 7, 1, 0x7ffd00000ff0, 0x7f0000001234 },
	{ "blocked outside a call", "-1 0x7ffd00000ff0 0x7f0000001234\n", RBSP_OK, true, -1, 0,
	  0x7ffd00000ff0, 0x7f0000001234 },
	{ "a cut call", "7 0x7ffd00001000 0x1 0xff", RBSP_E_FORMAT, false, 0, 0, 0, 0 },
	{ "nothing", "", RBSP_E_FORMAT, false, 0, 0, 0, 0 },
	{ "half a word", "runn", RBSP_E_FORMAT, false, 0, 0, 0, 0 },
};

START_TEST(a_blocked_call_is_read)
{
	struct rbsp_proc_syscall s;

	ck_assert_msg(rbsp_proc_syscall_parse(syscalls[_i].text, strlen(syscalls[_i].text), &s) ==
			      syscalls[_i].st,
		      "%s", syscalls[_i].name);
	ck_assert_msg(s.blocked == syscalls[_i].blocked, "%s", syscalls[_i].name);
	if (syscalls[_i].st == RBSP_OK)
		ck_assert_msg(s.nr == syscalls[_i].nr && s.arg[1] == syscalls[_i].arg1 &&
				      s.sp == syscalls[_i].sp && s.pc == syscalls[_i].pc,
			      "%s", syscalls[_i].name);
}
END_TEST

static const struct {
	const char *name;
	int64_t nr;
	const char *call; /* NULL: unknown */
	bool eintr;
} calls[] = {
	{ "read", SYS_read, "read", false },
	{ "futex is restarted", SYS_futex, "futex", false },
	{ "ppoll is restarted", SYS_ppoll, "ppoll", false },
	{ "clock_nanosleep is restarted", SYS_clock_nanosleep, "clock_nanosleep", false },
	{ "epoll_pwait is not", SYS_epoll_pwait, "epoll_pwait", true },
	{ "sigtimedwait is not", SYS_rt_sigtimedwait, "rt_sigtimedwait", true },
	{ "semop is not", SYS_semop, "semop", true },
	{ "semtimedop is not", SYS_semtimedop, "semtimedop", true },
	{ "io_getevents is not", SYS_io_getevents, "io_getevents", true },
	{ "io_uring_enter is not", SYS_io_uring_enter, "io_uring_enter", true },
#ifdef SYS_epoll_wait
	{ "epoll_wait is not", SYS_epoll_wait, "epoll_wait", true },
	{ "select is restarted", SYS_select, "select", false },
#endif
	{ "none", -1, NULL, false },
	{ "a number beyond the table", 100000, NULL, false },
	{ "the smallest number", INT64_MIN, NULL, false },
};

START_TEST(a_system_call_has_a_name)
{
	const char *call = rbsp_syscall_name(calls[_i].nr);

	ck_assert_msg(calls[_i].call ? call && strcmp(call, calls[_i].call) == 0 : !call, "%s",
		      calls[_i].name);
	ck_assert_msg(rbsp_syscall_eintr(calls[_i].nr) == calls[_i].eintr, "%s", calls[_i].name);
}
END_TEST

/* The kernel's own files of this process: what the tables above are made from. */
START_TEST(own_files_are_read)
{
	char text[65536];
	FILE *f = fopen("/proc/self/status", "re");
	struct rbsp_proc_status status;
	struct rbsp_proc_stat stat;
	struct rbsp_maps m;
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	ck_assert_int_eq(rbsp_proc_status_parse(text, n, &status), RBSP_OK);
	ck_assert_int_eq(status.tgid, getpid());
	ck_assert_uint_eq(status.uid[1], geteuid());
	f = fopen("/proc/self/stat", "re");
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	ck_assert_int_eq(rbsp_proc_stat_parse(text, n, &stat), RBSP_OK);
	ck_assert_int_eq(stat.ppid, getppid());
	ck_assert_int_eq(stat.state, 'R');
	f = fopen("/proc/self/maps", "re");
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	if (n == sizeof(text)) /* a sanitizer's many mappings: up to the last whole line */
		n = (size_t)((char *)memrchr(text, '\n', n) - text) + 1;
	ck_assert_int_eq(rbsp_maps_parse(text, n, &m, NULL), RBSP_OK);
	ck_assert_ptr_nonnull(rbsp_maps_find(&m, m.map[0].start));
	rbsp_maps_fini(&m);
}
END_TEST

Suite *suite_proc(void)
{
	Suite *s = suite_create("proc");
	TCase *tc = tcase_create("proc");

	tcase_add_test(tc, maps_are_read);
	tcase_add_loop_test(tc, a_maps_text_is_read_or_refused, 0, RBSP_COUNT_OF(maps_rows));
	tcase_add_test(tc, any_prefix_of_maps_is_safe);
	tcase_add_loop_test(tc, an_address_is_found, 0, RBSP_COUNT_OF(areas));
	tcase_add_loop_test(tc, stat_is_read_behind_the_last_bracket, 0, RBSP_COUNT_OF(stats));
	tcase_add_test(tc, status_is_read);
	tcase_add_loop_test(tc, a_status_without_a_line, 0, RBSP_COUNT_OF(dropped));
	tcase_add_loop_test(tc, exec_start_is_read, 0, RBSP_COUNT_OF(exec_starts));
	tcase_add_loop_test(tc, schedstat_is_read, 0, RBSP_COUNT_OF(schedstats));
	tcase_add_loop_test(tc, a_blocked_call_is_read, 0, RBSP_COUNT_OF(syscalls));
	tcase_add_loop_test(tc, a_system_call_has_a_name, 0, RBSP_COUNT_OF(calls));
	tcase_add_test(tc, own_files_are_read);
	suite_add_tcase(s, tc);
	return s;
}
