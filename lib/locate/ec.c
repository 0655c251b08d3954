/* Execution contexts: what makes one valid, the VM they belong to, and the VM's own list of
 * threads. */
#include "locate/internal.h"

#include <stdlib.h>
#include <string.h>

/* The smallest VM stack that Ruby makes is larger (RUBY_VM_SIZE_MIN fibers: 2048 words). */
#define MIN_STACK_WORDS 0x400
#define HEAD_MAX 256

static uint64_t word(const unsigned char *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static size_t max_of(const uint16_t *v, size_t n)
{
	size_t max = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i] != RBSP_NONE && v[i] > max)
			max = v[i];
	}
	return max;
}

size_t rbsp_locate_ec_bytes(const struct rbsp_layout *l)
{
	const uint16_t v[] = { l->ec.vm_stack, l->ec.vm_stack_size, l->ec.cfp, l->ec.thread };

	return max_of(v, RBSP_COUNT_OF(v)) + 8;
}

size_t rbsp_locate_th_bytes(const struct rbsp_layout *l)
{
	const uint16_t v[] = { l->th.ec, l->th.vm, l->th.self };

	return max_of(v, RBSP_COUNT_OF(v)) + 8;
}

bool rbsp_locate_ec_head(const struct rbsp_layout *l, const struct rbsp_maps *maps, rbsp_addr ec,
			 const unsigned char *head, struct rbsp_ec_seen *out)
{
	uint64_t words = word(head, l->ec.vm_stack_size);

	*out = (struct rbsp_ec_seen){
		.ec = ec,
		.vm_stack = word(head, l->ec.vm_stack),
		.cfp = word(head, l->ec.cfp),
		.th = word(head, l->ec.thread),
	};
	if (words < MIN_STACK_WORDS || words > UINT32_MAX ||
	    !rbsp_locate_plausible(maps, out->vm_stack, 8))
		return false;
	out->end = out->vm_stack + 8 * words;
	if (out->cfp < out->vm_stack || out->cfp >= out->end || (out->end - out->cfp) % l->cfp.size)
		return false;
	return rbsp_maps_one_area(maps, out->vm_stack, 8 * words) &&
	       rbsp_locate_plausible(maps, out->th, rbsp_locate_th_bytes(l));
}

bool rbsp_locate_ec_thread(const struct rbsp_layout *l, const struct rbsp_maps *maps,
			   const unsigned char *head, struct rbsp_ec_seen *seen)
{
	seen->vm = word(head, l->th.vm);
	seen->valid = word(head, l->th.ec) == seen->ec && rbsp_locate_plausible(maps, seen->vm, 8);
	return seen->valid;
}

/** Room for the heads of n candidates: bytes, pieces, flags. */
struct batch {
	unsigned char *head;
	struct rbsp_piece *piece;
	size_t *of; /* index of the candidate */
	bool *ok;
	size_t n;
};

static void batch_fini(struct batch *b)
{
	free(b->head);
	free(b->piece);
	free(b->of);
	free(b->ok);
}

static bool batch_init(struct batch *b, size_t n)
{
	*b = (struct batch){
		.head = calloc(n, HEAD_MAX),
		.piece = calloc(n, sizeof(*b->piece)),
		.of = calloc(n, sizeof(*b->of)),
		.ok = calloc(n, sizeof(*b->ok)),
	};
	return b->head && b->piece && b->of && b->ok;
}

static void batch_add(struct batch *b, size_t of, rbsp_addr addr, size_t size)
{
	b->piece[b->n] =
		(struct rbsp_piece){ .addr = addr, .to = b->head + b->n * HEAD_MAX, .n = size };
	b->ok[b->n] = false;
	b->of[b->n++] = of;
}

enum rbsp_status rbsp_locate_ecs(struct rbsp_finder *f, const rbsp_addr *ec, size_t n,
				 struct rbsp_ec_seen *seen)
{
	const struct rbsp_layout *l = f->l->layout;
	size_t ec_bytes = rbsp_locate_ec_bytes(l), th_bytes = rbsp_locate_th_bytes(l), heads;
	enum rbsp_status st = RBSP_E_NOMEM;
	struct batch b;

	memset(seen, 0, n * sizeof(*seen));
	if (!n || ec_bytes > HEAD_MAX || th_bytes > HEAD_MAX)
		return RBSP_OK;
	if (!batch_init(&b, n))
		goto out;
	for (size_t i = 0; i < n; i++) {
		if (rbsp_locate_plausible(&f->maps, ec[i], ec_bytes))
			batch_add(&b, i, ec[i], ec_bytes);
	}
	st = rbsp_locate_read_many(f->t, b.piece, b.n, b.ok);
	if (st != RBSP_OK)
		goto out;
	heads = b.n;
	b.n = 0;
	for (size_t k = 0; k < heads; k++) { /* b.n <= k: what is overwritten was read already */
		size_t i = b.of[k];

		if (b.ok[k] &&
		    rbsp_locate_ec_head(l, &f->maps, ec[i], b.head + k * HEAD_MAX, &seen[i]))
			batch_add(&b, i, seen[i].th, th_bytes);
	}
	st = rbsp_locate_read_many(f->t, b.piece, b.n, b.ok);
	for (size_t k = 0; st == RBSP_OK && k < b.n; k++) {
		if (b.ok[k])
			rbsp_locate_ec_thread(l, &f->maps, b.head + k * HEAD_MAX, &seen[b.of[k]]);
	}
out:
	batch_fini(&b);
	return st;
}

