/* Tests of lib/elf on real images: this program and the C library, as files, as memory, as
 * skeletons, and damaged. */
#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf.h"
#include "proc/proc.h"

Suite *suite_elf(void);

/* A loaded object of this process. */
struct loaded {
	uint64_t holds; /* asked for: an address in it */
	bool copy;      /* asked for: its memory */
	uint64_t bias;
	char path[512];
	unsigned char *memory; /* rebuilt by file offset; malloc'ed */
	size_t size;
};

static bool holds(const struct dl_phdr_info *info, uint64_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && address >= start &&
		    address < start + info->dlpi_phdr[i].p_memsz)
			return true;
	}
	return false;
}

static void copy_memory(const struct dl_phdr_info *info, struct loaded *l)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_offset + ph->p_filesz > l->size)
			l->size = ph->p_offset + ph->p_filesz;
	}
	l->memory = calloc(1, l->size);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD)
			memcpy(l->memory + ph->p_offset,
			       (const void *)(uintptr_t)(info->dlpi_addr + ph->p_vaddr),
			       ph->p_filesz);
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct loaded *l = arg;

	(void)size;
	if (!holds(info, l->holds))
		return 0;
	l->bias = info->dlpi_addr;
	snprintf(l->path, sizeof(l->path), "%s",
		 *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	if (l->copy)
		copy_memory(info, l);
	return 1;
}

static struct loaded find_loaded(uint64_t address, bool copy)
{
	struct loaded l = { .holds = address, .copy = copy };

	ck_assert_int_eq(dl_iterate_phdr(visit, &l), 1);
	return l;
}

static struct rbsp_elf *open_file(const char *path)
{
	struct rbsp_elf *e = NULL;
	struct rbsp_err err;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(rbsp_elf_open_fd(fd, path, &e, &err) == RBSP_OK, "%s", err.text);
	close(fd);
	return e;
}

static uint64_t libc_address(void)
{
	return (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "getppid");
}

START_TEST(a_function_of_this_program_is_found)
{
	uint64_t here = (uint64_t)(uintptr_t)suite_elf, start, end;
	struct loaded l = find_loaded(here, false);
	struct rbsp_elf *e = open_file(l.path);
	struct rbsp_symbol by_name, by_address;

	ck_assert(rbsp_elf_symbol(e, "suite_elf", &by_name));
	ck_assert_uint_eq(by_name.value + l.bias, here);
	ck_assert_int_eq(by_name.type, STT_FUNC);
	ck_assert(by_name.defined && by_name.size > 0);
	ck_assert(rbsp_elf_symbol_at(e, by_name.value + by_name.size - 1, &by_address));
	ck_assert_str_eq(by_address.name, "suite_elf");
	ck_assert(rbsp_elf_fde_at(e, by_name.value + 1, &start, &end));
	ck_assert_uint_eq(start, by_name.value);
	ck_assert_uint_eq(end, by_name.value + by_name.size);
	ck_assert(!rbsp_elf_symbol(e, "no_such_function", &by_name));
	ck_assert(!rbsp_elf_symbol(e, "", &by_name));
	rbsp_elf_close(e);
}
END_TEST

START_TEST(a_function_of_the_c_library_is_found)
{
	struct loaded l = find_loaded(libc_address(), false);
	struct rbsp_elf *e = open_file(l.path);
	const struct rbsp_elf_info *info = rbsp_elf_info(e);
	struct rbsp_symbol s;
	uint64_t start, end;

	ck_assert(!info->exec);
	ck_assert_uint_eq(info->low_vaddr, 0);
	ck_assert_ptr_nonnull(info->soname);
	ck_assert_int_eq(strncmp(info->soname, "libc.", 5), 0);
	ck_assert(info->dynamic && info->eh_frame_hdr && info->eh_frame_hdr_size);
	ck_assert(rbsp_elf_symbol(e, "getppid", &s));
	ck_assert(s.dynamic);
	ck_assert_uint_eq(s.value + l.bias, libc_address());
	ck_assert(rbsp_elf_fde_at(e, s.value, &start, &end));
	ck_assert_uint_eq(start, s.value);
	ck_assert_uint_eq(end, s.value + s.size);
	ck_assert_mem_eq(rbsp_elf_bytes(e, s.value, s.size),
			 (const void *)(uintptr_t)libc_address(), s.size);
	ck_assert_ptr_null(rbsp_elf_bytes(e, s.value, SIZE_MAX));
	ck_assert_ptr_null(rbsp_elf_bytes(e, UINT64_MAX - 4, 8));
	rbsp_elf_close(e);
}
END_TEST

