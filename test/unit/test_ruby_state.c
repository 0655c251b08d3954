/* Tests of what a capture says of its thread: whose it is, its state, GC; and of the VM's thread
 * list and ID table. */
#include <check.h>
#include <elf.h>
#include <stdlib.h>

#include "ruby_heap.h"

static struct heap h;

static void start(uint32_t version)
{
	heap_init(&h, rbsp_layout_find(version, EM_X86_64));
}

static void setup(void)
{
	start(RBSP_RUBY(3, 3, 0));
}

static void teardown(void)
{
	heap_fini(&h);
}

enum wrong {
	NOTHING,
	EMPTY_SLOT,
	NO_EC,
	OTHER_EC,
	KILLED,
	NO_STACK,
	OTHER_PTHREAD,
	CFP_BELOW,
	CFP_ABOVE,
	CFP_BETWEEN,
	NO_TH
};
static const struct {
	const char *name;
	uint32_t version;
	enum wrong wrong;
	enum rbsp_status st;
} checks[] = {
	{ "a thread of 2.7", RBSP_RUBY(2, 7, 0), NOTHING, RBSP_OK },
	{ "a thread of 3.1", RBSP_RUBY(3, 1, 0), NOTHING, RBSP_OK },
	{ "a thread of 3.3", RBSP_RUBY(3, 3, 0), NOTHING, RBSP_OK },
	{ "an empty slot is no Ruby thread", RBSP_RUBY(3, 3, 0), EMPTY_SLOT, RBSP_E_NOT_FOUND },
	{ "an ec that did not read", RBSP_RUBY(3, 3, 0), NO_EC, RBSP_E_NOT_FOUND },
	{ "a stale ec of a finished thread", RBSP_RUBY(3, 1, 0), OTHER_EC, RBSP_E_NOT_FOUND },
	{ "a killed thread", RBSP_RUBY(3, 1, 0), KILLED, RBSP_E_NOT_FOUND },
	{ "a thread without a stack", RBSP_RUBY(3, 1, 0), NO_STACK, RBSP_E_NOT_FOUND },
	{ "another native thread's (3.1)", RBSP_RUBY(3, 1, 0), OTHER_PTHREAD, RBSP_E_NOT_FOUND },
	{ "another native thread's (3.4)", RBSP_RUBY(3, 4, 0), OTHER_PTHREAD, RBSP_E_NOT_FOUND },
	{ "no thread", RBSP_RUBY(3, 4, 0), NO_TH, RBSP_E_NOT_FOUND },
	{ "cfp below the stack", RBSP_RUBY(3, 3, 0), CFP_BELOW, RBSP_E_RANGE },
	{ "cfp above the stack", RBSP_RUBY(3, 3, 0), CFP_ABOVE, RBSP_E_RANGE },
	{ "cfp between two frames", RBSP_RUBY(3, 3, 0), CFP_BETWEEN, RBSP_E_TORN },
};

static void spoil(enum wrong wrong)
{
	const struct rbsp_layout *l = &h.l;

	switch (wrong) {
	case NOTHING:
	case NO_EC:
	case NO_TH:
		break;
	case EMPTY_SLOT:
		h.slot = heap_alloc(&h, 8);
		break;
	case OTHER_EC:
		h.slot = heap_alloc(&h, 8);
		heap_put(&h, h.slot, h.ec);
		heap_put(&h, h.th + l->th.ec, h.ec + 64);
		break;
	case KILLED:
		heap_put32(&h, h.th + l->th.status, 3);
		break;
	case NO_STACK:
		heap_put(&h, h.ec + l->ec.vm_stack, 0);
		break;
	case OTHER_PTHREAD:
		heap_put(&h,
			 l->th.pthread == RBSP_NONE ? h.nt + l->nt.pthread : h.th + l->th.pthread,
			 0x2000);
		break;
	case CFP_BELOW:
		heap_put(&h, h.ec + l->ec.vm_stack, h.cfp + 56);
		break;
	case CFP_ABOVE:
		heap_put(&h, h.ec + l->ec.vm_stack_size, 16);
		break;
	case CFP_BETWEEN:
		heap_put(&h, h.ec + l->ec.vm_stack_size, HEAP_STACK_WORDS - 1);
		break;
	}
}

