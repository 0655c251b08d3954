/* Unwinding and naming: captures of this test's own stack, changed where a case asks for it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <check.h>

#include "native/impl.h"
#include "self.h"

#define FRAMES 200

#if defined(__x86_64__)
#define FRAME_POINTER 6
#else
#define FRAME_POINTER 29
#endif

static struct self self;
static struct rbsp_native *nat;
static struct rbsp_native_frame frame[FRAMES];
static size_t n_frames;

static void setup(void)
{
	struct rbsp_err err;

	self_init(&self);
	ck_assert_msg(rbsp_native_new(&self.target, &nat, &err) == RBSP_OK, "%s", err.text);
}

static void teardown(void)
{
	rbsp_native_free(nat);
	rbsp_target_free(&self.target);
}

static enum rbsp_unwind_end unwind(void)
{
	return rbsp_native_unwind(nat, &chain_cap, NULL, 0, frame, FRAMES, &n_frames);
}

static const char *name_of(size_t i)
{
	struct rbsp_frame f;

	rbsp_native_describe(nat, &frame[i], &f);
	return f.name ? f.name : "";
}

/* Index of the first frame of a function at or above frame @p from; n_frames: none. */
static size_t find_frame(const char *name, size_t from)
{
	while (from < n_frames && strcmp(name_of(from), name) != 0)
		from++;
	return from;
}

/* Both ways to unwind; they must agree in every case. */
static const struct {
	const char *name;
	bool only_libunwind;
} ways[] = {
	{ "by rows", false },
	{ "by libunwind alone", true },
};

START_TEST(finds_every_caller_in_order)
{
	size_t at;

	rbsp_native_only_libunwind(nat, ways[_i].only_libunwind);
	chain_recurse(3);
	ck_assert_msg(unwind() == RBSP_UNWIND_BOTTOM, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(0), "chain_leaf");
	ck_assert_str_eq(name_of(1), "chain_compare");
	at = find_frame("chain_sort", 2);
	ck_assert_msg(at > 2 && at < n_frames, "%s: qsort's frames lie between", ways[_i].name);
	for (size_t i = 1; i <= 4; i++)
		ck_assert_str_eq(name_of(at + i), "chain_recurse");
	ck_assert_str_eq(name_of(at + 5), "finds_every_caller_in_order_fn");
	ck_assert(find_frame("main", at) < n_frames);
	ck_assert(!frame[0].is_return);
	for (size_t i = 1; i < n_frames; i++) {
		ck_assert(frame[i].is_return);
		/* The oldest has no caller, so libunwind may tell no CFA. */
		ck_assert(i + 1 == n_frames || frame[i].cfa > frame[i - 1].cfa);
	}
}
END_TEST

START_TEST(a_call_that_does_not_return_belongs_to_its_function)
{
	rbsp_native_only_libunwind(nat, ways[_i].only_libunwind);
	chain_last_call();
	ck_assert_msg(unwind() == RBSP_UNWIND_BOTTOM, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(1), "no_return");
	ck_assert_str_eq(name_of(2), "last_call");
	ck_assert_str_eq(name_of(3), "chain_last_call");
	ck_assert_uint_lt(frame[2].func, frame[2].pc);
}
END_TEST

START_TEST(goes_through_a_signal_frame)
{
	struct sigaction sa = { .sa_handler = chain_handler };
	size_t at;

	rbsp_native_only_libunwind(nat, ways[_i].only_libunwind);
	sigaction(SIGUSR1, &sa, NULL);
	chain_raise();
	ck_assert_msg(unwind() == RBSP_UNWIND_BOTTOM, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(0), "chain_leaf");
	ck_assert_str_eq(name_of(1), "chain_handler");
	ck_assert_msg(frame[2].is_return, "%s: the trampoline was returned to", ways[_i].name);
	ck_assert_msg(!frame[3].is_return, "%s: the interrupted frame did not call", ways[_i].name);
	at = find_frame("chain_raise", 3);
	ck_assert_msg(at < n_frames, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(at + 1), "goes_through_a_signal_frame_fn");
}
END_TEST

