/* How a tape is laid out: a gzip stream of records. */
#ifndef RBSP_TAPE_FORMAT_H
#define RBSP_TAPE_FORMAT_H

#include "target/target.h"

#define RBSP_TAPE_MAGIC "rbsptape"
#define RBSP_TAPE_VERSION 1
#define RBSP_TAPE_PAGE 4096u
/* Largest record that a reader accepts. */
#define RBSP_TAPE_RECORD_MAX (256u << 20)

/* A record: this head, then `size` bytes. Integers are as on the machine that recorded
 * (little-endian). */
struct rbsp_tape_head {
	uint32_t type, size;
};

enum rbsp_tape_type {
	RBSP_TAPE_PROCESS = 1, /* struct rbsp_tape_process */
	RBSP_TAPE_MAPS,        /* text as in /proc/PID/maps */
	RBSP_TAPE_THREADS,     /* int32_t each */
	RBSP_TAPE_POINTER,     /* struct rbsp_tape_pointer */
	RBSP_TAPE_IMAGE,       /* struct rbsp_tape_image, then the skeleton's bytes */
	RBSP_TAPE_CONTENT,     /* 4096 bytes; contents are numbered from 0 */
	RBSP_TAPE_PAGE_AT,     /* struct rbsp_tape_page */
	RBSP_TAPE_CAPTURE,     /* struct rbsp_capture (pointer meaningless), then its data: begins a
				  moment */
};

struct rbsp_tape_process {
	char magic[8];
	uint32_t version;
	int32_t pid;
};

struct rbsp_tape_pointer {
	int32_t tid, status; /* enum rbsp_status */
	uint64_t tp;
};

struct rbsp_tape_image {
	uint64_t dev, ino, start;
	uint32_t absent; /* the image could not be opened */
	char name[256];
};

struct rbsp_tape_page {
	uint64_t addr;
	uint32_t content; /* RBSP_TAPE_UNREADABLE: the page faulted */
};
#define RBSP_TAPE_UNREADABLE UINT32_MAX

/** The bytes of one page, borrowed until the next call. @return RBSP_E_FAULT: it is unreadable */
typedef enum rbsp_status (*rbsp_tape_page_fn)(void *arg, rbsp_addr page,
					      const unsigned char **bytes);

/** A vectored read, served page by page: what recording and replaying have in common. */
enum rbsp_status rbsp_tape_readv(const struct rbsp_piece *v, size_t n, size_t *done,
				 rbsp_tape_page_fn page, void *arg);

#endif