START_TEST(check)
{
	const struct rbsp_layout *l = rbsp_layout_find(checks[_i].version, EM_X86_64);

	heap_init(&h, l);
	heap_put(&h, l->th.pthread == RBSP_NONE ? h.nt + l->nt.pthread : h.th + l->th.pthread,
		 0x1000);
	spoil(checks[_i].wrong);
	heap_capture(&h);
	if (checks[_i].wrong == NO_EC)
		h.cap.flags |= RBSP_CAP_NO_EC;
	if (checks[_i].wrong == NO_TH)
		h.cap.range[RBSP_RANGE_TH].addr = 0;
	ck_assert_msg(rbsp_ruby_check(h.ruby, &h.cap, 0x1000) == checks[_i].st, "%s",
		      checks[_i].name);
	teardown();
}
END_TEST

/* Where pthread_t is not the thread pointer, the difference says nothing. */
START_TEST(pthread_elsewhere)
{
	heap_init(&h, rbsp_layout_find(RBSP_RUBY(3, 1, 0), EM_AARCH64));
	heap_put(&h, h.th + h.l.th.pthread, 0x1000);
	heap_capture(&h);
	ck_assert_int_eq(rbsp_ruby_check(h.ruby, &h.cap, 0x1700), RBSP_OK);
	teardown();
}
END_TEST

static const struct {
	const char *name;
	uint32_t version;
	uint32_t status; /* 0 runnable, 1 stopped, 2 stopped for ever */
	bool owner, awake, region, ubf, mutex, queued, blocked;
	enum rbsp_thread_state state;
} states[] = {
	{ "2.7: owns the GVL", RBSP_RUBY(2, 7, 0), 0, true, .state = RBSP_STATE_RUNNING },
	{ "3.1: owns the GVL", RBSP_RUBY(3, 1, 0), 0, true, .state = RBSP_STATE_RUNNING },
	{ "3.4: owns the GVL", RBSP_RUBY(3, 4, 0), 0, true, true, .state = RBSP_STATE_RUNNING },
	{ "3.4: was given the GVL and sleeps still", RBSP_RUBY(3, 4, 0), 0, true, false,
	  .state = RBSP_STATE_GVL_WAIT },
	{ "its time slice ended", RBSP_RUBY(3, 1, 0), 0, .queued = true, .blocked = true,
	  .state = RBSP_STATE_GVL_WAIT },
	{ "runnable, and another owns the GVL", RBSP_RUBY(3, 1, 0), 0,
	  .state = RBSP_STATE_GVL_WAIT },
	{ "2.7: waits after a blocking call", RBSP_RUBY(2, 7, 0), 1, .region = true, .queued = true,
	  .blocked = true, .state = RBSP_STATE_GVL_WAIT },
	{ "3.3: waits after a blocking call", RBSP_RUBY(3, 3, 0), 1, .region = true, .queued = true,
	  .blocked = true, .state = RBSP_STATE_GVL_WAIT },
	{ "a linked node with an unblock function is on another list", RBSP_RUBY(3, 1, 0), 1,
	  .region = true, .ubf = true, .queued = true, .blocked = true,
	  .state = RBSP_STATE_BLOCKED },
	{ "read(2)", RBSP_RUBY(3, 1, 0), 1, .region = true, .ubf = true, .blocked = true,
	  .state = RBSP_STATE_BLOCKED },
	{ "C code without the GVL", RBSP_RUBY(3, 3, 0), 1, .region = true, .ubf = true,
	  .state = RBSP_STATE_NATIVE },
	{ "sleep", RBSP_RUBY(3, 3, 0), 1, .ubf = true, .blocked = true, .state = RBSP_STATE_SLEEP },
	{ "Queue#pop", RBSP_RUBY(3, 1, 0), 2, .ubf = true, .blocked = true,
	  .state = RBSP_STATE_SLEEP },
	{ "Mutex#lock", RBSP_RUBY(2, 7, 0), 2, .ubf = true, .mutex = true, .blocked = true,
	  .state = RBSP_STATE_MUTEX_WAIT },
	{ "Mutex#lock", RBSP_RUBY(4, 0, 6), 2, .ubf = true, .mutex = true, .blocked = true,
	  .state = RBSP_STATE_MUTEX_WAIT },
};

