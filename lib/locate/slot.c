/* The word that holds a thread's execution context: in thread-local storage, else the thread's own
 * pointer to it. */
#include "locate/internal.h"

#include <stdlib.h>
#include <string.h>

/* Words of a TLS block that are tried; 2 to 16 were seen. */
#define SLOTS_MAX 512

struct search {
	const char *how;
	size_t first, n;  /* words of the block: [first, first + n) */
	rbsp_addr *block; /* a thread each, as f->lwp */
	rbsp_addr *value; /* n words a thread */
	struct rbsp_ec_seen *seen;
};

static void search_fini(struct search *s)
{
	free(s->block);
	free(s->value);
	free(s->seen);
}

static enum rbsp_status read_blocks(struct rbsp_finder *f, const struct rbsp_tls *tls, bool musl,
				    struct search *s)
{
	rbsp_addr *tp = calloc(f->n_lwp + 1, sizeof(*tp));
	struct rbsp_piece *v = calloc(f->n_lwp + 1, sizeof(*v));
	bool *ok = calloc(f->n_lwp + 1, sizeof(*ok));
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!tp || !v || !ok)
		goto out;
	for (size_t i = 0; i < f->n_lwp; i++) {
		tp[i] = f->lwp[i].tp;
		s->block[i] = tp[i] && tls->fixed ? tp[i] + (uint64_t)tls->offset : 0;
	}
	st = tls->fixed
		     ? RBSP_OK
		     : rbsp_tls_blocks(f->t, f->machine, tls->module, musl, tp, f->n_lwp, s->block);
	if (st != RBSP_OK)
		goto out;
	memset(s->value, 0, f->n_lwp * s->n * sizeof(*s->value));
	for (size_t i = 0; i < f->n_lwp; i++) {
		if (!rbsp_locate_plausible(&f->maps, s->block[i], 8 * (s->first + s->n)))
			s->block[i] = 0;
		v[i] = (struct rbsp_piece){ s->block[i] ? s->block[i] + 8 * s->first : 0,
					    s->value + i * s->n, 8 * s->n };
	}
	st = rbsp_locate_read_many(f->t, v, f->n_lwp, ok);
	for (size_t i = 0; i < f->n_lwp; i++) {
		if (!ok[i])
			memset(s->value + i * s->n, 0, 8 * s->n);
	}
	if (st == RBSP_OK)
		st = rbsp_locate_ecs(f, s->value, f->n_lwp * s->n, s->seen);
out:
	free(tp);
	free(v);
	free(ok);
	return st;
}

/** The word that is valid in most threads; false: in none, or two words are equally good. */
static bool best_word(const struct rbsp_finder *f, const struct search *s, size_t *best,
		      size_t *n_valid, size_t *rivals)
{
	*n_valid = 0;
	*rivals = 0;
	for (size_t k = 0; k < s->n; k++) {
		size_t valid = 0;

		for (size_t i = 0; i < f->n_lwp; i++)
			valid += s->seen[i * s->n + k].valid;
		if (!valid || valid < *n_valid)
			continue;
		*rivals = valid == *n_valid ? *rivals + 1 : 0;
		*n_valid = valid;
		*best = k;
	}
	return *n_valid && !*rivals;
}

static void accept(struct rbsp_finder *f, const struct search *s, size_t k,
		   const struct rbsp_tls *tls, bool musl)
{
	struct rbsp_located *l = f->l;
	int64_t at = 8 * (int64_t)(s->first + k);

	l->slot_kind = tls->fixed ? RBSP_SLOT_TLS_STATIC : RBSP_SLOT_TLS_DTV;
	l->slot_offset = tls->fixed ? tls->offset + at : at;
	l->tls_module = tls->module;
	l->musl = musl;
	for (size_t i = 0; i < f->n_lwp; i++) {
		f->lwp[i].slot = s->block[i] ? s->block[i] + (uint64_t)at : 0;
		f->lwp[i].seen = s->seen[i * s->n + k];
	}
}

