/*
 * Events -> profile; see builder.h.
 *
 * A stack is kept from the root outwards: [truncated]? user frames, then kernel frames. Locations
 * are found through a small cache keyed by mapping and address, since the same return addresses
 * come back in nearly every sample.
 */
#include "base/base.h"
#include "ingest/builder.h"

#include "base/hash.h"
#include "base/mem.h"
#include "unwind/space.h"
#include "unwind/walk.h"

#define LOC_CACHE_SIZE  32768 /* power of two; half a megabyte */
#define CHAIN_DEPTH_MAX 4096

struct thread {
	int32_t pid;
	str_id comm;
	task_id task; /* 0 = not needed yet */
	bool is_alive;
};

struct loc_cache_entry {
	uint64_t addr;
	uint32_t key; /* generation of the space (0 = kernel) << 1 | is_call; UINT32_MAX = empty */
	loc_id loc;
};

/*
 * The stack of a chain that was seen before, by a hash of the chain and of the mappings that it
 * is read by. Chains repeat; hashing one takes a tenth of the time of resolving it again. The
 * leaf's address is left out where it can be: callers repeat far more often (of 1.0 M samples of
 * a C++ program, 157,000 chains have 17,000 lists of callers). Two chains of one 64-bit hash would
 * be taken for each other: once in 10^7 recordings of a million different stacks.
 */
#define CHAIN_SETS ((size_t)65536) /* power of two */
#define CHAIN_WAYS 4               /* of a set, one cache line; the latest comes first */
struct chain_cache_entry {
	uint64_t hash; /* 0 = empty */
	stack_id stack;
	enum loss_kind loss;
};

/*
 * The last stack of a few threads, node by node from the root: the next one of the same thread
 * mostly shares its outer frames, which are then not looked up again. Frames of a chain that the
 * kernel walked are compared as addresses, before they are resolved.
 */
#define PATHS 64
struct path {
	VEC(loc_id) locs;
	VEC(stack_id) nodes;
	VEC(uint64_t) addrs; /* return addresses of the outermost nodes; 0..nodes.n of them */
	int32_t pid;         /* by whose mappings, as they were then, addrs were resolved */
	uint32_t generation;
	enum loss_kind loss;
};

struct builder {
	struct profile *p;
	struct builder_options options;
	struct modules modules;
	struct spaces spaces;
	struct walker *walker;
	struct map thread_by_tid; /* tid -> index + 1 */
	struct map nr_alive;      /* pid -> known threads that have not ended */
	struct map listed;        /* pids whose mappings the profile has */
	int32_t last_tid; /* of the thread looked up last; its index, if there are threads */
	uint32_t last_thread;
	VEC(struct thread) threads;
	VEC(uint32_t) table_of_spec; /* table + 1, 0 = none */
	loc_id truncated_loc;
	uint64_t last_ns;
	struct loc_cache_entry *cache;
	struct chain_cache_entry *chains;
	struct path paths[PATHS];
	VEC(loc_id) scratch; /* frames of the sample in hand, leaf first */
};

struct builder *builder_new(struct profile *p, const struct builder_options *options)
{
	struct builder *b = xcalloc(1, sizeof(*b));
	b->p = p;
	b->options = *options;
	b->modules = (struct modules){.p = p,
				      .opener = options->opener,
				      .cache_dir = options->cache_dir,
				      .needs_tables = true};
	b->walker = walker_new();
	b->cache = xcalloc(LOC_CACHE_SIZE, sizeof(*b->cache));
	b->chains = xcalloc(CHAIN_SETS * CHAIN_WAYS, sizeof(*b->chains));
	for (size_t i = 0; i < LOC_CACHE_SIZE; i++)
		b->cache[i].key = UINT32_MAX;
	return b;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	walker_free(b->walker);
	spaces_release(&b->spaces);
	modules_release(&b->modules);
	map_release(&b->thread_by_tid);
	map_release(&b->nr_alive);
	map_release(&b->listed);
	vec_release(&b->threads);
	vec_release(&b->table_of_spec);
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

void builder_free_p(struct builder **b)
{
	builder_free(*b);
}

void builder_set_table(struct builder *b, uint32_t spec, uint32_t table)
{
	ASSERT(spec < 65536);
	while (b->table_of_spec.n <= spec)
		vec_push(&b->table_of_spec, 0);
	b->table_of_spec.p[spec] = table + 1;
}

struct table builder_table_shape(struct profile *p, const char *event, double freq_hz)
{
	bool is_clock = !strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10);
	return (struct table){.event = profile_cstr(p, event),
			      .time_kind = TABLE_INSTANT,
			      .nr_columns = 2,
			      .freq_hz = freq_hz,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, is_clock ? "time" : "period"),
					   .unit = is_clock ? UNIT_NS : UNIT_COUNT,
					   .is_estimate = true}}};
}