START_TEST(state)
{
	const struct rbsp_layout *l;
	rbsp_addr owner = 1, other, node;

	start(states[_i].version);
	l = &h.l;
	other = heap_alloc(&h, 64);
	node = h.th + l->th.ready_node;
	heap_put32(&h, h.th + l->th.status, states[_i].status);
	heap_put(&h, h.sched, states[_i].owner ? h.th : other);
	if (l->ractor.is_running != RBSP_NONE)
		heap_put32(&h, h.ractor + l->ractor.is_running, states[_i].awake);
	heap_put(&h, h.th + l->th.blocking_region, states[_i].region);
	heap_put(&h, h.th + l->th.unblock_func, states[_i].ubf);
	heap_put(&h, h.th + l->th.locking_mutex, states[_i].mutex ? other : 0);
	heap_put(&h, node, states[_i].queued ? other : node);
	heap_capture(&h);
	if (states[_i].blocked)
		h.cap.flags |= RBSP_CAP_BLOCKED;
	ck_assert_msg(rbsp_ruby_state(h.ruby, &h.cap, &owner) == states[_i].state, "%s",
		      states[_i].name);
	ck_assert_msg(owner == (states[_i].owner ? h.th : other), "%s", states[_i].name);
	teardown();
}
END_TEST

START_TEST(state_without_an_owner)
{
	rbsp_addr owner = 1;

	heap_capture(&h);
	h.cap.range[RBSP_RANGE_SCHED].addr = 0;
	ck_assert_int_eq(rbsp_ruby_state(h.ruby, &h.cap, &owner), RBSP_STATE_RUNNING);
	ck_assert_uint_eq(owner, 0);
	h.cap.flags |= RBSP_CAP_BLOCKED;
	ck_assert_int_eq(rbsp_ruby_state(h.ruby, &h.cap, NULL), RBSP_STATE_UNKNOWN);
	h.cap.range[RBSP_RANGE_TH].addr = 0;
	ck_assert_int_eq(rbsp_ruby_state(h.ruby, &h.cap, NULL), RBSP_STATE_UNKNOWN);
}
END_TEST

/* Another ractor has a GVL of its own, which the capture does not show. */
START_TEST(state_in_another_ractor)
{
	heap_put(&h, h.th + h.l.th.ractor, h.ractor + 8);
	heap_put(&h, h.sched, h.vm);
	heap_capture(&h);
	ck_assert_int_eq(rbsp_ruby_state(h.ruby, &h.cap, NULL), RBSP_STATE_RUNNING);
}
END_TEST

static const struct {
	const char *name;
	uint32_t flags; /* mode, then bit 5 during_gc, bit 6 during_compacting */
	bool owner;
	const char *gc; /* NULL: none */
} collections[] = {
	{ "between two steps of a lazy sweep", 2, true, NULL },
	{ "marking", 0x21, true, "mark" },
	{ "sweeping", 0x22, true, "sweep" },
	{ "objects are moved while the heap is swept", 0x62, true, "compact" },
	{ "compacting", 0x63, true, "compact" },
	{ "the mode is not set yet", 0x20, true, "mark" },
	{ "another thread collects", 0x21, false, NULL },
};

