/* The profile: adding elements, sorting, names; see profile.h. */
#include "base/base.h"
#include "model/profile.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "model/threadnames.h"

struct profile *profile_new(void)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	(void)intern_add(&p->strings, "", 0); /* id 0 */
	(void)vec_add(&p->modules);
	(void)vec_add(&p->locations);
	(void)vec_add(&p->frames);
	(void)vec_add(&p->functions);
	(void)vec_add(&p->stacks);
	(void)vec_add(&p->tasks);
	vec_push(&p->tags, (struct tag){.log2_ns = LOG2_NONE, .syscall = -1});
	return p;
}

static void table_release(struct table *t)
{
	free(t->time_ns);
	free(t->stack);
	free(t->task);
	free(t->cpu);
	free(t->values);
	free(t->tag);
}

static uint64_t thread_key(int32_t pid, int32_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static void release_indexes(struct profile *p)
{
	map_release(&p->loc_index);
	map_release(&p->stack_index);
	map_release(&p->func_index);
	map_release(&p->module_index);
	map_release(&p->task_index);
	map_release(&p->tag_index);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	vec_foreach(t, &p->tables)
		table_release(t);
	intern_release(&p->strings);
	vec_release(&p->modules);
	vec_release(&p->mappings);
	vec_release(&p->locations);
	vec_release(&p->frames);
	vec_release(&p->functions);
	vec_release(&p->stacks);
	vec_release(&p->tasks);
	vec_release(&p->tables);
	vec_release(&p->tags);
	vec_release(&p->marks);
	vec_release(&p->facts);
	vec_release(&p->pieces);
	vec_release(&p->symbolized_log);
	release_indexes(p);
	free(p->task_names);
	intern_release(&p->thread_groups);
	free(p);
}

void profile_free_p(struct profile **pp)
{
	profile_free(*pp);
}

str_id profile_str(struct profile *p, const char *s, size_t n)
{
	if (LIKELY(!n || !memchr(s, '\0', n)))
		return intern_add(&p->strings, s, n);
	CLEANUP(buf_release) struct buf visible = {0};
	for (size_t i = 0; i < n; i++)
		if (s[i])
			buf_add_ch(&visible, s[i]);
		else
			buf_add_str(&visible, "\\x00");
	return intern_add(&p->strings, visible.p, visible.n);
}

str_id profile_cstr(struct profile *p, const char *s)
{
	return intern_add_str(&p->strings, s);
}

#define VEC_BYTES(v) ((uint64_t)(v).n * sizeof(*(v).p))

static uint64_t map_bytes(const struct map *m)
{
	return (uint64_t)m->cap * sizeof(*m->slots);
}

uint64_t table_row_bytes(const struct table *t)
{
	uint64_t row = sizeof(*t->time_ns) + sizeof(*t->stack) + sizeof(*t->task) +
		       sizeof(*t->cpu) + t->nr_columns * sizeof(*t->values) +
		       t->has_tags * sizeof(*t->tag);
	return 2 * row;
}

uint64_t profile_bytes(const struct profile *p)
{
	const struct intern *s = &p->strings;
	uint64_t n = s->text.total_bytes + VEC_BYTES(s->strings) + s->cap * sizeof(*s->slots);
	vec_foreach(t, &p->tables)
		n += sizeof(*t) + t->n * table_row_bytes(t);
	n += p->stacks.n * PROFILE_STACK_BYTES + p->tasks.n * PROFILE_TASK_BYTES;
	n += p->functions.n * PROFILE_FUNCTION_BYTES;
	n += VEC_BYTES(p->modules) + VEC_BYTES(p->mappings) + VEC_BYTES(p->locations);
	n += VEC_BYTES(p->frames) + VEC_BYTES(p->tags) + VEC_BYTES(p->marks);
	n += VEC_BYTES(p->facts) + VEC_BYTES(p->symbolized_log);
	n += map_bytes(&p->loc_index) + map_bytes(&p->stack_index) + map_bytes(&p->func_index);
	return n + map_bytes(&p->module_index) + map_bytes(&p->task_index) +
	       map_bytes(&p->tag_index);
}

const char *profile_text(const struct profile *p, str_id id)
{
	return intern_str(&p->strings, id);
}

struct sv profile_sv(const struct profile *p, str_id id)
{
	return intern_get(&p->strings, id);
}

/*
 * The indexes map a 64-bit hash of the key to an id. The element found is compared with the key; if
 * they differ (hash collision) the search continues with the next hash.
 */
#define NEXT_HASH(h) ((h) + 0x9e3779b97f4a7c15u)

static bool same_module(const struct module *a, const struct module *b)
{
	return a->kind == b->kind && a->path == b->path && a->dev == b->dev &&
	       a->inode == b->inode && a->pid == b->pid && a->nr_build_id == b->nr_build_id &&
	       !memcmp(a->build_id, b->build_id, a->nr_build_id);
}

module_id profile_module(struct profile *p, const struct module *m)
{
	ASSERT(!p->is_sealed && m->nr_build_id <= MODULE_BUILD_ID_MAX);
	uint64_t h = hash_mix((uint64_t)m->kind << 32 | m->path, m->dev ^ hash_u64(m->inode));
	h = hash_mix(h, (uint32_t)m->pid) ^ hash_bytes(m->build_id, m->nr_build_id);
	for (;; h = NEXT_HASH(h)) {
		bool is_new;
		uint32_t *id = map_put(&p->module_index, h, &is_new);
		if (is_new) {
			*id = (module_id)p->modules.n;
			vec_push(&p->modules, *m);
			return *id;
		}
		if (same_module(&p->modules.p[*id], m)) {
			p->modules.p[*id].is_deleted |= m->is_deleted;
			return *id;
		}
	}
}

loc_id profile_location(struct profile *p, module_id module, uint64_t offset, uint32_t flags)
{
	ASSERT(!p->is_sealed && module < p->modules.n);
	uint32_t key_flags = flags & (LOCATION_CALL | LOCATION_KERNEL);
	uint64_t h = hash_mix(offset, (uint64_t)module << 2 | key_flags);
	for (;; h = NEXT_HASH(h)) {
		bool is_new;
		uint32_t *id = map_put(&p->loc_index, h, &is_new);
		if (is_new) {
			ASSERT(p->locations.n < UINT32_MAX);
			*id = (loc_id)p->locations.n;
			vec_push(&p->locations, (struct location){.module = module,
								  .flags = key_flags,
								  .offset = offset});
			return *id;
		}
		const struct location *l = &p->locations.p[*id];
		if (l->module == module && l->offset == offset &&
		    (l->flags & (LOCATION_CALL | LOCATION_KERNEL | LOCATION_TAIL)) == key_flags)
			return *id;
	}
}

static bool has_inferred(const struct profile *p, const struct location *l,
			 const struct frame *inferred, size_t nr)
{
	size_t nr_own = l->nr_frames;
	while (nr_own && p->frames.p[l->first_frame + nr_own - 1].is_inferred)
		nr_own--;
	if (l->nr_frames - nr_own != nr)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (p->frames.p[l->first_frame + nr_own + i].func != inferred[i].func)
			return false;
	return true;
}

loc_id profile_tail_location(struct profile *p, loc_id base, const struct frame *inferred,
			     size_t nr)
{
	struct location l = p->locations.p[base];
	ASSERT(!p->is_sealed && nr && l.nr_frames && l.nr_frames + nr <= UINT16_MAX);
	uint64_t h = hash_mix(l.offset, (uint64_t)l.module << 32 | l.flags);
	for (size_t i = 0; i < nr; i++)
		h = hash_mix(h, inferred[i].func);
	for (;; h = NEXT_HASH(h)) {
		bool is_new;
		uint32_t *id = map_put(&p->loc_index, h, &is_new);
		if (is_new) {
			*id = (loc_id)p->locations.n;
			break;
		}
		const struct location *known = &p->locations.p[*id];
		if (known->flags & LOCATION_TAIL && known->module == l.module &&
		    known->offset == l.offset && has_inferred(p, known, inferred, nr))
			return *id;
	}
	loc_id loc = (loc_id)p->locations.n;
	CLEANUP(free_p) struct frame *frames = xcalloc(l.nr_frames + nr, sizeof(*frames));
	memcpy(frames, p->frames.p + l.first_frame, l.nr_frames * sizeof(*frames));
	memcpy(frames + l.nr_frames, inferred, nr * sizeof(*frames));
	vec_push(&p->locations, (struct location){.module = l.module,
						  .flags = l.flags | LOCATION_TAIL,
						  .offset = l.offset});
	profile_set_frames(p, loc, frames, l.nr_frames + nr, 0);
	return loc;
}

void profile_set_tail(struct profile *p, stack_id stack, loc_id loc)
{
	ASSERT(!p->is_sealed && p->locations.p[loc].flags & LOCATION_TAIL);
	p->stacks.p[stack].loc = loc;
}

loc_id profile_pseudo_location(struct profile *p, const char *name)
{
	module_id mod = profile_module(p, &(struct module){.kind = MODULE_PSEUDO});
	func_id fn = profile_function(p, &(struct function){.name = profile_cstr(p, name),
							    .module = mod});
	loc_id loc = profile_location(p, mod, fn, 0);
	if (!(p->locations.p[loc].flags & LOCATION_SYMBOLIZED))
		profile_set_frames(p, loc, &(struct frame){.func = fn}, 1, 0);
	return loc;
}

func_id profile_function(struct profile *p, const struct function *f)
{
	ASSERT(!p->is_sealed);
	uint64_t h = hash_mix((uint64_t)f->name << 32 | f->linkage, f->start ^ hash_u64(f->module));
	for (;; h = NEXT_HASH(h)) {
		bool is_new;
		uint32_t *id = map_put(&p->func_index, h, &is_new);
		if (is_new) {
			*id = (func_id)p->functions.n;
			vec_push(&p->functions, *f);
			return *id;
		}
		const struct function *g = &p->functions.p[*id];
		if (g->name == f->name && g->linkage == f->linkage && g->module == f->module &&
		    g->start == f->start)
			return *id;
	}
}

void profile_set_frames(struct profile *p, loc_id loc, const struct frame *frames, size_t nr,
			enum loss_kind unsym)
{
	ASSERT(!p->is_sealed && loc < p->locations.n && nr <= UINT16_MAX);
	struct location *l = &p->locations.p[loc];
	l->first_frame = (uint32_t)p->frames.n;
	l->nr_frames = (uint16_t)nr;
	l->unsym = nr ? 0 : (uint16_t)unsym;
	l->flags |= LOCATION_SYMBOLIZED;
	vec_reserve(&p->frames, p->frames.n + nr);
	for (size_t i = 0; i < nr; i++)
		p->frames.p[p->frames.n++] = frames[i];
	vec_push(&p->symbolized_log, loc);
}

stack_id profile_stack(struct profile *p, stack_id parent, loc_id loc)
{
	ASSERT(!p->is_sealed && parent < p->stacks.n);
	/*
	 * A node that was added right after its parent is found without the index. Most nodes of
	 * new stacks are such nodes: one in thirty goes into the map, and reading 100 MB of unique
	 * stacks takes half the time.
	 */
	stack_id next = parent + 1;
	if (next < p->stacks.n && p->stacks.p[next].parent == parent &&
	    p->stacks.p[next].loc == loc)
		return next;
	ASSERT(p->stacks.n < UINT32_MAX);
	stack_id id = (stack_id)p->stacks.n;
	if (id != next) {
		bool is_new;
		uint32_t *known = map_put(&p->stack_index, (uint64_t)parent << 32 | loc, &is_new);
		if (!is_new)
			return *known;
		*known = id;
	}
	vec_push(&p->stacks, (struct stack_node){parent, loc});
	return id;
}

/* The place of a task's id in the index; *ret_is_new: there is none yet. */
static uint32_t *place_of_task(struct profile *p, int32_t pid, int32_t tid, str_id comm,
			       bool *ret_is_new)
{
	ASSERT(!p->is_sealed);
	uint64_t h = hash_mix(thread_key(pid, tid), comm);
	for (;; h = NEXT_HASH(h)) {
		uint32_t *id = map_put(&p->task_index, h, ret_is_new);
		if (*ret_is_new)
			return id;
		const struct task *t = &p->tasks.p[*id];
		if (t->pid == pid && t->tid == tid && t->comm == comm)
			return id;
	}
}

static task_id add_task(struct profile *p, struct task t)
{
	vec_push(&p->tasks, t);
	return (task_id)p->tasks.n - 1;
}

task_id profile_task(struct profile *p, int32_t pid, int32_t tid, str_id comm, uint64_t time_ns)
{
	bool is_new;
	uint32_t *id = place_of_task(p, pid, tid, comm, &is_new);
	if (is_new)
		*id = add_task(p, (struct task){pid, tid, comm, time_ns, 0});
	return *id;
}

task_id profile_task_again(struct profile *p, task_id id, uint64_t time_ns)
{
	bool is_new;
	struct task t = p->tasks.p[id];
	t.start_ns = time_ns;
	t.end_ns = 0;
	return *place_of_task(p, t.pid, t.tid, t.comm, &is_new) = add_task(p, t);
}

static void group_threads(struct profile *p)
{
	CLEANUP(threadnames_release) struct threadnames names = {0};
	CLEANUP(buf_release) struct buf group = {0};
	vec_foreach(t, &p->tasks)
		threadnames_add(&names, profile_text(p, t->comm));
	intern_release(&p->thread_groups);
	for (task_id id = 0; id < p->tasks.n; id++) {
		threadnames_get(&names, profile_text(p, p->tasks.p[id].comm), &group);
		p->task_names[id].group = intern_add(&p->thread_groups, buf_str(&group), group.n);
	}
}

/* Threads without ids, of text formats, have one name. */
static void name_tasks(struct profile *p)
{
	CLEANUP(map_release) struct map last_of = {0};
	free(p->task_names);
	p->task_names = xcalloc(p->tasks.n, sizeof(*p->task_names));
	for (task_id id = 0; id < p->tasks.n; id++)
		if (p->tasks.p[id].tid > 0)
			*map_put(&last_of, thread_key(p->tasks.p[id].pid, p->tasks.p[id].tid),
				 NULL) = id;
	for (task_id id = 0; id < p->tasks.n; id++) {
		const struct task *t = &p->tasks.p[id];
		const uint32_t *last = map_get(&last_of, thread_key(t->pid, t->tid));
		const uint32_t *main = map_get(&last_of, thread_key(t->pid, t->pid));
		task_id own = last && t->tid > 0 ? *last : id;
		p->task_names[id] = (struct task_names){own, main && t->pid > 0 ? *main : own, 0};
	}
	group_threads(p);
}

task_id profile_last_task(const struct profile *p, task_id id)
{
	ASSERT(p->is_sealed);
	return p->task_names[id].last;
}

task_id profile_main_task(const struct profile *p, task_id id)
{
	ASSERT(p->is_sealed);
	return p->task_names[id].main;
}

const char *profile_thread_group(const struct profile *p, task_id id)
{
	ASSERT(p->is_sealed);
	return intern_str(&p->thread_groups, p->task_names[id].group);
}

uint32_t profile_table(struct profile *p, const struct table *shape)
{
	ASSERT(shape->nr_columns >= 1 && shape->nr_columns <= TABLE_COLUMNS_MAX);
	for (size_t i = 0; i < p->tables.n; i++)
		if (p->tables.p[i].event == shape->event &&
		    p->tables.p[i].nr_columns == shape->nr_columns &&
		    p->tables.p[i].has_tags == shape->has_tags)
			return (uint32_t)i;
	struct table *t = vec_add(&p->tables);
	*t = *shape;
	t->id = tables_identify(p, shape);
	t->n = t->cap = 0;
	t->time_ns = NULL;
	t->stack = NULL;
	t->task = NULL;
	t->cpu = NULL;
	t->values = NULL;
	t->tag = NULL;
	return (uint32_t)p->tables.n - 1;
}

void table_reserve(struct table *t, size_t n)
{
	if (t->n + n <= t->cap)
		return;
	t->cap = MAX(MAX(t->cap * 2, t->n + n), (size_t)1024);
	t->time_ns = xreallocarray(t->time_ns, t->cap, sizeof(*t->time_ns));
	t->stack = xreallocarray(t->stack, t->cap, sizeof(*t->stack));
	t->task = xreallocarray(t->task, t->cap, sizeof(*t->task));
	t->cpu = xreallocarray(t->cpu, t->cap, sizeof(*t->cpu));
	t->values = xreallocarray(t->values, t->cap * t->nr_columns, sizeof(*t->values));
	if (t->has_tags)
		t->tag = xreallocarray(t->tag, t->cap, sizeof(*t->tag));
}

static bool is_same_tag(const struct tag *a, const struct tag *b)
{
	return a->reason == b->reason && a->evidence == b->evidence && a->log2_ns == b->log2_ns &&
	       a->syscall == b->syscall && a->object == b->object && a->detail == b->detail &&
	       a->other == b->other && a->other_stack == b->other_stack &&
	       a->size_class == b->size_class && a->direct == b->direct &&
	       a->direct_stack == b->direct_stack;
}

uint32_t profile_tag(struct profile *p, const struct tag *tag)
{
	uint64_t h = hash_mix((uint64_t)tag->reason << 40 | (uint64_t)tag->evidence << 32 |
				      (uint64_t)tag->log2_ns << 16 | (uint16_t)tag->syscall,
			      (uint64_t)tag->object << 32 | tag->detail);
	h = hash_mix(h ^ tag->size_class, (uint64_t)tag->other << 32 | tag->other_stack);
	if (tag->direct)
		h = hash_mix(h, (uint64_t)tag->direct << 32 | tag->direct_stack);
	for (;; h++) {
		bool is_new;
		uint32_t *id = map_put(&p->tag_index, h, &is_new);
		if (is_new) {
			*id = (uint32_t)p->tags.n;
			vec_push(&p->tags, *tag);
			return *id;
		}
		if (is_same_tag(&p->tags.p[*id], tag))
			return *id;
	}
}

void profile_tagged_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
			   task_id task, int cpu, uint32_t tag, const int64_t *values)
{
	profile_sample(p, table, time_ns, stack, task, cpu, values);
	struct table *t = &p->tables.p[table];
	ASSERT(t->has_tags && tag < p->tags.n);
	t->tag[t->n - 1] = tag;
}

