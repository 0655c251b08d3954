/* The layout table: one row for each run of versions that agree, and the sources of its numbers. */
#include "ruby/layout.h"

#include <elf.h>
#include <string.h>

/*
 * Sources, as the rows name them: "run": proved on live processes of that minor version; "dwarf":
 * debug information of an own build; "headers": offsetof() compiled over that version's internal
 * headers; "bindings": other readers' tables. Numbers that both machines share stand in a macro,
 * named after the first version that has them.
 */
#define N RBSP_NONE

/* A field stands beside its neighbours, so that rows can be compared by eye. */
/* clang-format off */

/* vm_core.h: rb_execution_context_t. */
#define EC_HEAD .vm_stack = 0, .vm_stack_size = 8, .cfp = 16
#define EC_2_7 { EC_HEAD, .fiber = 48, .thread = 56, .errinfo = 120, .stack_start = 152 }
#define EC_3_1 { EC_HEAD, .fiber = 40, .thread = 48, .errinfo = 112, .stack_start = 144 }
#define EC_3_2 { EC_HEAD, .fiber = 40, .thread = 48, .errinfo = 120, .stack_start = 152 }
#define EC_4_0 { EC_HEAD, .fiber = 40, .thread = 48, .errinfo = 128, .stack_start = 176 }

/* vm_core.h: rb_control_frame_t. 3.1: + jit_return, 3.3: - __bp__. */
#define CFP_HEAD .pc = 0, .sp = 8, .iseq = 16, .self = 24, .ep = 32
#define CFP_2_7 { CFP_HEAD, .jit_return = N, .size = 56, .published_unfilled = true }
#define CFP_3_0 { CFP_HEAD, .jit_return = N, .size = 56 }
#define CFP_3_1 { CFP_HEAD, .jit_return = 56, .size = 64 }
#define CFP_3_3 { CFP_HEAD, .jit_return = 48, .size = 56 }

/* vm_core.h: rb_iseq_constant_body and rb_iseq_location_t; iseq.h: struct iseq_insn_info_entry. */
#define BODY_HEAD                                                                                  \
	.type = 0, .size = 4, .encoded = 8, .pathobj = 64, .base_label = 72, .label = 80,          \
	.first_lineno = 88
#define BODY_2_7                                                                                   \
	{ BODY_HEAD, .insns_body = 120, .insns_size = 136, .succ_table = 144, .parent = 168,       \
	  .local = 176, .builtin_attrs = N, .insn_stride = 8, .first_lineno_value = true }
#define BODY_3_1                                                                                   \
	{ BODY_HEAD, .insns_body = 120, .insns_size = 136, .succ_table = 144, .parent = 168,       \
	  .local = 176, .builtin_attrs = N, .insn_stride = 12, .first_lineno_value = true }
#define BODY_3_2                                                                                   \
	{ BODY_HEAD, .insns_body = 112, .insns_size = 128, .succ_table = 136, .parent = 160,       \
	  .local = 168, .builtin_attrs = N, .insn_stride = 12 }
#define BODY_3_4                                                                                   \
	{ BODY_HEAD, .insns_body = 112, .insns_size = 128, .succ_table = 136, .parent = 160,       \
	  .local = 168, .builtin_attrs = 260, .insn_stride = 12 }
#define BODY_4_0                                                                                   \
	{ BODY_HEAD, .insns_body = 112, .insns_size = 128, .succ_table = 136, .parent = 168,       \
	  .local = 176, .builtin_attrs = 268, .insn_stride = 12 }

/* method.h: the same in all versions but for the size (4.0: + box). */
#define ISEQ { .wrapper = 8, .body = 16 }
#define ME { .defined_class = 8, .def = 16, .called_id = 24, .owner = 32 }
#define DEF_2_7 { .cfunc = 8, .original_id = 32, .size = 48 }
#define DEF_4_0 { .cfunc = 8, .original_id = 32, .size = 56 }

/* internal/class.h. From 3.4 on singletons and refinements both have FL_USER1. */
#define KLASS_2_7                                                                                  \
	{ .ext = 24, .super = 16, .iv_tbl = 8, .iv_ptr = N, .const_tbl = 24, .classpath = N,       \
	  .attached = N, .permanent = N, .singleton_flag = 0x1000, .refinement_flag = 0x8000 }
