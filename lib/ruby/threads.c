/* The VM's own list of threads. */
#include "ruby/object.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 100000 /* nodes of one list, and of all */

struct found {
	struct rbsp_ruby_thread *thread;
	size_t n, cap;
};

/* Called for each node of a list. @return not RBSP_OK ends the walk */
typedef enum rbsp_status (*node_fn)(struct rbsp_target *t, const struct rbsp_layout *l,
				    rbsp_addr node, void *arg);

/* Intrusive, circular {next, prev}; the head is no node. A list that changes meanwhile may lead
 * astray: it is bounded. */
static enum rbsp_status walk_list(struct rbsp_target *t, const struct rbsp_layout *l,
				  rbsp_addr head, node_fn fn, void *arg)
{
	rbsp_addr node;
	enum rbsp_status st = rbsp_read_word(t, head, &node);

	for (size_t i = 0; st == RBSP_OK && node != head; i++) {
		if (i == THREADS_MAX || node < 4096 || node & 7)
			return RBSP_E_TORN;
		st = fn(t, l, node, arg);
		if (st == RBSP_OK)
			st = rbsp_read_word(t, node, &node);
	}
	return st == RBSP_E_FAULT ? RBSP_E_TORN : st;
}

struct walk {
	struct found *found;
	rbsp_addr vm, main_thread, ractor;
};

static enum rbsp_status pthread_of(struct rbsp_target *t, const struct rbsp_layout *l,
				   const unsigned char *th, rbsp_addr *out)
{
	rbsp_addr nt;

	*out = 0;
	if (l->th.pthread != RBSP_NONE) {
		memcpy(out, th + l->th.pthread, sizeof(*out));
		return RBSP_OK;
	}
	memcpy(&nt, th + l->th.nt, sizeof(nt));
	if (!nt)
		return RBSP_OK; /* parked: no native thread runs it */
	return rbsp_read_word(t, nt + l->nt.pthread, out);
}

static enum rbsp_status add_thread(struct rbsp_target *t, const struct rbsp_layout *l,
				   rbsp_addr node, void *arg)
{
	struct walk *w = arg;
	struct rbsp_ruby_thread *th;
	unsigned char head[128]; /* up to th->thread_id of every version */
	rbsp_addr vm;
	enum rbsp_status st;

	if (w->found->n == THREADS_MAX)
		return RBSP_E_TORN;
	if (w->found->n == w->found->cap) {
		size_t cap = w->found->cap ? 2 * w->found->cap : 16;

		th = realloc(w->found->thread, cap * sizeof(*th));
		if (!th)
			return RBSP_E_NOMEM;
		w->found->thread = th;
		w->found->cap = cap;
	}
	th = &w->found->thread[w->found->n];
	*th = (struct rbsp_ruby_thread){ .th = node - l->th.node, .ractor = w->ractor };
	st = rbsp_read(t, th->th, head, sizeof(head));
	if (st != RBSP_OK)
		return st;
	memcpy(&vm, head + l->th.vm, sizeof(vm));
	if (vm != w->vm)
		return RBSP_E_TORN;
	memcpy(&th->ec, head + l->th.ec, sizeof(th->ec));
	th->main = th->th == w->main_thread;
	st = pthread_of(t, l, head, &th->pthread);
	if (st == RBSP_OK)
		w->found->n++;
	return st;
}

static enum rbsp_status add_ractor(struct rbsp_target *t, const struct rbsp_layout *l,
				   rbsp_addr node, void *arg)
{
	struct walk *w = arg;

	w->ractor = node - l->ractor.node;
	return walk_list(t, l, w->ractor + l->ractor.threads, add_thread, w);
}

enum rbsp_status rbsp_ruby_threads(struct rbsp_target *t, const struct rbsp_layout *l, rbsp_addr vm,
				   struct rbsp_ruby_thread **out, size_t *n)
{
	struct found found = { 0 };
	struct walk w = { .found = &found, .vm = vm };
	enum rbsp_status st = rbsp_read_word(t, vm + l->vm.main_thread, &w.main_thread);

	if (st == RBSP_OK && l->vm.ractors == RBSP_NONE)
		st = walk_list(t, l, vm + l->vm.threads, add_thread, &w);
	else if (st == RBSP_OK)
		st = walk_list(t, l, vm + l->vm.ractors, add_ractor, &w);
	*out = found.thread;
	*n = found.n;
	return st;
}
