/* Reading one thread into a capture: over a made-up memory. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "target/view.h"

Suite *suite_target_view(void);

/* One area of memory, and how often it was read. */
#define BASE UINT64_C(0x10000)
#define SIZE 0x20000u
struct fake {
	struct rbsp_target base;
	unsigned char mem[SIZE];
	unsigned reads;
};

static enum rbsp_status fake_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	struct fake *f = (struct fake *)t;

	f->reads++;
	*done = 0;
	for (size_t i = 0; i < n; i++) {
		size_t have =
			v[i].addr >= BASE && v[i].addr < BASE + SIZE ? BASE + SIZE - v[i].addr : 0;
		size_t some = v[i].n < have ? v[i].n : have;

		memcpy(v[i].to, f->mem + (v[i].addr - BASE), some);
		*done += some;
		if (some < v[i].n)
			return RBSP_E_FAULT;
	}
	return RBSP_OK;
}

static const struct rbsp_target_ops fake_ops = { .readv = fake_readv };

enum {
	SLOT = 0x10100,
	EC = 0x10200,
	EC2 = 0x10400,
	TH = 0x11000,
	VM_STACK = 0x12000,
	WORDS = 0x400,
	STACK_END = 0x20000
};
enum { CFP_SIZE = 56, FRAMES = 3 };

static const struct rbsp_capture_spec spec = {
	.ec_size = 192,
	.ec_vm_stack = 0,
	.ec_vm_stack_size = 8,
	.ec_cfp = 16,
	.ec_thread = 48,
	.ec_stack_start = 144,
	.th_size = 256,
	.cfp_size = CFP_SIZE,
	.cfp_sp = 8,
	.native = true,
};

static void set(struct fake *f, rbsp_addr a, uint64_t w)
{
	memcpy(f->mem + (a - BASE), &w, sizeof(w));
}

static rbsp_addr newest(void)
{
	return VM_STACK + 8 * WORDS - FRAMES * CFP_SIZE;
}

static void set_ec(struct fake *f, rbsp_addr ec)
{
	set(f, SLOT, ec);
	set(f, ec, VM_STACK);
	set(f, ec + 8, WORDS);
	set(f, ec + 16, newest());
	set(f, ec + 48, TH);
	set(f, ec + 144, STACK_END);
	set(f, TH + 48, ec);
	set(f, newest() + 8, VM_STACK + 0x100);
}

static struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->base.ops = &fake_ops;
	set_ec(f, EC);
	return f;
}

static struct rbsp_capture capture_of(rbsp_addr sp)
{
	struct rbsp_capture c = { .data = malloc(1 << 20) };

	c.regs.sp = sp;
	return c;
}

START_TEST(reads_all_ranges_at_first_sight)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);
	uint64_t w;

	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert_uint_eq(c.flags, 0);
	ck_assert_uint_eq(c.range[RBSP_RANGE_CFP].addr, newest());
	ck_assert_uint_eq(c.range[RBSP_RANGE_CFP].len, FRAMES * CFP_SIZE);
	ck_assert_uint_eq(c.range[RBSP_RANGE_STACK].addr, STACK_END - 0x800 - 128);
	ck_assert_uint_eq(c.range[RBSP_RANGE_STACK].len, 0x800 + 128);
	ck_assert(rbsp_capture_word(&c, VM_STACK, &w));
	ck_assert(rbsp_capture_word(&c, TH + 48, &w) && w == EC);
	ck_assert_uint_eq(v.ec, EC);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(two_reads_when_nothing_moved)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);

	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	f->reads = 0;
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert_uint_eq(f->reads, 2);
	ck_assert_uint_eq(c.range[RBSP_RANGE_STACK].len, 0x800 + 128);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(follows_another_ec)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);

	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	set_ec(f, EC2);
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert_uint_eq(c.range[RBSP_RANGE_EC].addr, EC2);
	ck_assert_uint_eq(c.range[RBSP_RANGE_CFP].len, FRAMES * CFP_SIZE);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(a_switch_to_a_far_stack_reads_nothing_between)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);

	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	v.stack_start =
		STACK_END + (UINT64_C(1) << 32); /* the fiber that ran before has its stack there */
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert_uint_eq(c.flags & RBSP_CAP_CUT_STACK, 0);
	ck_assert_uint_eq(c.range[RBSP_RANGE_STACK].len, 0x800 + 128);
	ck_assert_uint_lt(c.size, 0x4000);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(deep_values_come_whole)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);
	uint64_t w;

	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	set(f, newest() + 8, VM_STACK + 0x1900);
	set(f, VM_STACK + 0x18f8, 4711);
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert(rbsp_capture_word(&c, VM_STACK + 0x18f8, &w));
	ck_assert_uint_eq(w, 4711);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(no_ec_leaves_the_native_stack)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);

	set(f, SLOT, 0);
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20), RBSP_OK);
	ck_assert_uint_eq(c.flags & RBSP_CAP_NO_EC, RBSP_CAP_NO_EC);
	ck_assert_uint_ge(c.range[RBSP_RANGE_STACK].len, 0x800);
	free(c.data);
	free(f);
}
END_TEST

static const struct {
	const char *name;
	rbsp_addr at;
	uint64_t value;
} torn[] = {
	{ "cfp below the VM stack", EC + 16, VM_STACK - 8 },
	{ "cfp above its end", EC + 16, VM_STACK + 8 * WORDS + 8 },
	{ "cfp at its end: no frame", EC + 16, VM_STACK + 8 * WORDS },
	{ "a size that overflows", EC + 8, UINT64_MAX },
	{ "no VM stack", EC, 0 },
};

START_TEST(torn_ec_reads_no_frames)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x800);

	set(f, torn[_i].at, torn[_i].value);
	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	ck_assert_msg(c.flags & RBSP_CAP_NO_EC, "%s", torn[_i].name);
	ck_assert_msg(!c.range[RBSP_RANGE_CFP].addr, "%s", torn[_i].name);
	free(c.data);
	free(f);
}
END_TEST

START_TEST(a_small_room_cuts_and_says_so)
{
	struct fake *f = fake_new();
	struct rbsp_view v = { .slot = SLOT };
	struct rbsp_capture c = capture_of(STACK_END - 0x8000);

	rbsp_view_read(&f->base, &spec, &v, &c, 1 << 20);
	ck_assert_int_eq(rbsp_view_read(&f->base, &spec, &v, &c, 0x2000), RBSP_OK);
	ck_assert_uint_eq(c.flags & RBSP_CAP_CUT_STACK, RBSP_CAP_CUT_STACK);
	ck_assert_uint_le(c.size, 0x2000);
	free(c.data);
	free(f);
}
END_TEST

Suite *suite_target_view(void)
{
	Suite *s = suite_create("target_view");
	TCase *tc = tcase_create("view");

	tcase_add_test(tc, reads_all_ranges_at_first_sight);
	tcase_add_test(tc, two_reads_when_nothing_moved);
	tcase_add_test(tc, follows_another_ec);
	tcase_add_test(tc, a_switch_to_a_far_stack_reads_nothing_between);
	tcase_add_test(tc, deep_values_come_whole);
	tcase_add_test(tc, no_ec_leaves_the_native_stack);
	tcase_add_loop_test(tc, torn_ec_reads_no_frames, 0, RBSP_COUNT_OF(torn));
	tcase_add_test(tc, a_small_room_cuts_and_says_so);
	suite_add_tcase(s, tc);
	return s;
}
