/* Tests of lib/elf on made images: pointer encodings, symbol choice, notes, and every kind of
 * damage. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"

Suite *suite_elf_made(void);

/* One PT_LOAD of SIZE bytes at vaddr BASE; pieces at fixed offsets. */
#define BASE 0x10000u
#define SIZE 0xc00u
enum {
	OFF_PHDR = 0x40,
	OFF_DYNAMIC = 0x200,
	OFF_DYNSYM = 0x300,
	OFF_DYNSTR = 0x480,
	OFF_HASH = 0x580,
	OFF_RELA = 0x640,
	OFF_NOTE = 0x690,
	OFF_HDR = 0x700,
	OFF_EH = 0x780,
	OFF_TEXT = 0xa00,
};

/* How the unwind tables are encoded. */
struct shape {
	const char *name;
	const char *augmentation;
	unsigned char version;      /* of the CIE */
	unsigned char fde;          /* encoding of FDEs */
	unsigned char count, table; /* encodings in .eh_frame_hdr */
	uint32_t more;              /* added to the number of entries that the header states */
	bool extended;              /* 64-bit lengths */
	bool found;
};

static const struct shape plain = { "plain", "zR", 1, 0x1b, 0x03, 0x3b, 0, false, true };

static const struct shape shapes[] = {
	{ "pc-relative, 4 bytes: what compilers write", "zR", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "pc-relative, 8 bytes: the large code model", "zR", 1, 0x1c, 0x03, 0x3b, 0, false, true },
	{ "absolute", "zR", 1, 0x00, 0x03, 0x3b, 0, false, true },
	{ "absolute, 8 bytes unsigned", "zR", 1, 0x04, 0x03, 0x3b, 0, false, true },
	{ "absolute, 4 bytes", "zR", 1, 0x03, 0x03, 0x3b, 0, false, true },
	{ "no augmentation", "", 1, 0x00, 0x03, 0x3b, 0, false, true },
	{ "version 3", "zR", 3, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "personality and LSDA before the encoding", "zPLR", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "a signal's frame", "zRS", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "a signal's frame, said first", "zSR", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "aarch64's B key", "zRB", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "aarch64's B key, said first", "zBR", 1, 0x1b, 0x03, 0x3b, 0, false, true },
	{ "64-bit lengths", "zR", 1, 0x1b, 0x03, 0x3b, 0, true, true },
	{ "no table: .eh_frame is read", "zR", 1, 0x1b, 0xff, 0xff, 0, false, true },
	{ "an unknown table: .eh_frame is read", "zR", 1, 0x1b, 0x03, 0x1b, 0, false, true },
	{ "more entries than there is room: .eh_frame is read", "zR", 1, 0x1b, 0x03, 0x3b, 1000,
	  false, true },
	{ "an indirect pointer is refused", "zR", 1, 0x9b, 0x03, 0x3b, 0, false, false },
	{ "text-relative is refused", "zR", 1, 0x2b, 0x03, 0x3b, 0, false, false },
	{ "an unknown letter is refused", "zXR", 1, 0x1b, 0x03, 0x3b, 0, false, false },
	{ "an unknown augmentation is refused", "eh", 1, 0x1b, 0x03, 0x3b, 0, false, false },
	{ "an unknown version is refused", "zR", 9, 0x1b, 0x03, 0x3b, 0, false, false },
};

static const struct {
	uint32_t start, size;
} functions[] = { { 0, 0x40 }, { 0x40, 0x10 }, { 0x80, 0x20 } };

struct made {
	unsigned char b[SIZE];
	size_t at; /* of the next put */
};

static void put(struct made *m, const void *p, size_t n)
{
	ck_assert_uint_le(m->at + n, SIZE);
	memcpy(m->b + m->at, p, n);
	m->at += n;
}

static void put_int(struct made *m, uint64_t v, size_t n)
{
	put(m, &v, n); /* little endian */
}

static void put_encoded(struct made *m, unsigned encoding, uint64_t v)
{
	size_t n = (encoding & 0x0f) == 0x03 || (encoding & 0x0f) == 0x0b ? 4 : 8;

	if ((encoding & 0x70) == 0x10)
		v -= BASE + m->at;
	else if ((encoding & 0x70) == 0x30)
		v -= BASE + OFF_HDR;
	put_int(m, v, n);
}

/* Begin a record; @return where its length stands. */
static size_t begin_record(struct made *m, bool extended)
{
	size_t at = m->at;

	put_int(m, extended ? UINT32_MAX : 0, 4);
	if (extended)
		put_int(m, 0, 8);
	return at;
}

