/* Wait reasons by system call; see calls.h. */
#include "base/base.h"
#include "capture/wait/calls.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"

struct call_file {
	uint8_t kind; /* enum file_kind */
	uint32_t object;
};

enum file_kind { FILE_STORED, FILE_SOCKET, FILE_STREAM, FILE_UNKNOWN };

void waitcalls_release(struct waitcalls *w)
{
	map_release(&w->nr_of_site);
	map_release(&w->file_of_fd);
	vec_release(&w->files);
}

void waitcalls_forget_files(struct waitcalls *w)
{
	map_clear(&w->file_of_fd);
	vec_clear(&w->files);
}

/* ---- which call --------------------------------------------------------------------------- */

static uint64_t hash_site(int32_t pid, uint64_t ip, uint64_t caller)
{
	return hash_mix(hash_mix((uint64_t)(uint32_t)pid, ip), caller);
}

#if defined(__x86_64__)
/* perf register numbers of the call's arguments (asm/perf_regs.h): di si dx r10 r8 r9. */
static const uint8_t arg_regs[6] = {5, 4, 3, 18, 16, 17};
#define REG_AX        0
#define REG_CX        2
#define CODE_BEFORE   24
#define CALL_NR_LIMIT 1024

/*
 * Returns the number that the nearest "mov $nr, %eax" (b8 imm32) or "xor %eax, %eax" (31 c0) before
 * the syscall instruction (0f 05) sets: the C library's stubs and inline assembly compile to these.
 */
static int nr_from_code(const uint8_t *code, size_t n)
{
	if (n < 2 || code[n - 2] != 0x0f || code[n - 1] != 0x05)
		return CALL_UNKNOWN;
	for (size_t i = n - 4; i > 0; i--) {
		if (code[i] == 0x31 && code[i + 1] == 0xc0)
			return 0;
		if (code[i] != 0xb8 || i + 7 > n)
			continue;
		uint32_t nr;
		memcpy(&nr, code + i + 1, sizeof(nr));
		if (nr < CALL_NR_LIMIT)
			return (int)nr;
	}
	return CALL_UNKNOWN;
}

static int nr_of_site(struct waitcalls *w, int32_t pid, uint64_t ip, uint64_t caller)
{
	bool is_new;
	uint32_t *nr = map_put(&w->nr_of_site, hash_site(pid, ip, 0), &is_new);
	if (is_new) {
		uint8_t code[CODE_BEFORE];
		struct iovec to = {code, sizeof(code)};
		struct iovec from = {(void *)(uintptr_t)(ip - sizeof(code)), sizeof(code)};
		bool is_read = process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(code);
		*nr = (uint32_t)((is_read ? nr_from_code(code, sizeof(code)) : CALL_UNKNOWN) + 2);
	}
	if (*nr)
		return (int)*nr - 2;
	const uint32_t *learned = map_get(&w->nr_of_site, hash_site(pid, ip, caller));
	return learned && *learned ? (int)*learned - 2 : CALL_UNKNOWN;
}

/* In a call ax is -ENOSYS (set by the kernel's entry) and cx is the ip (set by the instruction). */
struct call waitcalls_from_regs(struct waitcalls *w, int32_t pid, const uint64_t *regs,
				uint64_t caller)
{
	struct call call = {.nr = CALL_NONE, .ip = regs[ARCH_PERF_IP], .sp = regs[ARCH_PERF_SP]};
	static const uint8_t packed[] = {0,  1,  2, 3, 4, 5, 6,  7,  8,  9,
					 10, 11, 0, 0, 0, 0, 12, 13, 14, 15};
	if (regs[REG_AX] != (uint64_t)-ENOSYS || regs[REG_CX] != call.ip)
		return call;
	for (size_t i = 0; i < 6; i++)
		call.args[i] = regs[packed[arg_regs[i]]];
	call.nr = nr_of_site(w, pid, call.ip, caller);
	return call;
}
#else
/* arm64: x8 holds the number, x0..x5 the arguments; x0 may be overwritten already. */
struct call waitcalls_from_regs(struct waitcalls *w, int32_t pid, const uint64_t *regs,
				uint64_t caller)
{
	struct call call = {.nr = CALL_NONE, .ip = regs[ARCH_PERF_IP], .sp = regs[ARCH_PERF_SP]};
	(void)w;
	(void)caller;
	uint32_t code = 0;
	struct iovec to = {&code, sizeof(code)};
	struct iovec from = {(void *)(uintptr_t)(call.ip - 4), sizeof(code)};
	if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(code) || code != 0xd4000001)
		return call; /* no svc #0 before it */
	memcpy(call.args, regs, sizeof(call.args));
	call.nr = (int)regs[8];
	return call;
}
#endif