#define KLASS_3_2                                                                                  \
	{ .ext = 32, .ext_embedded = true, .super = 16, .iv_tbl = N, .iv_ptr = 0, .const_tbl = 8,  \
	  .classpath = N, .attached = N, .permanent = N, .singleton_flag = 0x1000,                 \
	  .refinement_flag = 0x8000 }
#define KLASS_3_3                                                                                  \
	{ .ext = 32, .ext_embedded = true, .super = 16, .iv_tbl = N, .iv_ptr = 0, .const_tbl = 8,  \
	  .classpath = 120, .attached = 96, .permanent = 117, .singleton_flag = 0x1000,            \
	  .refinement_flag = 0x8000 }
#define KLASS_3_4                                                                                  \
	{ .ext = 32, .ext_embedded = true, .super = 16, .iv_tbl = N, .iv_ptr = 0, .const_tbl = 8,  \
	  .classpath = 120, .attached = 96, .permanent = 117, .singleton_flag = 0x2000,            \
	  .refinement_flag = 0x2000 }
#define KLASS_4_0                                                                                  \
	{ .ext = 24, .ext_embedded = true, .super = 32, .iv_tbl = N, .iv_ptr = N, .const_tbl = 32, \
	  .classpath = 128, .attached = 112, .permanent = 125, .singleton_flag = 0x2000,           \
	  .refinement_flag = 0x2000 }

/* rstring.h, rarray.h. 3.2: strings have a length word, arrays more room inside. */
#define STR_2_7 { .len_shift = 14, .data = 16 }
#define STR_3_2 { .len_field = true, .data = 24 }
#define ARY_2_7 { .embed_len_mask = 0x18000 }
#define ARY_3_2 { .embed_len_mask = 0x3f8000 }

/* symbol.c: rb_symbols_t; id.h: tLAST_OP_ID. 4.0's first word is the next id, not the last. */
#define SYMBOLS(last) { .first_word = 0, .ids = 16, .last_op_id = (last) }

/* gc.c: rb_objspace.flags; bits 0-1 are the mode everywhere. */
#define GC_2_7 { .flags = 16, .during_gc_bit = 5, .compacting_bit = 6, .minor_bit = 9 }
#define GC_3_3 { .flags = 16, .during_gc_bit = 5, .compacting_bit = 6, .minor_bit = 10 }
#define GC_3_4 { .flags = 20, .during_gc_bit = 5, .compacting_bit = 6, .minor_bit = 10 }
#define GC_4_0 { .flags = 28, .during_gc_bit = 5, .compacting_bit = 6, .minor_bit = 10 }

/* thread_pthread.h: struct rb_native_thread (3.2+). */
#define NO_NT { .pthread = N, .tid = N, .size = 0 }
#define NT_3_2 { .pthread = 8, .tid = 16, .size = 88 }
#define NT_3_3 { .pthread = 16, .tid = 24, .size = 120 }

#define NO_RACTOR { .node = N, .threads = N, .gvl_owner = N, .is_running = N, .running_ec = N }
#define NIL_2_7 8
#define NIL_3_2 4

/* What a minor version has on every machine. */
#define COMMON_2_7                                                                                 \
	.from = RBSP_RUBY(2, 7, 0), .to = RBSP_RUBY(3, 0, 0), .ec = EC_2_7, .cfp = CFP_2_7,        \
	.nt = NO_NT, .ractor = NO_RACTOR, .gc = GC_2_7, .iseq = ISEQ, .body = BODY_2_7, .me = ME,  \
	.def = DEF_2_7, .klass = KLASS_2_7, .str = STR_2_7, .ary = ARY_2_7,                        \
	.symbols = SYMBOLS(168), .qnil = NIL_2_7
#define COMMON_3_0                                                                                 \
	.from = RBSP_RUBY(3, 0, 0), .to = RBSP_RUBY(3, 1, 0), .ec = EC_2_7, .cfp = CFP_3_0,        \
	.nt = NO_NT, .gc = GC_2_7, .iseq = ISEQ, .body = BODY_2_7, .me = ME, .def = DEF_2_7,       \
	.klass = KLASS_2_7, .str = STR_2_7, .ary = ARY_2_7, .symbols = SYMBOLS(168),               \
	.qnil = NIL_2_7
