/* The ring between tracers and the decoder. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sampler/ring.h"

/* A slot that held more than this gives the rest back after use: one deep stack does not stay in memory for ever. */
#define KEEP_BYTES (1u << 20)

enum rbsp_status rbsp_ring_init(struct rbsp_ring *r, size_t slots, size_t room, struct rbsp_err *err)
{
	*r = (struct rbsp_ring){ .slots = slots, .room = room };
	r->event = calloc(slots, sizeof(*r->event));
	r->memory = mmap(NULL, slots * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->memory == MAP_FAILED)
		r->memory = NULL;
	if (!r->event || !r->memory) {
		rbsp_ring_fini(r);
		return rbsp_fail(err, RBSP_E_NOMEM, "no address space for %zu captures", slots);
	}
	for (size_t i = 0; i < slots; i++)
		r->event[i].cap.data = r->memory + i * room;
	return RBSP_OK;
}

void rbsp_ring_fini(struct rbsp_ring *r)
{
	if (r->memory)
		munmap(r->memory, r->slots * r->room);
	free(r->event);
	*r = (struct rbsp_ring){ 0 };
}

struct rbsp_event *rbsp_ring_next(struct rbsp_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) >= r->slots)
		return NULL;
	return &r->event[head % r->slots];
}

void rbsp_ring_push(struct rbsp_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

size_t rbsp_ring_waiting(const struct rbsp_ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) - atomic_load_explicit(&r->tail, memory_order_relaxed);
}

struct rbsp_event *rbsp_ring_peek(struct rbsp_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return NULL;
	return &r->event[tail % r->slots];
}

void rbsp_ring_pop(struct rbsp_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct rbsp_capture *c = &r->event[tail % r->slots].cap;

	if (c->size > KEEP_BYTES)
		madvise(c->data + KEEP_BYTES, r->room - KEEP_BYTES, MADV_DONTNEED);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}
