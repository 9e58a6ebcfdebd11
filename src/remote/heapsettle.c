/* Threads seen outside of ranges; see heapsettle.h. */
#ifdef __x86_64__ /* others: remote_none.c */
#include "base/base.h"
#include "remote/heapsettle.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "remote/tracee.h"
#include "host/proc.h"
#include "host/urgent.h"

enum seen { SEEN_OUTSIDE, SEEN_INSIDE, SEEN_RUNNING };

static bool is_within(const struct heap_range *ranges, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++)
		if (addr >= ranges[i].start && addr < ranges[i].end)
			return true;
	return false;
}

static enum seen look(int32_t pid, int32_t tid, const struct heap_range *ranges, size_t n)
{
	struct proc_wait w;
	int rc = proc_wait(pid, tid, &w);
	if (rc)
		return rc == -ENOENT || rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	return is_within(ranges, n, w.pc) ? SEEN_INSIDE : SEEN_OUTSIDE;
}

static enum seen stop_and_look(int32_t pid, int32_t tid, const struct heap_range *ranges, size_t n,
			       uint64_t *longest_ns, struct err *err)
{
	struct user_regs_struct regs;
	struct host_urgency urgency;
	bool is_ours = false;
	int rc = tracee_take(pid, tid, 0, &is_ours, err);
	if (rc)
		return rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	bool is_child = tid == pid && tracee_is_child(pid);
	host_urgent_begin(&urgency);
	host_urgent_lend(&urgency, tid);
	uint64_t begin_ns = clock_mono_ns();
	rc = tracee_halt(tid, is_child, begin_ns + 10 * NS_PER_SEC, &regs);
	if (!rc)
		tracee_let_go(tid, is_ours);
	uint64_t stood_ns = clock_mono_ns() - begin_ns;
	host_urgent_end(&urgency);
	if (rc)
		return rc == -ESRCH ? SEEN_OUTSIDE : SEEN_RUNNING;
	*longest_ns = MAX(*longest_ns, stood_ns);
	return is_within(ranges, n, regs.rip) ? SEEN_INSIDE : SEEN_OUTSIDE;
}

int heapsettle(int32_t pid, const struct heap_range *ranges, size_t nr_ranges, uint64_t deadline_ns,
	       uint64_t *ret_longest_ns, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	int rc = proc_threads(&tids, pid, err);
	if (rc)
		return rc == -ENOENT ? -ESRCH : rc;
	/* Threads that are born later were never there. */
	for (size_t i = 0; i < tids.pids.n; i++) {
		int32_t tid = tids.pids.p[i];
		for (unsigned turn = 0;; turn++) {
			enum seen s = look(pid, tid, ranges, nr_ranges);
			if (s == SEEN_RUNNING && turn > 1) /* it may be about to wait */
				s = stop_and_look(pid, tid, ranges, nr_ranges, ret_longest_ns, err);
			if (s == SEEN_OUTSIDE)
				break;
			if (clock_mono_ns() > deadline_ns)
				return err_set(err, -EBUSY,
					       "thread %d of pid %d does not leave the recorder",
					       tid, pid);
			struct timespec t = {.tv_nsec = 20000};
			(void)nanosleep(&t, NULL);
		}
	}
	return 0;
}

#endif