/*
 * A call that a signal or a stop interrupted goes on as restart_syscall: its number is still in the
 * code before its instruction.
 */
static int restarted_nr(struct waitcalls *w, int32_t pid, const struct call *call)
{
#if defined(__x86_64__)
	int nr = nr_of_site(w, pid, call->ip, 0);
	return nr >= 0 ? nr : call->nr;
#else
	(void)w;
	(void)pid;
	return call->nr;
#endif
}

void waitcalls_learn(struct waitcalls *w, int32_t pid, const struct call *call, uint64_t caller)
{
	if (call->nr >= 0 && call->nr != SYS_restart_syscall)
		*map_put(&w->nr_of_site, hash_site(pid, call->ip, caller), NULL) =
			(uint32_t)call->nr + 2;
}

/* ---- reason and object -------------------------------------------------------------------- */

static enum file_kind kind_of(mode_t mode)
{
	if (S_ISREG(mode) || S_ISBLK(mode) || S_ISDIR(mode))
		return FILE_STORED;
	return S_ISSOCK(mode) ? FILE_SOCKET : FILE_STREAM;
}

static const struct call_file *file_of(struct waitcalls *w, struct intern *objects, int32_t pid,
				       uint64_t fd)
{
	uint32_t *idx = map_put(&w->file_of_fd, (uint64_t)(uint32_t)pid << 32 | (uint32_t)fd, NULL);
	if (*idx)
		return &w->files.p[*idx - 1];
	struct call_file f = {.kind = FILE_UNKNOWN};
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/fd/%d", pid, (int)fd);
	struct stat st;
	CLEANUP(buf_release) struct buf link = {0};
	if (!hostfile_read_link(&link, &st, path)) {
		f.kind = (uint8_t)kind_of(st.st_mode);
		f.object = intern_add(objects, link.p, link.n);
	}
	vec_push(&w->files, f);
	*idx = (uint32_t)w->files.n;
	return vec_last(&w->files);
}

enum call_flags {
	CALL_FD = 1 << 0, /* the first argument is a descriptor: its file is the object */
	CALL_BY_FD =
		1 << 1, /* the kind of file decides the reason; listed: that of a stored file */
	CALL_FUTEX = 1 << 2, /* the first argument is a futex: it is the object */
};

