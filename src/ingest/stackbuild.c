/*
 * Stacks from chains, registers or addresses; see stackbuild.h.
 *
 * Locations are found through a small cache keyed by mapping and address, since the same return
 * addresses are in nearly every sample.
 */
#include "base/base.h"
#include "ingest/stackbuild.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "unwind/walk.h"

#define LOC_CACHE_SIZE 32768 /* power of two; half a megabyte */

struct loc_cache_entry {
	uint64_t addr;
	uint32_t key; /* generation of the space (0 = kernel) << 1 | is_call; UINT32_MAX = empty */
	loc_id loc;
};

/*
 * Caches the stack of a chain by a hash of the chain and of the process's mappings. Chains repeat;
 * hashing one takes a tenth of the time of resolving it again. The leaf's address is not hashed
 * where possible, since the callers alone repeat far more often (1.0 M samples of a C++ program have
 * 157,000 chains, but 17,000 lists of callers). Two chains with the same 64-bit hash would be
 * confused: once in 10^7 recordings of a million different stacks.
 */
#define CHAIN_SETS ((size_t)65536) /* power of two */
#define CHAIN_WAYS 4               /* entries of a set, one cache line; most recent first */
struct chain_cache_entry {
	uint64_t hash; /* 0 = empty */
	stack_id stack;
	enum loss_kind loss;
};

/*
 * The last stack of some threads, node by node from the root: the next stack of the same thread
 * mostly has the same outer frames, which are then not looked up again. Frames of chains that the
 * kernel unwound are compared by address, before they are resolved.
 */
#define PATHS 64
struct path {
	VEC(loc_id) locs;
	VEC(stack_id) nodes;
	VEC(uint64_t) addrs; /* return addresses of the outermost nodes; 0..nodes.n of them */
	int32_t pid;         /* process and generation of its mappings that addrs are for */
	uint32_t generation;
	enum loss_kind loss;
};

struct stackbuild {
	struct profile *p;
	struct modules *modules;
	struct spaces *spaces;
	void (*wants_more_stack)(void *ctx, int32_t tid, uint64_t nr_bytes);
	void *ctx;
	struct walker *walker;
	loc_id truncated_loc;
	struct loc_cache_entry *cache;
	struct chain_cache_entry *chains;
	struct path paths[PATHS];
	VEC(loc_id) scratch; /* frames of the current stack, leaf first */
};

struct stackbuild *stackbuild_new(const struct stackbuild_options *options)
{
	struct stackbuild *b = xcalloc(1, sizeof(*b));
	b->p = options->p;
	b->modules = options->modules;
	b->spaces = options->spaces;
	b->wants_more_stack = options->wants_more_stack;
	b->ctx = options->ctx;
	b->walker = walker_new();
	b->cache = xcalloc(LOC_CACHE_SIZE, sizeof(*b->cache));
	b->chains = xcalloc(CHAIN_SETS * CHAIN_WAYS, sizeof(*b->chains));
	for (size_t i = 0; i < LOC_CACHE_SIZE; i++)
		b->cache[i].key = UINT32_MAX;
	return b;
}

void stackbuild_free(struct stackbuild *b)
{
	if (!b)
		return;
	walker_free(b->walker);
	vec_release(&b->scratch);
	free(b->cache);
	free(b->chains);
	for (size_t i = 0; i < PATHS; i++) {
		vec_release(&b->paths[i].locs);
		vec_release(&b->paths[i].nodes);
		vec_release(&b->paths[i].addrs);
	}
	free(b);
}

/* ---- locations --------------------------------------------------------------------------- */

static loc_id new_user_location(struct stackbuild *b, int32_t pid, uint64_t addr,
				const struct space_map *map, uint32_t flags)
{
	if (!map)
		return profile_location(b->p, modules_unknown(b->modules, pid)->unwind.id, addr,
					flags);
	bool is_whole = map->module->is_jit;
	uint64_t offset = is_whole ? addr : addr - map->start + map->pgoff;
	return profile_location(b->p, map->module->id, offset, flags);
}

static const struct space_map *map_of(struct space *sp, uint64_t addr, bool is_call)
{
	return space_find(sp, is_call ? addr - 1 : addr);
}

static struct loc_cache_entry *loc_entry(struct stackbuild *b, uint64_t addr, uint32_t key)
{
	return &b->cache[hash_mix(addr, key) & (LOC_CACHE_SIZE - 1)];
}

