/* Tests of decoding: caches and their epochs, half-filled and unreadable frames, bounds. */
#include <check.h>
#include <elf.h>

#include "ruby_heap.h"

static struct heap h;
static struct rbsp_ruby_stack stack;
static rbsp_addr foo, bar, bar_me;

static rbsp_addr new_iseq(enum rbsp_iseq_type type, const char *label, rbsp_addr parent)
{
	return heap_iseq(&h, &(struct heap_iseq){ .type = type, .label = label, .parent = parent });
}

/* A thread in Foo#bar, of a version. */
static void start(uint32_t version)
{
	heap_init(&h, rbsp_layout_find(version, EM_X86_64));
	foo = heap_class(&h, RBSP_T_CLASS, "Foo");
	bar = new_iseq(RBSP_ISEQ_METHOD, "bar", 0);
	bar_me = heap_method(&h, 0, foo, "bar", 0);
	heap_push_method(&h, bar, bar_me);
}

static void setup(void)
{
	start(RBSP_RUBY(3, 3, 0));
}

static void teardown(void)
{
	heap_fini(&h);
	rbsp_ruby_stack_fini(&stack);
}

static void set_label(rbsp_addr iseq, const char *label)
{
	heap_put(&h, heap_get(&h, iseq + h.l.iseq.body) + h.l.body.label, heap_text(&h, label));
}

START_TEST(the_same_stack_again_reads_nothing)
{
	unsigned reads;

	heap_push_cfunc(&h, heap_method(&h, RBSP_METHOD_CFUNC, foo, "c", 1));
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#c;Foo#bar");
	reads = h.reads;
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#c;Foo#bar");
	ck_assert_uint_eq(h.reads, reads);
}
END_TEST

START_TEST(a_new_frame_of_known_code_reads_nothing)
{
	unsigned reads;

	heap_push_method(&h, bar, bar_me);
	heap_labels(&h, &stack);
	heap_push_method(&h, bar, bar_me);
	heap_labels(&h, &stack);
	reads = h.reads;
	heap_push_method(&h, bar, bar_me);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;Foo#bar;Foo#bar;Foo#bar");
	ck_assert_uint_eq(h.reads, reads);
}
END_TEST

START_TEST(another_epoch_validates_in_one_read)
{
	unsigned reads;

	heap_push_method(&h, bar, bar_me);
	heap_labels(&h, &stack);
	heap_put(&h, h.gc_count, 8);
	reads = h.reads;
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;Foo#bar");
	ck_assert_uint_eq(h.reads, reads + 2); /* the two GC words, and all entries */
	reads = h.reads;
	heap_labels(&h, &stack);
	ck_assert_uint_eq(h.reads, reads);
}
END_TEST

START_TEST(code_that_moved_is_read_anew)
{
	heap_labels(&h, &stack);
	set_label(bar, "moved");
	/* Objects change by GC only: until then the cache is right. */
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar");
	heap_put(&h, h.gc_count, 8);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#moved");
}
END_TEST

START_TEST(the_end_of_marking_is_an_epoch)
{
	heap_put32(&h, h.gc, 1);
	heap_labels(&h, &stack);
	set_label(bar, "swept");
	heap_put32(&h, h.gc, 2);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#swept");
}
END_TEST

START_TEST(what_is_read_during_gc_serves_once)
{
	heap_put32(&h, h.gc, 1u << h.l.gc.during_gc_bit);
	heap_labels(&h, &stack);
	set_label(bar, "after");
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#after");
}
END_TEST

START_TEST(a_gc_since_the_capture_spoils_what_is_read_after_it)
{
	heap_capture(&h);
	heap_put(&h, h.gc_count, 8);
	ck_assert_int_eq(rbsp_ruby_decode(h.ruby, &h.cap, &stack), RBSP_OK);
	set_label(bar, "later");
	heap_put(&h, h.gc_count, 7);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#later");
}
END_TEST