static const struct {
	uint16_t nr;
	uint8_t reason;
	uint8_t flags;
} calls[] = {
	{SYS_futex, WAIT_SYNC, CALL_FUTEX},
	{SYS_read, WAIT_FILE_READ, CALL_FD | CALL_BY_FD},
	{SYS_readv, WAIT_FILE_READ, CALL_FD | CALL_BY_FD},
	{SYS_pread64, WAIT_FILE_READ, CALL_FD | CALL_BY_FD},
	{SYS_preadv, WAIT_FILE_READ, CALL_FD | CALL_BY_FD},
	{SYS_write, WAIT_FILE_WRITE, CALL_FD | CALL_BY_FD},
	{SYS_writev, WAIT_FILE_WRITE, CALL_FD | CALL_BY_FD},
	{SYS_pwrite64, WAIT_FILE_WRITE, CALL_FD | CALL_BY_FD},
	{SYS_pwritev, WAIT_FILE_WRITE, CALL_FD | CALL_BY_FD},
	{SYS_fsync, WAIT_FSYNC, CALL_FD},
	{SYS_fdatasync, WAIT_FSYNC, CALL_FD},
	{SYS_sync_file_range, WAIT_FSYNC, CALL_FD},
	{SYS_syncfs, WAIT_FSYNC, CALL_FD},
	{SYS_msync, WAIT_FSYNC, 0},
	{SYS_sync, WAIT_FSYNC, 0},
	{SYS_epoll_pwait, WAIT_POLL, 0},
	{SYS_ppoll, WAIT_POLL, 0},
	{SYS_pselect6, WAIT_POLL, 0},
	{SYS_io_getevents, WAIT_POLL, 0},
	{SYS_nanosleep, WAIT_SLEEP, 0},
	{SYS_clock_nanosleep, WAIT_SLEEP, 0},
	{SYS_rt_sigsuspend, WAIT_SLEEP, 0},
	{SYS_rt_sigtimedwait, WAIT_SLEEP, 0},
	{SYS_recvfrom, WAIT_NET, CALL_FD},
	{SYS_recvmsg, WAIT_NET, CALL_FD},
	{SYS_recvmmsg, WAIT_NET, CALL_FD},
	{SYS_sendto, WAIT_NET, CALL_FD},
	{SYS_sendmsg, WAIT_NET, CALL_FD},
	{SYS_sendmmsg, WAIT_NET, CALL_FD},
	{SYS_accept, WAIT_NET, CALL_FD},
	{SYS_accept4, WAIT_NET, CALL_FD},
	{SYS_connect, WAIT_NET, CALL_FD},
	{SYS_wait4, WAIT_CHILD, 0},
	{SYS_waitid, WAIT_CHILD, 0},
	{SYS_openat, WAIT_FILE_OTHER, 0},
	{SYS_unlinkat, WAIT_FILE_OTHER, 0},
	{SYS_renameat2, WAIT_FILE_OTHER, 0},
	{SYS_mkdirat, WAIT_FILE_OTHER, 0},
	{SYS_newfstatat, WAIT_FILE_OTHER, 0},
	{SYS_statx, WAIT_FILE_OTHER, 0},
	{SYS_getdents64, WAIT_FILE_OTHER, CALL_FD},
	{SYS_fallocate, WAIT_FILE_OTHER, CALL_FD},
	{SYS_ftruncate, WAIT_FILE_OTHER, CALL_FD},
	{SYS_flock, WAIT_FILE_OTHER, CALL_FD},
	{SYS_close, WAIT_FILE_OTHER, CALL_FD},
	{SYS_ioctl, WAIT_FILE_OTHER, CALL_FD},
	{SYS_mmap, WAIT_KERNEL, 0},
	{SYS_munmap, WAIT_KERNEL, 0},
	{SYS_mprotect, WAIT_KERNEL, 0},
	{SYS_madvise, WAIT_KERNEL, 0},
	{SYS_brk, WAIT_KERNEL, 0},
	{426 /* io_uring_enter */, WAIT_POLL, 0},
	{441 /* epoll_pwait2 */, WAIT_POLL, 0},
	{449 /* futex_waitv */, WAIT_SYNC, 0},
	{455 /* futex_wait */, WAIT_SYNC, CALL_FUTEX},
#ifdef SYS_epoll_wait
	{SYS_epoll_wait, WAIT_POLL, 0},
	{SYS_poll, WAIT_POLL, 0},
	{SYS_select, WAIT_POLL, 0},
	{SYS_pause, WAIT_SLEEP, 0},
	{SYS_open, WAIT_FILE_OTHER, 0},
	{SYS_unlink, WAIT_FILE_OTHER, 0},
	{SYS_rename, WAIT_FILE_OTHER, 0},
	{SYS_stat, WAIT_FILE_OTHER, 0},
#endif
};

/* The number of a call through syscall(2) may be lost: a futex wait is recognised by its arguments. */
static bool is_futex_like(const struct call *c)
{
	unsigned op = (unsigned)c->args[1] & ~0x180u; /* FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME */
	return c->args[0] > 4096 && !(c->args[0] & 3) && !(c->args[1] >> 9) &&
	       (op == 0 || op == 9 || op == 6 || op == 11 || op == 13);
}

static void set_reason(struct waitcalls *w, struct intern *objects, int32_t pid,
		       const struct call *call, size_t i, struct wait_cause *cause)
{
	cause->reason = calls[i].reason;
	if (calls[i].flags & CALL_FUTEX) {
		CLEANUP(buf_release) struct buf text = {0};
		buf_addf(&text, "lock 0x%llx", (unsigned long long)call->args[0]);
		cause->object = intern_add(objects, buf_str(&text), text.n);
	}
	if (!(calls[i].flags & CALL_FD))
		return;
	const struct call_file *f = file_of(w, objects, pid, call->args[0]);
	cause->object = f->object;
	if (!(calls[i].flags & CALL_BY_FD))
		return;
	if (f->kind == FILE_SOCKET)
		cause->reason = WAIT_NET;
	else if (f->kind == FILE_STREAM)
		cause->reason = WAIT_PIPE;
}

void waitcalls_cause(struct waitcalls *w, struct intern *objects, int32_t pid,
		     const struct call *call, struct wait_cause *cause)
{
	int nr = call->nr;
	if (nr == CALL_UNKNOWN && is_futex_like(call))
		nr = SYS_futex;
	if (nr == SYS_restart_syscall)
		nr = restarted_nr(w, pid, call);
	cause->object = 0;
	cause->syscall = (int16_t)(nr >= 0 ? nr : -1);
	cause->reason = nr == CALL_NONE      ? WAIT_FAULT
			: nr == CALL_UNKNOWN ? WAIT_UNKNOWN
					     : WAIT_OTHER;
	for (size_t i = 0; nr >= 0 && i < ARRAY_LEN(calls); i++)
		if (calls[i].nr == nr) {
			set_reason(w, objects, pid, call, i, cause);
			return;
		}
}