#if defined(__x86_64__)
START_TEST(goes_through_a_trampoline_without_cfi)
{
	/* The kernel's struct sigaction; SA_RESTORER is 0x04000000. */
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} sa = { chain_handler, 0x04000000, chain_restorer, 0 };
	size_t at;

	rbsp_native_only_libunwind(nat, ways[_i].only_libunwind);
	ck_assert_int_eq(syscall(SYS_rt_sigaction, SIGUSR1, &sa, NULL, sizeof(sa.mask)), 0);
	chain_raise();
	ck_assert_msg(unwind() == RBSP_UNWIND_BOTTOM, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(1), "chain_handler");
	ck_assert_str_eq(name_of(2), "chain_restorer");
	ck_assert_msg(!frame[3].is_return, "%s", ways[_i].name);
	at = find_frame("chain_raise", 3);
	ck_assert_msg(at < n_frames, "%s", ways[_i].name);
	ck_assert_str_eq(name_of(at + 1), "goes_through_a_trampoline_without_cfi_fn");
}
END_TEST
#endif

START_TEST(both_ways_give_the_same_frames)
{
	struct rbsp_native_frame other[FRAMES];
	size_t n_other;

	chain_recurse(5);
	ck_assert_int_eq(unwind(), RBSP_UNWIND_BOTTOM);
	memcpy(other, frame, sizeof(other));
	n_other = n_frames;
	rbsp_native_only_libunwind(nat, true);
	ck_assert_int_eq(unwind(), RBSP_UNWIND_BOTTOM);
	ck_assert_uint_eq(n_frames, n_other);
	for (size_t i = 0; i < n_frames; i++) {
		ck_assert_uint_eq(frame[i].pc, other[i].pc);
		ck_assert_uint_eq(frame[i].func, other[i].func);
		ck_assert(i + 1 == n_frames || frame[i].cfa == other[i].cfa);
	}
}
END_TEST

/* Where the captured stack holds the return address of frame @p i; the frame pointer is saved in
 * the word below. */
static rbsp_addr return_slot(size_t i)
{
	rbsp_addr a = frame[i].cfa;
	uint64_t word;

	do {
		a -= sizeof(word);
		ck_assert_uint_ge(a, chain_cap.range[RBSP_RANGE_STACK].addr);
		memcpy(&word, chain_cap.data + (a - chain_cap.range[RBSP_RANGE_STACK].addr),
		       sizeof(word));
	} while (word != frame[i + 1].pc);
	return a;
}

/* Change the captured stack. */
static void poke(rbsp_addr a, uint64_t v)
{
	memcpy(chain_cap.data + (a - chain_cap.range[RBSP_RANGE_STACK].addr), &v, sizeof(v));
}

static void forget_registers(void)
{
	chain_cap.regs.known = UINT64_C(1) << RBSP_DW_SP | UINT64_C(1) << RBSP_DW_PC;
}

static void end_stack_in_second_frame(void)
{
	chain_cap.range[RBSP_RANGE_STACK].len =
		(uint32_t)(return_slot(1) - chain_cap.range[RBSP_RANGE_STACK].addr);
}

static void take_stack_away(void)
{
	chain_cap.range[RBSP_RANGE_STACK] = (struct rbsp_range){ 0 };
}

static void return_to_0(void)
{
	poke(return_slot(1), 0);
}

static void return_to_data(void)
{
	poke(return_slot(1), (uintptr_t)&chain_cap);
}

static void return_to_itself(void)
{
	const rbsp_addr slot = return_slot(0);

	poke(slot, chain_cap.regs.pc + 1);
	poke(slot - 8, chain_cap.regs.r[FRAME_POINTER]);
}

static void return_below(void)
{
	const rbsp_addr slot = return_slot(0);

	poke(slot, chain_cap.regs.pc + 1);
	poke(slot - 8, chain_cap.regs.sp);
}

static void start_at_0(void)
{
	chain_cap.regs.pc = 0;
}

static void start_in_data(void)
{
	chain_cap.regs.pc = (uintptr_t)&chain_cap;
}

static const struct {
	const char *name;
	void (*change)(void);
	enum rbsp_unwind_end end;
	size_t n;
} ends[] = {
	{ "a register that is not known ends the walk", forget_registers, RBSP_UNWIND_CUT, 1 },
	{ "a stack that ends too early cuts", end_stack_in_second_frame, RBSP_UNWIND_CUT, 2 },
	{ "no stack leaves the leaf", take_stack_away, RBSP_UNWIND_CUT, 1 },
	{ "return address 0 is the bottom", return_to_0, RBSP_UNWIND_BOTTOM, 2 },
	{ "a return address outside of code is no frame", return_to_data, RBSP_UNWIND_CUT, 2 },
	{ "a frame that is its own caller ends the walk", return_to_itself, RBSP_UNWIND_CUT, 2 },
	{ "a caller below its callee ends the walk", return_below, RBSP_UNWIND_CUT, 2 },
	{ "program counter 0 is the bottom", start_at_0, RBSP_UNWIND_BOTTOM, 0 },
	{ "a program counter outside of code is no frame", start_in_data, RBSP_UNWIND_CUT, 0 },
};

