/* Tests of lib/output's writers: folded stacks, the table of hottest frames, dumps, what was found
 * in a process. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rbsample/output.h>

#include "base/base.h"

enum { MAIN, BAR, BAR_9, EACH, EXEC, DEFLATE, PLAIN, HOSTILE, EMPTY, NUMBER, SPACED, N_FRAMES };
static const struct rbsp_frame frame[N_FRAMES] = {
	[MAIN] = { .kind = RBSP_FRAME_RUBY, .name = "<main>", .path = "x.rb", .line = 1 },
	[BAR] = { .kind = RBSP_FRAME_RUBY, .name = "Foo#bar", .path = "foo.rb", .line = 7 },
	[BAR_9] = { .kind = RBSP_FRAME_RUBY, .name = "Foo#bar", .path = "foo.rb", .line = 9 },
	[EACH] = { .kind = RBSP_FRAME_CFUNC,
		   .name = "Array#each",
		   .module = "libruby.so",
		   .address = 0x7f00 },
	[EXEC] = { .kind = RBSP_FRAME_INTERP, .name = "rb_vm_exec", .module = "libruby.so" },
	[DEFLATE] = { .kind = RBSP_FRAME_NATIVE,
		      .name = "deflate",
		      .module = "libz.so.1",
		      .address = 0x1234 },
	[PLAIN] = { .kind = RBSP_FRAME_NATIVE, .name = "a" },
	[HOSTILE] = { .kind = RBSP_FRAME_RUBY, .name = "a;b\n\xff", .path = "x\"\\.rb", .line = 2 },
	[EMPTY] = { .kind = RBSP_FRAME_RUBY },
	[NUMBER] = { .kind = RBSP_FRAME_RUBY, .name = "worker 1" },
	[SPACED] = { .kind = RBSP_FRAME_NATIVE, .name = "a !x" },
};

#define END 255
#define DEEP 6
#define SAMPLES 6

struct output {
	struct rbsp_frames *frames;
	rbsp_frame_id id[N_FRAMES];
	char *text;
	size_t size;
	FILE *f;
};

static void setup(struct output *o)
{
	*o = (struct output){ .frames = rbsp_frames_new() };
	for (int i = 0; i < N_FRAMES; i++)
		o->id[i] = rbsp_frames_intern(o->frames, &frame[i]);
	o->f = open_memstream(&o->text, &o->size);
}

static void teardown(struct output *o)
{
	fclose(o->f);
	free(o->text);
	rbsp_frames_free(o->frames);
}

static void feed(struct output *o, struct rbsp_sink *sink, const unsigned char stacks[][DEEP],
		 size_t n)
{
	static const struct rbsp_process process = { .pid = 42, .command = "ruby x.rb" };
	static const struct rbsp_thread threads[] = { { .tid = 42, .name = "main", .main = true },
						      { .tid = 43, .name = "w;1" } };

	for (size_t i = 0; i < n; i++) {
		rbsp_frame_id ids[DEEP];
		struct rbsp_sample s = { .process = &process,
					 .thread = &threads[i % 2],
					 .frames = ids };

		while (s.n_frames < DEEP && stacks[i][s.n_frames] != END) {
			ids[s.n_frames] = o->id[stacks[i][s.n_frames]];
			s.n_frames++;
		}
		ck_assert_int_eq(rbsp_sink_sample(sink, &s), RBSP_OK);
	}
}

static const struct {
	const char *name;
	struct rbsp_output_options o;
	size_t n;
	unsigned char stacks[SAMPLES][DEEP];
	const char *text;
} folded[] = {
	{ "nothing sampled, nothing written", { .lines = true }, 0, { { 0 } }, "" },
	{ "equal stacks are one line",
	  { .lines = true },
	  3,
	  { { MAIN, BAR, END }, { MAIN, BAR, END }, { MAIN, END } },
	  "<main> - x.rb:1 1\n<main> - x.rb:1;Foo#bar - foo.rb:7 2\n" },
	{ "lines tell stacks apart",
	  { .lines = true },
	  2,
	  { { MAIN, BAR_9, END }, { MAIN, BAR, END } },
	  "<main> - x.rb:1;Foo#bar - foo.rb:7 1\n<main> - x.rb:1;Foo#bar - foo.rb:9 1\n" },
	{ "without lines they are one",
	  { .lines = false },
	  2,
	  { { MAIN, BAR_9, END }, { MAIN, BAR, END } },
	  "<main>;Foo#bar 2\n" },
	{ "the interpreter's frames are hidden",
	  { .lines = false },
	  1,
	  { { MAIN, EXEC, EACH, END } },
	  "<main>;Array#each [c function] 1\n" },
	{ "unless asked for",
	  { .lines = false, .interp = true },
	  1,
	  { { MAIN, EXEC, END } },
	  "<main>;rb_vm_exec (libruby.so) 1\n" },
	{ "a stack of hidden frames still counts",
	  { .lines = true },
	  1,
	  { { EXEC, END } },
	  "[unknown] 1\n" },
	{ "so does one without frames",
	  { .lines = true },
	  2,
	  { { END }, { END } },
	  "[unknown] 2\n" },
	{ "threads and processes are roots",
	  { .threads = true, .processes = true },
	  2,
	  { { MAIN, END }, { MAIN, END } },
	  "process ruby x.rb (42);thread main (42);<main> 1\nprocess ruby x.rb (42);thread w:1 (43);<main> 1\n" },
	{ "hostile names keep depth and count",
	  { .lines = true },
	  3,
	  { { HOSTILE, EMPTY, NUMBER, END }, { NUMBER, END }, { NUMBER, END } },
	  "[worker 1] 2\na:b \xef\xbf\xbd - x\"\\.rb:2;[unknown];[worker 1] 1\n" },
	{ "lines are sorted by bytes, counts and separators included",
	  { .lines = true },
	  4,
	  { { PLAIN, MAIN, END }, { PLAIN, END }, { SPACED, END }, { SPACED, PLAIN, END } },
	  "a !x 1\na !x;a 1\na 1\na;<main> - x.rb:1 1\n" },
};

START_TEST(stacks_are_folded)
{
	struct rbsp_output_options o = folded[_i].o;
	struct output out;
	struct rbsp_sink *sink;

	setup(&out);
	o.size = sizeof(o);
	ck_assert_int_eq(rbsp_format_find("folded")->open(out.f, &o, out.frames, &sink, NULL),
			 RBSP_OK);
	feed(&out, sink, folded[_i].stacks, folded[_i].n);
	ck_assert_int_eq(rbsp_sink_finish(sink, NULL), RBSP_OK);
	ck_assert_msg(strcmp(out.text, folded[_i].text) == 0, "%s:\n%s", folded[_i].name, out.text);
	rbsp_sink_free(sink);
	teardown(&out);
}
END_TEST

START_TEST(a_full_disk_costs_no_half_line)
{
	static const unsigned char stack[][DEEP] = { { MAIN, BAR, EACH, DEFLATE, END },
						     { MAIN, END },
						     { MAIN, BAR, END } };
	struct rlimit limit = { .rlim_cur = 70, .rlim_max = RLIM_INFINITY };
	struct rbsp_output_options o;
	struct rbsp_err err = { 0 };
	struct rbsp_sink *sink;
	struct output out;
	char text[200] = "";
	FILE *file = tmpfile();

	setup(&out);
	rbsp_output_options_init(&o);
	ck_assert_int_eq(rbsp_format_find("folded")->open(file, &o, out.frames, &sink, NULL),
			 RBSP_OK);
	feed(&out, sink, stack, RBSP_COUNT_OF(stack));
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	ck_assert_int_eq(rbsp_sink_finish(sink, &err), RBSP_E_OUTPUT);
	ck_assert_int_eq(err.sys_errno, EFBIG);
	ck_assert_int_gt(pread(fileno(file), text, sizeof(text) - 1, 0), 0);
	ck_assert_str_eq(text, "<main> - x.rb:1 1\n<main> - x.rb:1;Foo#bar - foo.rb:7 1\n");
	rbsp_sink_free(sink);
	fclose(file);
	teardown(&out);
}
END_TEST

START_TEST(the_hottest_frames_come_first)
{
	static const unsigned char stacks[][DEEP] = {
		{ MAIN, BAR, BAR, BAR_9, END },
		{ MAIN, BAR, END },
		{ MAIN, EACH, END },
		{ MAIN, END },
	};
	struct rbsp_output_options o;
	struct rbsp_sink *next, *sink;
	struct output table, passed;

	setup(&table);
	setup(&passed);
	rbsp_output_options_init(&o);
	o.lines = false;
	ck_assert_int_eq(rbsp_format_find("folded")->open(passed.f, &o, passed.frames, &next, NULL),
			 RBSP_OK);
	ck_assert_int_eq(rbsp_hot_open(next, &o, table.frames, &sink, NULL), RBSP_OK);
	feed(&table, sink, stacks, RBSP_COUNT_OF(stacks));
	ck_assert_int_eq(rbsp_sink_finish(sink, NULL), RBSP_OK);
	rbsp_hot_print(sink, table.f, 2, false);
	fflush(table.f);
	/* Recursion counts once in the total. */
	ck_assert_str_eq(table.text, "  self%  total%   samples  frame\n"
				     "  50.0    50.0         2  Foo#bar\n"
				     "  25.0   100.0         1  <main>\n");
	ck_assert_str_eq(passed.text,
			 "<main> 1\n<main>;Array#each [c function] 1\n<main>;Foo#bar 1\n"
			 "<main>;Foo#bar;Foo#bar;Foo#bar 1\n");
	rbsp_sink_free(sink);
	teardown(&table);
	teardown(&passed);
}
END_TEST

