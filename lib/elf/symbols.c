/* Symbols: .dynsym by PT_DYNAMIC, .symtab and the separate debug file by sections; by name, and by
 * address. */
#include "elf/image.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/hashes.h"

/* Number of entries that a section table states for .dynsym; 0: there is none. */
static size_t dynsym_section(const struct rbsp_elf *e)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(e->elf, scn))) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM &&
		    sh.sh_addr == e->dyn.symtab)
			return (size_t)(sh.sh_size / sizeof(Elf64_Sym));
	}
	return 0;
}

const struct rbsp_elf_symtab *rbsp_elf_dynsym(const struct rbsp_elf *e)
{
	struct rbsp_elf_symtab *t = &e->lazy->dynsym;
	size_t have, str_have, n;

	if (e->lazy->dynsym_done)
		return t;
	e->lazy->dynsym_done = true;
	t->dynamic = true;
	t->str = (const char *)rbsp_elf_span(e, e->dyn.strtab, &str_have);
	if (!e->dyn.strtab || !t->str)
		return t;
	t->str_n = str_have < e->dyn.strsz ? str_have : (size_t)e->dyn.strsz;
	t->sym = rbsp_elf_span(e, e->dyn.symtab, &have);
	if (!e->dyn.symtab || !t->sym)
		return t;
	n = rbsp_elf_hash_count(e);
	if (!n)
		n = dynsym_section(e);
	if (!n)
		n = rbsp_elf_gnu_hash_count(e);
	have /= sizeof(Elf64_Sym);
	t->n = n < have ? n : have;
	return t;
}

const struct rbsp_elf_symtab *rbsp_elf_static_symtab(const struct rbsp_elf *e)
{
	struct rbsp_elf_symtab *t = &e->lazy->symtab;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh, str;

	if (e->lazy->symtab_done)
		return t;
	e->lazy->symtab_done = true;
	while ((scn = elf_nextscn(e->elf, scn))) {
		const unsigned char *syms, *strs;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB ||
		    (sh.sh_flags & SHF_COMPRESSED))
			continue;
		if (!gelf_getshdr(elf_getscn(e->elf, sh.sh_link), &str) ||
		    str.sh_type != SHT_STRTAB || (str.sh_flags & SHF_COMPRESSED))
			continue;
		syms = rbsp_elf_at(e, sh.sh_offset, sh.sh_size);
		strs = rbsp_elf_at(e, str.sh_offset, str.sh_size);
		if (!syms || !strs)
			continue;
		t->sym = syms;
		t->n = (size_t)(sh.sh_size / sizeof(Elf64_Sym));
		t->str = (const char *)strs;
		t->str_n = (size_t)str.sh_size;
		break;
	}
	return t;
}

bool rbsp_elf_symtab_get(const struct rbsp_elf_symtab *t, size_t i, struct rbsp_symbol *out)
{
	Elf64_Sym sym;

	if (i >= t->n)
		return false;
	memcpy(&sym, t->sym + i * sizeof(sym), sizeof(sym));
	if (sym.st_name >= t->str_n || !memchr(t->str + sym.st_name, '\0', t->str_n - sym.st_name))
		return false;
	*out = (struct rbsp_symbol){
		.name = t->str + sym.st_name,
		.value = sym.st_value,
		.size = sym.st_size,
		.type = ELF64_ST_TYPE(sym.st_info),
		.bind = ELF64_ST_BIND(sym.st_info),
		.visibility = ELF64_ST_VISIBILITY(sym.st_other),
		.defined = sym.st_shndx != SHN_UNDEF,
		.dynamic = t->dynamic,
	};
	return true;
}

/* The separate debug file by build-id, opened at the first question. */
static const struct rbsp_elf *debug_file(const struct rbsp_elf *e)
{
	const char *id = e->info.build_id;
	struct rbsp_elf_lazy *l = e->lazy;
	char path[64 + sizeof(e->info.build_id)];

	if (l->debug_done)
		return l->debug;
	l->debug_done = true;
	if (!e->wants_debug || strlen(id) < 4)
		return NULL;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	l->debug = rbsp_elf_open_debug(path);
	if (l->debug && strcmp(l->debug->info.build_id, id) != 0) {
		rbsp_log(RBSP_LOG_DEBUG, "%s: build-id is not that of %s", path, e->name);
		rbsp_elf_close(l->debug);
		l->debug = NULL;
	}
	return l->debug;
}

/* .symtab of the image itself, else of its debug file. */
static const struct rbsp_elf_symtab *full_symtab(const struct rbsp_elf *e)
{
	const struct rbsp_elf_symtab *t = rbsp_elf_static_symtab(e);
	const struct rbsp_elf *debug = t->n ? NULL : debug_file(e);

	return debug ? rbsp_elf_static_symtab(debug) : t;
}

/* Names in .symtab may end with @VERSION or @@VERSION. */
static bool drop_version(const struct rbsp_elf *e, struct rbsp_symbol *sym)
{
	const char *at = strchr(sym->name, '@');

	if (at && at > sym->name)
		sym->name = rbsp_strtab_add(e->lazy->names, sym->name, (size_t)(at - sym->name));
	return sym->name;
}

