/*
 * Stops a launched command; see launch.h.
 *
 * RUNNING  traced for its next exec
 * ARMED    after an exec: breakpoints at the dynamic linker's _dl_debug_state and at the program's
 *          entry point; or at its main function
 * STOPPED  at one of them; both are removed again
 *
 * The dynamic linkers of glibc and musl call _dl_debug_state for debuggers whenever their list of
 * objects has changed: glibc before it loads anything (r_state is RT_ADD) and when all is
 * relocated, before constructors (RT_CONSISTENT); musl once, at the latter. The protocol is that of
 * link.h (struct r_debug).
 *
 * Hardware breakpoints are used, which change no code; where there are none, int3. Some hypervisors accept
 * debug registers without effect, so the first stopped program shows whether they work.
 */
#include "base/base.h"
#include "remote/patch/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/dynlinker.h"
#include "host/procmem.h"
#include "remote/ptrace/tracee.h"

#define LINKER_TIMEOUT_NS (10 * NS_PER_MS)
#define SIGNALS_MAX       16u /* delivered before it is detached */
#define SYMBOLS_MAX       4096u
#define NR_BREAKPOINTS    2u
#define INT3              0xcc

enum state { RUNNING, ARMED, STOPPED };

/* Whether hardware breakpoints stop a program on this machine. */
static enum registers { REGISTERS_UNTRIED, REGISTERS_WORK, REGISTERS_FAIL } has_registers;

struct breakpoint {
	uint64_t addr; /* 0 = none */
	bool is_text;  /* int3, else a debug register */
	uint8_t old;
};

struct heaplaunch {
	int32_t pid;
	enum state state;
	int mem_fd;
	uint64_t r_debug;                              /* 0 = not known */
	uint64_t dynamic;                              /* of the program, for DT_DEBUG */
	struct breakpoint breakpoints[NR_BREAKPOINTS]; /* _dl_debug_state, entry or main */
	unsigned nr_signals;
	bool is_child; /* assay's own: its exit status is not reaped here */
	bool is_gone;
};

static bool get(const struct heaplaunch *l, uint64_t addr, void *to, size_t n)
{
	return pread(l->mem_fd, to, n, (off_t)addr) == (ssize_t)n;
}

/* ---- the dynamic linker ---------------------------------------------------------------------- */

