/* Return addresses and signal frame for a thread on which calls are made; see returnchain.h. */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/ptrace/returnchain.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/vec.h"
#include "host/proc.h"
#include "plan/heapplan.h"

/* In-kernel results of interrupted system calls (include/linux/errno.h). */
#define KERNEL_ERESTARTSYS           512
#define KERNEL_ERESTARTNOINTR        513
#define KERNEL_ERESTARTNOHAND        514
#define KERNEL_ERESTART_RESTARTBLOCK 516

#define SYSCALL_INSN_BYTES 2

/* arch/x86/include/uapi/asm/ucontext.h and sigcontext.h */
#define UC_FP_XSTATE_         1u
#define UC_SIGCONTEXT_SS_     2u
#define UC_STRICT_RESTORE_SS_ 4u
#define FP_XSTATE_MAGIC1_     0x46505853u
#define FP_XSTATE_MAGIC2_     0x46505845u
/* Neither 0, SS_ONSTACK nor SS_DISABLE: sigaltstack refuses it, and the thread's own stays. */
#define SS_INVALID 4

#define NR_SLOTS         11u
#define UC_BYTES         (offsetof(ucontext_t, uc_sigmask) + 8) /* the kernel's mask: 8 bytes */
#define XSAVE_ALIGN      64u
#define XSAVE_SW_AT      464u /* software-defined bytes of the FXSAVE area */
#define XSAVE_HEADER_AT  512u
#define XSAVE_BYTES_MIN  576u
#define XSAVE_PKRU       (1ull << 9)
#define CPUID_XSAVE      0xdu
#define SCAN_BYTES       16384u
#define SCAN_TOTAL_BYTES (16u << 20) /* of code that are searched for save_eax */

/* ---- instructions in the target -------------------------------------------------------------- */

static int add_code(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct heap_ranges *code = ctx;
	struct heap_range range = {m->start, m->end};
	/* Generated code may change, and the recorder's stubs are replaced. */
	if (m->is_exec && m->inode && strncmp(m->path, "/memfd:", 7) != 0)
		vec_push(code, range);
	return 0;
}

/* @at: address of the return instruction, @b points to it, two bytes before it are readable. */
static void note_code(struct returnchain_code *c, const uint8_t *b, uint64_t at)
{
	if (b[-1] == 0x58)
		c->pop_rax = at - 1;
	else if (b[-1] == 0x5f)
		c->pop_rdi = at - 1;
	else if (b[-1] == 0x5e)
		c->pop_rsi = at - 1;
	else if (b[-1] == 0x05 && b[-2] == 0x0f)
		c->syscall_ret = at - 2;
	else if (b[-1] == 0x92 || b[-1] == 0x93 || b[-1] == 0x95) {
		c->save_eax = at - 1;
		c->saved_off = b[-1] == 0x92   ? offsetof(struct user_regs_struct, rdx)
			       : b[-1] == 0x93 ? offsetof(struct user_regs_struct, rbx)
					       : offsetof(struct user_regs_struct, rbp);
	}
}

static bool has_required(const struct returnchain_code *c)
{
	return c->syscall_ret && c->pop_rax && c->pop_rdi && c->pop_rsi;
}

static void scan_range(struct returnchain_code *c, int mem_fd, const struct heap_range *range,
		       size_t *nr_scanned)
{
	uint8_t b[SCAN_BYTES];
	for (uint64_t at = range->start; at < range->end; at += sizeof(b) - 2) {
		ssize_t n = pread(mem_fd, b, MIN(sizeof(b), range->end - at), (off_t)at);
		for (const uint8_t *p = b + 2; n > 2 && p < b + n; p++) {
			p = memchr(p, 0xc3, (size_t)(b + n - p));
			if (!p)
				break;
			note_code(c, p, at + (uint64_t)(p - b));
		}
		*nr_scanned += sizeof(b);
		if (has_required(c) && (c->save_eax || *nr_scanned > SCAN_TOTAL_BYTES))
			return;
	}
}

