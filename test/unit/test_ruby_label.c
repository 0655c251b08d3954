/* Tests of labels: the same text on every row of the layout table, and what each Ruby's
 * caller_locations says. */
#include <check.h>
#include <elf.h>

#include "ruby_heap.h"

static rbsp_addr iseq(struct heap *h, enum rbsp_iseq_type type, const char *label, rbsp_addr parent)
{
	return heap_iseq(h, &(struct heap_iseq){ .type = type, .label = label, .parent = parent });
}

static rbsp_addr push(struct heap *h, uint64_t flags, rbsp_addr q, rbsp_addr me, rbsp_addr parent)
{
	return heap_push(h, &(struct heap_frame){ .flags = flags,
						  .iseq = q,
						  .pc = heap_pc(h, q, 1),
						  .me = me,
						  .parent = parent });
}

/* A frame of method `bar` of a class. @return its ep; *q: its iseq */
static rbsp_addr push_bar(struct heap *h, rbsp_addr klass, rbsp_addr *q)
{
	*q = iseq(h, RBSP_ISEQ_METHOD, "bar", 0);
	return heap_push_method(h, *q, heap_method(h, 0, klass, "bar", 0));
}

static void method(struct heap *h)
{
	rbsp_addr q;

	push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);
}

static void singleton_method(struct heap *h)
{
	rbsp_addr q, foo = heap_class(h, RBSP_T_CLASS, "Foo");

	push_bar(h, heap_singleton(h, foo, h->klass), &q);
}

static void module_function(struct heap *h)
{
	rbsp_addr q, m = heap_class(h, RBSP_T_MODULE, "Mod");

	push_bar(h, heap_singleton(h, m, h->module), &q);
}

static void block(struct heap *h)
{
	rbsp_addr q, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);

	heap_push_cfunc(h, heap_method(h, RBSP_METHOD_CFUNC, heap_class(h, RBSP_T_CLASS, "Array"),
				       "each", 1));
	heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block in bar", q), ep);
}

static void nested_block(struct heap *h)
{
	rbsp_addr q, b, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);

	b = iseq(h, RBSP_ISEQ_BLOCK, "block in bar", q);
	ep = heap_push_block(h, b, ep);
	heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block (2 levels) in bar", b), ep);
}

static void defined(struct heap *h, bool with_block)
{
	rbsp_addr foo = heap_class(h, RBSP_T_CLASS, "Foo");
	rbsp_addr body = iseq(h, RBSP_ISEQ_CLASS, "<class:Foo>", 0);
	rbsp_addr q = iseq(h, RBSP_ISEQ_BLOCK, "block in <class:Foo>", body);
	rbsp_addr class_env = heap_alloc(h, 48) + 16, ep;

	heap_put(h, class_env, RBSP_MAGIC_CLASS | RBSP_ENV_LOCAL);
	ep = push(h, RBSP_MAGIC_BLOCK | 0x40, q, heap_method(h, RBSP_METHOD_BMETHOD, foo, "dm", 0),
		  class_env);
	if (with_block)
		heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block (2 levels) in <class:Foo>", q),
				ep);
}

static void define_method(struct heap *h)
{
	defined(h, false);
}

static void block_in_define_method(struct heap *h)
{
	defined(h, true);
}

static void class_body(struct heap *h)
{
	push(h, RBSP_MAGIC_TOP | RBSP_ENV_LOCAL, iseq(h, RBSP_ISEQ_TOP, "<top (required)>", 0), 0,
	     0);
	push(h, RBSP_MAGIC_CLASS | RBSP_ENV_LOCAL, iseq(h, RBSP_ISEQ_CLASS, "<class:Foo>", 0),
	     heap_imemo(h, RBSP_IMEMO_CREF, 0, 0, 0, 0), 0);
}

static void main_block(struct heap *h)
{
	rbsp_addr q = iseq(h, RBSP_ISEQ_MAIN, "<main>", 0);
	rbsp_addr ep = push(h, RBSP_MAGIC_EVAL | RBSP_ENV_LOCAL, q, 0, 0);

	heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block in <main>", q), ep);
}

static void rescue(struct heap *h)
{
	rbsp_addr q, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);

	push(h, RBSP_MAGIC_RESCUE, iseq(h, RBSP_ISEQ_RESCUE, "rescue in bar", q), 0, ep);
}