static const struct {
	const char *name;
	const char *asked;
	const char *found; /* NULL: none */
} formats[] = {
	{ "by name", "folded", "folded" },
	{ "by alias", "collapsed", "folded" },
	{ "no such format", "nonsense", NULL },
};

START_TEST(a_format_is_found_by_name)
{
	const struct rbsp_format *f = rbsp_format_find(formats[_i].asked);

	ck_assert_msg(formats[_i].found ? f && strcmp(f->name, formats[_i].found) == 0 : !f, "%s",
		      formats[_i].name);
}
END_TEST

static const struct {
	const char *name, *file, *found;
} files[] = {
	{ "by suffix", "x.folded", "folded" },
	{ "in another folder", "a.b/x.y.folded", "folded" },
	{ "a suffix that no format has", "x.txt", NULL },
	{ "a suffix of the folder only", "x.folded/y", NULL },
	{ "a suffix alone is no suffix", "x/.folded", NULL },
	{ "no suffix", "-", NULL },
};

START_TEST(a_format_is_found_by_file_name)
{
	const struct rbsp_format *f = rbsp_format_of_file(files[_i].file);

	ck_assert_msg(files[_i].found ? f && strcmp(f->name, files[_i].found) == 0 : !f, "%s",
		      files[_i].name);
}
END_TEST

