/* The ring between one tracer and the decoder. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sampler/ring.h"

/* A VM stack of 64 MiB and a native one, several times. */
#define ARENA (UINT64_C(384) << 20)
/* The least room that a capture is begun with. */
#define ROOM_MIN (UINT64_C(1) << 20)
/* Memory of the arena beyond this is given back after use: one deep stack does not stay for ever.
 */
#define KEEP (UINT64_C(2) << 20)
#define PAGE 4096u

enum rbsp_status rbsp_ring_init(struct rbsp_ring *r, struct rbsp_err *err)
{
	*r = (struct rbsp_ring){ 0 };
	r->event = calloc(RBSP_RING_EVENTS, sizeof(*r->event));
	r->arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->arena == MAP_FAILED)
		r->arena = NULL;
	if (r->event && r->arena)
		return RBSP_OK;
	rbsp_ring_fini(r);
	return rbsp_fail(err, RBSP_E_NOMEM, "no address space for captures");
}

void rbsp_ring_fini(struct rbsp_ring *r)
{
	if (r->arena)
		munmap(r->arena, ARENA);
	free(r->event);
	*r = (struct rbsp_ring){ 0 };
}

struct rbsp_event *rbsp_ring_next(struct rbsp_ring *r, size_t *room)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t waiting = head - atomic_load_explicit(&r->tail, memory_order_acquire);
	struct rbsp_event *ev = &r->event[head % RBSP_RING_EVENTS];

	if (waiting == 0)
		r->used = 0;
	if (waiting >= RBSP_RING_EVENTS || ARENA - r->used < ROOM_MIN)
		return NULL;
	ev->cap.data = r->arena + r->used;
	*room = ARENA - r->used;
	return ev;
}

void rbsp_ring_push(struct rbsp_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	r->used += (r->event[head % RBSP_RING_EVENTS].cap.size + 15u) & ~(size_t)15;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

size_t rbsp_ring_waiting(const struct rbsp_ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) -
	       atomic_load_explicit(&r->tail, memory_order_relaxed);
}

struct rbsp_event *rbsp_ring_peek(struct rbsp_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return NULL;
	return &r->event[tail % RBSP_RING_EVENTS];
}

/* The whole pages of [from, to) that lie beyond what is kept. */
static void give_back(struct rbsp_ring *r, size_t from, size_t to)
{
	from = from < KEEP ? KEEP : (from + PAGE - 1) & ~(size_t)(PAGE - 1);
	to &= ~(size_t)(PAGE - 1);
	if (from < to)
		madvise(r->arena + from, to - from, MADV_DONTNEED);
}

void rbsp_ring_pop(struct rbsp_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const struct rbsp_capture *c = &r->event[tail % RBSP_RING_EVENTS].cap;
	size_t at = (size_t)(c->data - r->arena);

	give_back(r, at, at + c->size);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}