static void rescue_in_rescue(struct heap *h)
{
	rbsp_addr q, r, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);

	r = iseq(h, RBSP_ISEQ_RESCUE, "rescue in bar", q);
	ep = push(h, RBSP_MAGIC_RESCUE, r, 0, ep);
	push(h, RBSP_MAGIC_RESCUE, iseq(h, RBSP_ISEQ_ENSURE, "ensure in rescue in bar", r), 0, ep);
}

static void eval(struct heap *h)
{
	rbsp_addr q, e, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);
	const char *label = h->l.labels.qualified ? "<compiled>" : "bar";

	e = iseq(h, RBSP_ISEQ_EVAL, label, q);
	ep = push(h, RBSP_MAGIC_EVAL, e, heap_imemo(h, RBSP_IMEMO_CREF, 0, 0, 0, 0), ep);
	heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block in bar", e), ep);
}

static void ifunc(struct heap *h)
{
	rbsp_addr q, ep = push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);
	struct heap_frame f = { .flags = RBSP_MAGIC_IFUNC | RBSP_FRAME_CFRAME | RBSP_FRAME_FINISH,
				.parent = ep };

	f.iseq = heap_imemo(h, RBSP_IMEMO_IFUNC, 0, 0xcafe, 0, 0);
	heap_push(h, &f);
	heap_push_cfunc(h, heap_method(h, RBSP_METHOD_CFUNC, heap_class(h, RBSP_T_MODULE, "Kernel"),
				       "puts", 2));
}

static void anonymous_class(struct heap *h)
{
	rbsp_addr q;

	push_bar(h, heap_class(h, RBSP_T_CLASS, NULL), &q);
}

static void anonymous_module(struct heap *h)
{
	rbsp_addr q;

	push_bar(h, heap_class(h, RBSP_T_MODULE, NULL), &q);
}

static void refinement(struct heap *h)
{
	rbsp_addr q, m = heap_class(h, RBSP_T_MODULE, NULL);

	heap_put(h, m, RBSP_T_MODULE | h->l.klass.refinement_flag);
	push_bar(h, m, &q);
}

static void object_singleton(struct heap *h)
{
	rbsp_addr q, foo = heap_class(h, RBSP_T_CLASS, "Foo");

	push_bar(h, heap_singleton(h, heap_instance(h, foo), foo), &q);
}

static void included(struct heap *h)
{
	rbsp_addr q, m = heap_class(h, RBSP_T_MODULE, "Mix"), i = heap_class(h, RBSP_T_CLASS, NULL);

	heap_put(h, i, RBSP_T_ICLASS);
	heap_put(h, i + 8, m);
	push_bar(h, i, &q);
}

static void escaped(struct heap *h)
{
	rbsp_addr q = iseq(h, RBSP_ISEQ_METHOD, "bar", 0), foo = heap_class(h, RBSP_T_CLASS, "Foo");
	struct heap_frame f = { .flags = RBSP_MAGIC_METHOD | RBSP_ENV_LOCAL | 0x4,
				.iseq = q,
				.escaped = true };
	rbsp_addr ep;

	f.pc = heap_pc(h, q, 0);
	f.me = heap_method(h, 0, foo, "bar", 0);
	ep = heap_push(h, &f);
	heap_push_block(h, iseq(h, RBSP_ISEQ_BLOCK, "block in bar", q), ep);
}

static void svar(struct heap *h)
{
	rbsp_addr q = iseq(h, RBSP_ISEQ_METHOD, "bar", 0), foo = heap_class(h, RBSP_T_CLASS, "Foo");
	rbsp_addr me = heap_method(h, 0, foo, "bar", 0);

	heap_push_method(h, q, heap_imemo(h, RBSP_IMEMO_SVAR, me, 0, 0, 0));
}

static void nul_in_name(struct heap *h)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr q;

	push_bar(h, heap_class(h, RBSP_T_CLASS, "Foo"), &q);
	heap_put(h, heap_get(h, q + l->iseq.body) + l->body.label, heap_string(h, "b\0r", 3));
}

static void long_name(struct heap *h)
{
	const struct rbsp_layout *l = &h->l;
	rbsp_addr q;

	push_bar(h, heap_class(h, RBSP_T_CLASS, "A::ClassPath::ThatIs::NotEmbedded"), &q);
	heap_put(h, heap_get(h, q + l->iseq.body) + l->body.label,
		 heap_text(h, "a_name_that_is_not_embedded_either"));
}