int returnchain_find_code(struct returnchain_code *ret_c, int32_t pid, int mem_fd, struct err *err)
{
	CLEANUP(heap_ranges_release) struct heap_ranges code = {0};
	struct returnchain_code c = {0};
	size_t nr_scanned = 0;
	TRY(proc_maps(pid, add_code, &code, err));
	/* Backwards: the C library is mapped last, and the program itself may be large. */
	for (size_t i = code.n; i-- && !(has_required(&c) && c.save_eax);)
		scan_range(&c, mem_fd, &code.p[i], &nr_scanned);
	if (!has_required(&c) && proc_has_ended(pid)) /* its code cannot be read any more */
		return err_set(err, -ESRCH, "process %d has ended", pid);
	if (!has_required(&c))
		return err_set(err, -ENOEXEC,
			       "the code of pid %d has no instructions by which assay could make "
			       "a call and let the thread continue afterwards",
			       pid);
	*ret_c = c;
	return 0;
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Makes an interrupted system call be repeated, as the kernel would at the end of the stop. */
static void repeat_syscall(struct user_regs_struct *regs, int64_t restarted_nr)
{
	int64_t nr = (int64_t)regs->orig_rax;
	if (nr < 0)
		return;
	switch (-(int64_t)regs->rax) {
	case KERNEL_ERESTARTSYS:
	case KERNEL_ERESTARTNOINTR:
	case KERNEL_ERESTARTNOHAND:
	case KERNEL_ERESTART_RESTARTBLOCK:
		break;
	default:
		return;
	}
	/* rt_sigreturn clears what restart_syscall would continue. */
	nr = nr == SYS_restart_syscall ? restarted_nr : nr;
	if (nr < 0) {
		regs->rax = (unsigned long long)-EINTR;
		return;
	}
	regs->rip -= SYSCALL_INSN_BYTES;
	regs->rax = (unsigned long long)nr;
}

static void fill_registers(ucontext_t *uc, const struct user_regs_struct *r)
{
	const struct {
		int to;
		unsigned long long value;
	} all[] = {
		{REG_R8, r->r8},
		{REG_R9, r->r9},
		{REG_R10, r->r10},
		{REG_R11, r->r11},
		{REG_R12, r->r12},
		{REG_R13, r->r13},
		{REG_R14, r->r14},
		{REG_R15, r->r15},
		{REG_RDI, r->rdi},
		{REG_RSI, r->rsi},
		{REG_RBP, r->rbp},
		{REG_RBX, r->rbx},
		{REG_RDX, r->rdx},
		{REG_RAX, r->rax},
		{REG_RCX, r->rcx},
		{REG_RSP, r->rsp},
		{REG_RIP, r->rip},
		{REG_EFL, r->eflags},
		/* struct sigcontext: cs, gs, fs (both ignored), ss */
		{REG_CSGSFS, (r->cs & 0xffff) | (r->ss & 0xffff) << 48},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		uc->uc_mcontext.gregs[all[i].to] = (greg_t)all[i].value;
}

/*
 * The regset is an XSAVE area in standard form, of all components that the kernel supports. The
 * frame has only those that are not in their initial state: for AMX the kernel rejects more than
 * the process has asked for.
 */
static uint64_t components_of(const uint8_t *xstate)
{
	uint64_t set;
	uint64_t enabled;
	memcpy(&set, xstate + XSAVE_HEADER_AT, 8);
	memcpy(&enabled, xstate + XSAVE_SW_AT, 8); /* by the kernel: XCR0 */
	return set | 3 | (enabled & XSAVE_PKRU);
}

static size_t xsave_bytes(uint64_t components, size_t max)
{
	size_t n = XSAVE_BYTES_MIN;
	for (unsigned i = 2; i < 63; i++) {
		unsigned eax = 0;
		unsigned ebx = 0;
		unsigned ecx;
		unsigned edx;
		if ((components >> i & 1) &&
		    __get_cpuid_count(CPUID_XSAVE, i, &eax, &ebx, &ecx, &edx))
			n = MAX(n, (size_t)ebx + eax);
	}
	return MIN(n, max);
}

/* Copies the state and adds the marks by which the kernel recognizes it. Returns its bytes. */
static size_t fill_xstate(uint8_t *to, const struct returnchain_state *s)
{
	uint64_t components = components_of(s->xstate);
	size_t n = xsave_bytes(components, s->nr_xstate);
	const struct {
		uint32_t magic1;
		uint32_t extended_bytes;
		uint64_t components;
		uint32_t xstate_bytes;
		uint32_t padding[7];
	} sw = {FP_XSTATE_MAGIC1_, (uint32_t)n + 4, components, (uint32_t)n, {0}};
	const uint32_t magic2 = FP_XSTATE_MAGIC2_;
	memcpy(to, s->xstate, n);
	memcpy(to + XSAVE_SW_AT, &sw, sizeof(sw));
	memcpy(to + XSAVE_HEADER_AT, &components, sizeof(components));
	memcpy(to + n, &magic2, sizeof(magic2));
	return n + sizeof(magic2);
}

size_t returnchain_bytes_max(void)
{
	unsigned eax;
	unsigned ebx = 0;
	unsigned ecx;
	unsigned edx;
	(void)__get_cpuid_count(CPUID_XSAVE, 0, &eax, &ebx, &ecx, &edx);
	return NR_SLOTS * 8 + UC_BYTES + MAX(ebx, XSAVE_BYTES_MIN) + 4 + 2 * XSAVE_ALIGN;
}

static void fill_slots(const struct returnchain_code *c, const struct returnchain_state *s,
		       uint64_t slots[NR_SLOTS])
{
	uint64_t ret = c->syscall_ret + SYSCALL_INSN_BYTES;
	const uint64_t notify[] = {c->pop_rdi, (uint64_t)s->tid, c->pop_rsi,    (uint64_t)s->notify,
				   c->pop_rax, SYS_tkill,        c->syscall_ret};
	slots[0] = c->save_eax ? c->save_eax : ret;
	for (size_t i = 0; i < ARRAY_LEN(notify); i++)
		slots[1 + i] = s->notify ? notify[i] : ret;
	slots[8] = c->pop_rax;
	slots[9] = SYS_rt_sigreturn;
	slots[10] = c->syscall_ret;
}

size_t returnchain_make(const struct returnchain_code *c, const struct returnchain_state *s,
			uint64_t top, uint8_t *to, uint64_t *ret_addr)
{
	struct user_regs_struct regs = s->regs;
	ucontext_t uc = {.uc_flags = UC_FP_XSTATE_ | UC_SIGCONTEXT_SS_ | UC_STRICT_RESTORE_SS_};
	uint64_t slots[NR_SLOTS];
	/* xstate_off: the first offset behind the context where the state is aligned */
	const size_t xstate_off = 440;
	uint64_t addr = ((top - returnchain_bytes_max()) & ~(uint64_t)(XSAVE_ALIGN - 1)) + 8;
	_Static_assert(8 + 440 == 7 * XSAVE_ALIGN && 440 >= NR_SLOTS * 8 + UC_BYTES,
		       "the state of a frame is aligned");
	repeat_syscall(&regs, s->restarted_nr);
	fill_slots(c, s, slots);
	fill_registers(&uc, &regs);
	uc.uc_stack.ss_flags = SS_INVALID;
	uint64_t state_at = addr + xstate_off;
	memcpy(&uc.uc_mcontext.fpregs, &state_at, sizeof(state_at));
	memcpy(&uc.uc_sigmask, &s->mask, sizeof(s->mask));
	memset(to, 0, xstate_off);
	memcpy(to, slots, sizeof(slots));
	memcpy(to + sizeof(slots), &uc, UC_BYTES);
	*ret_addr = addr;
	return xstate_off + fill_xstate(to + xstate_off, s);
}

#endif
