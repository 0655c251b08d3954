/* Locating Ruby in a process: the order of the steps, the rounds of a search in a running target,
 * and the log of what was tried. */
#include "locate/locate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "locate/internal.h"

/* The target runs: what contradicts itself is looked at again after a pause. */
static const long pause_ns[] = { 0, 1000000, 3000000, 5000000 };

void rbsp_locate_step(struct rbsp_finder *f, const char *what, const char *how, bool found,
		      const char *fmt, ...)
{
	struct rbsp_step *grown = reallocarray(f->l->step, f->l->n_steps + 1, sizeof(*grown));
	struct rbsp_step *s;
	va_list ap;

	if (!grown)
		return;
	f->l->step = grown;
	s = &grown[f->l->n_steps++];
	*s = (struct rbsp_step){ .what = what, .how = how, .found = found };
	va_start(ap, fmt);
	vsnprintf(s->detail, sizeof(s->detail), fmt, ap);
	va_end(ap);
	rbsp_log(RBSP_LOG_DEBUG, "%s: %s: %s %s", what, how, found ? "found" : "no", s->detail);
}

rbsp_addr rbsp_locate_symbol(const struct rbsp_finder *f, const char *name)
{
	struct rbsp_symbol s;

	return rbsp_elf_symbol(f->l->elf, name, &s) ? s.value + f->l->bias : 0;
}

bool rbsp_locate_hard(enum rbsp_status st)
{
	return st == RBSP_E_GONE || st == RBSP_E_NOMEM || st == RBSP_E_TAPE;
}

/** The threads and their thread pointers. */
static enum rbsp_status read_lwps(struct rbsp_finder *f, struct rbsp_err *err)
{
	int *tid = NULL;
	size_t n = 0;
	enum rbsp_status st = f->t->ops->threads(f->t, &tid, &n, err);

	if (st != RBSP_OK)
		return st;
	free(f->lwp);
	f->n_lwp = f->n_tp = 0;
	f->lwp = calloc(n + 1, sizeof(*f->lwp));
	if (!f->lwp) {
		free(tid);
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory for %zu threads", n);
	}
	for (size_t i = 0; i < n; i++) {
		rbsp_addr tp = 0;

		if (f->t->ops->thread_pointer(f->t, tid[i], &tp) != RBSP_OK)
			tp = 0;
		f->lwp[f->n_lwp++] = (struct rbsp_lwp){ .tid = tid[i], .tp = tp };
		f->n_tp += tp != 0;
	}
	free(tid);
	return RBSP_OK;
}

enum rbsp_status rbsp_locate_refresh(struct rbsp_finder *f, struct rbsp_err *err)
{
	enum rbsp_status st;

	rbsp_maps_fini(&f->maps);
	memset(&f->maps, 0, sizeof(f->maps));
	st = f->t->ops->maps(f->t, &f->maps, err);
	return st == RBSP_OK ? read_lwps(f, err) : st;
}

/** The words that tell who owns the GVL (of the main ractor, where there are ractors), and
 * rb_cObject. */
static enum rbsp_status fill_addresses(struct rbsp_finder *f)
{
	struct rbsp_located *l = f->l;
	const struct rbsp_layout *row = l->layout;
	rbsp_addr object = rbsp_locate_symbol(f, "rb_cObject");
	uint64_t v = 0;

	l->addrs.object = object && rbsp_read_word(f->t, object, &v) == RBSP_OK &&
					  rbsp_locate_plausible(&f->maps, v, 40)
				  ? v
				  : 0;
	l->addrs.ractor = 0;
	l->sched = 0;
	l->sched_size = 8;
	if (row->vm.gvl_owner != RBSP_NONE) {
		l->sched = l->addrs.vm + row->vm.gvl_owner;
		return RBSP_OK;
	}
	if (rbsp_read_word(f->t, l->addrs.vm + row->vm.main_ractor, &v) != RBSP_OK ||
	    !rbsp_locate_plausible(&f->maps, v, row->ractor.gvl_owner + 8u)) {
		f->failed = "the VM has a main ractor";
		snprintf(f->failure, sizeof(f->failure), "%#llx", (unsigned long long)v);
		return RBSP_E_LAYOUT;
	}
	l->addrs.ractor = v;
	l->sched = v + row->ractor.gvl_owner;
	if (row->ractor.is_running != RBSP_NONE && row->ractor.is_running > row->ractor.gvl_owner)
		l->sched_size = (row->ractor.is_running - row->ractor.gvl_owner + 8u) & ~7u;
	return RBSP_OK;
}

static enum rbsp_status one_round(struct rbsp_finder *f)
{
	enum rbsp_status st;

