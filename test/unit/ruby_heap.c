/* A Ruby without a process: objects laid out by a row of the layout table. */
#include "ruby_heap.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define SYMBOL_UNIT 512 /* serials in one Array of the ID table */

static struct heap *heap_of(struct rbsp_target *t)
{
	return (struct heap *)t; /* its first member */
}

static enum rbsp_status heap_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	struct heap *h = heap_of(t);
	size_t all = 0;
	enum rbsp_status st = RBSP_OK;

	h->reads++;
	for (size_t i = 0; i < n && st == RBSP_OK; i++) {
		if (v[i].addr < HEAP_BASE || v[i].n > HEAP_BYTES ||
		    v[i].addr - HEAP_BASE > HEAP_BYTES - v[i].n) {
			st = RBSP_E_FAULT;
			break;
		}
		memcpy(v[i].to, h->bytes + (v[i].addr - HEAP_BASE), v[i].n);
		all += v[i].n;
	}
	if (done)
		*done = all;
	return st;
}

static const struct rbsp_target_ops heap_ops = { .readv = heap_readv };

rbsp_addr heap_alloc(struct heap *h, size_t n)
{
	rbsp_addr at = HEAP_BASE + h->used;

	h->used += (n + 15) & ~(size_t)15;
	ck_assert_uint_le(h->used, HEAP_BYTES);
	return at;
}

static unsigned char *byte_at(struct heap *h, rbsp_addr at)
{
	ck_assert(at >= HEAP_BASE && at - HEAP_BASE < HEAP_BYTES - 8);
	return h->bytes + (at - HEAP_BASE);
}

void heap_put(struct heap *h, rbsp_addr at, uint64_t word)
{
	memcpy(byte_at(h, at), &word, sizeof(word));
}

void heap_put32(struct heap *h, rbsp_addr at, uint32_t word)
{
	memcpy(byte_at(h, at), &word, sizeof(word));
}

uint64_t heap_get(struct heap *h, rbsp_addr at)
{
	uint64_t word;

	memcpy(&word, byte_at(h, at), sizeof(word));
	return word;
}

rbsp_addr heap_string(struct heap *h, const char *bytes, size_t n)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr s = heap_alloc(h, 40), data;

	if (!l->str.len_field && n <= 23) {
		heap_put(h, s, RBSP_T_STRING | n << l->str.len_shift);
		memcpy(byte_at(h, s + l->str.data), bytes, n);
		return s;
	}
	heap_put(h, s + 16, n);
	if (l->str.len_field && n <= 15) {
		heap_put(h, s, RBSP_T_STRING);
		memcpy(byte_at(h, s + l->str.data), bytes, n);
		return s;
	}
	data = heap_alloc(h, n + 1);
	heap_put(h, s, RBSP_T_STRING | RBSP_FL_USER1);
	heap_put(h, s + 24, data);
	memcpy(byte_at(h, data), bytes, n);
	return s;
}

rbsp_addr heap_text(struct heap *h, const char *text)
{
	return heap_string(h, text, strlen(text));
}

rbsp_addr heap_array(struct heap *h, const uint64_t *v, size_t n)
{
	rbsp_addr a = heap_alloc(h, 40), data = a + 16;

	if (n <= 2) {
		heap_put(h, a, RBSP_T_ARRAY | RBSP_FL_USER1 | n << 15);
	} else {
		data = heap_alloc(h, n * 8);
		heap_put(h, a, RBSP_T_ARRAY);
		heap_put(h, a + 16, n);
		heap_put(h, a + 32, data);
	}
	for (size_t i = 0; i < n; i++)
		heap_put(h, data + i * 8, v[i]);
	return a;
}

/* Serials begin behind the operators, all in the first unit. */
uint64_t heap_id(struct heap *h, const char *name)
{
	uint64_t serial, i;

	for (i = 0; i < h->n_ids; i++)
		if (!strcmp(h->id_name[i], name))
			break;
	serial = h->l.symbols.last_op_id + 1 + i;
	if (i == h->n_ids) {
		ck_assert_uint_lt(i, HEAP_IDS);
		h->id_name[h->n_ids++] = name;
		heap_put(h, h->ids + serial * 16, heap_text(h, name));
		heap_put32(h, h->symbols + h->l.symbols.first_word, (uint32_t)serial);
	}
	return serial << 4;
}