START_TEST(without_an_epoch_every_capture_validates)
{
	heap_labels(&h, &stack);
	h.gc_count = 0;
	heap_decoder(&h, RBSP_LABELS_DEFAULT);
	h.gc_count = heap_alloc(&h, 8);
	heap_labels(&h, &stack);
	set_label(bar, "now");
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#now");
}
END_TEST

START_TEST(a_class_gets_its_name_later)
{
	rbsp_addr anonymous = heap_class(&h, RBSP_T_CLASS, NULL);

	heap_push_method(&h, bar, heap_method(&h, 0, anonymous, "bar", 0));
	heap_push_method(&h, bar, bar_me);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;#<Class>#bar;Foo#bar");
	heap_name(&h, anonymous, "Named");
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;Named#bar;Foo#bar");
}
END_TEST

START_TEST(another_method_in_a_frame_that_looks_the_same)
{
	heap_push_cfunc(&h, heap_method(&h, RBSP_METHOD_CFUNC, foo, "a", 1));
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#a;Foo#bar");
	heap_pop(&h);
	heap_push_cfunc(&h, heap_method(&h, RBSP_METHOD_CFUNC, foo, "b", 1));
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#b;Foo#bar");
}
END_TEST

START_TEST(an_environment_that_escaped_meanwhile)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_METHOD | RBSP_ENV_LOCAL,
				.iseq = bar,
				.me = bar_me,
				.pc = heap_pc(&h, bar, 2),
				.escaped = true };

	heap_labels(&h, &stack);
	heap_pop(&h);
	heap_push(&h, &f);
	heap_push_method(&h, bar, bar_me);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;Foo#bar");
	ck_assert_uint_eq(stack.unread, 0);
}
END_TEST

/* Frames of bottom and top that are not as they should be; each is put on top of Foo#bar. */
enum spoil { BAD_MAGIC, NO_ISEQ, OTHER_PC, OTHER_KIND, NO_ME, MOVED_ME };
static const struct {
	const char *name;
	uint32_t version;
	enum spoil how;
	bool older; /* another good frame is pushed on top */
	const char *text;
	unsigned unread;
	unsigned line; /* of the newest shown frame */
} spoiled[] = {
	{ "2.7: a newest frame with a stale magic is dropped", RBSP_RUBY(2, 7, 0), BAD_MAGIC, false,
	  "Foo#bar", 0, 12 },
	{ "2.7: a newest frame with a stale pc is dropped", RBSP_RUBY(2, 7, 0), OTHER_PC, false,
	  "Foo#bar", 0, 12 },
	{ "2.7: a newest frame whose code is of another kind is dropped", RBSP_RUBY(2, 7, 0),
	  OTHER_KIND, false, "Foo#bar", 0, 12 },
	{ "2.7: a newest frame whose code is none is dropped", RBSP_RUBY(2, 7, 0), NO_ISEQ, false,
	  "Foo#bar", 0, 12 },
	{ "3.3: a newest frame outside its code keeps no line", RBSP_RUBY(3, 3, 0), OTHER_PC, false,
	  "Foo#bar;Foo#bar", 0, 0 },
	{ "an older frame outside its code keeps no line", RBSP_RUBY(2, 7, 0), OTHER_PC, true,
	  "Foo#bar;Foo#bar;Foo#bar", 0, 12 },
	{ "an older frame that cannot be read is marked", RBSP_RUBY(3, 1, 0), BAD_MAGIC, true,
	  "Foo#bar;unread;Foo#bar", 1, 12 },
	{ "an older frame whose code was freed is marked", RBSP_RUBY(3, 4, 0), NO_ISEQ, true,
	  "Foo#bar;unread;Foo#bar", 1, 12 },
	{ "an older frame whose method was moved is marked", RBSP_RUBY(3, 4, 0), MOVED_ME, true,
	  "Foo#bar;unread;Foo#bar", 1, 12 },
	{ "a frame without a method has no class", RBSP_RUBY(3, 4, 0), NO_ME, true,
	  "Foo#bar;bar;Foo#bar", 0, 12 },
};

