/* How a process ended; see procend.h. */
#include "base/base.h"
#include "host/procend.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/proc.h"

/* include/uapi/linux/pidfd.h, which the oldest supported headers do not have. */
struct pidfd_answer {
	uint64_t mask;
	uint64_t cgroup_id;
	uint32_t ids[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_answer) == 64, "PIDFD_INFO_SIZE_VER0");
#define GET_PIDFD_INFO _IOWR(0xFF, 11, struct pidfd_answer)
#define TRIES          100
#define INFO_EXIT      (1u << 3)

struct procend procend_from_status(int wait_status)
{
	return (struct procend){.is_known = true,
				.signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0};
}

/* Answered once the process has been reaped. */
static struct procend from_pidfd(int pid_fd)
{
	struct pidfd_answer a = {.mask = INFO_EXIT};
	if (ioctl(pid_fd, GET_PIDFD_INFO, &a) || !(a.mask & INFO_EXIT))
		return (struct procend){0};
	return procend_from_status(a.exit_code);
}

/* The kernel shows 0 to those who may not trace the process: that is not known to be an exit. */
static struct procend from_zombie(int32_t pid)
{
	uint64_t status;
	if (!proc_zombie_status(pid, &status) || !status)
		return (struct procend){0};
	return procend_from_status((int)status);
}

/* Whether the pid is still that of the process, not of a later one. */
static bool is_same(int pid_fd, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fdinfo/%d", pid_fd);
	uint64_t shown;
	return !file_read(&text, path, 1 << 16, NULL) &&
	       sv_to_u64(proc_status_field(&text, "Pid"), &shown) && shown == (uint64_t)pid;
}

static struct procend read_once(int pid_fd, int32_t pid)
{
	struct procend end = from_pidfd(pid_fd);
	if (end.is_known)
		return end;
	end = from_zombie(pid);
	return end.is_known && is_same(pid_fd, pid) ? end : from_pidfd(pid_fd);
}

static struct procend read_end(int pid_fd, int32_t pid, bool may_trace)
{
	struct pollfd fd = {.fd = pid_fd, .events = POLLIN};
	struct procend end = {0};
	/* While its parent reaps it, neither /proc nor the pidfd tells. */
	for (unsigned i = 0; i < TRIES && poll(&fd, 1, 0) > 0; i++) {
		uint64_t status;
		end = read_once(pid_fd, pid);
		if (end.is_known || (may_trace && proc_zombie_status(pid, &status) && !status))
			break;
		(void)poll(NULL, 0, 1);
	}
	return end;
}

struct procend procend_read(int pid_fd, int32_t pid)
{
	return read_end(pid_fd, pid, false);
}

int procend_signal(int pid_fd, int32_t pid)
{
	return read_end(pid_fd, pid, true).signal;
}

void procend_add(struct buf *to, const struct procend *end)
{
	const char *name = sigabbrev_np(end->signal);
	if (end->signal && name)
		buf_addf(to, "killed by SIG%s", name);
	else if (end->signal)
		buf_addf(to, "killed by signal %d", end->signal); /* of real time */
}