static void init_symbols(struct heap *h)
{
	uint64_t unit[2 * SYMBOL_UNIT] = { 0 };
	rbsp_addr array;

	h->symbols = heap_alloc(h, 40);
	array = heap_array(h, unit, RBSP_COUNT_OF(unit));
	h->ids = heap_get(h, array + 32);
	heap_put(h, h->symbols + h->l.symbols.ids, heap_array(h, &array, 1));
}

/* One internal ivar of a class, in a table without bins (2.7 to 3.1). */
static void put_ivar(struct heap *h, rbsp_addr klass, const char *name, uint64_t value)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr ext = heap_get(h, klass + l->klass.ext),
		  table = heap_get(h, ext + l->klass.iv_tbl);
	uint64_t n;

	if (!table) {
		table = heap_alloc(h, 56);
		heap_put(h, ext + l->klass.iv_tbl, table);
		heap_put(h, table + 48, heap_alloc(h, 16 * 24));
		heap_put(h, heap_get(h, table + 48), UINT64_MAX); /* a deleted entry comes first */
		heap_put(h, table + 40, 1);
	}
	n = heap_get(h, table + 40);
	heap_put(h, table + 40, n + 1);
	heap_put(h, heap_get(h, table + 48) + n * 24, 1);
	heap_put(h, heap_get(h, table + 48) + n * 24 + 8, heap_id(h, name));
	heap_put(h, heap_get(h, table + 48) + n * 24 + 16, value);
}

/* A constant of Object (3.2 finds class paths by them). */
static void put_constant(struct heap *h, const char *name, uint64_t value)
{
	rbsp_addr table = heap_get(h, h->object + h->l.klass.ext + h->l.klass.const_tbl), items,
		  entry;
	uint32_t n;

	if (!table) {
		table = heap_alloc(h, 24);
		heap_put(h, h->object + h->l.klass.ext + h->l.klass.const_tbl, table);
		heap_put(h, table + 16, heap_alloc(h, 32 * 16));
		heap_put32(h, table, 32);
	}
	items = heap_get(h, table + 16);
	for (n = 0; heap_get(h, items + n * 16); n++)
		;
	ck_assert_uint_lt(n, 32);
	entry = heap_alloc(h, 32);
	heap_put(h, entry + 8, value);
	heap_put(h, items + n * 16, heap_id(h, name) >> 4);
	heap_put(h, items + n * 16 + 8, entry);
}

void heap_name(struct heap *h, rbsp_addr klass, const char *path)
{
	const struct rbsp_layout *l = &h->l;

	if (l->klass.classpath != RBSP_NONE) {
		heap_put(h, klass + l->klass.ext + l->klass.classpath, heap_text(h, path));
		*byte_at(h, klass + l->klass.ext + l->klass.permanent) |= 1;
	} else if (l->klass.iv_tbl != RBSP_NONE) {
		put_ivar(h, klass, "__classpath__", heap_text(h, path));
	} else {
		put_constant(h, path, klass);
	}
}

rbsp_addr heap_class(struct heap *h, unsigned type, const char *path)
{
	rbsp_addr k = heap_alloc(h, 256);

	heap_put(h, k, type);
	heap_put(h, k + 8, type == RBSP_T_CLASS ? h->klass : h->module);
	if (!h->l.klass.ext_embedded)
		heap_put(h, k + h->l.klass.ext, heap_alloc(h, 128));
	heap_put(h, k + h->l.klass.super, h->object);
	if (path)
		heap_name(h, k, path);
	return k;
}