static void end_record(struct made *m, size_t at, bool extended)
{
	size_t field = extended ? 12 : 4;
	uint64_t length;

	while ((m->at - at) % 8 != 4)
		put_int(m, 0, 1); /* DW_CFA_nop */
	length = m->at - at - field;
	memcpy(m->b + at + field - (extended ? 8 : 4), &length, extended ? 8 : 4);
}

static void put_cie(struct made *m, const struct shape *s)
{
	size_t at = begin_record(m, s->extended), length_at;

	put_int(m, 0, s->extended ? 8 : 4);
	put_int(m, s->version, 1);
	put(m, s->augmentation, strlen(s->augmentation) + 1);
	put(m, "\x01\x78\x10", 3); /* code and data alignment, return address register */
	if (*s->augmentation == 'z') {
		length_at = m->at;
		put_int(m, 0, 1);
		for (const char *a = s->augmentation + 1; *a; a++) {
			if (*a == 'P')
				put(m, "\x03\x11\x22\x33\x44", 5);
			else if (*a == 'L' || *a == 'X')
				put_int(m, 0x1b, 1);
			else if (*a == 'R')
				put_int(m, s->fde, 1);
		}
		m->b[length_at] = (unsigned char)(m->at - length_at - 1);
	}
	end_record(m, at, s->extended);
}

static void put_unwind(struct made *m, const struct shape *s)
{
	size_t fde_at[RBSP_COUNT_OF(functions)];

	m->at = OFF_EH;
	put_cie(m, s);
	for (size_t i = 0; i < RBSP_COUNT_OF(functions); i++) {
		fde_at[i] = m->at;
		begin_record(m, s->extended);
		put_int(m, m->at - OFF_EH, s->extended ? 8 : 4);
		put_encoded(m, s->fde, BASE + OFF_TEXT + functions[i].start);
		put_encoded(m, s->fde & 0x0f, functions[i].size);
		put_int(m, 0, 1); /* length of the augmentation's data */
		end_record(m, fde_at[i], s->extended);
	}
	put_int(m, 0, 4);
	m->at = OFF_HDR;
	put(m, (unsigned char[]){ 1, 0x1b, s->count, s->table }, 4);
	put_encoded(m, 0x1b, BASE + OFF_EH);
	if (s->count == 0xff)
		return;
	put_int(m, RBSP_COUNT_OF(functions) + s->more, 4);
	for (size_t i = 0; i < RBSP_COUNT_OF(functions); i++) {
		put_encoded(m, 0x3b, BASE + OFF_TEXT + functions[i].start);
		put_encoded(m, 0x3b, BASE + fde_at[i]);
	}
}

struct row {
	const char *name;
	uint32_t value, size;
	unsigned char bind, type;
};

/* Offsets from OFF_TEXT. */
static const struct row rows[] = {
	{ "local_twin", 0x00, 0x40, STB_LOCAL, STT_FUNC },
	{ "global_twin", 0x00, 0x40, STB_GLOBAL, STT_FUNC },
	{ "weak_twin", 0x00, 0x40, STB_WEAK, STT_FUNC },
	{ "inner", 0x10, 0x08, STB_LOCAL, STT_FUNC },
	{ "no_size", 0x40, 0x00, STB_GLOBAL, STT_FUNC },
	{ "data", 0x50, 0x10, STB_GLOBAL, STT_OBJECT },
	{ "tls", 0x08, 0x08, STB_GLOBAL, STT_TLS },
	{ "resolver", 0x80, 0x20, STB_GLOBAL, STT_GNU_IFUNC },
	{ "wraps", 0x90, UINT32_MAX, STB_GLOBAL, STT_NOTYPE },
};

static void put_symbols(struct made *m)
{
	size_t str = OFF_DYNSTR + 1;

	m->at = OFF_DYNSYM + sizeof(Elf64_Sym);
	for (size_t i = 0; i < RBSP_COUNT_OF(rows); i++) {
		Elf64_Sym sym = { .st_name = (uint32_t)(str - OFF_DYNSTR),
				  .st_info = ELF64_ST_INFO(rows[i].bind, rows[i].type),
				  .st_shndx = 1,
				  .st_size = rows[i].size,
				  .st_value = rows[i].type == STT_TLS
						      ? rows[i].value
						      : BASE + OFF_TEXT + rows[i].value };

		put(m, &sym, sizeof(sym));
		strcpy((char *)m->b + str, rows[i].name);
		str += strlen(rows[i].name) + 1;
	}
	m->at = OFF_HASH;
	put(m, (uint32_t[]){ 1, 1 + RBSP_COUNT_OF(rows) }, 8);
}

