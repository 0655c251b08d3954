/* The ring between one tracer and the decoder: captures, without a lock, without an allocation. */
#ifndef RBSP_RING_H
#define RBSP_RING_H

#include <stdatomic.h>

#include "target/capture.h"

struct rbsp_entry;

/** One thing a tracer saw. */
struct rbsp_event {
	struct rbsp_capture cap;
	struct rbsp_entry *entry;
	uint32_t count; /* ticks it stands for: more than one where the thread's stop took longer
			   than that */
	bool repeat;    /* the thread has not run since its last capture: cap holds times only */
	bool idle;      /* the thread was not running */
};

/**
 * Single producer, single consumer. Captures lie one after the other in an arena of reserved
 * address space, of which only what is written to becomes memory; the producer starts again at its
 * beginning whenever the consumer has taken everything, which is nearly always.
 */
struct rbsp_ring {
	struct rbsp_event *event;
	unsigned char *arena;
	size_t used;                 /* producer: bytes of the arena behind the last capture */
	_Atomic uint64_t head, tail; /* written by the producer, by the consumer */
};

enum rbsp_status rbsp_ring_init(struct rbsp_ring *r, struct rbsp_err *err);
void rbsp_ring_fini(struct rbsp_ring *r);

/** Producer: a free event, its cap.data set to @p room bytes; NULL: full. It is the consumer's
 * after rbsp_ring_push. */
struct rbsp_event *rbsp_ring_next(struct rbsp_ring *r, size_t *room);
void rbsp_ring_push(struct rbsp_ring *r);
/** How many events wait; also from other threads, who learn how many waited a moment ago. */
size_t rbsp_ring_waiting(const struct rbsp_ring *r);

/** Consumer: the oldest event, NULL: none; valid until rbsp_ring_pop. */
struct rbsp_event *rbsp_ring_peek(struct rbsp_ring *r);
void rbsp_ring_pop(struct rbsp_ring *r);

#define RBSP_RING_EVENTS 4096u

#endif