/* One thread with all kinds of frames, innermost first, and one that is parked. */
static void print_dump(struct output *out, const struct rbsp_output_options *o, bool json)
{
	rbsp_frame_id stack[] = { out->id[DEFLATE], out->id[EXEC],    out->id[EACH],
				  out->id[EXEC],    out->id[HOSTILE], out->id[MAIN] };
	struct rbsp_dump_thread threads[] = {
		{ { .tid = 42, .name = "a\x1b\"", .main = true },
		  RBSP_STATE_RUNNING,
		  stack,
		  RBSP_COUNT_OF(stack) },
		{ { .tid = 0 }, RBSP_STATE_PARKED, NULL, 0 },
	};
	struct rbsp_dump d = {
		.process = { .pid = 42, .ns_pid = 7, .command = "ruby", .ruby = "3.3.8" },
		.thread = threads,
		.n = 2
	};
	struct rbsp_err err;

	if (json)
		ck_assert_int_eq(rbsp_dump_json(&d, out->frames, o, out->f, &err), RBSP_OK);
	else
		ck_assert_int_eq(rbsp_dump_text(&d, out->frames, o, false, out->f, &err), RBSP_OK);
}

#define DEFLATE_JSON \
	"{\"kind\":\"native\",\"name\":\"deflate\",\"path\":null,\"line\":null,\"module\":\"libz.so.1\",\"address\":\"0x1234\"}"