START_TEST(spoiled_frame)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_METHOD | RBSP_ENV_LOCAL };
	const char *got;

	start(spoiled[_i].version);
	f.iseq = bar;
	f.me = bar_me;
	f.pc = heap_pc(&h, bar, 5);
	switch (spoiled[_i].how) {
	case BAD_MAGIC:
		f.flags = 0x12340000;
		break;
	case NO_ISEQ:
		f.iseq = heap_text(&h, "not code");
		break;
	case OTHER_PC:
		f.pc += 4096;
		break;
	case OTHER_KIND:
		f.flags = RBSP_MAGIC_BLOCK | RBSP_ENV_LOCAL;
		break;
	case NO_ME:
		f.me = 0;
		break;
	case MOVED_ME:
		heap_put(&h, f.me = heap_method(&h, 0, foo, "bar", 0), 0x1e);
		break;
	}
	heap_push(&h, &f);
	if (spoiled[_i].older)
		heap_push_method(&h, bar, bar_me);
	got = heap_labels(&h, &stack);
	ck_assert_msg(!strcmp(got, spoiled[_i].text), "%s: %s", spoiled[_i].name, got);
	ck_assert_msg(stack.unread == spoiled[_i].unread, "%s", spoiled[_i].name);
	ck_assert_msg(rbsp_frames_get(h.frames, stack.frame[0].id)->line == spoiled[_i].line, "%s",
		      spoiled[_i].name);
	/* It is looked at again, also when nothing changed. */
	ck_assert_msg(!strcmp(heap_labels(&h, &stack), spoiled[_i].text), "%s, again",
		      spoiled[_i].name);
	teardown();
}
END_TEST

START_TEST(an_unread_frame_is_resolved_when_seen_again)
{
	rbsp_addr body = heap_get(&h, bar + h.l.iseq.body);

	heap_push_method(&h, bar, bar_me);
	heap_put(&h, bar + h.l.iseq.body, UINT64_MAX - 4096);
	ck_assert_str_eq(heap_labels(&h, &stack), "unread;unread");
	heap_put(&h, bar + h.l.iseq.body, body);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;Foo#bar");
}
END_TEST

START_TEST(a_loop_of_environments_ends)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_BLOCK, .iseq = bar, .pc = heap_pc(&h, bar, 1) };

	f.parent = h.sp + 16; /* its own ep */
	heap_push(&h, &f);
	heap_push_method(&h, bar, bar_me);
	ck_assert_str_eq(heap_labels(&h, &stack), "Foo#bar;unread;Foo#bar");
}
END_TEST

START_TEST(a_loop_of_parents_ends)
{
	rbsp_addr q = new_iseq(RBSP_ISEQ_BLOCK, "block in bar", bar);

	heap_put(&h, heap_get(&h, q + h.l.iseq.body) + h.l.body.parent, q);
	heap_put(&h, heap_get(&h, q + h.l.iseq.body) + h.l.body.local, bar);
	heap_push_block(&h, q, 0);
	ck_assert_str_eq(heap_labels(&h, &stack), "unread;Foo#bar");
}
END_TEST

START_TEST(values_that_were_not_captured_are_not_read_later)
{
	heap_push_method(&h, bar, bar_me);
	heap_capture(&h);
	h.cap.range[RBSP_RANGE_VALUES].len = 48; /* the dummy's and the first method's */
	ck_assert_int_eq(rbsp_ruby_decode(h.ruby, &h.cap, &stack), RBSP_OK);
	ck_assert_uint_eq(stack.n, 2);
	ck_assert_uint_eq(stack.unread, 1);
	ck_assert_str_eq(rbsp_frames_get(h.frames, stack.frame[1].id)->name, "Foo#bar");
}
END_TEST

