/* What the writers share. */
#ifndef RBSP_OUTPUT_SHARED_H
#define RBSP_OUTPUT_SHARED_H

#include <stdio.h>

#include <rbsample/output.h>

#include "base/base.h"

/** The caller's options, or the defaults for NULL. */
struct rbsp_output_options rbsp_output_options_of(const struct rbsp_output_options *o);

/** Whether a frame is written: the interpreter's own are hidden unless asked for. */
bool rbsp_frame_shown(const struct rbsp_frame *f, const struct rbsp_output_options *o);

/** Flush @p out. @return RBSP_OK; RBSP_E_OUTPUT: something of what was written is lost */
enum rbsp_status rbsp_output_flush(FILE *out, struct rbsp_err *err);

/** "\033[1m" and such where @p color, else "". */
const char *rbsp_color(bool color, const char *code);
/** The colour of a kind of frame, for rbsp_color. */
const char *rbsp_frame_color(enum rbsp_frame_kind kind);
#define RBSP_COLOR_BOLD "\033[1m"
#define RBSP_COLOR_DIM "\033[2m"
#define RBSP_COLOR_END "\033[0m"

enum rbsp_status rbsp_folded_open(FILE *out, const struct rbsp_output_options *o,
				  const struct rbsp_frames *frames, struct rbsp_sink **sink,
				  struct rbsp_err *err);

#endif