void profile_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
		    task_id task, int cpu, const int64_t *values)
{
	ASSERT(!p->is_sealed && table < p->tables.n);
	struct table *t = &p->tables.p[table];
	table_reserve(t, 1);
	t->time_ns[t->n] = time_ns;
	t->stack[t->n] = stack;
	t->task[t->n] = task;
	t->cpu[t->n] = (int16_t)cpu;
	for (uint32_t c = 0; c < t->nr_columns; c++)
		t->values[t->n * t->nr_columns + c] = values[c];
	if (t->has_tags)
		t->tag[t->n] = 0;
	t->n++;
}

void profile_mark(struct profile *p, uint64_t time_ns, const char *text)
{
	vec_push(&p->marks, (struct mark){time_ns, profile_cstr(p, text)});
}

struct order {
	uint64_t time_ns;
	size_t idx;
};

static int by_time(const void *a, const void *b)
{
	const struct order *x = a;
	const struct order *y = b;
	return COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->idx, y->idx);
}

#define PERMUTE(column, width)                                                 \
	do {                                                                   \
		size_t w_ = sizeof(*(column)) * (width);                       \
		char *from_ = (char *)(column);                                \
		char *to_ = xmalloc(t->n * w_);                                \
		for (size_t i_ = 0; i_ < t->n; i_++)                           \
			memcpy(to_ + i_ * w_, from_ + order[i_].idx * w_, w_); \
		memcpy(from_, to_, t->n *w_);                                  \
		free(to_);                                                     \
	} while (0)