loc_id stackbuild_user_location(struct stackbuild *b, int32_t pid, struct space *sp, uint64_t addr,
				bool is_call)
{
	uint32_t key = sp->generation << 1 | is_call;
	struct loc_cache_entry *e = loc_entry(b, addr, key);
	if (e->addr != addr || e->key != key)
		*e = (struct loc_cache_entry){addr, key,
					      new_user_location(b, pid, addr,
								map_of(sp, addr, is_call),
								is_call ? LOCATION_CALL : 0)};
	return e->loc;
}

loc_id stackbuild_kernel_location(struct stackbuild *b, uint64_t addr, bool is_call)
{
	struct loc_cache_entry *e = loc_entry(b, addr, is_call);
	if (e->addr != addr || e->key != is_call)
		*e = (struct loc_cache_entry){
			addr, is_call,
			profile_location(b->p, modules_kernel(b->modules)->unwind.id, addr,
					 LOCATION_KERNEL | (is_call ? LOCATION_CALL : 0))};
	return e->loc;
}

/* Appends the chain's kernel part to scratch; returns the index of its user part. */
static uint32_t push_kernel_chain(struct stackbuild *b, const struct event_sample *s)
{
	bool is_kernel = false;
	bool is_first = true;
	for (uint32_t i = 0; i < s->nr_chain && i < CHAIN_DEPTH_MAX; i++) {
		uint64_t addr = s->chain[i];
		if (addr >= CHAIN_MAX) {
			if (addr == CHAIN_USER)
				return i + 1;
			is_kernel = addr == CHAIN_KERNEL;
			continue;
		}
		if (!is_kernel)
			continue;
		vec_push(&b->scratch, stackbuild_kernel_location(b, addr, !is_first));
		is_first = false;
	}
	return s->nr_chain;
}

/* Unwinds registers and copied stack bytes; appends the frames to scratch. */
static enum loss_kind walk(struct stackbuild *b, const struct event *ev,
			   const struct walk_input *in)
{
	const struct walk_frame *frames;
	uint32_t nr;
	enum walk_end end = walker_walk(b->walker, in, &frames, &nr);
	for (uint32_t i = 0; i < nr; i++)
		vec_push(&b->scratch, stackbuild_user_location(b, ev->pid, in->space,
							       frames[i].addr, frames[i].is_call));
	return loss_from_walk_end(end);
}

static enum loss_kind push_walked(struct stackbuild *b, const struct event *ev, struct space *sp)
{
	const struct event_sample *s = &ev->sample;
	enum loss_kind loss = walk(b, ev,
				   &(struct walk_input){.space = sp,
							.regs = s->regs,
							.regs_mask = s->regs_mask,
							.stack = s->stack,
							.nr_stack = s->nr_stack});
	if (loss == LOSS_TRUNC_COPY && s->is_stack_full && b->wants_more_stack)
		b->wants_more_stack(b->ctx, ev->tid, s->nr_stack);
	return loss;
}

/* Returns whether the unwind rules mark the address as outermost: the thread's start. */
static bool is_outermost(const struct space_map *map, uint64_t addr)
{
	if (!map || !map->module->table)
		return false;
	const struct unwind_row *row = unwind_table_find(map->module->table, addr - 1 - map->bias);
	return row && (row->rule & ((1u << ROW_KIND_BITS) - 1)) == ROW_STOP;
}

/* Returns how many outermost frames the chain shares with the path, for the same mappings. */
static size_t nr_shared(const struct path *path, const struct event *ev, const struct space *sp,
			uint32_t from)
{
	const struct event_sample *s = &ev->sample;
	if (path->pid != ev->pid || path->generation != sp->generation)
		return 0;
	size_t nr_calls = s->nr_chain - from - 1; /* the first address is not a return address */
	size_t n = MIN(path->addrs.n, nr_calls);
	size_t i = 0;
	while (i < n && path->addrs.p[i] == s->chain[s->nr_chain - 1 - i])
		i++;
	return i;
}

/* Stores the chain's return addresses, up to a marker, in the path, which has `shared` of them. */
static void keep_addrs(struct path *path, const struct event *ev, const struct space *sp,
		       uint32_t from, size_t shared)
{
	const struct event_sample *s = &ev->sample;
	path->pid = ev->pid;
	path->generation = sp->generation;
	path->addrs.n = shared;
	for (size_t i = s->nr_chain - shared; i-- > from + 1 && s->chain[i] < CHAIN_MAX;)
		vec_push(&path->addrs, s->chain[i]);
}