static enum rbsp_status search_block(struct rbsp_finder *f, const struct rbsp_tls *tls,
				     struct search *s)
{
	size_t n = f->n_lwp * s->n + 1, best = 0, n_valid = 0, rivals = 0;
	enum rbsp_status st = RBSP_E_NOMEM;

	s->block = calloc(f->n_lwp + 1, sizeof(*s->block));
	s->value = calloc(n, sizeof(*s->value));
	s->seen = calloc(n, sizeof(*s->seen));
	if (!s->block || !s->value || !s->seen)
		goto out;
	for (int musl = 0; musl < (tls->fixed ? 1 : 2); musl++) {
		st = read_blocks(f, tls, musl, s);
		if (st != RBSP_OK)
			goto out;
		if (best_word(f, s, &best, &n_valid, &rivals)) {
			accept(f, s, best, tls, musl);
			rbsp_locate_step(f, "execution context", s->how, true,
					 "word %zu, valid in %zu of %zu threads, %s %llu%s",
					 s->first + best, n_valid, f->n_lwp, tls->how,
					 (unsigned long long)tls->module, musl ? ", musl" : "");
			goto out;
		}
	}
	st = RBSP_E_NOT_FOUND;
	rbsp_locate_step(f, "execution context", s->how, false,
			 "%zu words, %zu rivals, valid in %zu of %zu threads, %s %llu", s->n,
			 rivals, n_valid, f->n_tp, tls->how, (unsigned long long)tls->module);
out:
	search_fini(s);
	return st;
}

static enum rbsp_status by_tls(struct rbsp_finder *f)
{
	uint64_t memsz = rbsp_elf_info(f->l->elf)->tls_memsz;
	struct rbsp_symbol named;
	struct search s = { .how = NULL };
	struct rbsp_tls tls;
	enum rbsp_status st = rbsp_tls_find(f, &tls);

	if (st != RBSP_OK)
		return st;
	if (rbsp_elf_symbol(f->l->elf, "ruby_current_ec", &named) && named.value % 8 == 0 &&
	    named.value + 8 <= memsz) {
		s = (struct search){ .how = "by symbol ruby_current_ec",
				     .first = named.value / 8,
				     .n = 1 };
		st = search_block(f, &tls, &s);
		if (st != RBSP_E_NOT_FOUND)
			return st;
	} else {
		rbsp_locate_step(f, "execution context", "by symbol ruby_current_ec", false,
				 "no such symbol");
	}
	s = (struct search){ .how = "by search of the TLS block", .n = memsz / 8 };
	if (s.n > SLOTS_MAX)
		s.n = SLOTS_MAX;
	return s.n ? search_block(f, &tls, &s) : RBSP_E_NOT_FOUND;
}

/** &th->ec of every thread on the VM's list, by pthread_t == thread pointer. */
static enum rbsp_status by_list(struct rbsp_finder *f)
{
	const struct rbsp_layout *l = f->l->layout;
	size_t matched = 0, valid = 0;
	rbsp_addr *ec = calloc(f->n_thread + 1, sizeof(*ec));
	struct rbsp_ec_seen *seen = calloc(f->n_thread + 1, sizeof(*seen));
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!ec || !seen)
		goto out;
	for (size_t i = 0; i < f->n_thread; i++)
		ec[i] = f->thread[i].ec;
	st = rbsp_locate_ecs(f, ec, f->n_thread, seen);
	if (st != RBSP_OK)
		goto out;
	for (size_t i = 0; i < f->n_thread; i++) {
		valid += seen[i].valid;
		for (size_t k = 0; k < f->n_lwp; k++) {
			if (!f->lwp[k].tp || f->lwp[k].tp != f->thread[i].pthread)
				continue;
			f->lwp[k].slot = f->thread[i].th + l->th.ec;
			f->lwp[k].seen = seen[i];
			matched++;
		}
	}
	st = valid && (matched || !f->n_tp) ? RBSP_OK : RBSP_E_NOT_FOUND;
	f->l->slot_kind = RBSP_SLOT_THREAD;
	f->l->slot_offset = l->th.ec;
	rbsp_locate_step(f, "execution context", "by the VM's thread list", st == RBSP_OK,
			 "%zu Ruby threads, %zu valid, %zu matched by thread pointer", f->n_thread,
			 valid, matched);