#define COMMON_3_1                                                                                 \
	.from = RBSP_RUBY(3, 1, 0), .to = RBSP_RUBY(3, 2, 0), .ec = EC_3_1, .cfp = CFP_3_1,        \
	.nt = NO_NT, .gc = GC_2_7, .iseq = ISEQ, .body = BODY_3_1, .me = ME, .def = DEF_2_7,       \
	.klass = KLASS_2_7, .str = STR_2_7, .ary = ARY_2_7, .symbols = SYMBOLS(169),               \
	.qnil = NIL_2_7
#define COMMON_3_2                                                                                 \
	.from = RBSP_RUBY(3, 2, 0), .to = RBSP_RUBY(3, 3, 0), .ec = EC_3_2, .cfp = CFP_3_1,        \
	.nt = NT_3_2, .gc = GC_2_7, .iseq = ISEQ, .body = BODY_3_2, .me = ME, .def = DEF_2_7,      \
	.klass = KLASS_3_2, .str = STR_3_2, .ary = ARY_3_2, .symbols = SYMBOLS(169),               \
	.qnil = NIL_3_2
#define COMMON_3_3                                                                                 \
	.from = RBSP_RUBY(3, 3, 0), .to = RBSP_RUBY(3, 4, 0), .ec = EC_3_2, .cfp = CFP_3_3,        \
	.nt = NT_3_3, .gc = GC_3_3, .iseq = ISEQ, .body = BODY_3_2, .me = ME, .def = DEF_2_7,      \
	.klass = KLASS_3_3, .str = STR_3_2, .ary = ARY_3_2, .symbols = SYMBOLS(169),               \
	.qnil = NIL_3_2
#define COMMON_3_4                                                                                 \
	.from = RBSP_RUBY(3, 4, 0), .to = RBSP_RUBY(3, 5, 0), .ec = EC_3_1, .cfp = CFP_3_3,        \
	.nt = NT_3_3, .gc = GC_3_4, .iseq = ISEQ, .body = BODY_3_4, .me = ME, .def = DEF_2_7,      \
	.klass = KLASS_3_4, .str = STR_3_2, .ary = ARY_3_2, .symbols = SYMBOLS(170),               \
	.qnil = NIL_3_2, .labels = { .qualified = true }
#define COMMON_4_0                                                                                 \
	.ec = EC_4_0, .cfp = CFP_3_3, .nt = NT_3_3, .gc = GC_4_0, .iseq = ISEQ, .body = BODY_4_0,  \
	.me = ME, .def = DEF_4_0, .klass = KLASS_4_0, .str = STR_3_2, .ary = ARY_3_2,              \
	.symbols = SYMBOLS(171), .qnil = NIL_3_2,                                                  \
	.labels = { .qualified = true, .no_internal = true }
#define SPAN_4_0_0 .from = RBSP_RUBY(4, 0, 0), .to = RBSP_RUBY(4, 0, 6)
#define SPAN_4_0_6 .from = RBSP_RUBY(4, 0, 6), .to = RBSP_RUBY(4, 1, 0)

