/* Synthesizes events for existing processes from /proc; see synth.h. */
#include "base/base.h"
#include "capture/perf/synth.h"

#include <errno.h>

#include "host/proc.h"

struct synth {
	int32_t pid;
	uint64_t time_ns;
	const struct event_sink *sink;
};

static int synth_map(void *ctx, const struct proc_map *m, struct err *err)
{
	const struct synth *s = ctx;
	if (!m->is_exec)
		return 0;
	struct event ev = {.kind = EVENT_MAP,
			   .time_ns = s->time_ns,
			   .pid = s->pid,
			   .tid = s->pid,
			   .cpu = -1,
			   .map = {.start = m->start,
				   .len = m->end - m->start,
				   .pgoff = m->pgoff,
				   .dev_major = m->dev_major,
				   .dev_minor = m->dev_minor,
				   .inode = m->inode,
				   .is_exec = true,
				   .path = m->path[0] ? m->path : "//anon"}};
	return s->sink->event(s->sink->ctx, &ev, err);
}

int synth_name(int32_t pid, int32_t tid, uint64_t time_ns, const struct event_sink *sink,
	       struct err *err)
{
	CLEANUP(buf_release) struct buf comm = {0};
	if (proc_comm(&comm, pid, tid, NULL))
		return 0;
	struct event ev = event_comm(pid, tid, time_ns, buf_str(&comm));
	return sink->event(sink->ctx, &ev, err);
}

int synth_process(int32_t pid, uint64_t time_ns, const struct event_sink *sink, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	if (proc_threads(&tids, pid, NULL))
		return 0;
	for (size_t i = 0; i < tids.pids.n; i++)
		TRY(synth_name(pid, tids.pids.p[i], time_ns, sink, err));
	struct synth s = {pid, time_ns, sink};
	CLEANUP(err_release) struct err gone = {0};
	int rc = proc_maps(pid, synth_map, &s, &gone);
	/* Exited, of another user, or silent: its samples are counted but not symbolized. */
	if (rc == -ENOENT || rc == -ESRCH || rc == -EACCES || rc == -EPERM || rc == -ETIMEDOUT ||
	    rc == -EINPROGRESS)
		return 0;
	return rc ? err_move(err, &gone) : 0;
}