START_TEST(a_capture_without_frames)
{
	heap_capture(&h);
	h.cap.range[RBSP_RANGE_CFP].addr = 0;
	ck_assert_int_eq(rbsp_ruby_decode(h.ruby, &h.cap, &stack), RBSP_E_RANGE);
	heap_pop(&h);
	heap_capture(&h);
	ck_assert_int_eq(rbsp_ruby_decode(h.ruby, &h.cap, &stack), RBSP_OK);
	ck_assert_uint_eq(stack.n, 0);
}
END_TEST

START_TEST(the_newest_frame_of_a_jit_has_no_line)
{
	heap_push_method(&h, bar, bar_me);
	heap_put(&h, h.cfp + h.l.cfp.jit_return, 1);
	heap_labels(&h, &stack);
	ck_assert(stack.frame[0].jit && !stack.frame[1].jit);
	ck_assert_uint_eq(rbsp_frames_get(h.frames, stack.frame[0].id)->line, 0);
	heap_push_cfunc(&h, heap_method(&h, RBSP_METHOD_CFUNC, foo, "c", 1));
	heap_labels(&h, &stack);
	ck_assert_uint_eq(rbsp_frames_get(h.frames, stack.frame[1].id)->line, 12);
}
END_TEST

START_TEST(garbage_never_leads_out_of_bounds)
{
	uint64_t x = 88172645463325252u + (uint64_t)_i;

	heap_push_method(&h, bar, bar_me);
	heap_push_block(&h, new_iseq(RBSP_ISEQ_BLOCK, "block in bar", bar), h.sp - 8);
	for (int round = 0; round < 300; round++) {
		heap_capture(&h);
		for (int i = 0; i < 4; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			if (i & 1)
				h.cap.data[x % h.cap.size] = (unsigned char)(x >> 32);
			else
				h.bytes[x % h.used] = (unsigned char)(x >> 32);
		}
		if (rbsp_ruby_check(h.ruby, &h.cap, 0) == RBSP_OK)
			rbsp_ruby_decode(h.ruby, &h.cap, &stack);
	}
}
END_TEST

Suite *suite_ruby_decode(void);
Suite *suite_ruby_decode(void)
{
	Suite *s = suite_create("ruby_decode");
	TCase *tc = tcase_create("caches"), *bad = tcase_create("spoiled");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_same_stack_again_reads_nothing);
	tcase_add_test(tc, a_new_frame_of_known_code_reads_nothing);
	tcase_add_test(tc, another_epoch_validates_in_one_read);
	tcase_add_test(tc, code_that_moved_is_read_anew);
	tcase_add_test(tc, the_end_of_marking_is_an_epoch);
	tcase_add_test(tc, what_is_read_during_gc_serves_once);
	tcase_add_test(tc, a_gc_since_the_capture_spoils_what_is_read_after_it);
	tcase_add_test(tc, without_an_epoch_every_capture_validates);
	tcase_add_test(tc, a_class_gets_its_name_later);
	tcase_add_test(tc, another_method_in_a_frame_that_looks_the_same);
	tcase_add_test(tc, an_environment_that_escaped_meanwhile);
	tcase_add_test(tc, an_unread_frame_is_resolved_when_seen_again);
	tcase_add_test(tc, a_loop_of_environments_ends);
	tcase_add_test(tc, a_loop_of_parents_ends);
	tcase_add_test(tc, values_that_were_not_captured_are_not_read_later);
	tcase_add_test(tc, a_capture_without_frames);
	tcase_add_test(tc, the_newest_frame_of_a_jit_has_no_line);
	tcase_add_loop_test(tc, garbage_never_leads_out_of_bounds, 0, 20);
	tcase_add_loop_test(bad, spoiled_frame, 0, RBSP_COUNT_OF(spoiled));
	suite_add_tcase(s, tc);
	suite_add_tcase(s, bad);
	return s;
}