/* Ascending by machine, then version. */
static const struct rbsp_layout table[] = {
	{ .machine = EM_X86_64, .run = true, COMMON_2_7,
	  .source = "2.7.4 vm_core.h: run, dwarf; 2.7.0 headers",
	  .th = { .node = 0, .ractor = N, .vm = 24, .ec = 32, .status = 80, .name = 360,
		  .blocking_region = 152, .unblock_func = 232, .pthread = 72, .nt = N, .self = 16,
		  .locking_mutex = 248, .ready_node = 88, .name_plain = 520 },
	  .vm = { .ractors = N, .threads = 312, .main_thread = 192, .main_ractor = N,
		  .objspace = 1152, .gvl_owner = 8 } },
	{ .machine = EM_X86_64, .run = false, COMMON_3_0,
	  .source = "3.0.0 vm_core.h, ractor_core.h: headers, bindings to 3.0.7",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 40, .status = 88, .name = 384,
		  .blocking_region = 160, .unblock_func = 240, .pthread = 80, .nt = N, .self = 16,
		  .locking_mutex = 256, .ready_node = 96, .name_plain = 544 },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1088, .gvl_owner = N },
	  .ractor = { .node = 568, .threads = 304, .gvl_owner = 336, .is_running = N,
		      .running_ec = 520 } },
	{ .machine = EM_X86_64, .run = true, COMMON_3_1,
	  .source = "3.1.2 vm_core.h, ractor_core.h: run, dwarf; 3.1.0 headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 40, .status = 92, .name = 352,
		  .blocking_region = 168, .unblock_func = 248, .pthread = 80, .nt = N, .self = 16,
		  .locking_mutex = 264, .ready_node = 104, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1104, .gvl_owner = N },
	  .ractor = { .node = 568, .threads = 304, .gvl_owner = 336, .is_running = N,
		      .running_ec = 520 } },
	{ .machine = EM_X86_64, .run = false, COMMON_3_2,
	  .source = "3.2.0 vm_core.h, ractor_core.h, thread_pthread.h: headers, bindings to 3.2.11",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 112, .name = 304,
		  .blocking_region = 120, .unblock_func = 200, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 216, .ready_node = 56, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1128, .gvl_owner = N },
	  .ractor = { .node = 568, .threads = 304, .gvl_owner = 336, .is_running = N,
		      .running_ec = 520 } },
	{ .machine = EM_X86_64, .run = true, COMMON_3_3,
	  .source = "3.3.8 vm_core.h, ractor_core.h, thread_pthread.h: run, dwarf; 3.3.0 headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 240, .name = 432,
		  .blocking_region = 248, .unblock_func = 328, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 344, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1304, .gvl_owner = N },
	  .ractor = { .node = 432, .threads = 256, .gvl_owner = 328, .is_running = 336,
		      .running_ec = 384 } },
	{ .machine = EM_X86_64, .run = true, COMMON_3_4,
	  .source = "3.4.11 run; 3.4.5 vm_core.h, ractor_core.h, thread_pthread.h: dwarf, headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 240, .name = 448,
		  .blocking_region = 248, .unblock_func = 328, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 344, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1296, .gvl_owner = N },
	  .ractor = { .node = 432, .threads = 256, .gvl_owner = 328, .is_running = 336,
		      .running_ec = 384 } },
	{ .machine = EM_X86_64, .run = false, SPAN_4_0_0, COMMON_4_0,
	  .source = "4.0.0 vm_core.h, ractor_core.h, thread_pthread.h: headers, wasm32 dwarf",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 248, .name = 448,
		  .blocking_region = 256, .unblock_func = 336, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 352, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1248, .gvl_owner = N },
	  .ractor = { .node = 360, .threads = 184, .gvl_owner = 256, .is_running = 264,
		      .running_ec = 312 } },
	{ .machine = EM_X86_64, .run = false, SPAN_4_0_6, COMMON_4_0,
	  .source = "4.0.6 vm_core.h, ractor_core.h, thread_pthread.h: headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 256, .name = 456,
		  .blocking_region = 264, .unblock_func = 344, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 360, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1256, .gvl_owner = N },
	  .ractor = { .node = 368, .threads = 184, .gvl_owner = 256, .is_running = 276,
		      .running_ec = 320 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_2_7,
	  .source = "2.7.0, 2.7.4 cross-compiled headers; objspace and its flags by disassembly",
	  .th = { .node = 0, .ractor = N, .vm = 24, .ec = 32, .status = 80, .name = 368,
		  .blocking_region = 152, .unblock_func = 240, .pthread = 72, .nt = N, .self = 16,
		  .locking_mutex = 256, .ready_node = 88, .name_plain = N },
	  .vm = { .ractors = N, .threads = 328, .main_thread = 200, .main_ractor = N,
		  .objspace = 1176, .gvl_owner = 8 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_3_0,
	  .source = "3.0.0 cross-compiled headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 40, .status = 88, .name = 392,
		  .blocking_region = 160, .unblock_func = 248, .pthread = 80, .nt = N, .self = 16,
		  .locking_mutex = 264, .ready_node = 96, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1112, .gvl_owner = N },
	  .ractor = { .node = 584, .threads = 312, .gvl_owner = 344, .is_running = N,
		      .running_ec = 536 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_3_1,
	  .source = "3.1.0, 3.1.2 cross-compiled headers; objspace and its flags by disassembly",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 40, .status = 92, .name = 360,
		  .blocking_region = 168, .unblock_func = 256, .pthread = 80, .nt = N, .self = 16,
		  .locking_mutex = 272, .ready_node = 104, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1128, .gvl_owner = N },
	  .ractor = { .node = 584, .threads = 312, .gvl_owner = 344, .is_running = N,
		      .running_ec = 536 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_3_2,
	  .source = "3.2.0 cross-compiled headers, bindings to 3.2.11",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 112, .name = 312,
		  .blocking_region = 120, .unblock_func = 208, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 224, .ready_node = 56, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1152, .gvl_owner = N },
	  .ractor = { .node = 584, .threads = 312, .gvl_owner = 344, .is_running = N,
		      .running_ec = 536 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_3_3,
	  .source = "3.3.0, 3.3.8 cross-compiled headers; objspace and its flags by disassembly",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 240, .name = 440,
		  .blocking_region = 248, .unblock_func = 336, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 352, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1328, .gvl_owner = N },
	  .ractor = { .node = 448, .threads = 264, .gvl_owner = 344, .is_running = 352,
		      .running_ec = 400 } },
	{ .machine = EM_AARCH64, .run = false, COMMON_3_4,
	  .source = "3.4.0, 3.4.5 cross-compiled headers; objspace and its flags by disassembly",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 240, .name = 456,
		  .blocking_region = 248, .unblock_func = 336, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 352, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1320, .gvl_owner = N },
	  .ractor = { .node = 448, .threads = 264, .gvl_owner = 344, .is_running = 352,
		      .running_ec = 400 } },
	{ .machine = EM_AARCH64, .run = false, SPAN_4_0_0, COMMON_4_0,
	  .source = "4.0.0 cross-compiled headers, wasm32 dwarf",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 248, .name = 456,
		  .blocking_region = 256, .unblock_func = 344, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 360, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1272, .gvl_owner = N },
	  .ractor = { .node = 376, .threads = 192, .gvl_owner = 272, .is_running = 280,
		      .running_ec = 328 } },
	{ .machine = EM_AARCH64, .run = false, SPAN_4_0_6, COMMON_4_0,
	  .source = "4.0.6 cross-compiled headers",
	  .th = { .node = 0, .ractor = 24, .vm = 32, .ec = 48, .status = 256, .name = 464,
		  .blocking_region = 264, .unblock_func = 352, .pthread = N, .nt = 40, .self = 16,
		  .locking_mutex = 368, .ready_node = 72, .name_plain = N },
	  .vm = { .ractors = 8, .threads = N, .main_thread = 40, .main_ractor = 32,
		  .objspace = 1280, .gvl_owner = N },
	  .ractor = { .node = 384, .threads = 192, .gvl_owner = 272, .is_running = 292,
		      .running_ec = 336 } },
};