START_TEST(gc)
{
	rbsp_frame_id id;

	heap_put32(&h, h.gc, collections[_i].flags);
	heap_put(&h, h.sched, collections[_i].owner ? h.th : h.vm);
	heap_capture(&h);
	id = rbsp_ruby_gc(h.ruby, &h.cap);
	ck_assert_msg(!id == !collections[_i].gc, "%s", collections[_i].name);
	if (id) {
		ck_assert_str_eq(rbsp_frames_get(h.frames, id)->name, collections[_i].gc);
		ck_assert_int_eq(rbsp_frames_get(h.frames, id)->kind, RBSP_FRAME_GC);
		ck_assert_uint_eq(rbsp_ruby_gc(h.ruby, &h.cap), id);
	}
}
END_TEST

START_TEST(thread_name)
{
	char buf[16];

	heap_put(&h, h.th + h.l.th.name, h.l.qnil);
	ck_assert_int_eq(rbsp_ruby_thread_name(h.ruby, h.th, buf, sizeof(buf)), RBSP_OK);
	ck_assert_str_eq(buf, "");
	heap_put(&h, h.th + h.l.th.name, heap_text(&h, "a name longer than that"));
	ck_assert_int_eq(rbsp_ruby_thread_name(h.ruby, h.th, buf, sizeof(buf)), RBSP_OK);
	ck_assert_str_eq(buf, "a name longer t");
	heap_put(&h, h.th + h.l.th.name, h.vm);
	ck_assert_int_ne(rbsp_ruby_thread_name(h.ruby, h.th, buf, sizeof(buf)), RBSP_OK);
	ck_assert_str_eq(buf, "");
}
END_TEST

START_TEST(thread_name_of_a_plain_setjmp)
{
	char buf[16];

	start(RBSP_RUBY(2, 7, 0));
	heap_put(&h, h.th + h.l.th.name, h.vm);
	heap_put(&h, h.th + h.l.th.name_plain, heap_text(&h, "w"));
	ck_assert_int_eq(rbsp_ruby_thread_name(h.ruby, h.th, buf, sizeof(buf)), RBSP_OK);
	ck_assert_str_eq(buf, "w");
	teardown();
}
END_TEST

/* Link nodes into a circle behind a head. */
static void link_list(rbsp_addr head, const rbsp_addr *node, size_t n)
{
	rbsp_addr last = head;

	for (size_t i = 0; i < n; i++) {
		heap_put(&h, last, node[i]);
		last = node[i];
	}
	heap_put(&h, last, head);
}

static rbsp_addr new_thread(rbsp_addr pthread)
{
	const struct rbsp_layout *l = &h.l;
	rbsp_addr th = heap_alloc(&h, 512), nt = heap_alloc(&h, 64);

	heap_put(&h, th + l->th.vm, h.vm);
	heap_put(&h, th + l->th.ec, th + 8);
	if (l->th.pthread != RBSP_NONE) {
		heap_put(&h, th + l->th.pthread, pthread);
	} else if (pthread) {
		heap_put(&h, th + l->th.nt, nt);
		heap_put(&h, nt + l->nt.pthread, pthread);
	}
	return th;
}

static void list_threads(const rbsp_addr *th, size_t n)
{
	const struct rbsp_layout *l = &h.l;
	rbsp_addr node[4];

	for (size_t i = 0; i < n; i++)
		node[i] = th[i] + l->th.node;
	if (l->vm.ractors == RBSP_NONE) {
		link_list(h.vm + l->vm.threads, node, n);
	} else {
		rbsp_addr ractor = h.ractor + l->ractor.node;

		link_list(h.vm + l->vm.ractors, &ractor, 1);
		link_list(h.ractor + l->ractor.threads, node, n);
	}
	heap_put(&h, h.vm + l->vm.main_thread, th[0]);
}