rbsp_addr heap_singleton(struct heap *h, rbsp_addr object, rbsp_addr super)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr k = heap_class(h, RBSP_T_CLASS, NULL);

	heap_put(h, k, RBSP_T_CLASS | l->klass.singleton_flag);
	heap_put(h, k + l->klass.super, super);
	heap_put(h, object + 8, k);
	if (l->klass.attached != RBSP_NONE) {
		heap_put(h, k + l->klass.ext + l->klass.attached, object);
	} else if (l->klass.iv_tbl != RBSP_NONE) {
		put_ivar(h, k, "__attached__", object);
	} else {
		rbsp_addr ivars = heap_alloc(h, 32);

		heap_put(h, ivars, object);
		heap_put(h, k + l->klass.ext + l->klass.iv_ptr, ivars);
	}
	return k;
}

rbsp_addr heap_instance(struct heap *h, rbsp_addr klass)
{
	rbsp_addr o = heap_alloc(h, 40);

	heap_put(h, o, RBSP_T_OBJECT);
	heap_put(h, o + 8, klass);
	return o;
}

rbsp_addr heap_imemo(struct heap *h, int kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	rbsp_addr m = heap_alloc(h, 40);
	const uint64_t word[] = { RBSP_T_IMEMO | (uint64_t)kind << 12, a, b, c, d };

	for (size_t i = 0; i < RBSP_COUNT_OF(word); i++)
		heap_put(h, m + i * 8, word[i]);
	return m;
}

/* Every instruction is one word long and stands on a line of its own. */
static rbsp_addr put_lines(struct heap *h, rbsp_addr body, uint32_t first)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr insns = heap_alloc(h, HEAP_INSNS * l->body.insn_stride), succ = heap_alloc(h, 48);

	for (unsigned i = 0; i < HEAP_INSNS; i++) {
		heap_put32(h, insns + i * l->body.insn_stride, first + i);
		heap_put(h, succ + i / 9 * 8,
			 heap_get(h, succ + i / 9 * 8) | (uint64_t)(i + 1) << (7 * (i % 9)));
	}
	heap_put(h, body + l->body.insns_body, insns);
	heap_put32(h, body + l->body.insns_size, HEAP_INSNS);
	heap_put(h, body + l->body.succ_table, succ);
	return insns;
}

rbsp_addr heap_iseq(struct heap *h, const struct heap_iseq *q)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr iseq = heap_alloc(h, 40), body = heap_alloc(h, 360), local = iseq;
	uint64_t path[2] = { heap_text(h, q->path ? q->path : "/app.rb"), l->qnil };
	uint32_t line = q->line ? q->line : 10;

	heap_put(h, iseq, RBSP_T_IMEMO | RBSP_IMEMO_ISEQ << 12);
	heap_put(h, iseq + l->iseq.body, body);
	heap_put32(h, body + l->body.type, q->type);
	heap_put32(h, body + l->body.size, HEAP_INSNS);
	heap_put(h, body + l->body.encoded, heap_alloc(h, HEAP_INSNS * 8));
	heap_put(h, body + l->body.pathobj, heap_array(h, path, 2));
	heap_put(h, body + l->body.label, heap_text(h, q->label));
	heap_put(h, body + l->body.first_lineno, l->body.first_lineno_value ? line * 2 + 1 : line);
	put_lines(h, body, line);
	if (q->parent && q->type != RBSP_ISEQ_METHOD && q->type != RBSP_ISEQ_CLASS)
		local = heap_get(h, heap_get(h, q->parent + l->iseq.body) + l->body.local);
	heap_put(h, body + l->body.parent, q->parent);
	heap_put(h, body + l->body.local, local);
	return iseq;
}

rbsp_addr heap_pc(struct heap *h, rbsp_addr iseq, unsigned i)
{
	return heap_get(h, heap_get(h, iseq + h->l.iseq.body) + h->l.body.encoded) + (i + 1) * 8;
}

rbsp_addr heap_method(struct heap *h, int type, rbsp_addr owner, const char *name, rbsp_addr func)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr m = heap_imemo(h, RBSP_IMEMO_MENT, 0, 0, 0, 0), def = heap_alloc(h, l->def.size);

	heap_put(h, m + l->me.def, def);
	heap_put(h, m + l->me.owner, owner);
	heap_put(h, def, (uint64_t)type);
	heap_put(h, def + l->def.cfunc, func);
	heap_put(h, def + l->def.original_id, heap_id(h, name));
	return m;
}