START_TEST(ends_where_the_capture_ends)
{
	enum rbsp_unwind_end end;

	chain_recurse(1);
	unwind();
	ends[_i].change();
	for (size_t way = 0; way < RBSP_COUNT_OF(ways); way++) {
		rbsp_native_only_libunwind(nat, ways[way].only_libunwind);
		end = unwind();
		ck_assert_msg(end == ends[_i].end, "%s, %s: end %d", ends[_i].name, ways[way].name,
			      end);
		ck_assert_msg(n_frames == ends[_i].n, "%s, %s: %zu frames", ends[_i].name,
			      ways[way].name, n_frames);
	}
}
END_TEST

START_TEST(stops_in_a_range)
{
	struct rbsp_code_range until[2] = { { 1, 2 } };
	size_t at;

	chain_recurse(1);
	unwind();
	at = find_frame("chain_sort", 0);
	/* The range ends right behind the call: only the look-up address lies in it. */
	until[1] = (struct rbsp_code_range){ frame[at].func, frame[at].pc };
	ck_assert_int_eq(rbsp_native_unwind(nat, &chain_cap, until, 2, frame, FRAMES, &n_frames),
			 RBSP_UNWIND_STOPPED);
	ck_assert_uint_eq(n_frames, at + 1);
	ck_assert_str_eq(name_of(at), "chain_sort");
	ck_assert_uint_ne(frame[at].cfa, 0);
}
END_TEST

START_TEST(a_full_array_is_a_cut)
{
	chain_recurse(1);
	ck_assert_int_eq(rbsp_native_unwind(nat, &chain_cap, NULL, 0, frame, 3, &n_frames),
			 RBSP_UNWIND_CUT);
	ck_assert_uint_eq(n_frames, 3);
}
END_TEST

START_TEST(tells_code_of_no_file)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	rbsp_addr code = (uintptr_t)page + 64;
	struct rbsp_native_frame f = { .pc = code };
	struct rbsp_frame out;

	ck_assert_ptr_ne(page, MAP_FAILED);
	chain_recurse(1);
	unwind();
	poke(return_slot(0), code);
	/* The page is new to the unwinder. */
	ck_assert_int_eq(unwind(), RBSP_UNWIND_JIT);
	ck_assert_uint_eq(n_frames, 1);
	ck_assert(rbsp_native_is_jit(nat, code));
	ck_assert(!rbsp_native_is_jit(nat, frame[0].pc));
	ck_assert(!rbsp_native_is_jit(nat, (uintptr_t)&chain_cap));
	rbsp_native_describe(nat, &f, &out);
	ck_assert_int_eq(out.kind, RBSP_FRAME_JIT);
	ck_assert_uint_eq(out.address, code);
	munmap(page, 4096);
}
END_TEST

