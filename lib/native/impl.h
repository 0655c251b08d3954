/* What the files of lib/native share: modules, unwind rows, the registers of a walk. */
#ifndef RBSP_NATIVE_IMPL_H
#define RBSP_NATIVE_IMPL_H

#include <string.h>

#include <elfutils/libdw.h>
#include <libunwind.h>

#include "native/arch.h"
#include "native/native.h"

/** An ELF image at one place in the process. Lives as long as the struct rbsp_native: rows point to
 * it. */
struct rbsp_image {
	const struct rbsp_elf *elf; /* the target's */
	uint64_t bias;
	char *name;     /* base name of the path */
	Elf *libelf;    /* over the bytes of elf, for cfi; NULL: no CFI */
	Dwarf_CFI *cfi; /* NULL: no CFI */
};

enum rbsp_module_kind {
	RBSP_MODULE_UNTRIED, /* a file whose image was not asked for yet */
	RBSP_MODULE_IMAGE,
	RBSP_MODULE_JIT,    /* no file, or a file that is not ELF */
	RBSP_MODULE_OPAQUE, /* cannot be opened */
	RBSP_MODULE_NONE,   /* no executable mapping */
};

/** One executable mapping. */
struct rbsp_module {
	const struct rbsp_map *map; /* of the current struct rbsp_maps */
	enum rbsp_module_kind kind;
	struct rbsp_image *image; /* kind IMAGE only */
};

/** Executable mappings of the process, as they were when last read. */
struct rbsp_modules {
	struct rbsp_target *target;
	struct rbsp_maps maps;
	struct rbsp_module *module; /* ascending */
	size_t n;
	struct rbsp_image **image;
	size_t n_images;
	bool reread; /* in this call already: once is enough */
	rbsp_addr
		nowhere[64]; /* addresses that were in no mapping after the last reading; by hash */
};

/** Read the mappings. @p lost is set if a mapping known before is gone or changed: what is cached
 * by address is void. */
enum rbsp_status rbsp_modules_read(struct rbsp_modules *m, bool *lost, struct rbsp_err *err);
void rbsp_modules_fini(struct rbsp_modules *m);
/** The module of an address; its image is opened. NULL: none. */
struct rbsp_module *rbsp_modules_find(struct rbsp_modules *m, rbsp_addr a);
/** Whether reading the mappings again may find an address that rbsp_modules_find did not find. */
bool rbsp_modules_worth_reading(const struct rbsp_modules *m, rbsp_addr a);
/** Remember that the address is in no mapping. */
void rbsp_modules_note_nowhere(struct rbsp_modules *m, rbsp_addr a);

enum rbsp_row_kind {
	RBSP_ROW_SIMPLE,    /* CFA = register + offset (or the word there), registers saved at CFA +
			       offset */
	RBSP_ROW_OTHER,     /* libunwind's */
	RBSP_ROW_SIGRETURN, /* a signal trampoline without CFI: libunwind knows none, see
			       rbsp_dw_sigframe */
	RBSP_ROW_NO_CFI,    /* no FDE covers the address */
};

/** How to get from a frame to its caller's, for one look-up address. 64 bytes on x86-64. */
struct rbsp_row {
	rbsp_addr key; /* look-up address, 0: free */
	struct rbsp_image *image;
	rbsp_addr func;   /* runtime start of the function, 0: unknown */
	const char *name; /* symbol, once `named`; NULL: none; borrowed from the image */
	int32_t cfa_off;
	uint32_t keep;              /* bit r: register r is the same in the caller */
	int16_t off[RBSP_DW_SAVED]; /* saved[i] is at CFA + off[i] */
	uint8_t saved[RBSP_DW_SAVED];
	uint8_t n_saved;
	uint8_t cfa_reg;
	uint8_t kind : 2; /* enum rbsp_row_kind */
	bool deref : 1;   /* CFA = word at register + offset */
	bool bottom : 1;  /* the return address is undefined: the oldest frame */
	bool signal : 1;  /* the caller was interrupted, it did not call */
	bool named : 1;
};

/** Rows by look-up address, open addressing. */
struct rbsp_rows {
	struct rbsp_row *row;
	size_t cap; /* power of 2, 0: nothing allocated yet */
	size_t n;
};

struct rbsp_row *rbsp_rows_find(const struct rbsp_rows *t, rbsp_addr key);
/** A free row for a key that rbsp_rows_find did not find, zeroed but for its key; may move or drop
 * others. NULL: out of memory. */
struct rbsp_row *rbsp_rows_add(struct rbsp_rows *t, rbsp_addr key);
void rbsp_rows_clear(struct rbsp_rows *t);
void rbsp_rows_fini(struct rbsp_rows *t);

/** Fill a row whose key and image are set, from the image's CFI; @p pc is the program counter that
 * the key was made of. */
void rbsp_row_fill(struct rbsp_row *row, rbsp_addr pc);

/** A captured piece of stack. */
struct rbsp_area {
	rbsp_addr addr;
	uint32_t len; /* 0: none */
	const unsigned char *bytes;
};

/** Registers of a frame on the way up, and the captured stack: its main part, then that of the
 * thread's entry frames. */
struct rbsp_walk {
	uint64_t r[RBSP_DW_REGS];
	uint64_t known; /* bit i: r[i] is known */
	struct rbsp_area area[2];
};

static inline bool rbsp_walk_knows(const struct rbsp_walk *w, unsigned reg)
{
	return (w->known >> reg & 1) != 0;
}

/** The word at @p a in the captured stack. @return false: not captured */
static inline bool rbsp_walk_word(const struct rbsp_walk *w, rbsp_addr a, uint64_t *out)
{
	for (size_t i = 0; i < RBSP_COUNT_OF(w->area); i++) {
		const struct rbsp_area *s = &w->area[i];

		if (s->len >= sizeof(*out) && a - s->addr <= s->len - sizeof(*out)) {
			memcpy(out, s->bytes + (a - s->addr), sizeof(*out));
			return true;
		}
	}
	return false;
}

enum rbsp_step { RBSP_STEP_OK, RBSP_STEP_BOTTOM, RBSP_STEP_FAILED };

/**
 * One step by libunwind.
 *
 * @param as    address space made by rbsp_cursor_space
 * @param w     registers of the frame, replaced by its caller's
 * @param row   the frame's row
 * @param cfa   set to the frame's CFA
 */
enum rbsp_step rbsp_cursor_step(unw_addr_space_t as, struct rbsp_walk *w,
				const struct rbsp_row *row, rbsp_addr *cfa);
/** An address space for rbsp_cursor_step; NULL: out of memory. */
unw_addr_space_t rbsp_cursor_space(void);

struct rbsp_native {
	struct rbsp_modules modules;
	struct rbsp_rows rows;
	unw_addr_space_t space;
	bool only_libunwind; /* rows are used for bounds and names only */
};

#endif
