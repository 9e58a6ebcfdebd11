/* Classifies waits by their frames and by who ends them; see reason.h. */
#include "base/base.h"
#include "analyze/wait/reason.h"

#include <sys/syscall.h>

#include "analyze/wait/asyncframes.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/peerlocks.h"
#include "analyze/wait/stackkinds.h"

struct reasons {
	const struct profile *p;
	struct stackkinds *kinds;
	struct peerlocks *peers;
	struct asyncframes *async;
};

struct reasons *reasons_new(struct arena *a, const struct profile *p)
{
	struct reasons *rs = arena_calloc(a, 1, sizeof(*rs));
	rs->p = p;
	rs->kinds = stackkinds_new(a, p);
	rs->peers = peerlocks_new(a, p, rs->kinds);
	rs->async = asyncframes_new(a, p);
	return rs;
}

bool reason_is_by_peers(struct reasons *rs, stack_id stack)
{
	return stackkinds_of(rs->kinds, stack) == SYNC_PARK_PART && peerlocks_has(rs->peers, stack);
}

enum sync_kind reason_of_frames(struct reasons *rs, stack_id stack)
{
	enum sync_kind kind = stackkinds_of(rs->kinds, stack);
	if (kind != SYNC_PARK_PART)
		return kind;
	return reason_is_by_peers(rs, stack) ? SYNC_LOCK_BY_PARK : SYNC_PARK;
}

/* Whether one wait is surely longer than half of the capture. */
static bool is_most_of_capture(const struct profile *p, const struct tag *tag)
{
	uint64_t least_ns = tag->log2_ns < 64 ? 1ull << tag->log2_ns : 0;
	return p->end_ns > p->start_ns && least_ns >= (p->end_ns - p->start_ns) / 2;
}

/*
 * A thread that waits nearly all the time for the end of another thread, as the main thread of many
 * programs does, or for a semaphore or Python lock of unknown purpose that nobody posts before the capture or
 * the process ends, is idle, like a thread that waits for work. (Of a thread that waits already when the
 * capture begins the functions of Python, which would show the purpose, are not known.)
 */
static enum wait_reason reason_of_futex(const struct profile *p, enum sync_kind kind,
					const struct tag *tag)
{
	static const uint8_t whole = EVIDENCE_AT_START | EVIDENCE_OPEN;
	bool is_whole = (tag->evidence & whole) == whole;
	bool is_most = is_most_of_capture(p, tag);
	switch (kind) {
	case SYNC_LOCK:
	case SYNC_LOCK_BY_PARK:
		return WAIT_LOCK;
	case SYNC_PARK:
		return WAIT_PARK;
	case SYNC_BACKPRESSURE:
		return WAIT_BACKPRESSURE;
	case SYNC_JOIN:
		return is_whole || is_most ? WAIT_PARK : WAIT_JOIN;
	case SYNC_PERMIT:
		return WAIT_PERMIT;
	case SYNC_UNCLEAR:
		if (is_whole)
			return WAIT_PARK;
		break;
	case SYNC_PERMIT_PART:
		is_whole |= is_most && tag->evidence & EVIDENCE_OPEN;
		return is_whole ? WAIT_PARK : WAIT_PERMIT;
	case SYNC_UNKNOWN:
	case SYNC_PASS:
	case SYNC_PARK_PART:
	case SYNC_JOIN_AROUND:
	case SYNC_CODE:
		break;
	}
	return tag->evidence & EVIDENCE_LOCK_WORD ? WAIT_LOCK : WAIT_SYNC;
}

/* A poll or sleep can be how a lock or a full channel waits. */
static enum wait_reason reason_of_sleep(enum sync_kind kind, enum wait_reason own)
{
	if (kind == SYNC_LOCK_BY_PARK)
		return WAIT_LOCK;
	return kind == SYNC_BACKPRESSURE ? WAIT_BACKPRESSURE : own;
}

/* fcntl blocks for locks of files (F_SETLKW). */
static bool is_file_lock(const struct tag *tag)
{
	return tag->syscall == SYS_flock || tag->syscall == SYS_fcntl;
}

/* A read of a descriptor that is neither a file nor a pipe: until a time or an event. */
static enum wait_reason reason_of_pipe(const struct profile *p, const struct tag *tag)
{
	static const char *const events[] = {"signalfd", "inotify", "fanotify", "/dev/pts/",
					     "/dev/tty"};
	const char *object = profile_text(p, tag->object);
	if (!strcmp(object, "timerfd"))
		return WAIT_SLEEP;
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (!strncmp(object, events[i], strlen(events[i])))
			return WAIT_POLL;
	return WAIT_PIPE;
}

/* Rows of single intervals and of spans have another detail, or none. */
static bool has_yielded(const struct profile *p, const struct tag *tag)
{
	const char *detail = profile_text(p, tag->detail);
	bool is_preempted = !strcmp(detail, "preempted");
	return (tag->syscall == SYS_sched_yield && !is_preempted) || !strcmp(detail, "yielded");
}

enum wait_reason reason_of(struct reasons *rs, stack_id stack, const struct tag *tag)
{
	enum wait_reason own = tag->reason < WAIT_NR ? (enum wait_reason)tag->reason : WAIT_UNKNOWN;
	if (own == WAIT_SYNC)
		own = reason_of_futex(rs->p, reason_of_frames(rs, stack), tag);
	else if ((own == WAIT_PIPE || own == WAIT_NET) && wait_is_send(tag))
		own = WAIT_BACKPRESSURE;
	else if (own == WAIT_PIPE)
		own = reason_of_pipe(rs->p, tag);
	else if (own == WAIT_FILE_OTHER && is_file_lock(tag))
		own = WAIT_LOCK;
	else if (own == WAIT_POLL || own == WAIT_SLEEP)
		own = reason_of_sleep(reason_of_frames(rs, stack), own);
	else if (own == WAIT_RUN_QUEUE && has_yielded(rs->p, tag))
		own = WAIT_YIELD;
	bool is_blocked = wait_is_idle(own) && reason_blocks_executor(rs, stack, own);
	return is_blocked ? WAIT_EXECUTOR : own;
}

bool reason_blocks_executor(struct reasons *rs, stack_id stack, enum wait_reason r)
{
	static const uint32_t others = 1u << WAIT_NONE | 1u << WAIT_ON_CPU | 1u << WAIT_RUN_QUEUE |
				       1u << WAIT_FAULT | 1u << WAIT_MMAP_LOCK |
				       1u << WAIT_RECLAIM | 1u << WAIT_KERNEL | 1u << WAIT_STOPPED |
				       1u << WAIT_UNKNOWN | 1u << WAIT_STOLEN | 1u << WAIT_YIELD;
	return !(others >> r & 1) && asyncframes_is_in_poll(rs->async, stack);
}
