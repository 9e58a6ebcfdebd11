/*
 * Checks the walker at every instruction: runs a program by single steps and keeps a shadow stack.
 * A call pushes the slot of its return address; it is popped when the stack pointer is above it.
 * After each step the walker's complete stack is compared with the shadow stack.
 *
 *	unwind_step [-s SKIP_STEPS] [-n STEPS] [-e EVERY] [-v] -- CMD ARGS...
 *
 * Prints the number of stacks, how many are equal frame by frame, and where the others were taken
 * (module+offset, most frequent first). Exit 1 if less than 99.9 % are equal.
 */
#include "base/base.h"
#include "unwind/walk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "unwind_process.h"

#if defined(__x86_64__)

#define STACK_MAX ((size_t)8 << 20)

struct shadow {
	uint64_t addr; /* the return address, or the interrupted pc */
	uint64_t slot; /* where it is stored */
};

struct miss {
	uint64_t pc;
	uint64_t nr;
	uint32_t frame; /* index of the first frame that differs */
	enum walk_end end;
	uint64_t got, want;
};

struct stepper {
	pid_t pid;
	struct unwind_process process;
	VEC(struct shadow) shadow;
	VEC(struct miss) misses;
	struct map miss_by_pc;
	uint8_t *stack;
	uint64_t nr_walked, nr_equal, nr_rooted, nr_frames;
	uint64_t nr_steps, skip, max, every;
	bool is_verbose;
};