#define HEAD_JSON \
	"{\"pid\":42,\"ruby\":\"3.3.8\",\"threads\":[{\"tid\":42,\"name\":\"a\\u001b\\\"\",\"main\":true,\"state\":\"running\",\"frames\":["
#define TAIL_JSON \
	"]},{\"tid\":null,\"name\":null,\"main\":false,\"state\":\"parked\",\"frames\":[]}]}\n"

static const struct {
	const char *name;
	struct rbsp_output_options o;
	const char *json;
} dumps[] = {
	{ "frames innermost first, without the interpreter's",
	  { .lines = true },
	  HEAD_JSON DEFLATE_JSON
	  ",{\"kind\":\"cfunc\",\"name\":\"Array#each\",\"path\":null,\"line\":null,\"module\":\"libruby.so\",\"address\":\"0x7f00\"},"
	  "{\"kind\":\"ruby\",\"name\":\"a;b\\n\xef\xbf\xbd\",\"path\":\"x\\\"\\\\.rb\",\"line\":2,\"module\":null,\"address\":null},"
	  "{\"kind\":\"ruby\",\"name\":\"<main>\",\"path\":\"x.rb\",\"line\":1,\"module\":null,\"address\":null}" TAIL_JSON },
	{ "a C function with its caller's line",
	  { .lines = true, .caller_lines = true },
	  HEAD_JSON DEFLATE_JSON
	  ",{\"kind\":\"cfunc\",\"name\":\"Array#each\",\"path\":\"x\\\"\\\\.rb\",\"line\":2,\"module\":\"libruby.so\",\"address\":\"0x7f00\"},"
	  "{\"kind\":\"ruby\",\"name\":\"a;b\\n\xef\xbf\xbd\",\"path\":\"x\\\"\\\\.rb\",\"line\":2,\"module\":null,\"address\":null},"
	  "{\"kind\":\"ruby\",\"name\":\"<main>\",\"path\":\"x.rb\",\"line\":1,\"module\":null,\"address\":null}" TAIL_JSON },
};

START_TEST(a_dump_is_json)
{
	struct rbsp_output_options o = dumps[_i].o;
	struct output out;

	setup(&out);
	o.size = sizeof(o);
	print_dump(&out, &o, true);
	ck_assert_msg(strcmp(out.text, dumps[_i].json) == 0, "%s:\n%s", dumps[_i].name, out.text);
	teardown(&out);
}
END_TEST

START_TEST(a_dump_is_text)
{
	struct output out;

	setup(&out);
	print_dump(&out, NULL, false);
	ck_assert_str_eq(out.text, "process ruby (42), pid 7 in its own namespace, ruby 3.3.8\n"
				   "\nthread a?\" (42): main, running\n"
				   "    deflate (libz.so.1)\n"
				   "    Array#each [c function]\n"
				   "    a;b \xef\xbf\xbd - x\"\\.rb:2\n"
				   "    <main> - x.rb:1\n"
				   "\nthread: parked\n"
				   "    (no frames)\n");
	teardown(&out);
}
END_TEST

static struct rbsp_inspect_step steps[] = {
	{ "ruby module", "by its symbols", "/usr/lib/libruby.so", true },
	{ "rb_vm_exec", "symbol", NULL, false },
};