START_TEST(every_mapping_gives_the_same_bias)
{
	struct loaded l = find_loaded(libc_address(), false);
	struct rbsp_elf *e;
	size_t cap = 1 << 20, n = 0, tried = 0, got;
	char *text = malloc(cap);
	FILE *f = fopen("/proc/self/maps", "re");
	const struct rbsp_map *in;
	struct rbsp_maps m;
	uint64_t bias;

	while (n < cap && (got = fread(text + n, 1, cap - n, f)))
		n += got;
	fclose(f);
	ck_assert_int_eq(rbsp_maps_parse(text, n, &m, NULL), RBSP_OK);
	in = rbsp_maps_find(&m, libc_address());
	e = open_file(l.path); /* after the list was read, because this maps the file too */
	for (size_t i = 0; i < m.n; i++) {
		if (m.map[i].ino != in->ino || m.map[i].dev != in->dev)
			continue;
		ck_assert(rbsp_elf_bias(e, m.map[i].start, m.map[i].offset, &bias));
		ck_assert_uint_eq(bias, l.bias);
		tried++;
	}
	ck_assert_uint_ge(tried, 2);
	ck_assert(!rbsp_elf_bias(e, 0x1000, UINT64_C(1) << 40, &bias));
	rbsp_maps_fini(&m);
	free(text);
	rbsp_elf_close(e);
}
END_TEST

struct relocs {
	size_t n, named;
	uint64_t sum;
};

static bool count_reloc(void *arg, uint64_t vaddr, uint32_t type, const struct rbsp_symbol *symbol,
			int64_t addend)
{
	struct relocs *r = arg;

	r->n++;
	r->named += symbol != NULL;
	r->sum += vaddr * 31 + type * 7 + (uint64_t)addend + (symbol ? strlen(symbol->name) : 0);
	return true;
}

static bool stop_at_once(void *arg, uint64_t vaddr, uint32_t type, const struct rbsp_symbol *symbol,
			 int64_t addend)
{
	count_reloc(arg, vaddr, type, symbol, addend);
	return false;
}

/* Everything that does not come from sections must be equal in two images of one file. */
static void check_alike(const struct rbsp_elf *a, const struct rbsp_elf *b)
{
	const struct rbsp_elf_info *ia = rbsp_elf_info(a), *ib = rbsp_elf_info(b);
	const uint64_t *fa, *fb;
	size_t n = rbsp_elf_fdes(a, &fa);
	struct relocs ra = { 0 }, rb = { 0 };
	struct rbsp_symbol sa, sb;

	ck_assert_str_eq(ia->build_id, ib->build_id);
	ck_assert_str_eq(ia->soname, ib->soname);
	ck_assert_uint_eq(ia->tls_memsz, ib->tls_memsz);
	ck_assert_uint_eq(rbsp_elf_fdes(b, &fb), n);
	ck_assert_uint_gt(n, 100);
	ck_assert_mem_eq(fa, fb, n * sizeof(*fa));
	for (size_t i = 0; i < n; i++) {
		uint64_t start[2], end[2];

		ck_assert(i == 0 || fa[i - 1] < fa[i]);
		ck_assert(rbsp_elf_fde_at(a, fa[i], &start[0], &end[0]) &&
			  rbsp_elf_fde_at(b, fb[i], &start[1], &end[1]));
		ck_assert(start[0] == fa[i] && start[1] == fa[i] && end[0] == end[1]);
	}
	rbsp_elf_relocs(a, count_reloc, &ra);
	rbsp_elf_relocs(b, count_reloc, &rb);
	ck_assert_uint_eq(ra.n, rb.n);
	ck_assert_uint_eq(ra.named, rb.named);
	ck_assert_uint_eq(ra.sum, rb.sum);
	ck_assert_uint_gt(ra.named, 0);
	for (const char *const *name = (const char *const[]){ "getppid", "environ", "qsort", NULL };
	     *name; name++) {
		ck_assert(rbsp_elf_symbol(a, *name, &sa) && rbsp_elf_symbol(b, *name, &sb));
		ck_assert(sa.value == sb.value && sa.size == sb.size && sa.type == sb.type &&
			  sb.dynamic);
	}
	ck_assert(rbsp_elf_symbol(a, "getppid", &sa) && rbsp_elf_symbol_at(b, sa.value + 1, &sb));
	ck_assert_uint_eq(sa.value, sb.value);
}

START_TEST(an_image_rebuilt_from_memory_works)
{
	struct loaded l = find_loaded(libc_address(), true);
	struct rbsp_elf *file = open_file(l.path), *memory;
	struct rbsp_err err;

	ck_assert_msg(rbsp_elf_open_memory(l.memory, l.size, l.bias, "memory", &memory, &err) ==
			      RBSP_OK,
		      "%s", err.text);
	check_alike(file, memory);
	rbsp_elf_close(memory);
	rbsp_elf_close(file);
	free(l.memory);
}
END_TEST

