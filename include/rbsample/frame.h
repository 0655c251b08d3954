/* Frames: what a line of a stack is, as typed data; interned to ids in a frame table. */
#ifndef RBSAMPLE_FRAME_H
#define RBSAMPLE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <rbsample/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rbsp_frame_kind {
	RBSP_FRAME_RUBY,   /* a method, block, class body, script written in Ruby */
	RBSP_FRAME_CFUNC,  /* a method written in C; has image and offset where its native frame was
			      found */
	RBSP_FRAME_NATIVE, /* a C function */
	RBSP_FRAME_INTERP, /* the interpreter's own C functions: hidden unless asked for */
	RBSP_FRAME_JIT,    /* machine code of a JIT */
	RBSP_FRAME_GC,     /* name: mark, sweep, compact */
	RBSP_FRAME_STATE,  /* why a thread does not run; name: "gvl wait", "blocked in read" */
	RBSP_FRAME_MARKER, /* something is cut or unreadable; name: "unread", "cut" */
};

/** "ruby", "cfunc", "native", "interp", "jit", "gc", "state", "marker". */
const char *rbsp_frame_kind_name(enum rbsp_frame_kind kind);

/** Index into a frame table; 0 is no frame. */
typedef uint32_t rbsp_frame_id;

/**
 * One frame. Strings are borrowed from the frame table once interned; NULL: unknown. Bytes are as
 * in the target (not always valid UTF-8; a NUL inside a name is stored as U+FFFD): writers
 * sanitise.
 */
struct rbsp_frame {
	enum rbsp_frame_kind kind;
	const char *name;     /* ruby, cfunc: the label ("Foo#bar", "block in Foo#bar"); native: the
				 symbol */
	const char *owner;    /* ruby, cfunc: class path, singleton's attached class; NULL: none */
	const char *path;     /* ruby: Location#path */
	uint32_t line;        /* ruby: 1.., 0: unknown */
	const char *module;   /* native, interp, cfunc: base name of the image */
	const char *build_id; /* of the image, lower-case hex */
	uint64_t offset;      /* address - load bias: pc in the image's own addresses */
	uint64_t func;        /* start of the function in the image's own addresses, 0: unknown */
	uint64_t address;     /* pc in the process, 0: none */
};

struct rbsp_frames;

/** A new, empty table; NULL: out of memory. Used by one thread at a time. */
struct rbsp_frames *rbsp_frames_new(void);
void rbsp_frames_free(struct rbsp_frames *t);

/** The id of a frame, equal frames (field by field) get the same id. @return 0: out of memory.
 * Copies the strings. */
rbsp_frame_id rbsp_frames_intern(struct rbsp_frames *t, const struct rbsp_frame *f);

/** The frame of an id, borrowed for the life of the table; @p id must come from this table. */
const struct rbsp_frame *rbsp_frames_get(const struct rbsp_frames *t, rbsp_frame_id id);

/** Number of frames; ids are 1..count. */
size_t rbsp_frames_count(const struct rbsp_frames *t);

#ifdef __cplusplus
}
#endif
#endif