START_TEST(threads_of_every_row)
{
	size_t n_rows, n;
	const struct rbsp_layout *rows = rbsp_layout_rows(&n_rows);

	for (size_t row = 0; row < n_rows; row++) {
		struct rbsp_ruby_thread *t;
		rbsp_addr th[3];

		heap_init(&h, &rows[row]);
		th[0] = new_thread(0x10000);
		th[1] = new_thread(0x20000);
		th[2] = new_thread(0);
		list_threads(th, 3);
		ck_assert_int_eq(rbsp_ruby_threads(&h.target, &h.l, h.vm, &t, &n), RBSP_OK);
		ck_assert_msg(n == 3, "%s", rows[row].source);
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_eq(t[i].th, th[i]);
			ck_assert_uint_eq(t[i].ec, th[i] + 8);
			ck_assert_int_eq(t[i].main, i == 0);
			ck_assert_uint_eq(t[i].ractor,
					  rows[row].vm.ractors == RBSP_NONE ? 0 : h.ractor);
		}
		ck_assert_uint_eq(t[1].pthread, 0x20000);
		ck_assert_uint_eq(t[2].pthread, 0); /* parked */
		free(t);
		teardown();
	}
}
END_TEST

static const struct {
	const char *name;
	bool to_itself; /* the second node's next is the node itself */
	rbsp_addr next; /* else this */
	size_t at_least, at_most;
} torn[] = {
	{ "a circle without the head ends", true, 0, 2, 200000 },
	{ "a node that cannot be read", false, 0x12345678, 2, 2 },
	{ "a node that is no address", false, 3, 2, 2 },
	{ "a node that is no thread", false, HEAP_BASE + 64, 2, 2 },
};

START_TEST(torn_list)
{
	rbsp_addr th[2];
	struct rbsp_ruby_thread *t;
	size_t n;

	th[0] = new_thread(0x10000);
	th[1] = new_thread(0x20000);
	list_threads(th, 2);
	heap_put(&h, th[1] + h.l.th.node, torn[_i].to_itself ? th[1] + h.l.th.node : torn[_i].next);
	ck_assert_msg(rbsp_ruby_threads(&h.target, &h.l, h.vm, &t, &n) == RBSP_E_TORN, "%s",
		      torn[_i].name);
	ck_assert_msg(n >= torn[_i].at_least && n <= torn[_i].at_most, "%s: %zu", torn[_i].name, n);
	free(t);
}
END_TEST

START_TEST(names_of_ids)
{
	uint64_t id = heap_id(&h, "foo");
	char buf[8];
	size_t len;

	ck_assert_int_eq(
		rbsp_ruby_id_name(&h.target, &h.l, h.symbols, id | 1, buf, sizeof(buf), &len),
		RBSP_OK);
	ck_assert_str_eq(buf, "foo");
	ck_assert_uint_eq(len, 3);
	ck_assert_int_eq(
		rbsp_ruby_id_name(&h.target, &h.l, h.symbols, id + 16, buf, sizeof(buf), &len),
		RBSP_E_NOT_FOUND);
	ck_assert_int_eq(rbsp_ruby_id_name(&h.target, &h.l, 0, id, buf, sizeof(buf), &len),
			 RBSP_E_NOT_FOUND);
	ck_assert_int_eq(
		rbsp_ruby_id_name(&h.target, &h.l, h.symbols, UINT64_MAX, buf, sizeof(buf), &len),
		RBSP_E_NOT_FOUND);
}
END_TEST

Suite *suite_ruby_state(void);
Suite *suite_ruby_state(void)
{
	Suite *s = suite_create("ruby_state");
	TCase *tc = tcase_create("thread"), *own = tcase_create("own heap");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, state_without_an_owner);
	tcase_add_test(tc, state_in_another_ractor);
	tcase_add_loop_test(tc, gc, 0, RBSP_COUNT_OF(collections));
	tcase_add_test(tc, thread_name);
	tcase_add_loop_test(tc, torn_list, 0, RBSP_COUNT_OF(torn));
	tcase_add_test(tc, names_of_ids);
	tcase_add_loop_test(own, check, 0, RBSP_COUNT_OF(checks));
	tcase_add_test(own, pthread_elsewhere);
	tcase_add_loop_test(own, state, 0, RBSP_COUNT_OF(states));
	tcase_add_test(own, thread_name_of_a_plain_setjmp);
	tcase_add_test(own, threads_of_every_row);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, own);
	return s;
}
