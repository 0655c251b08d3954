/* Texts of frames, threads and processes as numbers: equal texts have one number. */
#ifndef RBSP_LABELS_H
#define RBSP_LABELS_H

#include <rbsample/frame.h>
#include <rbsample/output.h>
#include <rbsample/sample.h>

#include "base/base.h"
#include "output/text.h"

struct rbsp_labels;

/** @p frames is borrowed and outlives it; NULL: out of memory. */
struct rbsp_labels *rbsp_labels_new(const struct rbsp_frames *frames,
				    const struct rbsp_output_options *o, enum rbsp_text_form form);
void rbsp_labels_free(struct rbsp_labels *l);

/**
 * The stack of a sample as labels, root first: process, thread, frames, as the options ask; frames
 * that are hidden are left out.
 *
 * @param l    table
 * @param s    sample
 * @param out  set to the labels, at least one; borrowed until the next call
 * @param n    set to their number
 * @return RBSP_OK; RBSP_E_NOMEM
 */
enum rbsp_status rbsp_labels_stack(struct rbsp_labels *l, const struct rbsp_sample *s,
				   const uint32_t **out, size_t *n);

/** Labels are 1..count. */
size_t rbsp_labels_count(const struct rbsp_labels *l);
const char *rbsp_labels_text(const struct rbsp_labels *l, uint32_t label);

#endif