static enum loss_kind push_chain(struct stackbuild *b, const struct event *ev, struct space *sp,
				 uint32_t from, struct path *path, size_t *ret_shared)
{
	const struct event_sample *s = &ev->sample;
	size_t shared = nr_shared(path, ev, sp, from);
	uint64_t addr = 0;
	bool is_call = false;
	for (uint32_t i = from; i < s->nr_chain - shared; i++) {
		if (s->chain[i] >= CHAIN_MAX)
			continue;
		addr = s->chain[i];
		is_call = i > from;
		vec_push(&b->scratch, stackbuild_user_location(b, ev->pid, sp, addr, is_call));
	}
	keep_addrs(path, ev, sp, from, shared);
	b->p->has_guessed_stacks |= is_call || shared;
	*ret_shared = shared;
	if (!shared)
		path->loss = addr && is_outermost(map_of(sp, addr, is_call), addr) ? LOSS_NR
										   : LOSS_TRUNC_FP;
	return path->loss;
}

/*
 * Puts the sample's frames into scratch, leaf first, except the *ret_shared outermost ones, which
 * are those of the path. Returns why the stack is incomplete, or LOSS_NR.
 */
static enum loss_kind collect_frames(struct stackbuild *b, const struct event *ev,
				     struct path *path, size_t *ret_shared)
{
	*ret_shared = 0;
	const struct event_sample *s = &ev->sample;
	vec_clear(&b->scratch);
	uint32_t user_from = push_kernel_chain(b, s);
	struct space *sp = spaces_find(b->spaces, ev->pid);
	if (s->regs && sp && !s->is_compat) {
		path->addrs.n = 0;
		return push_walked(b, ev, sp);
	}
	if (user_from < s->nr_chain && sp)
		return push_chain(b, ev, sp, user_from, path, ret_shared);
	path->addrs.n = 0;
	if (!b->scratch.n && s->ip) { /* recorded without stacks: the address alone */
		if (!s->is_user)
			vec_push(&b->scratch, stackbuild_kernel_location(b, s->ip, false));
		else if (sp)
			vec_push(&b->scratch,
				 stackbuild_user_location(b, ev->pid, sp, s->ip, false));
		else
			vec_push(&b->scratch, new_user_location(b, ev->pid, s->ip, NULL, 0));
		return s->chain ? LOSS_TRUNC_NO_REGS : LOSS_NR;
	}
	/* Kernel threads have no user part; here it is missing, since the registers are. */
	return sp && sp->maps.n && s->is_user ? LOSS_TRUNC_NO_REGS : LOSS_NR;
}

/* Adds the frames in scratch to the profile, on top of @root and the path's @shared nodes. */
static stack_id intern_frames(struct stackbuild *b, struct path *path, stack_id root, size_t shared)
{
	size_t n = b->scratch.n + shared;
	const loc_id *leaf_first = b->scratch.p;
	size_t i = shared;
	if (path->nodes.n && b->p->stacks.p[path->nodes.p[0]].parent == root)
		while (i < n && i < path->locs.n && path->locs.p[i] == leaf_first[n - 1 - i])
			i++;
	vec_reserve(&path->locs, n);
	vec_reserve(&path->nodes, n);
	stack_id stack = i ? path->nodes.p[i - 1] : root;
	for (; i < n; i++) {
		stack = profile_stack(b->p, stack, leaf_first[n - 1 - i]);
		path->locs.p[i] = leaf_first[n - 1 - i];
		path->nodes.p[i] = stack;
	}
	path->locs.n = path->nodes.n = n;
	return stack;
}

static stack_id root_of(struct stackbuild *b, enum loss_kind loss)
{
	if (loss == LOSS_NR)
		return 0;
	if (!b->truncated_loc)
		b->truncated_loc = profile_pseudo_location(b->p, "[truncated]");
	return profile_stack(b->p, 0, b->truncated_loc);
}

static struct path *path_of(struct stackbuild *b, const struct event *ev)
{
	return &b->paths[(uint32_t)ev->tid % PATHS];
}

static stack_id intern_stack(struct stackbuild *b, const struct event *ev, enum loss_kind *ret_loss)
{
	struct path *path = path_of(b, ev);
	size_t shared;
	*ret_loss = collect_frames(b, ev, path, &shared);
	return intern_frames(b, path, root_of(b, *ret_loss), shared);
}

/* The frame in the place of the middle of a deep stack. */
static loc_id gap_location(struct stackbuild *b, uint32_t nr_min)
{
	CLEANUP(buf_release) struct buf name = {0};
	buf_addf(&name, "[... %s to %s frames ...]", num_count(nr_min).s,
		 num_count(2 * (uint64_t)nr_min - 1).s);
	return profile_pseudo_location(b->p, buf_str(&name));
}

