/* The ring between tracers and the decoder: captures, without a lock, without an allocation. */
#ifndef RBSP_RING_H
#define RBSP_RING_H

#include <stdatomic.h>

#include "target/capture.h"

struct rbsp_entry;

/** One thing a tracer saw. */
struct rbsp_event {
	struct rbsp_capture cap;
	struct rbsp_entry *entry;
	bool repeat; /* the thread has not run since its last capture: cap holds times only */
	bool idle;   /* the thread was not running */
};

/**
 * Single producer, single consumer. The producer's side is handed from tracer to tracer with the ownership of the
 * tick (an acquire/release pair), so it needs nothing more. Each slot reserves address space for a whole capture;
 * only what is written to becomes memory.
 */
struct rbsp_ring {
	struct rbsp_event *event;
	unsigned char *memory;
	size_t slots, room; /* room: bytes of a slot */
	_Atomic uint64_t head, tail; /* written by the producer, by the consumer */
};

enum rbsp_status rbsp_ring_init(struct rbsp_ring *r, size_t slots, size_t room, struct rbsp_err *err);
void rbsp_ring_fini(struct rbsp_ring *r);

/** Producer: the next free slot, its cap.data set; NULL: full. It is the consumer's after rbsp_ring_push. */
struct rbsp_event *rbsp_ring_next(struct rbsp_ring *r);
void rbsp_ring_push(struct rbsp_ring *r);
/** Producer: how many events wait. */
size_t rbsp_ring_waiting(const struct rbsp_ring *r);

/** Consumer: the oldest event, NULL: none; valid until rbsp_ring_pop. */
struct rbsp_event *rbsp_ring_peek(struct rbsp_ring *r);
void rbsp_ring_pop(struct rbsp_ring *r);

#endif
