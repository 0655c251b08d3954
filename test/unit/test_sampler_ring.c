/* The ring between a tracer and the decoder. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "sampler/ring.h"

Suite *suite_sampler_ring(void);

static struct rbsp_ring ring;

static void setup(void)
{
	ck_assert_int_eq(rbsp_ring_init(&ring, NULL), RBSP_OK);
}

static void teardown(void)
{
	rbsp_ring_fini(&ring);
}

static void push(int tid, size_t bytes)
{
	size_t room = 0;
	struct rbsp_event *ev = rbsp_ring_next(&ring, &room);

	ck_assert(ev != NULL && room >= bytes);
	ev->cap.tid = tid;
	ev->cap.size = (uint32_t)bytes;
	memset(ev->cap.data, tid, bytes);
	rbsp_ring_push(&ring);
}

START_TEST(events_come_out_in_order_with_their_data)
{
	push(1, 100);
	push(2, 5000);
	push(3, 0);
	for (int tid = 1; tid <= 3; tid++) {
		struct rbsp_event *ev = rbsp_ring_peek(&ring);

		ck_assert(ev != NULL);
		ck_assert_int_eq(ev->cap.tid, tid);
		for (uint32_t i = 0; i < ev->cap.size; i++)
			ck_assert_int_eq(ev->cap.data[i], tid);
		rbsp_ring_pop(&ring);
	}
	ck_assert(rbsp_ring_peek(&ring) == NULL);
}
END_TEST

START_TEST(a_full_ring_refuses_and_recovers)
{
	size_t room, n = 0;

	while (rbsp_ring_next(&ring, &room)) {
		push(1, 0);
		n++;
	}
	ck_assert_uint_eq(n, RBSP_RING_EVENTS);
	rbsp_ring_pop(&ring);
	ck_assert(rbsp_ring_next(&ring, &room) != NULL);
}
END_TEST

START_TEST(a_full_arena_refuses_until_all_is_taken)
{
	size_t room, n = 0;

	while (rbsp_ring_next(&ring, &room)) {
		struct rbsp_event *ev = rbsp_ring_next(&ring, &room);

		/* reserved, not touched */
		ev->cap.size = (uint32_t)(room < (60u << 20) ? room : 60u << 20);
		rbsp_ring_push(&ring);
		n++;
	}
	ck_assert_uint_ge(n, 3);
	while (n-- > 0) {
		ck_assert(rbsp_ring_next(&ring, &room) == NULL);
		rbsp_ring_pop(&ring);
	}
	ck_assert(rbsp_ring_next(&ring, &room) != NULL);
	ck_assert_uint_ge(room, 128u << 20);
}
END_TEST

#define MANY 200000

static void *produce(void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY; i++) {
		size_t room;
		struct rbsp_event *ev;

		while (!(ev = rbsp_ring_next(&ring, &room)))
			continue;
		ev->cap.tid = i;
		ev->cap.size = 16;
		memcpy(ev->cap.data, &i, sizeof(i));
		rbsp_ring_push(&ring);
	}
	return NULL;
}

START_TEST(two_threads_lose_nothing)
{
	pthread_t producer;

	ck_assert_int_eq(pthread_create(&producer, NULL, produce, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		struct rbsp_event *ev;
		int in_data;

		while (!(ev = rbsp_ring_peek(&ring)))
			continue;
		memcpy(&in_data, ev->cap.data, sizeof(in_data));
		ck_assert_int_eq(ev->cap.tid, i);
		ck_assert_int_eq(in_data, i);
		rbsp_ring_pop(&ring);
	}
	pthread_join(producer, NULL);
}
END_TEST

Suite *suite_sampler_ring(void)
{
	Suite *s = suite_create("sampler_ring");
	TCase *tc = tcase_create("ring");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, events_come_out_in_order_with_their_data);
	tcase_add_test(tc, a_full_ring_refuses_and_recovers);
	tcase_add_test(tc, a_full_arena_refuses_until_all_is_taken);
	tcase_add_test(tc, two_threads_lose_nothing);
	suite_add_tcase(s, tc);
	return s;
}