START_TEST(takes_a_file_that_is_not_elf_for_jit)
{
	char path[] = "/tmp/rbsample-unit-XXXXXX";
	int fd = mkstemp(path);
	char junk[4096] = "no image";
	void *page;

	ck_assert_int_eq(write(fd, junk, sizeof(junk)), sizeof(junk));
	page = mmap(NULL, sizeof(junk), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	ck_assert_ptr_ne(page, MAP_FAILED);
	ck_assert(rbsp_native_is_jit(nat, (uintptr_t)page + 64));
	munmap(page, sizeof(junk));
	unlink(path);
}
END_TEST

START_TEST(reads_mappings_again_only_for_new_addresses)
{
	rbsp_addr slot;

	chain_recurse(1);
	unwind();
	slot = return_slot(1);
	ck_assert_uint_eq(self.maps_read, 1);
	poke(slot, (uintptr_t)&chain_cap);
	unwind();
	ck_assert_uint_eq(self.maps_read, 2);
	unwind();
	unwind();
	ck_assert_uint_eq(self.maps_read, 2);
	poke(slot, (uintptr_t)&chain_cap + 8);
	unwind();
	ck_assert_uint_eq(self.maps_read, 3);
}
END_TEST

START_TEST(follows_libraries_that_come_and_go)
{
	const rbsp_addr hidden = (uintptr_t)qsort;
	size_t all, cut;

	rbsp_native_free(nat);
	self.hidden = hidden;
	ck_assert_int_eq(rbsp_native_new(&self.target, &nat, NULL), RBSP_OK);
	chain_recurse(1);
	ck_assert_int_eq(unwind(), RBSP_UNWIND_CUT);
	cut = n_frames;

	/* It is mapped now, but the address is known to be nowhere until something else is new. */
	self.hidden = 0;
	chain_cap.regs.pc = (uintptr_t)&chain_cap;
	unwind();
	chain_cap.regs.pc = frame[0].pc;
	chain_recurse(1);
	ck_assert_int_eq(unwind(), RBSP_UNWIND_BOTTOM);
	all = n_frames;
	ck_assert_uint_gt(all, cut);

	self.hidden = hidden;
	chain_cap.regs.pc = (uintptr_t)&chain_cap + 8;
	unwind();
	chain_recurse(1);
	ck_assert_int_eq(unwind(), RBSP_UNWIND_CUT);
	ck_assert_uint_eq(n_frames, cut);
}
END_TEST

START_TEST(describes_frames)
{
	struct rbsp_frame f;
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	ck_assert_int_gt(len, 0);
	exe[len] = 0;
	chain_recurse(1);
	unwind();
	rbsp_native_describe(nat, &frame[1], &f);
	ck_assert_int_eq(f.kind, RBSP_FRAME_NATIVE);
	ck_assert_str_eq(f.name, "chain_compare");
	ck_assert_str_eq(f.module, strrchr(exe, '/') + 1);
	ck_assert_uint_eq(f.address, frame[1].pc);
	ck_assert_uint_eq(f.address - f.offset, (uintptr_t)chain_compare - f.func);
	ck_assert_ptr_null(f.path);

	rbsp_native_describe(nat, &frame[2], &f);
	ck_assert_str_eq(f.module, "libc.so.6");
	ck_assert_uint_eq(strlen(f.build_id), 40);
	ck_assert_uint_eq(f.address, frame[2].pc);
	ck_assert_uint_gt(f.func, 0);
	ck_assert_uint_lt(f.func, f.offset);

	frame[2].pc = (uintptr_t)&chain_cap;
	rbsp_native_describe(nat, &frame[2], &f);
	ck_assert_int_eq(f.kind, RBSP_FRAME_NATIVE);
	ck_assert_ptr_null(f.module);
}
END_TEST

START_TEST(rows_are_found_again_and_bounded)
{
	struct rbsp_rows rows = { 0 };
	const rbsp_addr base = 0x7f0000001000;

	ck_assert_ptr_null(rbsp_rows_find(&rows, base));
	for (rbsp_addr i = 0; i < 200000; i++) {
		struct rbsp_row *row = rbsp_rows_add(&rows, base + i * 5);

		ck_assert_ptr_nonnull(row);
		row->func = i;
		ck_assert_ptr_eq(rbsp_rows_find(&rows, base + i * 5), row);
		ck_assert_uint_le(rows.n * 2, rows.cap);
	}
	ck_assert_uint_eq(rbsp_rows_find(&rows, base + 199000 * 5)->func, 199000);
	ck_assert_uint_le(rows.cap, 1u << 17);
	rbsp_rows_fini(&rows);
}
END_TEST

Suite *suite_native(void);

Suite *suite_native(void)
{
	Suite *s = suite_create("native");
	TCase *tc = tcase_create("unwind");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, finds_every_caller_in_order, 0, RBSP_COUNT_OF(ways));
	tcase_add_loop_test(tc, a_call_that_does_not_return_belongs_to_its_function, 0,
			    RBSP_COUNT_OF(ways));
	tcase_add_loop_test(tc, goes_through_a_signal_frame, 0, RBSP_COUNT_OF(ways));
#if defined(__x86_64__)
	tcase_add_loop_test(tc, goes_through_a_trampoline_without_cfi, 0, RBSP_COUNT_OF(ways));
#endif
	tcase_add_test(tc, both_ways_give_the_same_frames);
	tcase_add_loop_test(tc, ends_where_the_capture_ends, 0, RBSP_COUNT_OF(ends));
	tcase_add_test(tc, stops_in_a_range);
	tcase_add_test(tc, a_full_array_is_a_cut);
	tcase_add_test(tc, tells_code_of_no_file);
	tcase_add_test(tc, takes_a_file_that_is_not_elf_for_jit);
	tcase_add_test(tc, reads_mappings_again_only_for_new_addresses);
	tcase_add_test(tc, follows_libraries_that_come_and_go);
	tcase_add_test(tc, describes_frames);
	suite_add_tcase(s, tc);

	tc = tcase_create("rows");
	tcase_add_test(tc, rows_are_found_again_and_bounded);
	suite_add_tcase(s, tc);
	return s;
}
