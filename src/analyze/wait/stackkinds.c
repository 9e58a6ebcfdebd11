/*
 * Kinds of waits by frames; see stackkinds.h.
 *
 * The result for a stack depends on that of its caller and on its own frame, so it is cached by node
 * of the prefix tree: the kind, and the number of frames since it was decided. It is valid for
 * REACH_FRAMES frames only: functions that a lock function calls within a few frames belong to the
 * lock, later ones (a callback, an initialiser) to the program.
 */
#include "base/base.h"
#include "analyze/wait/stackkinds.h"

#define REACH_FRAMES 8
#define NOT_YET      0xff

/* Result, and the number of frames since it was decided. */
struct state {
	uint8_t kind;
	uint8_t age;
};

struct stackkinds {
	const struct profile *p;
	struct state *by_stack; /* kind NOT_YET: not classified yet */
	uint8_t *by_func;       /* enum sync_kind, or NOT_YET */
	stack_id *path;         /* scratch, as long as the deepest stack asked for */
	size_t nr_path;
	struct arena *arena;
};

struct stackkinds *stackkinds_new(struct arena *a, const struct profile *p)
{
	struct stackkinds *sk = arena_calloc(a, 1, sizeof(*sk));
	sk->p = p;
	sk->arena = a;
	sk->by_stack = arena_alloc(a, p->stacks.n * sizeof(*sk->by_stack));
	memset(sk->by_stack, NOT_YET, p->stacks.n * sizeof(*sk->by_stack));
	sk->by_func = arena_alloc(a, p->functions.n);
	memset(sk->by_func, NOT_YET, p->functions.n);
	if (p->stacks.n)
		sk->by_stack[0] = (struct state){SYNC_UNKNOWN, 0};
	return sk;
}

static enum sync_kind kind_of(struct stackkinds *sk, func_id func)
{
	uint8_t *memo = &sk->by_func[func];
	if (*memo == NOT_YET) {
		const struct function *f = &sk->p->functions.p[func];
		enum sync_kind kind = sync_kind_of(profile_sv(sk->p, f->name));
		bool is_code = kind == SYNC_UNKNOWN && f->flags & FUNC_PYTHON;
		*memo = (uint8_t)(is_code ? SYNC_CODE : kind);
	}
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
	bool is_park = kind == SYNC_PARK || kind == SYNC_PARK_PART;
	if (own == SYNC_PARK_PART)
		return kind == SYNC_JOIN_AROUND ? SYNC_JOIN : is_park ? kind : SYNC_PARK_PART;
	if (own == SYNC_UNCLEAR && kind == SYNC_CODE)
		return SYNC_LOCK;
	if (own == SYNC_UNCLEAR)
		return is_park || kind == SYNC_LOCK ? kind : SYNC_UNCLEAR;
	/* A function that parks or locks may also run a program's function that waits for a semaphore. */
	bool is_callers = kind == SYNC_UNCLEAR || ((is_park || kind == SYNC_LOCK) && !outer.age);
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
	case SYNC_CODE:
		if (outer.kind == SYNC_UNKNOWN || outer.kind == SYNC_CODE)
			return (struct state){SYNC_CODE, 0};
		break;
	case SYNC_UNKNOWN:
	case SYNC_PASS:
		break;
	}
	bool has_ended = outer.kind == SYNC_JOIN_AROUND && own != SYNC_PASS;
	if (outer.kind == SYNC_UNKNOWN || outer.age >= REACH_FRAMES || has_ended)
		return (struct state){SYNC_UNKNOWN, 0};
	return (struct state){outer.kind, (uint8_t)(outer.age + 1)};
}

static struct state state_at(struct stackkinds *sk, struct state outer, loc_id id)
{
	const struct location *l = &sk->p->locations.p[id];
	if (l->flags & LOCATION_KERNEL)
		return outer;
	for (uint32_t i = l->nr_frames; i-- > 0;)
		outer = next_state(outer, kind_of(sk, sk->p->frames.p[l->first_frame + i].func));
	return l->nr_frames ? outer : next_state(outer, SYNC_UNKNOWN);
}

static void reserve_path(struct stackkinds *sk, size_t n)
{
	if (n <= sk->nr_path)
		return;
	size_t want = MAX(n, 2 * sk->nr_path + 64);
	stack_id *to = arena_alloc(sk->arena, want * sizeof(*to));
	if (sk->nr_path)
		memcpy(to, sk->path, sk->nr_path * sizeof(*to));
	sk->path = to;
	sk->nr_path = want;
}

enum sync_kind stackkinds_of(struct stackkinds *sk, stack_id stack)
{
	size_t n = 0;
	stack_id s = stack;
	for (; sk->by_stack[s].kind == NOT_YET; s = sk->p->stacks.p[s].parent) {
		reserve_path(sk, n + 1);
		sk->path[n++] = s;
	}
	struct state st = sk->by_stack[s];
	while (n-- > 0) {
		st = state_at(sk, st, sk->p->stacks.p[sk->path[n]].loc);
		sk->by_stack[sk->path[n]] = st;
	}
	return st.kind == SYNC_CODE ? SYNC_UNKNOWN : (enum sync_kind)st.kind;
}