static size_t read_target(const struct stepper *s, uint64_t addr, void *to, size_t n)
{
	struct iovec local = {to, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n};
	ssize_t got = process_vm_readv(s->pid, &local, 1, &remote, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

/* The instruction at pc: a call? Prefixes that compilers put before one are skipped. */
static bool is_call_insn(const uint8_t *p, size_t n)
{
	size_t i = 0;
	while (i < n && (p[i] == 0x66 || p[i] == 0x67 || p[i] == 0xf2 || p[i] == 0x3e ||
			 p[i] == 0x2e || (p[i] & 0xf0) == 0x40))
		i++;
	if (i + 1 >= n)
		return false;
	return p[i] == 0xe8 || (p[i] == 0xff && (p[i + 1] >> 3 & 7) == 2);
}

static void pack_regs(const struct user_regs_struct *u, uint64_t *to)
{
	const uint64_t v[] = {u->rax, u->rbx, u->rcx,    u->rdx, u->rsi, u->rdi, u->rbp,
			      u->rsp, u->rip, u->eflags, u->cs,  u->ss,  u->r8,  u->r9,
			      u->r10, u->r11, u->r12,    u->r13, u->r14, u->r15};
	memcpy(to, v, sizeof(v));
}

static void note_miss(struct stepper *s, uint64_t pc, uint32_t frame, enum walk_end end,
		      uint64_t got, uint64_t want)
{
	bool is_new;
	uint32_t *idx = map_put(&s->miss_by_pc, pc, &is_new);
	if (is_new) {
		*idx = (uint32_t)s->misses.n;
		vec_push(&s->misses, (struct miss){pc, 0, frame, end, got, want});
	}
	s->misses.p[*idx].nr++;
}

static void compare(struct stepper *s, const struct user_regs_struct *u)
{
	uint64_t regs[24];
	const struct walk_frame *f;
	uint32_t nr;
	size_t n = unwind_process_stack_bytes(&s->process, u->rsp, STACK_MAX);

	pack_regs(u, regs);
	struct walk_input in = {.space = s->process.space,
				.regs = regs,
				.regs_mask = ARCH_PERF_REGS_MASK,
				.stack = s->stack,
				.nr_stack = read_target(s, u->rsp, s->stack, n)};
	enum walk_end end = walker_walk(s->process.walker, &in, &f, &nr);
	s->nr_walked++;
	s->nr_rooted += end == WALK_ROOT;
	s->nr_frames += nr;
	for (uint32_t i = 1; i < MAX(nr, s->shadow.n + 1); i++) {
		uint64_t got = i < nr ? f[i].addr : 0;
		uint64_t want = i <= s->shadow.n ? s->shadow.p[s->shadow.n - i].addr : 0;
		if (got != want) {
			note_miss(s, u->rip, i, end, got, want);
			return;
		}
	}
	if (end != WALK_ROOT)
		note_miss(s, u->rip, nr, end, 0, 0);
	else
		s->nr_equal++;
}

static void pop_passed(struct stepper *s, uint64_t sp)
{
	while (s->shadow.n && vec_last(&s->shadow)->slot < sp)
		s->shadow.n--;
}

static bool is_mapping_syscall(uint64_t nr)
{
	return nr == 9 || nr == 10 || nr == 11 || nr == 25;
}

/* Executes one instruction; false: the program has ended. */
static bool step(struct stepper *s, struct user_regs_struct *u, int *sig)
{
	uint8_t code[16] = {0};
	size_t n = read_target(s, u->rip, code, sizeof(code));
	bool is_call = is_call_insn(code, n);
	bool is_mapping = code[0] == 0x0f && code[1] == 0x05 && is_mapping_syscall(u->rax);
	int delivered = *sig;
	struct user_regs_struct before = *u;
	int status;

	if (ptrace(PTRACE_SINGLESTEP, s->pid, 0, (void *)(uintptr_t)delivered) < 0 ||
	    waitpid(s->pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return false;
	*sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGS, s->pid, 0, u) < 0)
		return false;
	if (delivered && u->rsp != before.rsp) {
		/* In a signal handler: push the interrupted frame, then the restorer. */
		uint64_t restorer = 0;
		(void)read_target(s, u->rsp, &restorer, 8);
		vec_push(&s->shadow, (struct shadow){before.rip, u->rsp + 8});
		vec_push(&s->shadow, (struct shadow){restorer, u->rsp});
		return true;
	}
	pop_passed(s, u->rsp);
	if (is_call && u->rsp == before.rsp - 8 && u->rip != before.rip) {
		uint64_t ra = 0;
		(void)read_target(s, u->rsp, &ra, 8);
		vec_push(&s->shadow, (struct shadow){ra, u->rsp});
	}
	if (is_mapping)
		(void)unwind_process_refresh(&s->process);
	return true;
}

static void run(struct stepper *s)
{
	struct user_regs_struct u;
	int sig = 0;

	if (ptrace(PTRACE_GETREGS, s->pid, 0, &u) < 0)
		return;
	while (s->nr_walked < s->max) {
		if (s->nr_steps >= s->skip && s->nr_steps % s->every == 0)
			compare(s, &u);
		s->nr_steps++;
		if (!step(s, &u, &sig))
			return;
	}
}

static int by_number(const void *a, const void *b)
{
	const struct miss *x = a;
	const struct miss *y = b;
	return x->nr < y->nr ? 1 : x->nr > y->nr ? -1 : 0;
}

static const char *module_path(const struct stepper *s, const struct space_map *m)
{
	return m ? s->process.modules[m->module->id - 1].path : "?";
}

static void print_addr(const struct stepper *s, const char *what, uint64_t addr)
{
	const struct space_map *m = space_find(s->process.space, addr);
	printf(" %s %s+0x%" PRIx64, what, module_path(s, m), m ? addr - m->bias : addr);
}

static int report(struct stepper *s)
{
	printf("%" PRIu64 " steps, %" PRIu64 " stacks walked, mean depth %.1f: %" PRIu64
	       " equal (%.4f %%), %" PRIu64 " rooted\n",
	       s->nr_steps, s->nr_walked, (double)s->nr_frames / (double)MAX(s->nr_walked, 1),
	       s->nr_equal, 100.0 * (double)s->nr_equal / (double)MAX(s->nr_walked, 1),
	       s->nr_rooted);
	if (s->misses.n)
		qsort(s->misses.p, s->misses.n, sizeof(*s->misses.p), by_number);
	for (size_t i = 0; i < s->misses.n && i < (s->is_verbose ? 1000u : 20u); i++) {
		const struct miss *m = &s->misses.p[i];
		printf("  %" PRIu64 "x", m->nr);
		print_addr(s, "at", m->pc);
		printf(" end %d frame %u", m->end, m->frame);
		print_addr(s, "got", m->got);
		print_addr(s, "want", m->want);
		printf("\n");
	}
	return (double)s->nr_equal >= 0.999 * (double)s->nr_walked ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct stepper s = {.max = 10000, .every = 1};
	int opt;

	while ((opt = getopt(argc, argv, "+s:n:e:v")) != -1) {
		if (opt == 's')
			s.skip = strtoull(optarg, NULL, 0);
		else if (opt == 'n')
			s.max = strtoull(optarg, NULL, 0);
		else if (opt == 'e')
			s.every = MAX(strtoull(optarg, NULL, 0), 1);
		else if (opt == 'v')
			s.is_verbose = true;
		else
			return 2;
	}
	s.pid = fork();
	if (!s.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[optind], argv + optind);
		_exit(127);
	}
	int status;
	if (waitpid(s.pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return 2;
	s.stack = xmalloc(STACK_MAX);
	if (!unwind_process_init_pid(&s.process, s.pid))
		return 2;
	run(&s);
	int code = report(&s);
	kill(s.pid, SIGKILL);
	unwind_process_release(&s.process);
	vec_release(&s.shadow);
	vec_release(&s.misses);
	map_release(&s.miss_by_pc);
	free(s.stack);
	return code;
}

#else
int main(void)
{
	return 77;
}
#endif