static const struct {
	const char *name;
	void (*build)(struct heap *h);
	const char *text;      /* by default, newest first */
	const char *bare;      /* --labels=ruby up to 3.3 */
	const char *qualified; /* 3.4+ */
} cases[] = {
	{ "method", method, "Foo#bar", "bar", "Foo#bar" },
	{ "method of a class", singleton_method, "Foo.bar", "bar", "Foo.bar" },
	{ "module function", module_function, "Mod.bar", "bar", "Mod.bar" },
	{ "block under a C method", block, "block in Foo#bar;Array#each;Foo#bar",
	  "block in bar;each;bar", "block in Foo#bar;Array#each;Foo#bar" },
	{ "block in a block", nested_block, "block (2 levels) in Foo#bar;block in Foo#bar;Foo#bar",
	  "block (2 levels) in bar;block in bar;bar",
	  "block (2 levels) in Foo#bar;block in Foo#bar;Foo#bar" },
	{ "define_method has the method's name", define_method, "Foo#dm", "block in <class:Foo>",
	  "block in <class:Foo>" },
	{ "block in define_method", block_in_define_method, "block in Foo#dm;Foo#dm",
	  "block (2 levels) in <class:Foo>;block in <class:Foo>",
	  "block (2 levels) in <class:Foo>;block in <class:Foo>" },
	{ "class body in a required file", class_body, "<class:Foo>;<top (required)>",
	  "<class:Foo>;<top (required)>", "<class:Foo>;<top (required)>" },
	{ "block at top level", main_block, "block in <main>;<main>", "block in <main>;<main>",
	  "block in <main>;<main>" },
	{ "a rescue body is its method", rescue, "Foo#bar", "rescue in bar;bar", "Foo#bar" },
	{ "so is an ensure body in a rescue body", rescue_in_rescue, "Foo#bar",
	  "ensure in rescue in bar;rescue in bar;bar", "Foo#bar" },
	{ "eval has the label around it", eval, "block in Foo#bar;Foo#bar;Foo#bar",
	  "block in bar;bar;bar", "block in Foo#bar;Foo#bar;Foo#bar" },
	{ "a block written in C is not shown", ifunc, "Kernel#puts;Foo#bar", "puts;bar",
	  "Kernel#puts;Foo#bar" },
	{ "class without a name", anonymous_class, "#<Class>#bar", "bar", "bar" },
	{ "module without a name", anonymous_module, "#<Module>#bar", "bar", "bar" },
	{ "refinement", refinement, "#<Refinement>#bar", "bar", "bar" },
	{ "method of one object", object_singleton, "#<Foo>.bar", "bar", "bar" },
	{ "method of an included module", included, "Mix#bar", "bar", "Mix#bar" },
	{ "environments on the heap", escaped, "block in Foo#bar;Foo#bar", "block in bar;bar",
	  "block in Foo#bar;Foo#bar" },
	{ "a method entry behind an svar", svar, "Foo#bar", "bar", "Foo#bar" },
	{ "a NUL in a name", nul_in_name, "Foo#b\xef\xbf\xbdr", "b\xef\xbf\xbdr",
	  "Foo#b\xef\xbf\xbdr" },
	{ "long names", long_name,
	  "A::ClassPath::ThatIs::NotEmbedded#a_name_that_is_not_embedded_either",
	  "a_name_that_is_not_embedded_either",
	  "A::ClassPath::ThatIs::NotEmbedded#a_name_that_is_not_embedded_either" },
};

START_TEST(label)
{
	size_t n;
	const struct rbsp_layout *rows = rbsp_layout_rows(&n);
	struct rbsp_ruby_stack stack = { 0 };

	for (size_t row = 0; row < n; row++) {
		const char *ruby =
			rows[row].labels.qualified ? cases[_i].qualified : cases[_i].bare;
		const char *got;
		struct heap h;

		heap_init(&h, &rows[row]);
		cases[_i].build(&h);
		got = heap_labels(&h, &stack);
		ck_assert_msg(!strcmp(got, cases[_i].text), "%s: %s: %s", rows[row].source,
			      cases[_i].name, got);
		ck_assert_msg(!stack.unread && !stack.bare_names, "%s", cases[_i].name);
		heap_decoder(&h, RBSP_LABELS_RUBY);
		got = heap_labels(&h, &stack);
		ck_assert_msg(!strcmp(got, ruby), "%s, as Ruby says: %s: %s", rows[row].source,
			      cases[_i].name, got);
		heap_fini(&h);
	}
	rbsp_ruby_stack_fini(&stack);
}
END_TEST

