/* A target that is this process, and captures of its stack. */
#include <alloca.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <check.h>

#include "native/arch.h"
#include "self.h"

static enum rbsp_status self_maps(struct rbsp_target *t, struct rbsp_maps *out,
				  struct rbsp_err *err)
{
	struct self *s = (struct self *)t;
	static char text[1 << 20];
	size_t n = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	enum rbsp_status st;

	while ((got = read(fd, text + n, sizeof(text) - n)) > 0)
		n += (size_t)got;
	close(fd);
	s->maps_read++;
	st = rbsp_maps_parse(text, n, out, err);
	for (size_t i = 0; st == RBSP_OK && i < out->n; i++) {
		if (s->hidden >= out->map[i].start && s->hidden < out->map[i].end)
			out->map[i].exec = false;
	}
	return st;
}

static enum rbsp_status self_threads(struct rbsp_target *t, int **tids, size_t *n,
				     struct rbsp_err *err)
{
	(void)t;
	(void)tids;
	(void)n;
	return rbsp_fail(err, RBSP_E_NOT_FOUND, "unwinding asked for threads");
}

static enum rbsp_status self_readv(struct rbsp_target *t, const struct rbsp_piece *v, size_t n,
				   size_t *done)
{
	(void)t;
	(void)v;
	(void)n;
	(void)done;
	return RBSP_E_FAULT; /* unwinding must not ask for memory */
}

static enum rbsp_status self_thread_pointer(struct rbsp_target *t, int tid, rbsp_addr *tp)
{
	(void)t;
	(void)tid;
	(void)tp;
	return RBSP_E_NOT_FOUND;
}

static enum rbsp_status self_image(struct rbsp_target *t, const struct rbsp_map *m,
				   const struct rbsp_elf **out, struct rbsp_err *err)
{
	struct self *s = (struct self *)t;
	enum rbsp_status st;

	for (size_t i = 0; i < s->n; i++) {
		if (s->image[i].dev == m->dev && s->image[i].ino == m->ino) {
			*out = s->image[i].elf;
			return RBSP_OK;
		}
	}
	ck_assert_uint_lt(s->n, RBSP_COUNT_OF(s->image));
	if (m->ino) {
		int fd = open(m->path, O_RDONLY | O_CLOEXEC);

		st = rbsp_elf_open_fd(fd, m->path, &s->image[s->n].elf, err);
		close(fd);
	} else {
		st = rbsp_elf_open_bytes((const void *)(uintptr_t)m->start, m->end - m->start,
					 m->path, &s->image[s->n].elf, err);
	}
	if (st != RBSP_OK)
		return st;
	s->image[s->n].dev = m->dev;
	s->image[s->n].ino = m->ino;
	*out = s->image[s->n++].elf;
	return RBSP_OK;
}

static void self_free(struct rbsp_target *t)
{
	struct self *s = (struct self *)t;

	for (size_t i = 0; i < s->n; i++)
		rbsp_elf_close(s->image[i].elf);
}

static const struct rbsp_target_ops self_ops = {
	.maps = self_maps,
	.threads = self_threads,
	.readv = self_readv,
	.thread_pointer = self_thread_pointer,
	.image = self_image,
	.free = self_free,
};

void self_init(struct self *s)
{
	memset(s, 0, sizeof(*s));
	s->target = (struct rbsp_target){ &self_ops, getpid() };
}

struct rbsp_capture chain_cap;
static unsigned char stack[64 << 10];

static void registers_of(const ucontext_t *uc, struct rbsp_regs *regs)
{
	memset(regs, 0, sizeof(*regs));
#if defined(__x86_64__)
	static const int greg[RBSP_DW_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};

	for (int i = 0; i < RBSP_DW_REGS; i++)
		regs->r[i] = (uint64_t)uc->uc_mcontext.gregs[greg[i]];
#elif defined(__aarch64__)
	for (int i = 0; i < 31; i++)
		regs->r[i] = uc->uc_mcontext.regs[i];
	regs->r[RBSP_DW_SP] = uc->uc_mcontext.sp;
	regs->r[RBSP_DW_PC] = uc->uc_mcontext.pc;
#endif
	regs->sp = regs->r[RBSP_DW_SP];
	regs->pc = regs->r[RBSP_DW_PC];
	regs->known = (UINT64_C(1) << RBSP_DW_REGS) - 1;
}

/* The kernel copies the stack: no sanitizer minds, and nothing is read past its end. */
static void copy_stack(void)
{
	struct rbsp_range *r = &chain_cap.range[RBSP_RANGE_STACK];
	struct iovec to = { stack, sizeof(stack) };
	struct iovec from = { (void *)(uintptr_t)(chain_cap.regs.sp - 128), sizeof(stack) };
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	ck_assert_int_gt(n, 0);
	*r = (struct rbsp_range){ .addr = chain_cap.regs.sp - 128, .len = (uint32_t)n };
	chain_cap.data = stack;
	chain_cap.size = (uint32_t)n;
}

/* Calls that the compiler must leave as they are; alloca makes the leaf use a frame pointer. */
#ifdef __clang__
#define FRAME __attribute__((noinline, used))
#else
#define FRAME __attribute__((noinline, noclone, used))
#endif
#define NOT_THE_LAST_CALL() __asm__ volatile("" ::: "memory")

FRAME int chain_leaf(size_t n)
{
	volatile char *room = alloca(n);
	ucontext_t uc;

	room[0] = 1;
	getcontext(&uc);
	registers_of(&uc, &chain_cap.regs);
	copy_stack();
	return room[0];
}

FRAME int chain_compare(const void *a, const void *b)
{
	int leaf = chain_leaf(48);

	NOT_THE_LAST_CALL();
	return leaf - 1 + (*(const int *)a - *(const int *)b);
}

FRAME void chain_sort(void)
{
	int v[] = { 2, 1 };

	qsort(v, RBSP_COUNT_OF(v), sizeof(v[0]), chain_compare);
	NOT_THE_LAST_CALL();
}

FRAME void chain_recurse(unsigned depth)
{
	if (depth == 0)
		chain_sort();
	else
		chain_recurse(depth - 1);
	NOT_THE_LAST_CALL();
}

static jmp_buf way_back;

FRAME static _Noreturn void no_return(void)
{
	chain_leaf(16);
	longjmp(way_back, 1);
}

FRAME static _Noreturn void last_call(void)
{
	NOT_THE_LAST_CALL();
	no_return();
}

FRAME void chain_last_call(void)
{
	if (setjmp(way_back) == 0)
		last_call();
}

FRAME void chain_handler(int signo)
{
	(void)signo;
	chain_leaf(16);
	NOT_THE_LAST_CALL();
}

FRAME void chain_raise(void)
{
	raise(SIGUSR1);
	NOT_THE_LAST_CALL();
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl chain_restorer\n"
	".type chain_restorer, @function\n"
	"chain_restorer:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	".size chain_restorer, . - chain_restorer\n"
	".popsection");
#endif