/* clang-format on */

const struct rbsp_layout *rbsp_layout_rows(size_t *n)
{
	*n = RBSP_COUNT_OF(table);
	return table;
}

const struct rbsp_layout *rbsp_layout_find(uint32_t version, uint16_t machine)
{
	for (size_t i = 0; i < RBSP_COUNT_OF(table); i++) {
		const struct rbsp_layout *l = &table[i];

		if (l->machine == machine && version >= l->from && version < l->to)
			return l;
	}
	return NULL;
}

size_t rbsp_layout_trial(uint32_t version, uint16_t machine, const struct rbsp_layout *out[2])
{
	const struct rbsp_layout *older = NULL, *newer = NULL;
	size_t n = 0;

	for (size_t i = 0; i < RBSP_COUNT_OF(table); i++) {
		const struct rbsp_layout *l = &table[i];

		if (l->machine != machine)
			continue;
		if (l->to <= version && (!older || l->to > older->to))
			older = l;
		if (l->from > version && (!newer || l->from < newer->from))
			newer = l;
	}
	if (older)
		out[n++] = older;
	if (newer)
		out[n++] = newer;
	return n;
}

void rbsp_layout_spec(const struct rbsp_layout *l, struct rbsp_capture_spec *spec)
{
	spec->ec_vm_stack = l->ec.vm_stack;
	spec->ec_vm_stack_size = l->ec.vm_stack_size;
	spec->ec_cfp = l->ec.cfp;
	spec->ec_thread = l->ec.thread;
	spec->ec_stack_start = l->ec.stack_start;
	spec->ec_size = l->ec.stack_start + 8u;
	spec->th_size = l->th.locking_mutex + 8u; /* the last field that rbsp_ruby_state looks at */
	spec->th_nt = l->th.nt == RBSP_NONE ? 0 : l->th.nt;
	spec->nt_size = l->th.nt == RBSP_NONE ? 0 : l->nt.tid + 8u;
	spec->cfp_size = l->cfp.size;
	spec->cfp_sp = l->cfp.sp;
}
