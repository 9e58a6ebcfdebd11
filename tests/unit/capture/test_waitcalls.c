#include "base/base.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"
#include "capture/wait/procpoll.h"
#include "capture/wait/calls.h"
#include "tap.h"

#if defined(__x86_64__)
/* Call sites as compilers and assembly write them, each ending with the system call instruction. */
static const uint8_t stub[32] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				 0x90, 0x90, 0x90, 0xb8, 0x4a, 0,    0,    0,    0x0f, 0x05};
static const uint8_t zero[32] = {[28] = 0x31, [29] = 0xc0, [30] = 0x0f, [31] = 0x05};
/* syscall(2) of the C library: the number came in a register that is overwritten. */
static const uint8_t generic[32] = {[16] = 0x48, 0x89, 0xf8,        0x48,
				    0x89,        0xf7, [30] = 0x0f, [31] = 0x05};

static struct call at_site(struct waitcalls *w, const uint8_t *code, uint64_t caller)
{
	uint64_t regs[20] = {0};
	regs[0] = (uint64_t)-ENOSYS;
	regs[2] = regs[ARCH_PERF_IP] = (uint64_t)(uintptr_t)(code + 32);
	regs[5] = 11; /* di */
	return waitcalls_from_regs(w, getpid(), regs, caller);
}

TEST(waitcalls_decodes_the_number_from_the_code)
{
	struct waitcalls w = {0};
	CHECK_U64(at_site(&w, stub, 1).nr, 74);
	CHECK_U64(at_site(&w, stub, 1).nr, 74); /* remembered */
	CHECK_U64(at_site(&w, stub, 1).args[0], 11);
	CHECK_U64(at_site(&w, zero, 1).nr, 0);
	waitcalls_release(&w);
}

TEST(waitcalls_reads_the_number_of_a_restarted_call_from_the_code)
{
	struct waitcalls w = {0};
	struct intern objects = {0};
	static const uint8_t sleeps[32] = {
		[25] = 0xb8, [26] = SYS_clock_nanosleep, [30] = 0x0f, [31] = 0x05};
	struct call call = {.nr = SYS_restart_syscall, .ip = (uint64_t)(uintptr_t)(sleeps + 32)};
	struct wait_cause cause = {0};
	waitcalls_cause(&w, &objects, getpid(), &call, &cause);
	CHECK_U64(cause.reason, WAIT_SLEEP);
	CHECK_U64((uint64_t)cause.syscall, SYS_clock_nanosleep);

	call.ip = (uint64_t)(uintptr_t)(generic + 32);
	waitcalls_cause(&w, &objects, getpid(), &call, &cause);
	CHECK_U64(cause.reason, WAIT_OTHER);
	waitcalls_learn(&w, getpid(), &call, 1); /* teaches nothing */
	CHECK(at_site(&w, generic, 1).nr == CALL_UNKNOWN);
	waitcalls_release(&w);
	intern_release(&objects);
}

TEST(waitcalls_learns_call_sites_of_syscall_by_caller)
{
	struct waitcalls w = {0};
	CHECK(at_site(&w, generic, 1).nr == CALL_UNKNOWN);
	struct call seen = {.nr = SYS_fsync, .ip = (uint64_t)(uintptr_t)(generic + 32)};
	waitcalls_learn(&w, getpid(), &seen, 1);
	CHECK_U64(at_site(&w, generic, 1).nr, SYS_fsync);
	CHECK(at_site(&w, generic, 2).nr == CALL_UNKNOWN);
	waitcalls_release(&w);
}

TEST(waitcalls_reports_a_fault_for_a_thread_outside_calls)
{
	struct waitcalls w = {0};
	struct intern objects = {0};
	uint64_t regs[20] = {0};
	struct call call = waitcalls_from_regs(&w, getpid(), regs, 0);
	CHECK(call.nr == CALL_NONE);
	struct wait_cause cause = {0};
	waitcalls_cause(&w, &objects, getpid(), &call, &cause);
	CHECK_U64(cause.reason, WAIT_FAULT);
	CHECK(cause.syscall == -1);
	waitcalls_release(&w);
	intern_release(&objects);
}
#endif

static struct wait_cause cause_of(int nr, uint64_t arg0, uint64_t arg1, char *object)
{
	struct waitcalls w = {0};
	struct intern objects = {0};
	struct call call = {.nr = nr, .args = {arg0, arg1}};
	struct wait_cause cause = {0};
	waitcalls_cause(&w, &objects, getpid(), &call, &cause);
	(void)snprintf(object, 256, "%s", cause.object ? intern_str(&objects, cause.object) : "");
	waitcalls_release(&w);
	intern_release(&objects);
	return cause;
}

TEST(waitcalls_distinguishes_files_sockets_and_pipes)
{
	char object[256];
	int fds[2];
	char path[] = "/tmp/assay-waitcalls-XXXXXX";
	int file = mkstemp(path);
	CHECK(file >= 0);
	CHECK_U64(cause_of(SYS_read, (uint64_t)file, 0, object).reason, WAIT_FILE_READ);
	CHECK_STR(object, path);
	CHECK_U64(cause_of(SYS_write, (uint64_t)file, 0, object).reason, WAIT_FILE_WRITE);
	CHECK_U64(cause_of(SYS_fsync, (uint64_t)file, 0, object).reason, WAIT_FSYNC);
	close(file);
	unlink(path);
	CHECK(!pipe(fds));
	CHECK_U64(cause_of(SYS_read, (uint64_t)fds[0], 0, object).reason, WAIT_PIPE);
	CHECK(!strncmp(object, "pipe:", 5));
	close(fds[0]);
	close(fds[1]);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	CHECK_U64(cause_of(SYS_read, (uint64_t)fds[0], 0, object).reason, WAIT_NET);
	close(fds[0]);
	close(fds[1]);
}

TEST(waitcalls_recognises_a_futex_whose_number_is_not_known)
{
	char object[256];
	CHECK_U64(cause_of(CALL_UNKNOWN, 0x7f0000001000, 0x89, object).reason, WAIT_SYNC);
	CHECK_U64(cause_of(CALL_UNKNOWN, 3, 4096, object).reason, WAIT_UNKNOWN);
	CHECK_U64(cause_of(SYS_getuid, 0, 0, object).reason, WAIT_OTHER);
	CHECK_U64(cause_of(SYS_futex, 0x7f0000001000, 0x80, object).reason, WAIT_SYNC);
	CHECK_STR(object, "lock 0x7f0000001000");
}

TEST(procpoll_reads_memory_up_to_the_first_unmapped_page)
{
	char word[8] = "assay";
	char got[8];
	CHECK_U64(procpoll_read(getpid(), (uint64_t)(uintptr_t)word, got, sizeof(got)), 8);
	CHECK_STR(got, "assay");
	CHECK_U64(procpoll_read(getpid(), 4096, got, sizeof(got)), 0);
	struct procpoll_schedstat sums;
	CHECK(!procpoll_schedstat(getppid(), getppid(), &sums)); /* ours lags by a tick */
	CHECK(sums.cpu_ns > 0 && sums.nr_runs > 0);
	CHECK(procpoll_schedstat(getpid(), 0x7ffffff0, &sums) == -ENOENT);
}