rbsp_addr heap_push(struct heap *h, const struct heap_frame *f)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr ep = f->escaped ? heap_alloc(h, 48) + 16 : h->sp + 16;

	heap_put(h, ep - 16, f->me);
	heap_put(h, ep - 8, f->flags & RBSP_ENV_LOCAL ? 0 : f->parent | 1);
	heap_put(h, ep, f->flags);
	h->sp += 24;
	h->cfp -= l->cfp.size;
	ck_assert_uint_lt(h->sp, h->cfp);
	for (unsigned i = 0; i < l->cfp.size; i += 8)
		heap_put(h, h->cfp + i, 0);
	heap_put(h, h->cfp + l->cfp.pc, f->pc);
	heap_put(h, h->cfp + l->cfp.sp, h->sp);
	heap_put(h, h->cfp + l->cfp.iseq, f->iseq);
	heap_put(h, h->cfp + l->cfp.ep, ep);
	return ep;
}

rbsp_addr heap_push_method(struct heap *h, rbsp_addr iseq, rbsp_addr me)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_METHOD | RBSP_ENV_LOCAL,
				.iseq = iseq,
				.pc = heap_pc(h, iseq, 2),
				.me = me };

	return heap_push(h, &f);
}

rbsp_addr heap_push_block(struct heap *h, rbsp_addr iseq, rbsp_addr parent)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_BLOCK | RBSP_FRAME_FINISH,
				.iseq = iseq,
				.pc = heap_pc(h, iseq, 3),
				.parent = parent };

	return heap_push(h, &f);
}

rbsp_addr heap_push_cfunc(struct heap *h, rbsp_addr me)
{
	struct heap_frame f = { .flags = RBSP_MAGIC_CFUNC | RBSP_FRAME_CFRAME | RBSP_ENV_LOCAL,
				.me = me };

	return heap_push(h, &f);
}

void heap_pop(struct heap *h)
{
	h->cfp += h->l.cfp.size;
	h->sp = heap_get(h, h->cfp + h->l.cfp.sp);
}

static void init_thread(struct heap *h)
{
	const struct rbsp_layout *l = &h->l;
	struct heap_frame dummy = { .flags = RBSP_MAGIC_DUMMY | RBSP_FRAME_FINISH |
					     RBSP_FRAME_CFRAME | RBSP_ENV_LOCAL };

	h->vm = heap_alloc(h, 512);
	h->ractor = heap_alloc(h, 1024);
	h->th = heap_alloc(h, 1024);
	h->nt = heap_alloc(h, 128);
	h->ec = heap_alloc(h, 512);
	h->stack = heap_alloc(h, HEAP_STACK_WORDS * 8);
	h->gc = heap_alloc(h, 8);
	h->gc_count = heap_alloc(h, 8);
	h->slot = h->th + l->th.ec;
	h->sched = l->ractor.gvl_owner == RBSP_NONE ? h->vm + l->vm.gvl_owner
						    : h->ractor + l->ractor.gvl_owner;
	heap_put(h, h->slot, h->ec);
	heap_put(h, h->th + l->th.vm, h->vm);
	if (l->th.ractor != RBSP_NONE)
		heap_put(h, h->th + l->th.ractor, h->ractor);
	if (l->th.nt != RBSP_NONE)
		heap_put(h, h->th + l->th.nt, h->nt);
	heap_put(h, h->ec + l->ec.vm_stack, h->stack);
	heap_put(h, h->ec + l->ec.vm_stack_size, HEAP_STACK_WORDS);
	heap_put(h, h->ec + l->ec.thread, h->th);
	heap_put(h, h->gc_count, 7);
	h->sp = h->stack;
	/* Ruby rounds the stack so that a whole number of frames ends at its end. */
	h->cfp = h->stack + HEAP_STACK_WORDS * 8;
	heap_push(h, &dummy);
}