/* Addresses of two symbols of the dynamic linker, which is not relocated yet. */
static void find_symbols(const struct heaplaunch *l, uint64_t base, uint64_t *ret_point,
			 uint64_t *ret_debug)
{
	Elf64_Ehdr eh;
	uint64_t bias = base;
	if (!get(l, base, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return;
	uint64_t dynamic = dynlinker_dynamic(l->mem_fd, base + eh.e_phoff, eh.e_phnum, base, &bias);
	uint64_t symbols = dynlinker_tag(l->mem_fd, dynamic, DT_SYMTAB, NULL);
	uint64_t strings = dynlinker_tag(l->mem_fd, dynamic, DT_STRTAB, NULL);
	/* Linkers place the string table behind the symbols: this gives their number. */
	uint64_t n = strings > symbols ? (strings - symbols) / sizeof(Elf64_Sym) : SYMBOLS_MAX;
	for (uint64_t i = 0; symbols && strings && i < MIN(n, SYMBOLS_MAX); i++) {
		Elf64_Sym s;
		char name[16] = "";
		if (!get(l, bias + symbols + i * sizeof(s), &s, sizeof(s)))
			return;
		if (!s.st_value || !get(l, bias + strings + s.st_name, name, sizeof(name) - 1))
			continue;
		if (!strcmp(name, "_dl_debug_state"))
			*ret_point = bias + s.st_value;
		else if (!strcmp(name, "_r_debug"))
			*ret_debug = bias + s.st_value;
	}
}

/* Whether the list of objects is consistent; true if r_debug is not found. */
static bool is_consistent(const struct heaplaunch *l)
{
	int32_t state = -1;
	uint64_t at =
		l->r_debug ? l->r_debug : dynlinker_tag(l->mem_fd, l->dynamic, DT_DEBUG, NULL);
	if (!at || !get(l, at + offsetof(struct r_debug, r_state), &state, sizeof(state)))
		return true;
	return state == RT_CONSISTENT;
}

/* ---- breakpoints --------------------------------------------------------------------------- */

#if defined(__x86_64__)

static bool set_register(const struct heaplaunch *l, size_t i, uint64_t value)
{
	return !ptrace(PTRACE_POKEUSER, l->pid, offsetof(struct user, u_debugreg[i]), value);
}

/*
 * Single-steps the stopped program with a breakpoint at its next instruction: one that works stops it before
 * that, and says so in DR6. A step out of an execve executes nothing, so a second one follows.
 */
static enum registers try_registers(const struct heaplaunch *l)
{
	struct user_regs_struct before, after;
	uint64_t hit = 0;
	if (tracee_get_regs(l->pid, &before) || !set_register(l, 0, before.rip) ||
	    !set_register(l, 7, 1))
		return REGISTERS_FAIL;
	after = before;
	for (int i = 0; i < 2 && !hit && after.rip == before.rip; i++) {
		struct tracee_stop s = {0};
		if (ptrace(PTRACE_SINGLESTEP, l->pid, 0, 0) ||
		    tracee_wait(l->pid, l->is_child, clock_mono_ns() + NS_PER_SEC, &s) ||
		    tracee_get_regs(l->pid, &after))
			break;             /* it has ended */
		if (s.signal != SIGTRAP) { /* deliver it later */
			(void)kill(l->pid, s.signal);
			break;
		}
		hit = (uint64_t)ptrace(PTRACE_PEEKUSER, l->pid,
				       offsetof(struct user, u_debugreg[6]), 0) &
		      1;
	}
	(void)set_register(l, 7, 0);
	(void)set_register(l, 0, 0);
	(void)set_register(l, 6, 0);
	/* Run again what was run: it may be the entry of a static program, where a breakpoint follows. */
	if (!hit && after.rip != before.rip)
		(void)tracee_set_regs(l->pid, &before);
	return hit ? REGISTERS_WORK : REGISTERS_FAIL;
}

#else

static enum registers try_registers(const struct heaplaunch *l)
{
	(void)l;
	return REGISTERS_FAIL;
}

static bool set_register(const struct heaplaunch *l, size_t i, uint64_t value)
{
	(void)l, (void)i, (void)value;
	return false;
}

#endif

static void clear_breakpoints(struct heaplaunch *l)
{
	(void)set_register(l, 7, 0);
	for (size_t i = 0; i < NR_BREAKPOINTS; i++) {
		struct breakpoint *p = &l->breakpoints[i];
		if (p->addr && p->is_text)
			(void)!pwrite(l->mem_fd, &p->old, 1,
				      (off_t)p->addr); /* fails if it has ended */
		(void)set_register(l, i, 0);
		*p = (struct breakpoint){0};
	}
}

static bool set_breakpoint(struct heaplaunch *l, size_t i, uint64_t addr)
{
	static const uint8_t int3 = INT3;
	struct breakpoint *p = &l->breakpoints[i];
	*p = (struct breakpoint){.addr = addr};
	if (!addr)
		return false;
	if (has_registers == REGISTERS_WORK && set_register(l, i, addr))
		return true;
	p->is_text = true;
	if (get(l, addr, &p->old, 1) && pwrite(l->mem_fd, &int3, 1, (off_t)addr) == 1)
		return true;
	p->addr = 0;
	return false;
}

static bool is_64bit_code(const struct user_regs_struct *regs)
{
#if defined(__x86_64__)
	return regs->cs == 0x33;
#else
	(void)regs;
	return true;
#endif
}

/* Sets breakpoints at these addresses, 0 = none. */
static void arm(struct heaplaunch *l, uint64_t point, uint64_t entry)
{
	if (has_registers == REGISTERS_UNTRIED)
		has_registers = try_registers(l);
	bool has_point = set_breakpoint(l, 0, point);
	bool has_entry = set_breakpoint(l, 1, entry);
	/* DR7: local enable of each, on execution. */
	uint64_t enable = (has_point && !l->breakpoints[0].is_text ? 1u : 0) |
			  (has_entry && !l->breakpoints[1].is_text ? 4u : 0);
	if (enable && !set_register(l, 7, enable)) {
		clear_breakpoints(l);
		return;
	}
	if (has_point || has_entry)
		l->state = ARMED;
}

/* Called at the exec stop, before the program runs. */
static void set_breakpoints(struct heaplaunch *l)
{
	struct dynlinker d;
	struct user_regs_struct regs;
	uint64_t breakpoint = 0;
	close_p(&l->mem_fd); /* of the previous program */
	l->mem_fd = host_open_mem(l->pid, O_RDWR);
	l->state = RUNNING;
	l->r_debug = 0;
	memset(l->breakpoints, 0, sizeof(l->breakpoints));
	if (l->mem_fd < 0 || tracee_get_regs(l->pid, &regs))
		return;
	if (!is_64bit_code(&regs)) { /* 32-bit: not supported by the recorder, stays stopped here */
		l->state = STOPPED;
		return;
	}
	if (dynlinker_find(&d, l->pid, l->mem_fd))
		return;
	l->dynamic = d.dynamic;
	if (d.base)
		find_symbols(l, d.base, &breakpoint, &l->r_debug);
	arm(l, breakpoint, d.entry);
}

/* The breakpoint that was hit, or NULL. After int3 the pc is set back. */
static struct breakpoint *find_hit(struct heaplaunch *l)
{
	struct user_regs_struct regs;
	if (tracee_get_regs(l->pid, &regs))
		return NULL;
#if defined(__x86_64__)
	for (size_t i = 0; i < NR_BREAKPOINTS; i++) {
		struct breakpoint *p = &l->breakpoints[i];
		if (!p->addr || regs.rip != p->addr + (p->is_text ? 1 : 0))
			continue;
		if (p->is_text) {
			regs.rip = p->addr;
			(void)tracee_set_regs(l->pid, &regs);
		}
		return p;
	}
#endif
	return NULL;
}

/* Single-steps the instruction under a breakpoint with the breakpoint disabled. */
static void step_over(struct heaplaunch *l, struct breakpoint *p)
{
	static const uint8_t int3 = INT3;
	struct tracee_stop s;
	bool is_text = p->is_text;
	if (is_text)
		(void)!pwrite(l->mem_fd, &p->old, 1, (off_t)p->addr);
	else
		(void)set_register(l, 7, 0);
	if (!ptrace(PTRACE_SINGLESTEP, l->pid, 0, 0))
		(void)tracee_wait(l->pid, l->is_child, clock_mono_ns() + NS_PER_SEC, &s);
	if (is_text)
		(void)!pwrite(l->mem_fd, &int3, 1, (off_t)p->addr);
	else
		(void)set_register(l, 7,
				   (l->breakpoints[0].addr ? 1u : 0) |
					   (l->breakpoints[1].addr ? 4u : 0));
}

/* ---- public ---------------------------------------------------------------------------------- */

static struct heaplaunch *launch_new(int32_t pid)
{
	struct heaplaunch *l = xcalloc(1, sizeof(*l));
	l->pid = pid;
	l->mem_fd = -1;
	return l;
}

int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, unsigned flags, struct err *err)
{
	unsigned long options = PTRACE_O_TRACEEXEC;
	if (flags & HEAPLAUNCH_CHILDREN)
		options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	TRY(tracee_seize(pid, pid, options, err));
	*ret_l = launch_new(pid);
	(*ret_l)->is_child = true;
	return 0;
}

/*
 * A thread that was killed while it was stopped is not gone before it was waited for: until then an
 * execve of another thread of its process waits.
 */
static int resume(struct heaplaunch *l, int sig)
{
	if (!ptrace(PTRACE_CONT, l->pid, 0, sig) || (errno == ESRCH && !l->is_child))
		return 0;
	l->is_gone = errno == ESRCH;
	return l->is_gone ? -ESRCH : -errno;
}

/* Delivers a signal of the program; after SIGNALS_MAX of them detaches with the last one. */
static int deliver_signal(struct heaplaunch *l, int sig)
{
	if (l->state == ARMED || ++l->nr_signals < SIGNALS_MAX)
		return resume(l, sig);
	(void)ptrace(PTRACE_DETACH, l->pid, 0, sig);
	l->is_gone = true;
	return -ESRCH;
}

static int on_trap(struct heaplaunch *l, bool *ret_is_held)
{
	struct breakpoint *p = find_hit(l);
	if (!p)
		return deliver_signal(l, SIGTRAP); /* the program's own */
	if (p == &l->breakpoints[0] && !is_consistent(l)) {
		step_over(l, p);
		return resume(l, 0);
	}
	clear_breakpoints(l);
	int rc = tracee_listen(l->pid, l->is_child, clock_mono_ns() + NS_PER_SEC);
	l->state = STOPPED;
	*ret_is_held = !rc;
	return rc;
}

static int on_stop(struct heaplaunch *l, const struct tracee_stop *s, bool *ret_is_held)
{
	if (s->event == PTRACE_EVENT_EXEC) {
		set_breakpoints(l);
		*ret_is_held = l->state == STOPPED;
		return *ret_is_held ? 0 : resume(l, 0);
	}
	if (s->event == PTRACE_EVENT_STOP) {
		bool is_group = s->signal == SIGSTOP || s->signal == SIGTSTP ||
				s->signal == SIGTTIN || s->signal == SIGTTOU;
		/* A group-stop (job control): stay in it, and get an event at SIGCONT. */
		return is_group && !ptrace(PTRACE_LISTEN, l->pid, 0, 0) ? 0 : resume(l, 0);
	}
	if (s->event == PTRACE_EVENT_FORK || s->event == PTRACE_EVENT_VFORK)
		l->nr_signals = 0;
	if (s->event)
		return resume(l, 0);
	if (s->signal == SIGTRAP && l->state == ARMED)
		return on_trap(l, ret_is_held);
	return deliver_signal(l, s->signal);
}

/*
 * Whether a new child has memory of its own: by the arguments of the system call that it returns from.
 * kcmp would tell, but needs rights that assay has dropped. False if that is not known.
 */
static bool has_own_memory(int32_t tid)
{
	struct user_regs_struct regs;
	if (tracee_get_regs(tid, &regs) || !is_64bit_code(&regs))
		return false;
#if defined(__x86_64__)
	uint64_t flags = regs.rdi;
	if (regs.orig_rax == SYS_fork)
		return true;
	errno = 0;
	if (regs.orig_rax == SYS_clone3) /* struct clone_args begins with the flags */
		flags = (uint64_t)ptrace(PTRACE_PEEKDATA, tid, regs.rdi, 0);
	bool is_clone = regs.orig_rax == SYS_clone || regs.orig_rax == SYS_clone3;
	return is_clone && !errno && !(flags & CLONE_VM);
#else
	return false;
#endif
}

int heaplaunch_adopt(struct heaplaunch **ret_l, int32_t tid, bool is_process, bool *ret_is_held)
{
	struct tracee_stop s;
	int rc = tracee_wait(tid, false, clock_mono_ns(), &s);
	if (rc) { /* no stop is reported twice */
		tracee_detach(tid);
		return rc;
	}
	struct heaplaunch *l CLEANUP(heaplaunch_free_p) = launch_new(tid);
	*ret_is_held = is_process && s.event == PTRACE_EVENT_STOP && s.signal == SIGTRAP &&
		       has_own_memory(tid);
	if (*ret_is_held)
		l->state = STOPPED;
	else
		TRY(on_stop(l, &s, ret_is_held));
	*ret_l = TAKE(l);
	return 0;
}

int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err)
{
	uint64_t deadline_ns = clock_mono_ns() + (uint64_t)MAX(timeout_ms, 0) * NS_PER_MS;
	*ret_is_held = l->state == STOPPED;
	while (!*ret_is_held) {
		struct tracee_stop s;
		if (l->is_gone)
			return err_set(err, -ESRCH, "pid %d has ended", l->pid);
		uint64_t until_ns = l->state == ARMED
					    ? MAX(deadline_ns, clock_mono_ns() + LINKER_TIMEOUT_NS)
					    : deadline_ns;
		int rc = tracee_wait(l->pid, l->is_child, until_ns, &s);
		if (rc == -ETIMEDOUT)
			return 0;
		rc = rc ? rc : on_stop(l, &s, ret_is_held);
		if (rc) {
			l->is_gone |= rc == -ESRCH;
			return err_set(err, rc, "cannot follow pid %d: %s", l->pid, strerror(-rc));
		}
	}
	return 0;
}