static void put_headers(struct made *m)
{
	static const Elf64_Phdr headers[] = {
		{ PT_LOAD, PF_R | PF_X, 0, BASE, BASE, SIZE, SIZE + 0x100, 0x1000 },
		{ PT_DYNAMIC, PF_R, OFF_DYNAMIC, BASE + OFF_DYNAMIC, 0, 0x100, 0x100, 8 },
		{ PT_GNU_EH_FRAME, PF_R, OFF_HDR, BASE + OFF_HDR, 0, 0x80, 0x80, 4 },
		{ PT_NOTE, PF_R, OFF_NOTE, BASE + OFF_NOTE, 0, 0x34, 0x34, 4 },
		{ PT_TLS, PF_R, SIZE, BASE + SIZE, 0, 0, 0x18, 8 },
	};
	static const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { BASE + OFF_DYNSYM } },
		{ DT_STRTAB, { BASE + OFF_DYNSTR } },
		{ DT_STRSZ, { OFF_HASH - OFF_DYNSTR } },
		{ DT_HASH, { BASE + OFF_HASH } },
		{ DT_RELA, { BASE + OFF_RELA } },
		{ DT_RELASZ, { 48 } },
		{ DT_SONAME, { 1 } },
		{ DT_NULL, { 0 } },
	};
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_AARCH64,
			  .e_version = EV_CURRENT,
			  .e_phoff = OFF_PHDR,
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = RBSP_COUNT_OF(headers) };

	put(m, &eh, sizeof(eh));
	m->at = OFF_PHDR;
	put(m, headers, sizeof(headers));
	m->at = OFF_DYNAMIC;
	put(m, dynamic, sizeof(dynamic));
}

static struct made make(const struct shape *s)
{
	struct made m = { .at = 0 };

	put_headers(&m);
	put_symbols(&m);
	m.at = OFF_RELA;
	put(&m, &(Elf64_Rela){ BASE + 0x10, ELF64_R_INFO(7, R_AARCH64_TLSDESC), 16 },
	    sizeof(Elf64_Rela));
	put(&m, &(Elf64_Rela){ BASE + 0x20, ELF64_R_INFO(0, R_AARCH64_TLSDESC), 8 },
	    sizeof(Elf64_Rela));
	m.at = OFF_NOTE; /* another note goes first */
	put(&m, (uint32_t[]){ 4, 5, 5 }, 12);
	put(&m, "GNU\0xxxxx\0\0", 12);
	put(&m, (uint32_t[]){ 4, 4, NT_GNU_BUILD_ID }, 12);
	put(&m, "GNU\0\xde\xad\xbe\xef", 8);
	put_unwind(&m, s);
	return m;
}

static struct rbsp_elf *open_made(const struct made *m)
{
	struct rbsp_elf *e = NULL;
	struct rbsp_err err = { 0 };

	ck_assert_msg(rbsp_elf_open_bytes(m->b, SIZE, "made", &e, &err) == RBSP_OK, "%s", err.text);
	return e;
}

START_TEST(headers_are_read)
{
	struct made m = make(&plain);
	struct rbsp_elf *e = open_made(&m);
	const struct rbsp_elf_info *info = rbsp_elf_info(e);
	const struct rbsp_elf_segment *seg;
	size_t n;

	ck_assert_uint_eq(info->machine, EM_AARCH64);
	ck_assert_uint_eq(info->low_vaddr, BASE);
	ck_assert_uint_eq(info->eh_frame_hdr, BASE + OFF_HDR);
	ck_assert_uint_eq(info->tls_memsz, 0x18);
	ck_assert_uint_eq(info->tls_align, 8);
	ck_assert_str_eq(info->build_id, "deadbeef");
	ck_assert_str_eq(info->soname, "local_twin");
	n = rbsp_elf_segments(e, &seg);
	ck_assert_uint_eq(n, 1);
	ck_assert(seg->read && seg->exec && !seg->write);
	ck_assert_ptr_nonnull(rbsp_elf_bytes(e, BASE + SIZE - 4, 4));
	ck_assert_ptr_null(rbsp_elf_bytes(e, BASE + SIZE - 3, 4));
	ck_assert_ptr_null(rbsp_elf_bytes(e, BASE + SIZE, 1)); /* in memory, not in the file */
	rbsp_elf_close(e);
}
END_TEST

