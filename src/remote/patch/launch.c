/*
 * A launched command held; see launch.h.
 *
 *	WATCHED  runs; traced for its next exec
 *	ARMED    has executed a program: breakpoints at the dynamic linker's _dl_debug_state and at
 *	         the program's entry point
 *	HELD     stands at one of them, which are gone again
 *
 * The dynamic linkers of glibc and musl call _dl_debug_state whenever their list of objects has
 * changed, for debuggers: glibc first before it loads anything (r_state is RT_ADD), and when all
 * is relocated, before constructors (RT_CONSISTENT); musl once, at that point. The protocol is that
 * of link.h (struct r_debug).
 *
 * Breakpoints are the processor's, which change no text; where there are none, int3.
 */
#include "base/base.h"
#include "remote/patch/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/dynlinker.h"
#include "host/procmem.h"
#include "remote/ptrace/tracee.h"

#define ARMED_NS    (10 * NS_PER_MS)
#define SIGNALS_MAX 16u /* of a process that is followed */
#define SYMBOLS_MAX 4096u
#define NR_POINTS   2u
#define INT3        0xcc

enum state { WATCHED, ARMED, HELD };

struct point {
	uint64_t addr; /* 0 = none */
	bool is_text;  /* by int3 */
	uint8_t old;
};

struct heaplaunch {
	int32_t pid;
	enum state state;
	int mem_fd;
	uint64_t r_debug;               /* 0 = not known */
	uint64_t dynamic;               /* of the program, for DT_DEBUG */
	struct point points[NR_POINTS]; /* _dl_debug_state, entry */
	unsigned nr_signals;
	bool is_gone;
};

static bool get(const struct heaplaunch *l, uint64_t addr, void *to, size_t n)
{
	return pread(l->mem_fd, to, n, (off_t)addr) == (ssize_t)n;
}

/* ---- where the dynamic linker tells ------------------------------------------------------- */

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
	/* The string table follows the symbols wherever linkers have made it. */
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

/* Without a place to ask, the first call is taken for the right one. */
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

#else

static bool set_register(const struct heaplaunch *l, size_t i, uint64_t value)
{
	(void)l, (void)i, (void)value;
	return false;
}

#endif

static void disarm(struct heaplaunch *l)
{
	(void)set_register(l, 7, 0);
	for (size_t i = 0; i < NR_POINTS; i++) {
		struct point *p = &l->points[i];
		if (p->addr && p->is_text)
			(void)!pwrite(l->mem_fd, &p->old, 1, (off_t)p->addr); /* it has ended */
		(void)set_register(l, i, 0);
		*p = (struct point){0};
	}
}

static bool arm_point(struct heaplaunch *l, size_t i, uint64_t addr)
{
	static const uint8_t int3 = INT3;
	struct point *p = &l->points[i];
	*p = (struct point){.addr = addr};
	if (!addr)
		return false;
	if (set_register(l, i, addr))
		return true;
	p->is_text = true;
	if (get(l, addr, &p->old, 1) && pwrite(l->mem_fd, &int3, 1, (off_t)addr) == 1)
		return true;
	p->addr = 0;
	return false;
}

static bool is_our_code(const struct user_regs_struct *regs)
{
#if defined(__x86_64__)
	return regs->cs == 0x33;
#else
	(void)regs;
	return true;
#endif
}

/* At the stop of its exec: nothing of the program has run. */
static void arm(struct heaplaunch *l)
{
	struct dynlinker d;
	struct user_regs_struct regs;
	uint64_t point = 0;
	close_p(&l->mem_fd); /* that was the former program's memory */
	l->mem_fd = host_open_mem(l->pid, O_RDWR);
	l->state = WATCHED;
	l->r_debug = 0;
	memset(l->points, 0, sizeof(l->points));
	if (l->mem_fd < 0 || tracee_get_regs(l->pid, &regs))
		return;
	if (!is_our_code(&regs)) { /* of another width: nothing is put into it, it stands here */
		l->state = HELD;
		return;
	}
	if (dynlinker_find(&d, l->pid, l->mem_fd))
		return;
	l->dynamic = d.dynamic;
	if (d.base)
		find_symbols(l, d.base, &point, &l->r_debug);
	bool has_point = arm_point(l, 0, point);
	bool has_entry = arm_point(l, 1, d.entry);
	/* DR7: local enable of each, on execution. */
	uint64_t enable = (has_point && !l->points[0].is_text ? 1u : 0) |
			  (has_entry && !l->points[1].is_text ? 4u : 0);
	if (enable && !set_register(l, 7, enable)) {
		disarm(l);
		return;
	}
	if (has_point || has_entry)
		l->state = ARMED;
}

