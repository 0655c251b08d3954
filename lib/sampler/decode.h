/* From a capture to a stack: check, decode, unwind, merge, intern. Needs no process: a tape does.
 */
#ifndef RBSP_DECODE_H
#define RBSP_DECODE_H

#include "sampler/process.h"

/** Work space of the decoder, for one thread. */
struct rbsp_decoder;

struct rbsp_decoder_counts {
	uint64_t native_frames, unwind_ns; /* after warm-up and before: every unwind */
	uint64_t ruby_frames, decode_ns;
	uint64_t merge_ns;
	uint64_t unread, bare_names;
};

/** @p frames is borrowed. NULL: out of memory. */
struct rbsp_decoder *rbsp_decoder_new(enum rbsp_native_mode native, struct rbsp_frames *frames);
void rbsp_decoder_free(struct rbsp_decoder *d);
const struct rbsp_decoder_counts *rbsp_decoder_counts(const struct rbsp_decoder *d);

/** One decoded stack; borrowed from the decoder until its next call. */
struct rbsp_decoded {
	const rbsp_frame_id *frames; /* root first */
	size_t n;
	enum rbsp_thread_state state;
	unsigned flags;  /* RBSP_SAMPLE_CUT, RBSP_SAMPLE_UNMERGED, RBSP_SAMPLE_EXACT */
	rbsp_addr th;    /* its Ruby thread, 0: none */
	rbsp_addr owner; /* the Ruby thread that owns the GVL, 0: free or unknown */
};

/**
 * Decode a capture of one of @p p's threads.
 *
 * @return RBSP_OK; RBSP_E_NOT_FOUND: not a Ruby thread and no native frames; RBSP_E_RANGE,
 * RBSP_E_TORN, RBSP_E_FAULT: drop the sample; RBSP_E_TAPE: a tape lacks a page
 */
enum rbsp_status rbsp_decode(struct rbsp_decoder *d, struct rbsp_proc *p,
			     const struct rbsp_capture *c, struct rbsp_decoded *out);

#endif