out:
	free(ec);
	free(seen);
	return st;
}

/** The VM that the valid execution contexts name; all must agree. */
static enum rbsp_status vm_of_ecs(struct rbsp_finder *f)
{
	rbsp_addr vm = 0;

	for (size_t i = 0; i < f->n_lwp; i++) {
		const struct rbsp_ec_seen *s = &f->lwp[i].seen;

		if (s->valid && vm && s->vm != vm) {
			f->failed = "all threads have the same VM";
			return RBSP_E_LAYOUT;
		}
		if (s->valid)
			vm = s->vm;
	}
	f->l->addrs.vm = vm;
	return vm ? RBSP_OK : RBSP_E_NOT_FOUND;
}

enum rbsp_status rbsp_locate_ec_slot(struct rbsp_finder *f)
{
	bool tls = rbsp_elf_info(f->l->elf)->tls_memsz != 0, learn = !f->n_tp;
	enum rbsp_status st = RBSP_E_NOT_FOUND;

	if (tls && !learn)
		st = by_tls(f);
	if (st == RBSP_OK)
		st = vm_of_ecs(f);
	if (st == RBSP_OK)
		return rbsp_locate_threads(f, false);
	if (st != RBSP_E_NOT_FOUND)
		return st;
	st = rbsp_locate_vm(f);
	if (st == RBSP_OK)
		st = rbsp_locate_threads(f, learn);
	if (st != RBSP_OK)
		return st;
	if (tls && learn && f->n_tp && by_tls(f) == RBSP_OK)
		return vm_of_ecs(f);
	return by_list(f);
}

/** Addresses of the words of @p n threads in a located process; 0: none now. */
static enum rbsp_status slots_by_list(struct rbsp_target *t, const struct rbsp_located *l,
				      const rbsp_addr *tp, size_t n, rbsp_addr *slot)
{
	struct rbsp_ruby_thread *th = NULL;
	size_t n_th = 0;
	enum rbsp_status st = rbsp_ruby_threads(t, l->layout, l->addrs.vm, &th, &n_th);

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n_th; k++) {
			if (tp[i] && th[k].pthread == tp[i])
				slot[i] = th[k].th + l->layout->th.ec;
		}
	}
	free(th);
	return st == RBSP_E_TORN ? RBSP_OK : st; /* what was listed is good */
}

enum rbsp_status rbsp_locate_slots(struct rbsp_target *t, const struct rbsp_located *l,
				   const rbsp_addr *tp, size_t n, rbsp_addr *slot)
{
	enum rbsp_status st;

	memset(slot, 0, n * sizeof(*slot));
	switch (l->slot_kind) {
	case RBSP_SLOT_THREAD:
		return slots_by_list(t, l, tp, n, slot);
	case RBSP_SLOT_TLS_STATIC:
		for (size_t i = 0; i < n; i++)
			slot[i] = tp[i] ? tp[i] + (uint64_t)l->slot_offset : 0;
		return RBSP_OK;
	case RBSP_SLOT_TLS_DTV:
		break;
	}
	st = rbsp_tls_blocks(t, rbsp_elf_info(l->elf)->machine, l->tls_module, l->musl, tp, n,
			     slot);
	for (size_t i = 0; i < n; i++)
		slot[i] = st == RBSP_OK && slot[i] ? slot[i] + (uint64_t)l->slot_offset : 0;
	return st;
}

enum rbsp_status rbsp_locate_slot(struct rbsp_target *t, const struct rbsp_located *l,
				  rbsp_addr thread_pointer, rbsp_addr *slot)
{
	rbsp_addr found = 0;
	uint64_t ec = 0;
	enum rbsp_status st = rbsp_locate_slots(t, l, &thread_pointer, 1, &found);

	if (st == RBSP_OK && found)
		st = rbsp_read_word(t, found, &ec);
	if (st != RBSP_OK)
		return st;
	if (!found || !ec)
		return RBSP_E_NOT_FOUND;
	*slot = found;
	return RBSP_OK;
}