static bool is_named(const char *symbol, const char *name, size_t len)
{
	return strncmp(symbol, name, len) == 0 && (symbol[len] == '\0' || symbol[len] == '@');
}

/* The first definition by name; one that other units see goes before a local one. */
static bool scan_symtab(const struct rbsp_elf_symtab *t, const char *name, struct rbsp_symbol *out)
{
	size_t len = strlen(name);
	bool found = false;

	for (size_t i = 1; i < t->n; i++) {
		struct rbsp_symbol sym;

		if (!rbsp_elf_symtab_get(t, i, &sym) || !sym.defined || sym.type == STT_SECTION ||
		    sym.type == STT_FILE || !is_named(sym.name, name, len))
			continue;
		if (found && sym.bind == STB_LOCAL)
			continue;
		*out = sym;
		found = true;
		if (sym.bind != STB_LOCAL)
			break;
	}
	return found;
}

bool rbsp_elf_symbol(const struct rbsp_elf *e, const char *name, struct rbsp_symbol *out)
{
	bool found;

	if (!*name)
		return false;
	found = e->dyn.gnu_hash ? rbsp_elf_gnu_hash_find(e, name, out)
				: scan_symtab(rbsp_elf_dynsym(e), name, out);
	return (found || scan_symtab(full_symtab(e), name, out)) && drop_version(e, out);
}

/* 0: worst. Which of several names of one address is shown. */
static int rank(const struct rbsp_symbol *s)
{
	return s->bind == STB_GLOBAL || s->bind == STB_GNU_UNIQUE ? 2 : s->bind == STB_WEAK ? 1 : 0;
}

/* By value, then the better one later; total, so that the choice among aliases is the same
 * everywhere. */
static int compare(const void *va, const void *vb)
{
	const struct rbsp_symbol *a = va, *b = vb;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	if (rank(a) != rank(b))
		return rank(a) - rank(b);
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return strcmp(b->name, a->name);
}

static size_t add_functions(const struct rbsp_elf *e, const struct rbsp_elf_symtab *t,
			    struct rbsp_symbol *to)
{
	size_t n = 0;

	for (size_t i = 1; i < t->n; i++) {
		struct rbsp_symbol sym;
		uint64_t end;

		if (rbsp_elf_symtab_get(t, i, &sym) && sym.defined && sym.size > 0 && *sym.name &&
		    (sym.type == STT_FUNC || sym.type == STT_GNU_IFUNC) &&
		    !__builtin_add_overflow(sym.value, sym.size, &end) && drop_version(e, &sym))
			to[n++] = sym;
	}
	return n;
}

static void link_outer(struct rbsp_elf_lazy *l)
{
	for (size_t i = 0; i < l->n_func; i++) {
		uint64_t end = l->func[i].value + l->func[i].size;
		uint32_t outer = i ? (uint32_t)(i - 1) : UINT32_MAX;

		while (outer != UINT32_MAX && l->func[outer].value + l->func[outer].size <= end)
			outer = l->func_outer[outer];
		l->func_outer[i] = outer;
	}
}

static void build_functions(const struct rbsp_elf *e)
{
	struct rbsp_elf_lazy *l = e->lazy;
	const struct rbsp_elf_symtab *dynamic = rbsp_elf_dynsym(e), *full = full_symtab(e);
	size_t cap = dynamic->n + full->n, n;

	l->funcs_done = true;
	if (cap == 0 || cap >= UINT32_MAX)
		return;
	l->func = calloc(cap, sizeof(*l->func));
	l->func_outer = calloc(cap, sizeof(*l->func_outer));
	if (!l->func || !l->func_outer)
		return;
	n = add_functions(e, dynamic, l->func);
	n += add_functions(e, full, l->func + n);
	qsort(l->func, n, sizeof(*l->func), compare);
	for (size_t i = 0; i < n; i++) {
		/* Most dynamic symbols are in .symtab too. */
		if (l->n_func == 0 || compare(&l->func[l->n_func - 1], &l->func[i]) != 0)
			l->func[l->n_func++] = l->func[i];
		else if (l->func[i].dynamic)
			l->func[l->n_func - 1] = l->func[i];
	}
	link_outer(l);
}

bool rbsp_elf_symbol_at(const struct rbsp_elf *e, uint64_t vaddr, struct rbsp_symbol *out)
{
	const struct rbsp_elf_lazy *l = e->lazy;
	size_t low = 0, high;
	uint32_t i;

	if (!l->funcs_done)
		build_functions(e);
	high = l->n_func;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->func[mid].value <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	/* The nearest start goes first; one that ends before vaddr leads to the next that reaches
	 * further. */
	i = low ? (uint32_t)(low - 1) : UINT32_MAX;
	while (i != UINT32_MAX && l->func[i].value + l->func[i].size <= vaddr)
		i = l->func_outer[i];
	if (i == UINT32_MAX)
		return false;
	*out = l->func[i];
	return true;
}