void heap_init(struct heap *h, const struct rbsp_layout *l)
{
	*h = (struct heap){ .target = { .ops = &heap_ops, .pid = 1 }, .l = *l, .used = 4096 };
	h->bytes = calloc(1, HEAP_BYTES);
	h->cap.data = malloc(HEAP_BYTES);
	h->frames = rbsp_frames_new();
	ck_assert(h->bytes && h->cap.data && h->frames);
	init_symbols(h);
	h->klass = heap_class(h, RBSP_T_CLASS, NULL);
	heap_put(h, h->klass + 8, h->klass);
	h->object = heap_class(h, RBSP_T_CLASS, NULL);
	h->module = heap_class(h, RBSP_T_CLASS, NULL);
	heap_name(h, h->klass, "Class");
	heap_name(h, h->object, "Object");
	heap_name(h, h->module, "Module");
	init_thread(h);
	heap_decoder(h, RBSP_LABELS_DEFAULT);
}

void heap_fini(struct heap *h)
{
	rbsp_ruby_free(h->ruby);
	rbsp_frames_free(h->frames);
	free(h->cap.data);
	free(h->bytes);
}

void heap_decoder(struct heap *h, enum rbsp_labels labels)
{
	struct rbsp_ruby_addrs addrs = {
		h->vm, h->ractor, h->symbols, h->object, h->gc, h->gc_count
	};
	struct rbsp_ruby_options opt = { labels, true };

	rbsp_ruby_free(h->ruby);
	ck_assert_int_eq(rbsp_ruby_new(&h->target, &h->l, &addrs, &opt, h->frames, &h->ruby, NULL),
			 RBSP_OK);
}

static void take(struct heap *h, enum rbsp_range_id id, rbsp_addr at, size_t n)
{
	struct rbsp_capture *c = &h->cap;

	c->range[id] = (struct rbsp_range){ at, c->size, (uint32_t)n };
	memcpy(c->data + c->size, byte_at(h, at), n);
	c->size += (uint32_t)((n + 7) & ~(size_t)7);
}

void heap_capture(struct heap *h)
{
	struct rbsp_capture_spec spec = { 0 };
	rbsp_addr end = h->stack + HEAP_STACK_WORDS * 8;

	rbsp_layout_spec(&h->l, &spec);
	heap_put(h, h->ec + h->l.ec.cfp, h->cfp);
	memset(h->cap.range, 0, sizeof(h->cap.range));
	h->cap.size = 0;
	h->cap.flags = RBSP_CAP_STOPPED;
	h->cap.time_ns += UINT64_C(10000000000);
	take(h, RBSP_RANGE_SLOT, h->slot, 8);
	take(h, RBSP_RANGE_EC, h->ec, spec.ec_size);
	take(h, RBSP_RANGE_TH, h->th, spec.th_size);
	if (spec.th_nt)
		take(h, RBSP_RANGE_NT, h->nt, spec.nt_size);
	take(h, RBSP_RANGE_SCHED, h->sched, 32);
	take(h, RBSP_RANGE_GC, h->gc, 4);
	take(h, RBSP_RANGE_GC_COUNT, h->gc_count, 8);
	take(h, RBSP_RANGE_CFP, h->cfp, end - h->cfp);
	take(h, RBSP_RANGE_VALUES, h->stack, h->sp - h->stack + 64);
}

const char *heap_labels(struct heap *h, struct rbsp_ruby_stack *out)
{
	static char text[8192];
	size_t n = 0;

	text[0] = 0;
	heap_capture(h);
	ck_assert_int_eq(rbsp_ruby_check(h->ruby, &h->cap, 0), RBSP_OK);
	ck_assert_int_eq(rbsp_ruby_decode(h->ruby, &h->cap, out), RBSP_OK);
	for (size_t i = 0; i < out->n && n < sizeof(text); i++)
		if (out->frame[i].id)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? ";" : "",
					      rbsp_frames_get(h->frames, out->frame[i].id)->name);
	return text;
}
