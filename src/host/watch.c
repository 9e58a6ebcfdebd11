/* Detects that a target has exited; see watch.h. */
#include "base/base.h"
#include "host/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/procend.h"

void watch_release(struct watch *w)
{
	close_p(&w->pid_fd);
}

static bool is_there(int32_t id)
{
	return !kill(id, 0) || errno == EPERM;
}

static bool has_process_ended(struct watch *w, int32_t pid)
{
	if (w->pid_fd < 0) {
		w->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (w->pid_fd < 0) /* exited, or a kernel before 5.3 */
			return errno == ESRCH || !is_there(pid);
	}
	struct pollfd fd = {.fd = w->pid_fd, .events = POLLIN};
	if (poll(&fd, 1, 0) <= 0)
		return false;
	struct procend end = procend_read(w->pid_fd, pid);
	w->nr_known += end.is_known;
	w->signal = w->signal ? w->signal : end.signal;
	close_p(&w->pid_fd);
	w->pid_fd = -1;
	return true;
}

bool watch_has_ended(struct watch *w)
{
	const struct target *t = w->target;
	if (!t || t->is_system)
		return false;
	for (; w->nr_ended < t->pids.pids.n; w->nr_ended++)
		if (!has_process_ended(w, t->pids.pids.p[w->nr_ended]))
			return false;
	for (size_t i = 0; i < t->tids.pids.n; i++)
		if (is_there(t->tids.pids.p[i]))
			return false;
	return true;
}

struct procend watch_end(const struct watch *w)
{
	bool are_all = w->target && w->nr_known == w->target->pids.pids.n;
	return (struct procend){.is_known = are_all || w->signal, .signal = w->signal};
}
