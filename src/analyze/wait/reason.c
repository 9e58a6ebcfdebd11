/*
 * Classifies futex waits by their frames; see reason.h.
 *
 * The result for a stack depends on that of its caller and on its own frame, so it is cached by node
 * of the prefix tree: the kind, and the number of frames since it was decided. It is valid for
 * REACH_FRAMES frames only: functions that a lock function calls within a few frames belong to the
 * lock, later ones (a callback, an initialiser) to the program.
 */
#include "base/base.h"
#include "analyze/wait/reason.h"

#include <sys/syscall.h>

#include "analyze/wait/asyncframes.h"

#define REACH_FRAMES 8
#define NOT_YET      0xff

/* Result, and the number of frames since it was decided. */
struct state {
	uint8_t kind;
	uint8_t age;
};

struct reasons {
	const struct profile *p;
	struct state *by_stack; /* kind NOT_YET: not classified yet */
	uint8_t *by_func;       /* enum sync_kind, or NOT_YET */
	struct asyncframes *async;
	stack_id *path; /* scratch, as long as the deepest stack asked for */
	size_t nr_path;
	struct arena *arena;
};

struct reasons *reasons_new(struct arena *a, const struct profile *p)
{
	struct reasons *rs = arena_calloc(a, 1, sizeof(*rs));
	rs->p = p;
	rs->arena = a;
	rs->async = asyncframes_new(a, p);
	rs->by_stack = arena_alloc(a, p->stacks.n * sizeof(*rs->by_stack));
	memset(rs->by_stack, NOT_YET, p->stacks.n * sizeof(*rs->by_stack));
	rs->by_func = arena_alloc(a, p->functions.n);
	memset(rs->by_func, NOT_YET, p->functions.n);
	if (p->stacks.n)
		rs->by_stack[0] = (struct state){SYNC_UNKNOWN, 0};
	return rs;
}

static enum sync_kind kind_of(struct reasons *rs, func_id func)
{
	uint8_t *memo = &rs->by_func[func];
	if (*memo == NOT_YET)
		*memo = (uint8_t)sync_kind_of(profile_sv(rs->p, rs->p->functions.p[func].name));
	return (enum sync_kind) * memo;
}

/* True for waits that are built of condition variables, parkers or semaphores. */
static bool is_built(uint8_t kind)
{
	return kind == SYNC_LOCK_BY_PARK || kind == SYNC_BACKPRESSURE || kind == SYNC_JOIN ||
	       kind == SYNC_PERMIT || kind == SYNC_PERMIT_PART;
}

/* The kind of a function of which others are built: that of the caller, or else its own. */
static enum sync_kind kind_of_part(struct state outer, enum sync_kind own)
{
	enum sync_kind kind = (enum sync_kind)outer.kind;
	if (is_built(outer.kind))
		return kind;
	if (own == SYNC_PARK_PART)
		return kind == SYNC_JOIN_AROUND ? SYNC_JOIN : SYNC_PARK;
	if (own == SYNC_UNCLEAR)
		return kind == SYNC_PARK ? kind : SYNC_UNCLEAR;
	/* A function that parks may also run a program's function that waits for a semaphore. */
	bool is_callers = kind == SYNC_UNCLEAR || (kind == SYNC_PARK && !outer.age);
	return is_callers ? kind : SYNC_PERMIT_PART;
}

static struct state next_state(struct state outer, enum sync_kind own)
{
	switch (own) {
	case SYNC_LOCK:
	case SYNC_PARK:
	case SYNC_LOCK_BY_PARK:
	case SYNC_BACKPRESSURE:
	case SYNC_JOIN:
	case SYNC_PERMIT:
	case SYNC_JOIN_AROUND:
		return (struct state){(uint8_t)own, 0};
	case SYNC_PARK_PART:
	case SYNC_PERMIT_PART:
	case SYNC_UNCLEAR:
		return (struct state){(uint8_t)kind_of_part(outer, own), 0};
	case SYNC_UNKNOWN:
	case SYNC_PASS:
		break;
	}
	bool has_ended = outer.kind == SYNC_JOIN_AROUND && own == SYNC_UNKNOWN;
	if (outer.kind == SYNC_UNKNOWN || outer.age >= REACH_FRAMES || has_ended)
		return (struct state){SYNC_UNKNOWN, 0};
	return (struct state){outer.kind, (uint8_t)(outer.age + 1)};
}

static struct state state_at(struct reasons *rs, struct state outer, loc_id id)
{
	const struct location *l = &rs->p->locations.p[id];
	if (l->flags & LOCATION_KERNEL)
		return outer;
	for (uint32_t i = l->nr_frames; i-- > 0;)
		outer = next_state(outer, kind_of(rs, rs->p->frames.p[l->first_frame + i].func));
	return l->nr_frames ? outer : next_state(outer, SYNC_UNKNOWN);
}

static void reserve_path(struct reasons *rs, size_t n)
{
	if (n <= rs->nr_path)
		return;
	size_t want = MAX(n, 2 * rs->nr_path + 64);
	stack_id *to = arena_alloc(rs->arena, want * sizeof(*to));
	if (rs->nr_path)
		memcpy(to, rs->path, rs->nr_path * sizeof(*to));
	rs->path = to;
	rs->nr_path = want;
}

enum sync_kind reason_of_frames(struct reasons *rs, stack_id stack)
{
	size_t n = 0;
	stack_id s = stack;
	for (; rs->by_stack[s].kind == NOT_YET; s = rs->p->stacks.p[s].parent) {
		reserve_path(rs, n + 1);
		rs->path[n++] = s;
	}
	struct state st = rs->by_stack[s];
	while (n-- > 0) {
		st = state_at(rs, st, rs->p->stacks.p[rs->path[n]].loc);
		rs->by_stack[rs->path[n]] = st;
	}
	return (enum sync_kind)st.kind;
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

/* A write to a pipe or socket waits until the other end has taken data out. */
static bool is_send(const struct tag *tag)
{
	static const int16_t sends[] = {SYS_write,  SYS_writev,  SYS_pwrite64, SYS_pwritev,
					SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_vmsplice};
	for (size_t i = 0; i < ARRAY_LEN(sends); i++)
		if (tag->syscall == sends[i])
			return true;
	return false;
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
	else if ((own == WAIT_PIPE || own == WAIT_NET) && is_send(tag))
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