struct modules *builder_modules(struct builder *b)
{
	return &b->modules;
}

uint64_t builder_last_ns(const struct builder *b)
{
	return b->last_ns;
}

/* ---- threads ----------------------------------------------------------------------------- */

static void count_alive(struct builder *b, struct thread *t)
{
	t->is_alive = true;
	++*map_put(&b->nr_alive, (uint32_t)t->pid, NULL);
}

/* Whether it was the last one that is known of its process. */
static bool count_dead(struct builder *b, struct thread *t)
{
	uint32_t *nr = t->is_alive ? map_get(&b->nr_alive, (uint32_t)t->pid) : NULL;
	t->is_alive = false;
	if (nr && *nr > 1) {
		--*nr;
		return false;
	}
	(void)map_del(&b->nr_alive, (uint32_t)t->pid);
	return true;
}

static struct thread *thread_of(struct builder *b, int32_t pid, int32_t tid)
{
	if (tid != b->last_tid || !b->threads.n) {
		bool is_new;
		uint32_t *idx = map_put(&b->thread_by_tid, (uint32_t)tid, &is_new);
		if (is_new) {
			*idx = (uint32_t)b->threads.n;
			vec_push(&b->threads, (struct thread){.pid = pid});
		}
		b->last_tid = tid;
		b->last_thread = *idx;
	}
	struct thread *t = &b->threads.p[b->last_thread];
	if (pid > 0 && t->pid != pid) { /* a recycled number */
		(void)count_dead(b, t);
		t->pid = pid;
		t->task = 0;
	}
	if (!t->is_alive)
		count_alive(b, t);
	return t;
}

static task_id task_of(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	if (!t->task) {
		str_id comm = t->comm;
		if (!comm && ev->tid == 0)
			comm = profile_cstr(b->p, "swapper");
		t->task = profile_task(b->p, ev->pid, ev->tid, comm, ev->time_ns);
	}
	return t->task;
}

static void on_thread_comm(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->comm = profile_cstr(b->p, ev->comm.name);
	t->task = 0;
	if (ev->comm.is_exec) { /* the other threads are gone, whatever was told of them */
		*map_put(&b->nr_alive, (uint32_t)ev->pid, NULL) = 1;
		spaces_exec(&b->spaces, ev->pid);
		(void)map_del(&b->listed, (uint32_t)ev->pid);
	}
}

static void on_thread_fork(struct builder *b, const struct event *ev)
{
	struct thread parent = *thread_of(b, ev->fork.ppid, ev->fork.ptid);
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->comm = parent.comm;
	t->task = 0;
	if (ev->pid == ev->fork.ppid)
		return;
	(void)map_del(&b->listed, (uint32_t)ev->pid);
	if (ev->fork.is_past)
		spaces_exec(&b->spaces, ev->pid);
	else
		spaces_fork(&b->spaces, ev->pid, ev->fork.ppid);
}

static void on_thread_exit(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	if (t->task)
		b->p->tasks.p[t->task].end_ns = ev->time_ns;
	t->task = 0;
	/* A first thread may end long before the others: they go on in the same mappings. */
	bool is_last = count_dead(b, t);
	const uint32_t *first = map_get(&b->thread_by_tid, (uint32_t)ev->pid);
	if (is_last && first && !b->threads.p[*first].is_alive) {
		spaces_exit(&b->spaces, ev->pid);
		(void)map_del(&b->listed, (uint32_t)ev->pid);
	}
}

/* ---- mappings ---------------------------------------------------------------------------- */