START_TEST(a_skeleton_works)
{
	struct loaded l = find_loaded(libc_address(), true);
	struct rbsp_elf *file = open_file(l.path), *memory, *bones;
	void *bytes;
	size_t n, whole;
	struct rbsp_symbol s;

	ck_assert_int_eq(rbsp_elf_skeleton(file, &bytes, &n), RBSP_OK);
	ck_assert_ptr_nonnull(rbsp_elf_file(file, &whole));
	ck_assert_uint_eq(n, whole);
	ck_assert_int_eq(rbsp_elf_open_bytes(bytes, n, "skeleton", &bones, NULL), RBSP_OK);
	check_alike(file, bones);
	ck_assert(rbsp_elf_symbol(bones, "getppid", &s));
	ck_assert_uint_eq(*(const unsigned char *)rbsp_elf_bytes(bones, s.value, 1), 0);
	rbsp_elf_close(bones);
	free(bytes);

	/* The addresses in a skeleton are the image's own, also if a dynamic linker had changed
	 * them. */
	ck_assert_int_eq(rbsp_elf_open_memory(l.memory, l.size, l.bias, "memory", &memory, NULL),
			 RBSP_OK);
	ck_assert_int_eq(rbsp_elf_skeleton(memory, &bytes, &n), RBSP_OK);
	ck_assert_int_eq(rbsp_elf_open_bytes(bytes, n, "skeleton", &bones, NULL), RBSP_OK);
	check_alike(file, bones);
	rbsp_elf_close(bones);
	free(bytes);
	rbsp_elf_close(memory);
	rbsp_elf_close(file);
	free(l.memory);
}
END_TEST

START_TEST(a_walk_over_relocations_can_be_ended)
{
	struct loaded l = find_loaded(libc_address(), false);
	struct rbsp_elf *e = open_file(l.path);
	struct relocs r = { 0 };

	rbsp_elf_relocs(e, stop_at_once, &r);
	ck_assert_uint_eq(r.n, 1);
	rbsp_elf_close(e);
}
END_TEST

/* A symbol of the file's .symtab keeps its name in a skeleton. */
START_TEST(a_skeleton_keeps_the_symbol_table)
{
	struct loaded l = find_loaded((uint64_t)(uintptr_t)suite_elf, false);
	struct rbsp_elf *e = open_file(l.path), *bones;
	struct rbsp_symbol a, b;
	void *bytes;
	size_t n;

	ck_assert(rbsp_elf_symbol(e, "check_alike", &a) || rbsp_elf_symbol(e, "suite_elf", &a));
	ck_assert_int_eq(rbsp_elf_skeleton(e, &bytes, &n), RBSP_OK);
	ck_assert_int_eq(rbsp_elf_open_bytes(bytes, n, "skeleton", &bones, NULL), RBSP_OK);
	ck_assert(rbsp_elf_symbol(bones, a.name, &b));
	ck_assert_uint_eq(a.value, b.value);
	rbsp_elf_close(bones);
	free(bytes);
	rbsp_elf_close(e);
}
END_TEST

static const struct {
	const char *name;
	const char *path;
	enum rbsp_status st;
} not_elf[] = {
	{ "a text", "/proc/self/maps", RBSP_E_FORMAT },
	{ "a device", "/dev/null", RBSP_E_FORMAT },
	{ "a folder", "/", RBSP_E_FORMAT },
};

START_TEST(what_is_no_image_is_refused)
{
	struct rbsp_elf *e = NULL;
	struct rbsp_err err = { 0 };
	int fd = open(not_elf[_i].path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(rbsp_elf_open_fd(fd, "it", &e, &err) == not_elf[_i].st, "%s",
		      not_elf[_i].name);
	ck_assert_msg(!e && strstr(err.text, "it"), "%s: %s", not_elf[_i].name, err.text);
	close(fd);
	ck_assert_int_eq(rbsp_elf_open_fd(-1, "it", &e, &err), RBSP_E_SYS);
	ck_assert_int_eq(rbsp_elf_open_bytes("", 0, "it", &e, &err), RBSP_E_FORMAT);
	ck_assert_int_eq(rbsp_elf_open_bytes("\177ELF", 4, "it", &e, &err), RBSP_E_FORMAT);
	rbsp_elf_close(NULL);
}
END_TEST

Suite *suite_elf(void)
{
	Suite *s = suite_create("elf");
	TCase *tc = tcase_create("elf");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_function_of_this_program_is_found);
	tcase_add_test(tc, a_function_of_the_c_library_is_found);
	tcase_add_test(tc, every_mapping_gives_the_same_bias);
	tcase_add_test(tc, an_image_rebuilt_from_memory_works);
	tcase_add_test(tc, a_skeleton_works);
	tcase_add_test(tc, a_walk_over_relocations_can_be_ended);
	tcase_add_test(tc, a_skeleton_keeps_the_symbol_table);
	tcase_add_loop_test(tc, what_is_no_image_is_refused, 0, RBSP_COUNT_OF(not_elf));
	suite_add_tcase(s, tc);
	return s;
}