	f->failed = NULL;
	f->failure[0] = '\0';
	memset(&f->l->addrs, 0, sizeof(f->l->addrs));
	st = rbsp_locate_ec_slot(f);
	if (st == RBSP_OK)
		st = fill_addresses(f);
	if (st == RBSP_OK)
		st = rbsp_locate_check(f);
	return st;
}

/** Try a row in several rounds; only the steps of the last one are kept. */
static enum rbsp_status try_row(struct rbsp_finder *f, const struct rbsp_layout *row, bool on_trial,
				struct rbsp_err *err)
{
	size_t mark;
	enum rbsp_status st = RBSP_E_NOT_FOUND;

	f->l->layout = row;
	f->l->on_trial = on_trial;
	rbsp_locate_step(f, "layout",
			 on_trial ? "row of another version, on trial" : "row of this version",
			 true, "%s%s", row->source, row->run ? "" : " (never run)");
	mark = f->l->n_steps;
	for (size_t i = 0; i < RBSP_COUNT_OF(pause_ns); i++) {
		const struct timespec pause = { .tv_nsec = pause_ns[i] };

		if (i > 0) {
			nanosleep(&pause, NULL);
			st = rbsp_locate_refresh(f, err);
			if (st != RBSP_OK)
				return st;
			f->l->n_steps = mark;
		}
		st = one_round(f);
		if (st == RBSP_OK || rbsp_locate_hard(st))
			break;
	}
	return st;
}

static enum rbsp_status find_layout(struct rbsp_finder *f, struct rbsp_err *err)
{
	struct rbsp_located *l = f->l;
	const struct rbsp_layout *row[2] = { rbsp_layout_find(l->version, f->machine), NULL };
	bool trial = !row[0];
	size_t n = trial ? rbsp_layout_trial(l->version, f->machine, row) : 1;
	enum rbsp_status st = RBSP_E_LAYOUT;

	for (size_t i = 0; i < n; i++) {
		st = try_row(f, row[i], trial, err);
		if (st == RBSP_OK)
			return st;
		if (rbsp_locate_hard(st))
			return rbsp_fail(
				err, st,
				"process %d went away, or cannot be read, while Ruby was looked for in it",
				f->t->pid);
	}
	if (!n)
		return rbsp_fail(err, RBSP_E_LAYOUT,
				 "no memory layout for Ruby %s on this machine is known",
				 l->version_text);
	l->layout = NULL;
	if (f->failed)
		return rbsp_fail(
			err, RBSP_E_LAYOUT,
			"the memory layout %s Ruby %s in process %d does not hold: not so: %s (%s)",
			trial ? "nearest to" : "of", l->version_text, f->t->pid, f->failed,
			f->failure);
	return rbsp_fail(
		err, RBSP_E_LAYOUT, "no execution context of Ruby %s was found in process %d%s",
		l->version_text, f->t->pid,
		trial ? ": its layout is not known, and those nearest to it do not fit" : "");
}

static enum rbsp_status search(struct rbsp_finder *f, struct rbsp_err *err)
{
	enum rbsp_status st = rbsp_locate_refresh(f, err);
	uint64_t word;

	if (st == RBSP_OK)
		st = rbsp_locate_module(f, err);
	if (st != RBSP_OK)
		return st;
	if (!rbsp_locate_booted(f)) {
		rbsp_locate_step(f, "vm", "class Thread is there", false, "Ruby is still starting");
		return rbsp_fail(err, RBSP_E_BOOTING, "Ruby %s in process %d is still starting",
				 f->l->version_text, f->t->pid);
	}
	st = rbsp_locate_got(f);
	if (st == RBSP_OK)
		st = find_layout(f, err);
	if (st == RBSP_OK)
		st = rbsp_locate_vm_exec(f);
	if (st == RBSP_OK)
		st = rbsp_locate_symbols(f);
	if (st == RBSP_OK)
		st = rbsp_locate_gc(f);
	if (st == RBSP_OK) /* what is missing may be missing because the process ended */
		st = rbsp_read_word(f->t, f->l->addrs.vm, &word);
	if (st == RBSP_E_FAULT)
		st = RBSP_E_GONE;
	if (rbsp_locate_hard(st) && err && err->status != st)
		return rbsp_fail(
			err, st,
			"process %d went away, or cannot be read, while Ruby was looked for in it",
			f->t->pid);
	return st;
}

enum rbsp_status rbsp_locate(struct rbsp_target *t, struct rbsp_located *out, struct rbsp_err *err)
{
	struct rbsp_finder f = { .t = t, .l = out };
	enum rbsp_status st;

	memset(out, 0, sizeof(*out));
	st = search(&f, err);
	rbsp_maps_fini(&f.maps);
	free(f.lwp);
	free(f.got);
	free(f.thread);
	return st;
}

void rbsp_located_fini(struct rbsp_located *l)
{
	if (!l)
		return;
	free(l->step);
	l->step = NULL;
	l->n_steps = 0;
}