static void list_mapping(struct builder *b, const struct event *ev, const struct space_map *m)
{
	vec_push(&b->p->mappings, (struct mapping){.module = m->module->id,
						   .pid = ev->pid,
						   .start = m->start,
						   .len = m->end - m->start,
						   .pgoff = m->pgoff,
						   .from_ns = ev->time_ns,
						   .to_ns = UINT64_MAX});
}

static void on_map(struct builder *b, const struct event *ev)
{
	const struct event_map *m = &ev->map;
	if (m->is_kernel || !m->is_exec || !m->len || m->start + m->len < m->start)
		return;
	if (!strcmp(m->path, "[vsyscall]"))
		return;
	struct ingest_module *im = modules_for_map(&b->modules, ev->pid, m);
	struct space *sp = spaces_get(&b->spaces, ev->pid);
	struct space_map map = {.start = m->start,
				.end = m->start + m->len,
				.pgoff = m->pgoff,
				.module = &im->unwind};
	if (im->segments)
		map.bias = module_bias(im, m->start, m->pgoff);
	uint32_t before = sp->generation;
	space_add(&b->spaces, sp, &map);
	/* A JIT that changes its pages' rights tells the same mapping again and again. */
	if (sp->generation != before && map_get(&b->listed, (uint32_t)ev->pid))
		list_mapping(b, ev, &map);
}

/*
 * The profile gets a process's mappings with its first sample: most children of a build or a
 * shell end, or execute something else, before they have one.
 */
static void list_mappings(struct builder *b, const struct event *ev)
{
	bool is_new;
	(void)map_put(&b->listed, (uint32_t)ev->pid, &is_new);
	const struct space *sp = is_new ? spaces_find(&b->spaces, ev->pid) : NULL;
	for (size_t i = 0; sp && i < sp->maps.n; i++)
		list_mapping(b, ev, &sp->maps.p[i]);
}

/* ---- stacks ------------------------------------------------------------------------------ */

static loc_id new_user_location(struct builder *b, int32_t pid, uint64_t addr,
				const struct space_map *map, uint32_t flags)
{
	if (!map)
		return profile_location(b->p, modules_unknown(&b->modules, pid)->unwind.id, addr,
					flags);
	bool is_whole = map->module->is_jit;
	uint64_t offset = is_whole ? addr : addr - map->start + map->pgoff;
	return profile_location(b->p, map->module->id, offset, flags);
}

static const struct space_map *map_of(struct space *sp, uint64_t addr, bool is_call)
{
	return space_find(sp, is_call ? addr - 1 : addr);
}

static struct loc_cache_entry *loc_entry(struct builder *b, uint64_t addr, uint32_t key)
{
	return &b->cache[hash_mix(addr, key) & (LOC_CACHE_SIZE - 1)];
}

static loc_id user_location(struct builder *b, int32_t pid, struct space *sp, uint64_t addr,
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

static loc_id kernel_location(struct builder *b, uint64_t addr, bool is_call)
{
	struct loc_cache_entry *e = loc_entry(b, addr, is_call);
	if (e->addr != addr || e->key != is_call)
		*e = (struct loc_cache_entry){
			addr, is_call,
			profile_location(b->p, modules_kernel(&b->modules)->unwind.id, addr,
					 LOCATION_KERNEL | (is_call ? LOCATION_CALL : 0))};
	return e->loc;
}

/* Pushes the chain's kernel part; returns where its user part starts. */
static uint32_t push_kernel_chain(struct builder *b, const struct event_sample *s)
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
		vec_push(&b->scratch, kernel_location(b, addr, !is_first));
		is_first = false;
	}
	return s->nr_chain;
}

static enum loss_kind loss_of_walk(enum walk_end end)
{
	switch (end) {
	case WALK_ROOT:
		return LOSS_NR;
	case WALK_COPY:
		return LOSS_TRUNC_COPY;
	case WALK_NO_RULE:
		return LOSS_TRUNC_NO_RULE;
	case WALK_NO_FILE:
		return LOSS_TRUNC_NO_FILE;
	case WALK_NO_MAP:
		return LOSS_TRUNC_NO_MAP;
	case WALK_BAD_FRAME:
		return LOSS_TRUNC_BAD_FRAME;
	case WALK_DEPTH:
		return LOSS_TRUNC_DEPTH;
	case WALK_JIT:
		return LOSS_TRUNC_JIT;
	}
	return LOSS_TRUNC_BAD_FRAME;
}