static void table_sort(struct table *t)
{
	size_t i = 1;
	while (i < t->n && t->time_ns[i - 1] <= t->time_ns[i])
		i++;
	if (i >= t->n)
		return;
	struct order *order = xreallocarray(NULL, t->n, sizeof(*order));
	for (i = 0; i < t->n; i++)
		order[i] = (struct order){t->time_ns[i], i};
	qsort(order, t->n, sizeof(*order), by_time);
	PERMUTE(t->time_ns, 1);
	PERMUTE(t->stack, 1);
	PERMUTE(t->task, 1);
	PERMUTE(t->cpu, 1);
	PERMUTE(t->values, t->nr_columns);
	if (t->has_tags)
		PERMUTE(t->tag, 1);
	free(order);
}

/* Returns why the leaf of a stack is unsymbolized; 0: it has a symbol. */
static enum loss_kind unsym_reason(const struct profile *p, stack_id stack)
{
	const struct location *l = &p->locations.p[p->stacks.p[stack].loc];
	if (!l->nr_frames) {
		bool is_known = l->unsym < LOSS_NR && /* not checked when a file is read */
				loss_class((enum loss_kind)l->unsym) == LOSS_CLASS_UNSYM;
		return is_known ? (enum loss_kind)l->unsym : 0;
	}
	const struct function *f = &p->functions.p[p->frames.p[l->first_frame].func];
	bool is_start_only = (f->flags & FUNC_GUESSED) && strstr(profile_text(p, f->name), "!fn_");
	return is_start_only ? LOSS_UNSYM_STRIPPED : 0;
}

