/* Tests of lib/model: the frame table, and names of kinds and states. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <rbsample/frame.h>
#include <rbsample/sample.h>

#include "base/base.h"

/* Each row differs from the first in one field. */
static const struct {
	const char *name;
	struct rbsp_frame frame;
} frames[] = {
	{ "the first", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "another kind", { RBSP_FRAME_CFUNC, "Foo#bar", "Foo", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "another name", { RBSP_FRAME_RUBY, "Foo#baz", "Foo", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "an empty name", { RBSP_FRAME_RUBY, "", "Foo", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "no name", { RBSP_FRAME_RUBY, NULL, "Foo", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "another owner", { RBSP_FRAME_RUBY, "Foo#bar", "Bar", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "another path", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/b.rb", 3, "m", "id", 1, 2, 3 } },
	{ "another line", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 4, "m", "id", 1, 2, 3 } },
	{ "another module", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "n", "id", 1, 2, 3 } },
	{ "another image", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "m", "ie", 1, 2, 3 } },
	{ "another offset", { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "m", "id", 9, 2, 3 } },
	{ "another function",
	  { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "m", "id", 1, 9, 3 } },
	{ "another address",
	  { RBSP_FRAME_RUBY, "Foo#bar", "Foo", "/a.rb", 3, "m", "id", 1, 2, 9 } },
	{ "swapped strings",
	  { RBSP_FRAME_RUBY, "Foo", "Foo#bar", "/a.rb", 3, "m", "id", 1, 2, 3 } },
	{ "all unknown", { RBSP_FRAME_MARKER, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 0 } },
};

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_equal(const struct rbsp_frame *a, const struct rbsp_frame *b, const char *name)
{
	ck_assert_msg(a->kind == b->kind && same_text(a->name, b->name) &&
			      same_text(a->owner, b->owner) && same_text(a->path, b->path) &&
			      a->line == b->line && same_text(a->module, b->module) &&
			      same_text(a->build_id, b->build_id) && a->offset == b->offset &&
			      a->func == b->func && a->address == b->address,
		      "%s", name);
}

START_TEST(frames_that_differ_have_their_own_ids)
{
	struct rbsp_frames *t = rbsp_frames_new();

	for (size_t i = 0; i < RBSP_COUNT_OF(frames); i++)
		ck_assert_msg(rbsp_frames_intern(t, &frames[i].frame) == i + 1, "%s",
			      frames[i].name);
	ck_assert_uint_eq(rbsp_frames_count(t), RBSP_COUNT_OF(frames));
	for (size_t i = 0; i < RBSP_COUNT_OF(frames); i++) {
		check_equal(rbsp_frames_get(t, (rbsp_frame_id)i + 1), &frames[i].frame,
			    frames[i].name);
		ck_assert_msg(rbsp_frames_intern(t, &frames[i].frame) == i + 1, "%s, again",
			      frames[i].name);
	}
	ck_assert_uint_eq(rbsp_frames_count(t), RBSP_COUNT_OF(frames));
	rbsp_frames_free(t);
	rbsp_frames_free(NULL);
}
END_TEST

/* Neither the addresses of strings nor what stands in a struct's padding makes two frames of one.
 */
START_TEST(equal_frames_have_one_id)
{
	struct rbsp_frames *t = rbsp_frames_new();
	struct rbsp_frame a, b;
	char name[] = "Foo#bar";

	memset(&a, 0xff, sizeof(a));
	memset(&b, 0, sizeof(b));
	for (struct rbsp_frame *f = &a; f; f = f == &a ? &b : NULL) {
		f->kind = RBSP_FRAME_CFUNC;
		f->name = f == &a ? name : "Foo#bar";
		f->owner = f->path = f->module = f->build_id = NULL;
		f->line = 0;
		f->offset = f->func = f->address = 0;
	}
	ck_assert_uint_eq(rbsp_frames_intern(t, &a), 1);
	name[0] = 'X'; /* the table has its own copy */
	ck_assert_uint_eq(rbsp_frames_intern(t, &b), 1);
	ck_assert_str_eq(rbsp_frames_get(t, 1)->name, "Foo#bar");
	rbsp_frames_free(t);
}
END_TEST

START_TEST(frames_stay_where_they_are)
{
	struct rbsp_frames *t = rbsp_frames_new();
	const struct rbsp_frame *first;
	char name[32];

	ck_assert_uint_eq(rbsp_frames_intern(t, &frames[0].frame), 1);
	first = rbsp_frames_get(t, 1);
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			struct rbsp_frame f = { .kind = RBSP_FRAME_RUBY, .name = name, .line = i };

			snprintf(name, sizeof(name), "m%u", i / 10);
			ck_assert_uint_eq(rbsp_frames_intern(t, &f), i + 2);
		}
	}
	ck_assert_ptr_eq(rbsp_frames_get(t, 1), first);
	check_equal(first, &frames[0].frame, frames[0].name);
	ck_assert_ptr_eq(rbsp_frames_get(t, 2)->name, rbsp_frames_get(t, 3)->name);
	rbsp_frames_free(t);
}
END_TEST

START_TEST(kinds_have_names)
{
	static const char *const names[] = { "ruby", "cfunc", "native", "interp",
					     "jit",  "gc",    "state",  "marker" };

	for (size_t i = 0; i < RBSP_COUNT_OF(names); i++)
		ck_assert_str_eq(rbsp_frame_kind_name((enum rbsp_frame_kind)i), names[i]);
	ck_assert_str_eq(rbsp_frame_kind_name((enum rbsp_frame_kind)99), "unknown");
}
END_TEST

START_TEST(states_have_names)
{
	static const char *const names[] = { "unknown",  "running",    "native",
					     "gvl wait", "mutex wait", "io wait",
					     "sleep",    "blocked",    "parked" };

	for (size_t i = 0; i < RBSP_COUNT_OF(names); i++)
		ck_assert_str_eq(rbsp_thread_state_name((enum rbsp_thread_state)i), names[i]);
	ck_assert_str_eq(rbsp_thread_state_name((enum rbsp_thread_state)99), "unknown");
}
END_TEST

Suite *suite_model(void)
{
	Suite *s = suite_create("model");
	TCase *tc = tcase_create("model");

	tcase_add_test(tc, frames_that_differ_have_their_own_ids);
	tcase_add_test(tc, equal_frames_have_one_id);
	tcase_add_test(tc, frames_stay_where_they_are);
	tcase_add_test(tc, kinds_have_names);
	tcase_add_test(tc, states_have_names);
	suite_add_tcase(s, tc);
	return s;
}