stack_id stackbuild_user(struct stackbuild *b, const struct event *ev, enum loss_kind *ret_loss)
{
	const struct event_stack *s = &ev->stack;
	struct space *sp = spaces_get(b->spaces, ev->pid);
	enum loss_kind loss = MIN(s->loss, LOSS_NR);
	vec_clear(&b->scratch);
	for (uint32_t i = 0; i < s->nr_chain && i < CHAIN_DEPTH_MAX; i++) {
		if (s->nr_gap_min && i == s->nr_inner)
			vec_push(&b->scratch, gap_location(b, s->nr_gap_min));
		vec_push(&b->scratch, stackbuild_user_location(b, ev->pid, sp, s->chain[i],
							       i > 0 || s->is_callers));
	}
	if (s->regs)
		loss = walk(b, ev,
			    &(struct walk_input){.space = sp,
						 .regs = s->regs,
						 .regs_mask = s->regs_mask,
						 .stack = s->stack,
						 .nr_stack = s->nr_stack});
	if (s->regs && s->is_callers && b->scratch.n) /* the leaf comes with each sample */
		memmove(b->scratch.p, b->scratch.p + 1, --b->scratch.n * sizeof(*b->scratch.p));
	struct path *path = path_of(b, ev);
	path->addrs.n = 0;
	stack_id root =
		root_of(b, loss); /* without the middle it still starts at the thread's start */
	*ret_loss = loss == LOSS_NR && s->nr_gap_min ? LOSS_TRUNC_DEPTH : loss;
	return intern_frames(b, path, root, 0);
}

/* Returns the entry of a hash, moved to the front of its set; a new one is empty. */
static struct chain_cache_entry *chain_entry(struct stackbuild *b, uint64_t hash)
{
	struct chain_cache_entry *set = &b->chains[(hash & (CHAIN_SETS - 1)) * CHAIN_WAYS];
	if (LIKELY(set[0].hash == hash))
		return set;
	size_t i = 1;
	while (i < CHAIN_WAYS - 1 && set[i].hash != hash)
		i++;
	struct chain_cache_entry found = set[i];
	if (found.hash != hash)
		found = (struct chain_cache_entry){0};
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = found;
	return set;
}

/* Four independent multiplication chains run in parallel: a chain has 100 bytes and more. */
static uint64_t hash_chain(const uint64_t *p, size_t n, uint64_t seed)
{
	uint64_t a = seed;
	uint64_t b = n;
	uint64_t c = 0;
	uint64_t d = 0;
	for (; n >= 8; n -= 8, p += 8) {
		a = hash_mix(a ^ p[0], p[1]);
		b = hash_mix(b ^ p[2], p[3]);
		c = hash_mix(c ^ p[4], p[5]);
		d = hash_mix(d ^ p[6], p[7]);
	}
	for (; n; n--, p++)
		a = hash_mix(a ^ p[0], b);
	return hash_mix(hash_mix(a, b), hash_mix(c, d));
}

/*
 * Returns whether the callers can be cached without the leaf: the frames above it and the loss do
 * not depend on its address, since the kernel part, or the user part with known mappings, has more
 * frames.
 */
static bool has_callers(const struct event_sample *s, const struct space *sp)
{
	if (s->nr_chain < 3 || s->chain[1] >= CHAIN_MAX || s->chain[2] >= CHAIN_MAX)
		return false;
	return s->chain[0] == CHAIN_KERNEL || (s->chain[0] == CHAIN_USER && sp);
}

/* Uses the cache for chains that the kernel unwound. */
stack_id stackbuild_sample(struct stackbuild *b, const struct event *ev, enum loss_kind *ret_loss)
{
	const struct event_sample *s = &ev->sample;
	if (s->regs || !s->nr_chain)
		return intern_stack(b, ev, ret_loss);
	struct space *sp = spaces_find(b->spaces, ev->pid);
	uint64_t place = (uint64_t)(uint32_t)ev->pid << 32 | (sp ? sp->generation : 0);
	bool is_split = has_callers(s, sp);
	size_t skip = is_split ? 2 : 0;
	bool is_kernel = s->chain[0] == CHAIN_KERNEL;
	uint64_t seed = hash_mix(place, (uint64_t)s->is_user << 2 | is_split << 1 | is_kernel);
	uint64_t h = hash_chain(s->chain + skip, s->nr_chain - skip, seed);
	struct chain_cache_entry *e = chain_entry(b, h);
	if (e->hash != h) {
		stack_id stack = intern_stack(b, ev, &e->loss);
		e->stack = is_split ? b->p->stacks.p[stack].parent : stack;
		e->hash = h;
		*ret_loss = e->loss;
		return stack;
	}
	*ret_loss = e->loss;
	if (!is_split)
		return e->stack;
	return profile_stack(b->p, e->stack,
			     is_kernel ? stackbuild_kernel_location(b, s->chain[1], false)
				       : stackbuild_user_location(b, ev->pid, sp, s->chain[1],
								  false));
}
