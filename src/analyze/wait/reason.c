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
	stack_id *path;         /* scratch, as long as the deepest stack asked for */
	size_t nr_path;
	struct arena *arena;
};

struct reasons *reasons_new(struct arena *a, const struct profile *p)
{
	struct reasons *rs = arena_calloc(a, 1, sizeof(*rs));
	rs->p = p;
	rs->arena = a;
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

static struct state next_state(struct state outer, enum sync_kind own)
{
	switch (own) {
	case SYNC_LOCK:
	case SYNC_PARK:
	case SYNC_LOCK_BY_PARK:
		return (struct state){(uint8_t)own, 0};
	case SYNC_PARK_PART:
		if (outer.kind == SYNC_LOCK_BY_PARK)
			return (struct state){SYNC_LOCK_BY_PARK, 0};
		return (struct state){SYNC_PARK, 0};
	case SYNC_UNKNOWN:
	case SYNC_PASS:
		break;
	}
	if (outer.kind == SYNC_UNKNOWN || outer.age >= REACH_FRAMES)
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

enum wait_reason reason_of(struct reasons *rs, stack_id stack, const struct tag *tag)
{
	bool is_asleep = tag->reason == WAIT_POLL || tag->reason == WAIT_SLEEP;
	if (tag->reason != WAIT_SYNC && !is_asleep)
		return tag->reason < WAIT_NR ? (enum wait_reason)tag->reason : WAIT_UNKNOWN;
	enum sync_kind kind = reason_of_frames(rs, stack);
	if (is_asleep)
		return kind == SYNC_LOCK_BY_PARK ? WAIT_LOCK : (enum wait_reason)tag->reason;
	if (kind == SYNC_PARK)
		return WAIT_PARK;
	if (kind == SYNC_LOCK || kind == SYNC_LOCK_BY_PARK || tag->evidence & EVIDENCE_LOCK_WORD)
		return WAIT_LOCK;
	return WAIT_SYNC;
}
