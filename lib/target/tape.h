/* Tapes: everything that was read of a process, to be decoded again without it. */
#ifndef RBSP_TAPE_H
#define RBSP_TAPE_H

#include "target/target.h"

/**
 * A target that passes everything on to @p live (borrowed) and writes down, page by page, what was
 * read. Captures are added with rbsp_tape_add_capture: what is read afterwards belongs to the
 * moment of that capture. rbsp_target_free closes the file; an error in writing is told by
 * rbsp_tape_finish.
 */
enum rbsp_status rbsp_tape_record(const char *path, struct rbsp_target *live,
				  struct rbsp_target **out, struct rbsp_err *err);
/** Add a capture and begin its moment. @p t comes from rbsp_tape_record. */
void rbsp_tape_add_capture(struct rbsp_target *t, const struct rbsp_capture *c);
/** Write what is pending. @return RBSP_OK; RBSP_E_OUTPUT */
enum rbsp_status rbsp_tape_finish(struct rbsp_target *t, struct rbsp_err *err);

/** Open a tape as a target; its moment is the time before the first capture. */
enum rbsp_status rbsp_tape_open(const char *path, struct rbsp_target **out, struct rbsp_err *err);
/** Go on to the next capture, borrowed until the next call; NULL: the end. @p t comes from
 * rbsp_tape_open. */
const struct rbsp_capture *rbsp_tape_next(struct rbsp_target *t);
/** What was asked for and is not on the tape, as a failure that names it; RBSP_OK: nothing is
 * missing. */
enum rbsp_status rbsp_tape_missing(const struct rbsp_target *t, struct rbsp_err *err);

#endif