/** A VM is one if its main thread names it and has a valid execution context. */
static enum rbsp_status check_vms(struct rbsp_finder *f, const rbsp_addr *vm, size_t n,
				  rbsp_addr *found)
{
	const struct rbsp_layout *l = f->l->layout;
	rbsp_addr *th = calloc(n, sizeof(*th)), *ec = calloc(n, sizeof(*ec));
	struct rbsp_piece *v = calloc(n, sizeof(*v));
	struct rbsp_ec_seen *seen = calloc(n, sizeof(*seen));
	bool *ok = calloc(n, sizeof(*ok));
	enum rbsp_status st = RBSP_E_NOMEM;

	if (!th || !ec || !v || !seen || !ok)
		goto out;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct rbsp_piece){ vm[i] + l->vm.main_thread, &th[i], 8 };
	st = rbsp_locate_read_many(f->t, v, n, ok);
	if (st != RBSP_OK)
		goto out;
	for (size_t i = 0; i < n; i++) {
		bool plausible =
			ok[i] && rbsp_locate_plausible(&f->maps, th[i], rbsp_locate_th_bytes(l));

		v[i] = (struct rbsp_piece){ plausible ? th[i] + l->th.ec : vm[i], &ec[i], 8 };
		ok[i] = false;
	}
	st = rbsp_locate_read_many(f->t, v, n, ok);
	if (st == RBSP_OK)
		st = rbsp_locate_ecs(f, ec, n, seen);
	if (st != RBSP_OK)
		goto out;
	st = RBSP_E_NOT_FOUND;
	for (size_t i = 0; i < n && st != RBSP_OK; i++) {
		if (seen[i].valid && seen[i].vm == vm[i] && seen[i].th == th[i]) {
			*found = vm[i];
			st = RBSP_OK;
		}
	}
out:
	free(th);
	free(ec);
	free(v);
	free(seen);
	free(ok);
	return st;
}

/** Every word of the module's data that may point to a VM. */
static enum rbsp_status search_data(struct rbsp_finder *f, rbsp_addr at, const uint64_t *w,
				    size_t n, void *arg)
{
	rbsp_addr *vm = calloc(n + 1, sizeof(*vm));
	size_t found = 0;
	enum rbsp_status st;

	(void)at;
	if (!vm)
		return RBSP_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (rbsp_locate_plausible(&f->maps, w[i], f->l->layout->vm.main_thread + 8u))
			vm[found++] = w[i];
	}
	st = found ? check_vms(f, vm, found, arg) : RBSP_E_NOT_FOUND;
	free(vm);
	return st;
}

static enum rbsp_status try_vm(struct rbsp_finder *f, rbsp_addr vm, const char *how)
{
	enum rbsp_status st = RBSP_E_NOT_FOUND;

	if (rbsp_locate_plausible(&f->maps, vm, f->l->layout->vm.main_thread + 8u))
		st = check_vms(f, &vm, 1, &f->l->addrs.vm);
	if (rbsp_locate_hard(st))
		return st;
	rbsp_locate_step(f, "vm", how, st == RBSP_OK, "%#llx", (unsigned long long)vm);
	return st;
}

enum rbsp_status rbsp_locate_vm(struct rbsp_finder *f)
{
	rbsp_addr at = rbsp_locate_symbol(f, "ruby_current_vm_ptr"), vm = 0;
	enum rbsp_status st = RBSP_E_NOT_FOUND;
	struct rbsp_loads loads;

	if (at && rbsp_read_word(f->t, at, &vm) == RBSP_OK)
		st = try_vm(f, vm, "by symbol ruby_current_vm_ptr");
	if (st == RBSP_E_NOT_FOUND &&
	    rbsp_locate_follow_loads(f, "rb_during_gc", &loads) == RBSP_OK && loads.n >= 3)
		st = try_vm(f, loads.value[loads.n - 3], "by the loads of rb_during_gc");
	if (st == RBSP_E_NOT_FOUND) {
		st = rbsp_locate_data(f, search_data, &f->l->addrs.vm);
		if (!rbsp_locate_hard(st))
			rbsp_locate_step(f, "vm", "by search of the module's data", st == RBSP_OK,
					 "%#llx", (unsigned long long)f->l->addrs.vm);
	}
	return st;
}

enum rbsp_status rbsp_locate_threads(struct rbsp_finder *f, bool learn)
{
	enum rbsp_status st;

	free(f->thread);
	f->thread = NULL;
	f->n_thread = 0;
	st = rbsp_ruby_threads(f->t, f->l->layout, f->l->addrs.vm, &f->thread, &f->n_thread);
	f->torn = st == RBSP_E_TORN;
	if ((st != RBSP_OK && !f->torn) || !learn)
		return f->torn ? RBSP_OK : st;
	/* Which kernel thread has which pointer does not matter to the search of the slot. */
	for (size_t i = 0, k = 0; i < f->n_thread && k < f->n_lwp; i++) {
		if (f->thread[i].pthread) {
			f->lwp[k++].tp = f->thread[i].pthread;
			f->n_tp = k;
		}
	}
	return RBSP_OK;
}