static bool is_uncounted(enum table_id id)
{
	return table_kind(id)->is_derived || id == TABLE_ALLOCATED;
}

/*
 * Counts the unsymbolized samples. Done when the profile is sealed, as symbolization comes after
 * the samples. The leaf of an allocation may be in the allocator, whose name does not matter: heap
 * pages give the share of unsymbolized allocating functions.
 */
static void count_unsymbolized(struct profile *p)
{
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (loss_class(k) == LOSS_CLASS_UNSYM)
			p->losses.nr[k] = 0;
	CLEANUP(free_p) uint8_t *reasons = xcalloc(p->stacks.n, 1);
	for (size_t i = 1; i < p->stacks.n; i++)
		reasons[i] = (uint8_t)unsym_reason(p, (stack_id)i);
	vec_foreach(t, &p->tables)
		for (size_t i = 0; i < t->n && !is_uncounted(t->id); i++)
			if (reasons[t->stack[i]])
				p->losses.nr[reasons[t->stack[i]]] +=
					(uint64_t)t->values[i * t->nr_columns];
}

void profile_seal(struct profile *p)
{
	count_unsymbolized(p);
	name_tasks(p);
	vec_foreach(t, &p->tables)
		table_sort(t);
	release_indexes(p);
	p->is_sealed = true;
}