START_TEST(functions_have_bounds)
{
	const struct shape *s = &shapes[_i];
	struct made m = make(s);
	struct rbsp_elf *e = open_made(&m);
	uint64_t start, end;
	const uint64_t *all;

	for (uint64_t off = 0; off < 0xb0; off++) {
		size_t in = RBSP_COUNT_OF(functions);
		bool found = rbsp_elf_fde_at(e, BASE + OFF_TEXT + off, &start, &end);

		for (size_t i = 0; i < RBSP_COUNT_OF(functions); i++) {
			if (off >= functions[i].start &&
			    off < functions[i].start + functions[i].size)
				in = i;
		}
		ck_assert_msg(found == (s->found && in < RBSP_COUNT_OF(functions)), "%s: +%#jx",
			      s->name, (uintmax_t)off);
		if (!found)
			continue;
		ck_assert_msg(start == BASE + OFF_TEXT + functions[in].start &&
				      end == start + functions[in].size,
			      "%s", s->name);
	}
	ck_assert_msg(!rbsp_elf_fde_at(e, 0, &start, &end), "%s", s->name);
	ck_assert_msg(!rbsp_elf_fde_at(e, UINT64_MAX, &start, &end), "%s", s->name);
	if (s->found) {
		ck_assert_msg(rbsp_elf_fdes(e, &all) == RBSP_COUNT_OF(functions), "%s", s->name);
		for (size_t i = 0; i < RBSP_COUNT_OF(functions); i++)
			ck_assert_msg(all[i] == BASE + OFF_TEXT + functions[i].start, "%s",
				      s->name);
	}
	rbsp_elf_close(e);
}
END_TEST

static const struct {
	const char *name;
	uint64_t off;
	const char *symbol; /* NULL: none */
} by_address[] = {
	{ "the global one of three names", 0x00, "global_twin" },
	{ "the nearest start", 0x10, "inner" },
	{ "its last byte", 0x17, "inner" },
	{ "behind an inner function", 0x18, "global_twin" },
	{ "last byte of the outer one", 0x3f, "global_twin" },
	{ "a symbol without size is never chosen", 0x40, NULL },
	{ "data is no function", 0x50, NULL },
	{ "an indirect function is one", 0x9f, "resolver" },
	{ "behind the last", 0xa0, NULL },
	{ "before the first: never a neighbour", UINT64_MAX, NULL },
};

START_TEST(an_address_has_a_symbol)
{
	struct made m = make(&plain);
	struct rbsp_elf *e = open_made(&m);
	struct rbsp_symbol s;
	bool found = rbsp_elf_symbol_at(e, BASE + OFF_TEXT + by_address[_i].off, &s);

	if (by_address[_i].symbol)
		ck_assert_msg(found && strcmp(s.name, by_address[_i].symbol) == 0, "%s: %s",
			      by_address[_i].name, found ? s.name : "none");
	else
		ck_assert_msg(!found, "%s: %s", by_address[_i].name, s.name);
	rbsp_elf_close(e);
}
END_TEST

START_TEST(a_name_has_a_symbol)
{
	struct made m = make(&plain);
	struct rbsp_elf *e = open_made(&m);
	struct rbsp_symbol s;

	for (size_t i = 0; i < RBSP_COUNT_OF(rows); i++) {
		ck_assert_msg(rbsp_elf_symbol(e, rows[i].name, &s), "%s", rows[i].name);
		ck_assert_str_eq(s.name, rows[i].name);
		ck_assert_uint_eq(s.size, rows[i].size);
		ck_assert_uint_eq(s.type, rows[i].type);
		ck_assert(s.dynamic && s.defined);
	}
	ck_assert(rbsp_elf_symbol(e, "tls", &s));
	ck_assert_uint_eq(s.value, 8);
	ck_assert(!rbsp_elf_symbol(e, "twin", &s));
	rbsp_elf_close(e);
}
END_TEST

struct seen {
	unsigned n;
	bool named[4];
	int64_t addend[4];
};

static bool see(void *arg, uint64_t vaddr, uint32_t type, const struct rbsp_symbol *symbol,
		int64_t addend)
{
	struct seen *s = arg;

	ck_assert_uint_lt(s->n, 4);
	ck_assert_uint_eq(type, R_AARCH64_TLSDESC);
	ck_assert_uint_eq(vaddr, s->n ? BASE + 0x20 : BASE + 0x10);
	s->named[s->n] = symbol && strcmp(symbol->name, "tls") == 0;
	s->addend[s->n++] = addend;
	return true;
}