static enum loss_kind push_walked(struct builder *b, const struct event *ev, struct space *sp)
{
	const struct event_sample *s = &ev->sample;
	struct walk_input in = {.space = sp,
				.regs = s->regs,
				.regs_mask = s->regs_mask,
				.stack = s->stack,
				.nr_stack = s->nr_stack};
	const struct walk_frame *frames;
	uint32_t nr;
	enum walk_end end = walker_walk(b->walker, &in, &frames, &nr);
	for (uint32_t i = 0; i < nr; i++)
		vec_push(&b->scratch,
			 user_location(b, ev->pid, sp, frames[i].addr, frames[i].is_call));
	if (end == WALK_COPY && s->is_stack_full && b->options.wants_more_stack)
		b->options.wants_more_stack(b->options.ctx, ev->tid, s->nr_stack);
	return loss_of_walk(end);
}

/* Where rules say that nothing called: the thread's start. */
static bool is_outermost(const struct space_map *map, uint64_t addr)
{
	if (!map || !map->module->table)
		return false;
	const struct unwind_row *row = unwind_table_find(map->module->table, addr - 1 - map->bias);
	return row && (row->rule & ((1u << ROW_KIND_BITS) - 1)) == ROW_STOP;
}

/* How many of the chain's outermost frames are those of the path, by the same mappings. */
static size_t nr_shared(const struct path *path, const struct event *ev, const struct space *sp,
			uint32_t from)
{
	const struct event_sample *s = &ev->sample;
	if (path->pid != ev->pid || path->generation != sp->generation)
		return 0;
	size_t nr_calls = s->nr_chain - from - 1; /* the first address is no call's */
	size_t n = MIN(path->addrs.n, nr_calls);
	size_t i = 0;
	while (i < n && path->addrs.p[i] == s->chain[s->nr_chain - 1 - i])
		i++;
	return i;
}

/* Makes the chain's calls, up to a marker, the path's addresses; `shared` of them are. */
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

static enum loss_kind push_chain(struct builder *b, const struct event *ev, struct space *sp,
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
		vec_push(&b->scratch, user_location(b, ev->pid, sp, addr, is_call));
	}
	keep_addrs(path, ev, sp, from, shared);
	*ret_shared = shared;
	if (!shared)
		path->loss = addr && is_outermost(map_of(sp, addr, is_call), addr) ? LOSS_NR
										   : LOSS_TRUNC_FP;
	return path->loss;
}

/*
 * Frames of the sample into scratch, leaf first, but for the outermost ones that are those of the
 * path; why the stack is not whole, or LOSS_NR.
 */
static enum loss_kind collect_frames(struct builder *b, const struct event *ev, struct path *path,
				     size_t *ret_shared)
{
	*ret_shared = 0;
	const struct event_sample *s = &ev->sample;
	vec_clear(&b->scratch);
	uint32_t user_from = push_kernel_chain(b, s);
	struct space *sp = spaces_find(&b->spaces, ev->pid);
	if (s->regs && sp && !s->is_compat) {
		path->addrs.n = 0;
		return push_walked(b, ev, sp);
	}
	if (user_from < s->nr_chain && sp)
		return push_chain(b, ev, sp, user_from, path, ret_shared);
	path->addrs.n = 0;
	if (!b->scratch.n && s->ip) { /* no stack was asked for: the address alone */
		if (!s->is_user)
			vec_push(&b->scratch, kernel_location(b, s->ip, false));
		else if (sp)
			vec_push(&b->scratch, user_location(b, ev->pid, sp, s->ip, false));
		else
			vec_push(&b->scratch, new_user_location(b, ev->pid, s->ip, NULL, 0));
		return s->chain ? LOSS_TRUNC_NO_REGS : LOSS_NR;
	}
	/* A kernel thread has no user part; a user process whose registers are gone does. */
	return sp && sp->maps.n && s->is_user ? LOSS_TRUNC_NO_REGS : LOSS_NR;
}