int heaplaunch_run_to_main(struct heaplaunch *l, uint64_t addr, struct err *err)
{
	if (l->state != STOPPED)
		return 0;
	l->state = RUNNING;
	arm(l, 0, addr);
	int rc = resume(l, 0);
	return rc ? err_set(err, rc, "cannot resume pid %d: %s", l->pid, strerror(-rc)) : 0;
}

int heaplaunch_continue(struct heaplaunch *l, struct err *err)
{
	if (l->state != STOPPED)
		return 0;
	l->state = RUNNING;
	l->nr_signals = 0;
	int rc = resume(l, 0);
	return rc ? err_set(err, rc, "cannot resume pid %d: %s", l->pid, strerror(-rc)) : 0;
}

void heaplaunch_free(struct heaplaunch *l)
{
	struct user_regs_struct regs;
	struct tracee_stop s;
	if (!l)
		return;
	/* Detaching needs a stopped tracee. */
	if (!l->is_gone &&
	    (l->state == STOPPED ||
	     !tracee_interrupt(l->pid, l->is_child, clock_mono_ns() + NS_PER_SEC, &regs))) {
		if (l->state == ARMED)
			clear_breakpoints(l);
		tracee_detach(l->pid);
	} else if (!l->is_gone) { /* stopped otherwise, else not detached; or ended: waits for it */
		tracee_detach(l->pid);
		(void)tracee_wait(l->pid, l->is_child, clock_mono_ns(), &s);
	}
	close_p(&l->mem_fd);
	free(l);
}