static const struct {
	unsigned levels;
	const char *text;
} levels[] = { { 0, "" },
	       { 1, "block in " },
	       { 2, "block (2 levels) in " },
	       { 70, "block (70 levels) in " } };

START_TEST(levels_of_blocks)
{
	struct rbsp_buf b = { 0 };

	rbsp_label_levels(&b, levels[_i].levels);
	ck_assert_str_eq(rbsp_buf_text(&b), levels[_i].text);
	rbsp_buf_fini(&b);
}
END_TEST

START_TEST(a_name_that_is_cut)
{
	struct heap h;
	struct rbsp_ruby_stack stack = { 0 };
	char name[20000];
	rbsp_addr q;

	heap_init(&h, rbsp_layout_find(RBSP_RUBY(3, 3, 0), EM_X86_64));
	memset(name, 'n', sizeof(name));
	push_bar(&h, heap_class(&h, RBSP_T_CLASS, "Foo"), &q);
	heap_put(&h, heap_get(&h, q + h.l.iseq.body) + h.l.body.label,
		 heap_string(&h, name, sizeof(name)));
	ck_assert_uint_eq(strlen(heap_labels(&h, &stack)), strlen("Foo#") + RBSP_STRING_MAX);
	heap_fini(&h);
	rbsp_ruby_stack_fini(&stack);
}
END_TEST

/* Without the ID table there are no names of C functions, and up to 3.1 no class paths. */
START_TEST(without_symbols)
{
	static const struct {
		uint32_t version;
		const char *text;
		bool bare;
	} rows[] = {
		{ RBSP_RUBY(2, 7, 0), "block in bar;<unknown cfunc>;bar", true },
		{ RBSP_RUBY(3, 2, 0), "block in bar;<unknown cfunc>;bar", true },
		{ RBSP_RUBY(3, 3, 0), "block in Foo#bar;Array#<unknown cfunc>;Foo#bar", false },
	};
	struct heap h;
	struct rbsp_ruby_stack stack = { 0 };

	heap_init(&h, rbsp_layout_find(rows[_i].version, EM_X86_64));
	h.symbols = 0;
	heap_decoder(&h, RBSP_LABELS_DEFAULT);
	h.symbols = heap_alloc(&h, 64);
	block(&h);
	ck_assert_str_eq(heap_labels(&h, &stack), rows[_i].text);
	ck_assert_int_eq(stack.bare_names, rows[_i].bare);
	heap_fini(&h);
	rbsp_ruby_stack_fini(&stack);
}
END_TEST

START_TEST(owner_path_and_line)
{
	struct heap h;
	struct rbsp_ruby_stack s = { 0 };
	const struct rbsp_frame *f;

	heap_init(&h, rbsp_layout_find(RBSP_RUBY(3, 1, 0), EM_X86_64));
	block(&h);
	heap_labels(&h, &s);
	ck_assert_uint_eq(s.n, 3);
	f = rbsp_frames_get(h.frames, s.frame[0].id);
	ck_assert_int_eq(f->kind, RBSP_FRAME_RUBY);
	ck_assert_str_eq(f->owner, "Foo");
	ck_assert_str_eq(f->path, "/app.rb");
	ck_assert_uint_eq(f->line, 13);
	ck_assert(s.frame[0].finish && !s.frame[0].cfunc);
	f = rbsp_frames_get(h.frames, s.frame[1].id);
	ck_assert_int_eq(f->kind, RBSP_FRAME_CFUNC);
	ck_assert_str_eq(f->owner, "Array");
	ck_assert_ptr_null(f->path);
	ck_assert_uint_eq(f->line, 0);
	ck_assert(s.frame[1].cfunc && s.frame[1].func == 1 && !s.frame[1].finish);
	heap_fini(&h);
	rbsp_ruby_stack_fini(&s);
}
END_TEST

Suite *suite_ruby_label(void);
Suite *suite_ruby_label(void)
{
	Suite *s = suite_create("ruby_label");
	TCase *tc = tcase_create("labels");

	tcase_add_loop_test(tc, label, 0, RBSP_COUNT_OF(cases));
	tcase_add_loop_test(tc, levels_of_blocks, 0, RBSP_COUNT_OF(levels));
	tcase_add_test(tc, a_name_that_is_cut);
	tcase_add_loop_test(tc, without_symbols, 0, 3);
	tcase_add_test(tc, owner_path_and_line);
	suite_add_tcase(s, tc);
	return s;
}