/* Interns the frames in scratch below @root and the path's first @shared nodes. */
static stack_id intern_frames(struct builder *b, struct path *path, stack_id root, size_t shared)
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

static stack_id intern_stack(struct builder *b, const struct event *ev, enum loss_kind *ret_loss)
{
	struct path *path = &b->paths[(uint32_t)ev->tid % PATHS];
	size_t shared;
	enum loss_kind loss = collect_frames(b, ev, path, &shared);
	stack_id root = 0;
	if (loss != LOSS_NR) {
		if (!b->truncated_loc)
			b->truncated_loc = profile_pseudo(b->p, "[truncated]");
		root = profile_stack(b->p, 0, b->truncated_loc);
	}
	*ret_loss = loss;
	return intern_frames(b, path, root, shared);
}

/* The entry of a hash, made the first of its set; a new one is empty. */
static struct chain_cache_entry *chain_entry(struct builder *b, uint64_t hash)
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

/* Four chains of multiplications at once: a chain's bytes come to a hundred and more. */
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
 * Whether the frames behind the first address, and why the stack is not whole, are the same
 * whatever that address is: the kernel's part is not empty without it, or the user's is not and
 * has a space to be read by.
 */
static bool has_callers(const struct event_sample *s, const struct space *sp)
{
	if (s->nr_chain < 3 || s->chain[1] >= CHAIN_MAX || s->chain[2] >= CHAIN_MAX)
		return false;
	return s->chain[0] == CHAIN_KERNEL || (s->chain[0] == CHAIN_USER && sp);
}

/* The same through the cache, for chains that the kernel walked. */
static stack_id stack_of(struct builder *b, const struct event *ev, enum loss_kind *ret_loss)
{
	const struct event_sample *s = &ev->sample;
	if (s->regs || !s->nr_chain)
		return intern_stack(b, ev, ret_loss);
	struct space *sp = spaces_find(&b->spaces, ev->pid);
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
			     is_kernel ? kernel_location(b, s->chain[1], false)
				       : user_location(b, ev->pid, sp, s->chain[1], false));
}

static void on_sample(struct builder *b, const struct event *ev)
{
	const struct event_sample *s = &ev->sample;
	struct losses *losses = &b->p->losses;
	losses->nr[LOSS_SEEN]++;
	uint32_t table = s->spec < b->table_of_spec.n ? b->table_of_spec.p[s->spec] : 0;
	if (!table) {
		losses->nr[LOSS_FILTERED]++;
		return;
	}
	list_mappings(b, ev);
	enum loss_kind loss;
	stack_id stack = stack_of(b, ev, &loss);
	if (loss != LOSS_NR)
		losses->nr[loss]++;
	int64_t values[TABLE_COLUMNS_MAX] = {1, (int64_t)s->period};
	profile_sample(b->p, table - 1, ev->time_ns, stack, task_of(b, ev), ev->cpu, values);
	losses->nr[LOSS_WRITTEN]++;
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	(void)err; /* what an event says cannot fail, it is counted */
	struct builder *b = ctx;
	if (ev->time_ns > b->last_ns)
		b->last_ns = ev->time_ns;
	switch (ev->kind) {
	case EVENT_SAMPLE:
		on_sample(b, ev);
		break;
	case EVENT_MAP:
		on_map(b, ev);
		break;
	case EVENT_COMM:
		on_thread_comm(b, ev);
		break;
	case EVENT_FORK:
		on_thread_fork(b, ev);
		break;
	case EVENT_EXIT:
		on_thread_exit(b, ev);
		break;
	case EVENT_LOST:
		b->p->losses.nr[LOSS_LOST] += ev->lost.nr;
		b->p->losses.nr[LOSS_SEEN] += ev->lost.nr;
		break;
	case EVENT_THROTTLE:
		b->p->losses.nr[LOSS_THROTTLED]++;
		break;
	case EVENT_MARK:
		profile_mark(b->p, ev->time_ns, ev->mark.text);
		break;
	case EVENT_SWITCH:
	case EVENT_STACK:
	case EVENT_TALLY:
		break;
	}
	return 0;
}

struct event_sink builder_sink(struct builder *b)
{
	return (struct event_sink){on_event, b};
}