/* The point at which it stands, or NULL. The pc is put back where int3 was. */
static struct point *point_hit(struct heaplaunch *l)
{
	struct user_regs_struct regs;
	if (tracee_get_regs(l->pid, &regs))
		return NULL;
#if defined(__x86_64__)
	for (size_t i = 0; i < NR_POINTS; i++) {
		struct point *p = &l->points[i];
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

/* Over the instruction under a breakpoint: the processor's resume flag, or the old byte. */
static void step_over(struct heaplaunch *l, struct point *p)
{
	static const uint8_t int3 = INT3;
	struct tracee_stop s;
	bool is_text = p->is_text;
	if (is_text)
		(void)!pwrite(l->mem_fd, &p->old, 1, (off_t)p->addr);
	else
		(void)set_register(l, 7, 0);
	if (!ptrace(PTRACE_SINGLESTEP, l->pid, 0, 0))
		(void)tracee_wait(l->pid, true, clock_mono_ns() + NS_PER_SEC, &s);
	if (is_text)
		(void)!pwrite(l->mem_fd, &int3, 1, (off_t)p->addr);
	else
		(void)set_register(l, 7,
				   (l->points[0].addr ? 1u : 0) | (l->points[1].addr ? 4u : 0));
}

/* ---- public ---------------------------------------------------------------------------------- */

int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, struct err *err)
{
	TRY(tracee_seize(pid, pid, PTRACE_O_TRACEEXEC, err));
	struct heaplaunch *l = xcalloc(1, sizeof(*l));
	l->pid = pid;
	l->mem_fd = -1;
	*ret_l = l;
	return 0;
}

static int go_on(struct heaplaunch *l, int sig)
{
	if (!ptrace(PTRACE_CONT, l->pid, 0, sig))
		return 0;
	l->is_gone = errno == ESRCH;
	return l->is_gone ? -ESRCH : -errno;
}

/* A signal of its own is delivered; after many of them it is let go with the last one. */
static int pass_signal(struct heaplaunch *l, int sig)
{
	if (l->state == ARMED || ++l->nr_signals < SIGNALS_MAX)
		return go_on(l, sig);
	(void)ptrace(PTRACE_DETACH, l->pid, 0, sig);
	l->is_gone = true;
	return -ESRCH;
}

static int on_trap(struct heaplaunch *l, bool *ret_is_held)
{
	struct point *p = point_hit(l);
	if (!p)
		return pass_signal(l, SIGTRAP); /* the program's own */
	if (p == &l->points[0] && !is_consistent(l)) {
		step_over(l, p);
		return go_on(l, 0);
	}
	disarm(l);
	int rc = tracee_listen(l->pid, true, clock_mono_ns() + NS_PER_SEC);
	l->state = HELD;
	*ret_is_held = !rc;
	return rc;
}

static int on_stop(struct heaplaunch *l, const struct tracee_stop *s, bool *ret_is_held)
{
	if (s->event == PTRACE_EVENT_EXEC) {
		arm(l);
		*ret_is_held = l->state == HELD;
		return *ret_is_held ? 0 : go_on(l, 0);
	}
	if (s->event == PTRACE_EVENT_STOP) {
		bool is_group = s->signal == SIGSTOP || s->signal == SIGTSTP ||
				s->signal == SIGTTIN || s->signal == SIGTTOU;
		/* Stopped by job control: it stays so, and tells when that is over. */
		return is_group && !ptrace(PTRACE_LISTEN, l->pid, 0, 0) ? 0 : go_on(l, 0);
	}
	if (s->event)
		return go_on(l, 0);
	if (s->signal == SIGTRAP && l->state == ARMED)
		return on_trap(l, ret_is_held);
	return pass_signal(l, s->signal);
}

int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err)
{
	uint64_t deadline_ns = clock_mono_ns() + (uint64_t)MAX(timeout_ms, 0) * NS_PER_MS;
	*ret_is_held = l->state == HELD;
	while (!*ret_is_held) {
		struct tracee_stop s;
		if (l->is_gone)
			return err_set(err, -ESRCH, "pid %d has ended", l->pid);
		uint64_t until_ns = l->state == ARMED ? MAX(deadline_ns, clock_mono_ns() + ARMED_NS)
						      : deadline_ns;
		int rc = tracee_wait(l->pid, true, until_ns, &s);
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

int heaplaunch_continue(struct heaplaunch *l, struct err *err)
{
	if (l->state != HELD)
		return 0;
	l->state = WATCHED;
	l->nr_signals = 0;
	int rc = go_on(l, 0);
	return rc ? err_set(err, rc, "cannot let pid %d run: %s", l->pid, strerror(-rc)) : 0;
}

void heaplaunch_free(struct heaplaunch *l)
{
	struct user_regs_struct regs;
	if (!l)
		return;
	/* Whatever it does, it must stand to be let go. */
	if (!l->is_gone && (l->state == HELD ||
			    !tracee_interrupt(l->pid, true, clock_mono_ns() + NS_PER_SEC, &regs))) {
		if (l->state == ARMED)
			disarm(l);
		tracee_detach(l->pid);
	}
	close_p(&l->mem_fd);
	free(l);
}
