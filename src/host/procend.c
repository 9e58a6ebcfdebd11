/* How a process ended; see procend.h. */
#include "base/base.h"
#include "host/procend.h"

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

static struct procend from_zombie(int32_t pid)
{
	uint64_t status;
	uint32_t uid;
	if (!proc_zombie_status(pid, &status))
		return (struct procend){0};
	/* 0 is also what those see who may not trace it. */
	if (!status && (proc_uid(pid, &uid, NULL) || uid != geteuid()))
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

struct procend procend_read(int pid_fd, int32_t pid)
{
	struct procend end = from_pidfd(pid_fd);
	if (end.is_known)
		return end;
	end = from_zombie(pid);
	return end.is_known && is_same(pid_fd, pid) ? end : from_pidfd(pid_fd);
}

void procend_add(struct buf *to, const struct procend *end)
{
	const char *name = sigabbrev_np(end->signal);
	if (end->signal && name)
		buf_addf(to, "killed by SIG%s", name);
	else if (end->signal)
		buf_addf(to, "killed by signal %d", end->signal); /* of real time */
}