static const struct {
	const char *name;
	struct rbsp_inspect i;
	const char *text, *json;
} inspects[] = {
	{ "a Ruby of which everything was found",
	  { .pid = 42,
	    .ruby = "3.3.8",
	    .description = "ruby 3.3.8",
	    .module = "libruby.so",
	    .layout = "3.3",
	    .layout_run = true,
	    .step = steps,
	    .n_steps = 1,
	    .ruby_threads = 2 },
	  "process      42\nruby         3.3.8\ndescription  ruby 3.3.8\nmodule       libruby.so\nlayout       3.3\n"
	  "threads      2\nsteps\n  found  ruby module: by its symbols (/usr/lib/libruby.so)\n",
	  "{\"pid\":42,\"ruby\":\"3.3.8\",\"description\":\"ruby 3.3.8\",\"module\":\"libruby.so\",\"layout\":\"3.3\","
	  "\"layout_run\":true,\"ruby_threads\":2,\"steps\":[{\"what\":\"ruby module\",\"how\":\"by its symbols\","
	  "\"detail\":\"/usr/lib/libruby.so\",\"found\":true}],\"failure\":null}\n" },
	{ "one that is not understood",
	  { .pid = 42, .layout = "4.0", .step = steps, .n_steps = 2, .failure = "no\nrb_vm_exec" },
	  "process      42\nruby         not found\nmodule       not found\nlayout       4.0\n             from headers, never run\n"
	  "threads      0\nsteps\n  found  ruby module: by its symbols (/usr/lib/libruby.so)\n  -      rb_vm_exec: symbol\n"
	  "failure      no rb_vm_exec\n",
	  "{\"pid\":42,\"ruby\":null,\"description\":null,\"module\":null,\"layout\":\"4.0\","
	  "\"layout_run\":false,\"ruby_threads\":0,\"steps\":[{\"what\":\"ruby module\",\"how\":\"by its symbols\","
	  "\"detail\":\"/usr/lib/libruby.so\",\"found\":true},{\"what\":\"rb_vm_exec\",\"how\":\"symbol\",\"detail\":null,"
	  "\"found\":false}],\"failure\":\"no\\nrb_vm_exec\"}\n" },
};

START_TEST(what_was_found_is_printed)
{
	struct output text, json;

	setup(&text);
	setup(&json);
	ck_assert_int_eq(rbsp_inspect_text(&inspects[_i].i, text.f, NULL), RBSP_OK);
	ck_assert_int_eq(rbsp_inspect_json(&inspects[_i].i, json.f, NULL), RBSP_OK);
	ck_assert_msg(strcmp(text.text, inspects[_i].text) == 0, "%s:\n%s", inspects[_i].name,
		      text.text);
	ck_assert_msg(strcmp(json.text, inspects[_i].json) == 0, "%s:\n%s", inspects[_i].name,
		      json.text);
	teardown(&text);
	teardown(&json);
}
END_TEST

Suite *suite_output_writers(void);

Suite *suite_output_writers(void)
{
	Suite *s = suite_create("output_writers");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, stacks_are_folded, 0, RBSP_COUNT_OF(folded));
	tcase_add_test(tc, a_full_disk_costs_no_half_line);
	tcase_add_test(tc, the_hottest_frames_come_first);
	tcase_add_loop_test(tc, a_format_is_found_by_name, 0, RBSP_COUNT_OF(formats));
	tcase_add_loop_test(tc, a_format_is_found_by_file_name, 0, RBSP_COUNT_OF(files));
	tcase_add_loop_test(tc, a_dump_is_json, 0, RBSP_COUNT_OF(dumps));
	tcase_add_test(tc, a_dump_is_text);
	tcase_add_loop_test(tc, what_was_found_is_printed, 0, RBSP_COUNT_OF(inspects));
	suite_add_tcase(s, tc);
	return s;
}
