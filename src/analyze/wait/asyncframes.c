/* Waits below the poll function of a future; see asyncframes.h. */
#include "base/base.h"
#include "analyze/wait/asyncframes.h"

#include "analyze/select/funcglob.h"

#define NOT_YET 0xff

/* One row per runtime and kind; the first matching row decides. */
static const struct {
	enum async_kind kind;
	const char *patterns;
} table[] = {
	/* The workers of tokio's scheduler are started by spawn_blocking. */
	{ASYNC_WORKER, "tokio::runtime::scheduler::multi_thread*::worker::run|"
		       "tokio::runtime::thread_pool::worker::run"},
	{ASYNC_ALLOWED, "tokio::*::block_in_place|tokio::runtime::blocking::*|"
			"blocking::Executor::*|blocking::unblock|glommio::sys::blocking::*|"
			"async_std::task::*block*_in_place*"},
	{ASYNC_POLL, "*::task::raw::poll|*::task::raw::RawTask::poll|*::task::raw::RawTask::run|"
		     "*::task::harness::Harness::poll*|*::task::harness::poll_future|"
		     "*::task::core::Core::poll|async_task::raw::RawTask::run|"
		     "async_task::runnable::Runnable::run|"
		     "futures_task::future_obj::*::poll|core::future::future::Future::poll"},
};

struct asyncframes {
	const struct profile *p;
	struct arena *arena;
	uint8_t *by_stack; /* enum async_kind that holds below the stack, or NOT_YET */
	uint8_t *by_func;  /* enum async_kind, or NOT_YET */
	stack_id *path;    /* scratch, as long as the deepest stack asked for */
	size_t nr_path;
};

struct asyncframes *asyncframes_new(struct arena *a, const struct profile *p)
{
	struct asyncframes *af = arena_calloc(a, 1, sizeof(*af));
	af->p = p;
	af->arena = a;
	af->by_stack = arena_alloc(a, p->stacks.n + 1);
	memset(af->by_stack, NOT_YET, p->stacks.n + 1);
	af->by_stack[0] = ASYNC_NONE;
	af->by_func = arena_alloc(a, p->functions.n + 1);
	memset(af->by_func, NOT_YET, p->functions.n + 1);
	return af;
}

/* ---- names --------------------------------------------------------------------------------- */

/*
 * True for "<Type as core::future::future::Future>::poll" and the poll_next of streams. Closures
 * within a poll function are not meant: another thread may run them.
 */
static bool is_poll_of_trait(struct sv name)
{
	unsigned depth = 0;
	size_t i = 0;
	if (!name.n || name.p[0] != '<')
		return false;
	for (; i < name.n; i++) {
		bool is_arrow = name.p[i] == '>' && i && name.p[i - 1] == '-';
		depth += name.p[i] == '<';
		if (name.p[i] == '>' && !is_arrow && !--depth)
			break;
	}
	struct sv trait = {name.p, MIN(i + 1, name.n)};
	struct sv method = sv_from_idx(name, trait.n);
	if (funcglob_is_like("::poll", method))
		return sv_has_suffix(trait, SV("::Future>"));
	return funcglob_is_like("::poll_next", method) && sv_has_suffix(trait, SV("::Stream>"));
}

/* True for the body of an async function or block, as debug information names it. */
static bool is_async_body(struct sv path)
{
	ssize_t at = sv_rindex(path, ':');
	struct sv last = at < 0 ? path : sv_from_idx(path, (size_t)at + 1);
	return sv_has_prefix(last, SV("{async_fn#")) || sv_has_prefix(last, SV("{async_block#")) ||
	       sv_has_prefix(last, SV("{async_closure#"));
}

enum async_kind asyncframes_kind_of(struct sv function)
{
	char plain[FUNCGLOB_NAME_MAX];
	char path[FUNCGLOB_NAME_MAX];
	struct sv name = funcglob_without_args(funcglob_plain(function, plain), path);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (funcglob_is_like(table[i].patterns, name))
			return table[i].kind;
	return is_poll_of_trait(function) || is_async_body(name) ? ASYNC_POLL : ASYNC_NONE;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static enum async_kind kind_of(struct asyncframes *af, func_id func)
{
	uint8_t *memo = &af->by_func[func];
	if (*memo == NOT_YET)
		*memo = (uint8_t)asyncframes_kind_of(
			profile_sv(af->p, af->p->functions.p[func].name));
	return (enum async_kind) * memo;
}

static enum async_kind next_kind(enum async_kind outer, enum async_kind own)
{
	switch (own) {
	case ASYNC_NONE:
		return outer;
	case ASYNC_POLL:
		return outer == ASYNC_ALLOWED ? outer : own;
	case ASYNC_ALLOWED:
		return own;
	case ASYNC_WORKER:
		break;
	}
	return ASYNC_NONE;
}

static uint8_t kind_at(struct asyncframes *af, uint8_t outer, loc_id id)
{
	const struct location *l = &af->p->locations.p[id];
	enum async_kind kind = (enum async_kind)outer;
	for (uint32_t i = l->nr_frames; !(l->flags & LOCATION_KERNEL) && i-- > 0;)
		kind = next_kind(kind, kind_of(af, af->p->frames.p[l->first_frame + i].func));
	return (uint8_t)kind;
}

static void add_to_path(struct asyncframes *af, size_t n, stack_id s)
{
	if (n == af->nr_path) {
		size_t want = 2 * n + 64;
		stack_id *to = arena_alloc(af->arena, want * sizeof(*to));
		if (n)
			memcpy(to, af->path, n * sizeof(*to));
		af->path = to;
		af->nr_path = want;
	}
	af->path[n] = s;
}

bool asyncframes_is_in_poll(struct asyncframes *af, stack_id stack)
{
	size_t n = 0;
	stack_id s = stack;
	for (; af->by_stack[s] == NOT_YET; s = af->p->stacks.p[s].parent)
		add_to_path(af, n++, s);
	uint8_t kind = af->by_stack[s];
	while (n-- > 0) {
		kind = kind_at(af, kind, af->p->stacks.p[af->path[n]].loc);
		af->by_stack[af->path[n]] = kind;
	}
	return kind == ASYNC_POLL;
}
