/* Merging native and Ruby frames: see merge.h and doc/architecture.md, "The merge". */
#include "sampler/merge.h"

/* Built leaf first; turned round at the end. */
struct merge {
	const struct rbsp_merge_native *native;
	const struct rbsp_merge_ruby *ruby;
	struct rbsp_merged *out;
	size_t n;
};

/* A run of Ruby frames [from, to), newest first, and the native frames [above, exec) on top of it.
 */
struct run {
	size_t from, to;
	size_t above, exec;
	bool carried; /* native[exec] is its rb_vm_exec; else the run ends where the natives do */
};

static void put(struct merge *m, int32_t ruby, int32_t native, bool interp)
{
	m->out[m->n++] = (struct rbsp_merged){ ruby, native, interp };
}

static bool is_loop(const struct rbsp_merge_native *f)
{
	return f->role == RBSP_ROLE_LOOP || f->role == RBSP_ROLE_EXEC;
}

/*
 * Native frames [from, to) on top of a frame that is not found among them. Next to the loop, so at
 * the end, come the interpreter's helpers; over a Ruby method all functions of the Ruby module are
 * (they carry out its instructions), over a C function that was left by a tail call only those
 * without a name.
 */
static void put_open_natives(struct merge *m, size_t from, size_t to, bool over_cfunc)
{
	size_t helpers = to;

	while (helpers > from) {
		const struct rbsp_merge_native *f = &m->native[helpers - 1];

		if (!is_loop(f) && (f->role != RBSP_ROLE_RUBY_LIB || (over_cfunc && f->named)))
			break;
		helpers--;
	}
	for (size_t i = from; i < to; i++)
		put(m, -1, (int32_t)i, i >= helpers || is_loop(&m->native[i]));
}

/* Glue between the loop and the newest C function. */
static void put_interp(struct merge *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		put(m, -1, (int32_t)i, true);
}

static void put_natives(struct merge *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		put(m, -1, (int32_t)i, is_loop(&m->native[i]));
}

/* The native frame of a C function among [from, to); to: none. */
static size_t find_func(const struct merge *m, rbsp_addr func, size_t from, size_t to)
{
	size_t i = from;

	while (i < to && (!func || m->native[i].func != func))
		i++;
	return i;
}

/* Of a C function that is not on the stack: where the natives of the next older one that is begin;
 * it keeps what is below. */
static size_t find_older(const struct merge *m, const struct run *r, size_t i, size_t at)
{
	size_t end = r->exec;

	while (++i < r->to && end == r->exec) {
		if (m->ruby[i].cfunc)
			end = find_func(m, m->ruby[i].func, at, r->exec);
	}
	return end;
}

static void put_run(struct merge *m, const struct run *r)
{
	size_t at = r->above; /* natives before this one are written */
	bool newest = true;   /* no shown frame of the run is written yet */

	for (size_t i = r->from; i < r->to; i++) {
		const struct rbsp_merge_ruby *f = &m->ruby[i];
		size_t found = f->cfunc ? find_func(m, f->func, at, r->exec) : r->exec;

		if (!f->shown)
			continue;
		if (found < r->exec) {
			if (newest)
				put_natives(m, at, found);
			else
				put_interp(m, at, found);
			put(m, (int32_t)i, (int32_t)found, false);
			at = found + 1;
		} else {
			if (newest) {
				size_t end = f->cfunc ? find_older(m, r, i, at) : r->exec;

				put_open_natives(m, at, end, f->cfunc);
				at = end;
			} else if (!f->cfunc) {
				put_interp(m, at, r->exec);
				at = r->exec;
			}
			put(m, (int32_t)i, -1, false);
		}
		newest = false;
	}
	if (newest)
		put_open_natives(m, at, r->exec, false);
	else if (r->carried)
		put_interp(m, at, r->exec);
	else
		put_natives(m, at, r->exec);
}

static void turn(struct merge *m)
{
	for (size_t i = 0, j = m->n; i + 1 < j; i++) {
		struct rbsp_merged swap = m->out[i];

		m->out[i] = m->out[--j];
		m->out[j] = swap;
	}
}

/* The first index from @p from on whose Ruby frame ends a run, plus one. */
static size_t run_end(const struct rbsp_merge_ruby *ruby, size_t n, size_t from)
{
	while (from < n && !ruby[from].finish)
		from++;
	return from < n ? from + 1 : n;
}

static size_t next_exec(const struct rbsp_merge_native *native, size_t n, size_t from)
{
	while (from < n && native[from].role != RBSP_ROLE_EXEC)
		from++;
	return from;
}

/* rb_vm_exec frames minus runs; C functions at the very bottom that no run ends below have none. */
static long surplus(const struct rbsp_merge_native *native, size_t n_native,
		    const struct rbsp_merge_ruby *ruby, size_t n_ruby)
{
	long d = 0;

	for (size_t i = 0; i < n_native; i++)
		d += native[i].role == RBSP_ROLE_EXEC;
	for (size_t i = 0; i < n_ruby; i++)
		d -= ruby[i].finish;
	return d;
}

static void put_ruby_only(struct merge *m, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (m->ruby[i].shown)
			put(m, (int32_t)i, -1, false);
	}
}

/* Natives are those above the newest run; below its rb_vm_exec nothing is claimed. */
static void merge_leaf(struct merge *m, size_t n_native, size_t n_ruby)
{
	size_t exec = next_exec(m->native, n_native, 0), end = run_end(m->ruby, n_ruby, 0);

	put_run(m, &(struct run){ 0, end, 0, exec, exec < n_native });
	if (exec < n_native)
		put(m, -1, (int32_t)exec, true);
	put_ruby_only(m, end, n_ruby);
}

static void merge_whole(struct merge *m, size_t n_native, size_t n_ruby, long d)
{
	size_t at = 0, ruby = 0, exec;

	if (d < 0) { /* a frame was pushed, its rb_vm_exec is not entered yet */
		ruby = run_end(m->ruby, n_ruby, 0);
		put_ruby_only(m, 0, ruby);
	} else if (d > 0) { /* the newest run is popped, its rb_vm_exec not yet left */
		exec = next_exec(m->native, n_native, 0);
		put_open_natives(m, 0, exec, false);
		put(m, -1, (int32_t)exec, true);
		at = exec + 1;
	}
	while (ruby < n_ruby) {
		size_t end = run_end(m->ruby, n_ruby, ruby);

		exec = next_exec(m->native, n_native, at);
		put_run(m, &(struct run){ ruby, end, at, exec, exec < n_native });
		if (exec < n_native)
			put(m, -1, (int32_t)exec, true);
		at = exec < n_native ? exec + 1 : n_native;
		ruby = end;
	}
	put_natives(m, at, n_native);
}

enum rbsp_merge_result rbsp_merge(const struct rbsp_merge_native *native, size_t n_native,
				  const struct rbsp_merge_ruby *ruby, size_t n_ruby, bool whole,
				  struct rbsp_merged *out, size_t *n_out)
{
	struct merge m = { native, ruby, out, 0 };
	long d = whole ? surplus(native, n_native, ruby, n_ruby) : 0;
	enum rbsp_merge_result result = RBSP_MERGED;

	if (n_ruby == 0) {
		put_natives(&m, 0, n_native);
	} else if (d < -1 || d > 1) {
		put_ruby_only(&m, 0, n_ruby);
		result = RBSP_MERGE_MISMATCH;
	} else if (whole) {
		merge_whole(&m, n_native, n_ruby, d);
	} else {
		merge_leaf(&m, n_native, n_ruby);
	}
	turn(&m);
	*n_out = m.n;
	return result;
}