void profile_peek_init(struct profile *ret_view, struct profile *p, uint64_t from_ns,
		       uint64_t to_ns)
{
	*ret_view = *p;
	ret_view->start_ns = from_ns;
	ret_view->end_ns = to_ns;
	ret_view->task_names = NULL;
	ret_view->thread_groups = (struct intern){0};
	count_unsymbolized(ret_view);
	name_tasks(ret_view);
	vec_foreach(t, &ret_view->tables)
		table_sort(t);
	ret_view->is_sealed = true;
}

void profile_peek_release(struct profile *view)
{
	free(view->task_names);
	intern_release(&view->thread_groups);
}

void profile_clear_rows(struct profile *p)
{
	vec_foreach(t, &p->tables)
		t->n = 0;
}

const struct frame *profile_physical_frame(const struct profile *p, const struct location *l)
{
	for (size_t i = l->nr_frames; i-- > 0;)
		if (!p->frames.p[l->first_frame + i].is_inferred)
			return &p->frames.p[l->first_frame + i];
	return NULL;
}

module_id profile_frame_module(const struct profile *p, const struct location *l,
			       const struct frame *f)
{
	module_id own = f->is_inferred ? p->functions.p[f->func].module : 0;
	return own ? own : l->module;
}

const char *profile_frame_mark(const struct frame *f)
{
	return f->is_inferred ? " [tail call]" : "";
}

const char *profile_frame_name(const struct profile *p, const struct frame *f)
{
	const char *name = profile_text(p, p->functions.p[f->func].name);
	return name[0] ? name : "[unknown]";
}

const char *profile_module_name(const struct profile *p, module_id id)
{
	const struct module *m = &p->modules.p[id];
	switch (m->kind) {
	case MODULE_KERNEL:
		return "[kernel]";
	case MODULE_VDSO:
		return "[vdso]";
	case MODULE_JIT:
		return "[jit]";
	case MODULE_NONE:
		return "[unknown]";
	case MODULE_PSEUDO:
		return "";
	case MODULE_UNKNOWN:
	case MODULE_ELF:
	case MODULE_KMODULE:
	case MODULE_NAMED:
		break;
	}
	return path_base(profile_text(p, m->path));
}