START_TEST(relocations_are_walked)
{
	struct made m = make(&plain);
	struct rbsp_elf *e = open_made(&m);
	struct seen s = { 0 };

	rbsp_elf_relocs(e, see, &s);
	ck_assert_uint_eq(s.n, 2);
	ck_assert(s.named[0] && !s.named[1]);
	ck_assert(s.addend[0] == 16 && s.addend[1] == 8);
	rbsp_elf_close(e);
}
END_TEST

static bool accept_any(void *arg, uint64_t vaddr, uint32_t type, const struct rbsp_symbol *symbol,
		       int64_t addend)
{
	size_t *n = arg;

	(void)vaddr, (void)type, (void)addend;
	*n += symbol ? strlen(symbol->name) : 1;
	return true;
}

/* Ask everything of an image that may be damaged. */
static void use_all(const void *bytes, size_t n)
{
	struct rbsp_elf *e;
	const struct rbsp_elf_segment *seg;
	const uint64_t *fdes;
	struct rbsp_symbol s;
	uint64_t start, end;
	size_t count = 0, size;
	void *bones;

	if (rbsp_elf_open_bytes(bytes, n, "damaged", &e, NULL) != RBSP_OK)
		return;
	rbsp_elf_segments(e, &seg);
	rbsp_elf_bias(e, 0x7f0000000000, 0, &start);
	rbsp_elf_symbol(e, "inner", &s);
	rbsp_elf_symbol(e, "nothing", &s);
	rbsp_elf_relocs(e, accept_any, &count);
	rbsp_elf_fdes(e, &fdes);
	for (uint64_t off = 0; off < 0xb0; off += 8) {
		rbsp_elf_fde_at(e, BASE + OFF_TEXT + off, &start, &end);
		rbsp_elf_symbol_at(e, BASE + OFF_TEXT + off, &s);
	}
	if (rbsp_elf_skeleton(e, &bones, &size) == RBSP_OK)
		free(bones);
	rbsp_elf_close(e);
}

START_TEST(a_truncated_image_is_safe)
{
	struct made m = make(&shapes[_i]);

	for (size_t n = 0; n <= SIZE; n++)
		use_all(m.b, n);
}
END_TEST

/* Every byte, one at a time, set to values that make lengths, offsets and encodings absurd. */
START_TEST(a_damaged_image_is_safe)
{
	static const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	struct made m = make(&shapes[_i]);

	for (size_t at = 0; at < OFF_TEXT; at++) {
		unsigned char was = m.b[at];

		for (size_t v = 0; v < sizeof(values); v++) {
			m.b[at] = values[v];
			use_all(m.b, SIZE);
		}
		m.b[at] = was;
	}
}
END_TEST

START_TEST(a_randomly_damaged_image_is_safe)
{
	uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(_i + 1);

	for (unsigned round = 0; round < 4000; round++) {
		struct made m = make(&shapes[round % RBSP_COUNT_OF(shapes)]);

		for (unsigned i = 0; i < 1 + round % 8; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			m.b[(random >> 33) % OFF_TEXT] = (unsigned char)(random >> 25);
		}
		use_all(m.b, SIZE);
	}
}
END_TEST

Suite *suite_elf_made(void)
{
	Suite *s = suite_create("elf_made");
	TCase *tc = tcase_create("made"), *damage = tcase_create("damaged");

	tcase_add_test(tc, headers_are_read);
	tcase_add_loop_test(tc, functions_have_bounds, 0, RBSP_COUNT_OF(shapes));
	tcase_add_loop_test(tc, an_address_has_a_symbol, 0, RBSP_COUNT_OF(by_address));
	tcase_add_test(tc, a_name_has_a_symbol);
	tcase_add_test(tc, relocations_are_walked);
	suite_add_tcase(s, tc);
	tcase_set_timeout(damage, 60);
	tcase_add_loop_test(damage, a_truncated_image_is_safe, 0, RBSP_COUNT_OF(shapes));
	tcase_add_loop_test(damage, a_damaged_image_is_safe, 0, 1);
	tcase_add_loop_test(damage, a_damaged_image_is_safe, 12, 14);
	tcase_add_loop_test(damage, a_randomly_damaged_image_is_safe, 0, 2);
	suite_add_tcase(s, damage);
	return s;
}
