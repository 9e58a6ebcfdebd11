/* profile_merge: adds one profile to another and translates its ids; see profile.h. */
#include "base/base.h"
#include "model/profile.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

struct merge {
	struct arena arena; /* holds the arrays below: id in `from` -> id in `to` */
	struct profile *to;
	const struct profile *from;
	str_id *str;
	module_id *module;
	func_id *func;
	loc_id *loc;
	stack_id *stack;
	task_id *task;
	uint32_t *tag;
	unsigned flags; /* enum profile_copy_flags */
};

static uint32_t *ids(struct merge *m, size_t n)
{
	return arena_calloc(&m->arena, n, sizeof(uint32_t));
}

/* Only texts that are referred to are copied. */
static str_id text(struct merge *m, str_id from)
{
	if (from && !m->str[from]) {
		struct sv s = profile_sv(m->from, from);
		m->str[from] = profile_str(m->to, s.p, s.n);
	}
	return m->str[from];
}

static void merge_modules(struct merge *m)
{
	m->module = ids(m, m->from->modules.n);
	for (size_t i = 1; i < m->from->modules.n; i++) {
		struct module mod = m->from->modules.p[i];
		mod.path = text(m, mod.path);
		m->module[i] = profile_module(m->to, &mod);
	}
	for (size_t i = 0; i < m->from->mappings.n && !(m->flags & PROFILE_COPY_NAMES); i++) {
		const struct mapping *map = &m->from->mappings.p[i];
		struct mapping copy = *map;
		copy.module = m->module[map->module];
		vec_push(&m->to->mappings, copy);
	}
}

static void merge_functions(struct merge *m)
{
	m->func = ids(m, m->from->functions.n);
	for (size_t i = 1; i < m->from->functions.n; i++) {
		struct function f = m->from->functions.p[i];
		f.name = text(m, f.name);
		f.linkage = m->flags & PROFILE_COPY_NAMES ? 0 : text(m, f.linkage);
		f.module = m->module[f.module];
		m->func[i] = profile_function(m->to, &f);
	}
}

static void merge_frames(struct merge *m, const struct location *l, loc_id loc)
{
	struct frame few[16];
	struct frame *frames = few;
	if (l->nr_frames > ARRAY_LEN(few))
		frames = xreallocarray(NULL, l->nr_frames, sizeof(*frames));
	size_t nr = 0;
	for (size_t i = 0; i < l->nr_frames; i++) {
		struct frame f = m->from->frames.p[l->first_frame + i];
		f.func = m->func[f.func];
		f.file = text(m, f.file);
		if (!(l->flags & LOCATION_TAIL) || !f.is_inferred)
			frames[nr++] = f;
	}
	profile_set_frames(m->to, loc, frames, nr, l->unsym);
	if (frames != few)
		free(frames);
}

/*
 * Locations without an address (MODULE_PSEUDO, MODULE_NAMED) have an offset made from ids: the id
 * of their function in the lower bits or, if both top bits are set, a hash of all their frames.
 * Translates the ids in such an offset.
 */
#define OFFSET_TOP ((uint64_t)3 << 62)

static uint64_t named_offset(struct merge *m, const struct location *l)
{
	uint64_t top = l->offset & OFFSET_TOP;
	uint64_t low = l->offset & ~OFFSET_TOP;
	if (!l->nr_frames)
		return l->offset; /* an unsymbolized address */
	if (top != OFFSET_TOP)
		return low < m->from->functions.n ? top | m->func[low] : l->offset;
	uint64_t key = 0;
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &m->from->frames.p[l->first_frame + i];
		key = hash_mix(key ^ ((uint64_t)m->func[f->func] << 32 | text(m, f->file)),
			       (uint64_t)f->line << 2 | (uint64_t)f->is_inferred << 1 |
				       f->is_inlined);
	}
	return top | key;
}

/* The location with the same inferred frames; @base has been merged. */
static loc_id merge_tail(struct merge *m, const struct location *l, loc_id base)
{
	struct frame inferred[16];
	size_t nr = 0;
	for (size_t i = 0; i < l->nr_frames && nr < ARRAY_LEN(inferred); i++) {
		struct frame f = m->from->frames.p[l->first_frame + i];
		f.func = m->func[f.func];
		f.file = text(m, f.file);
		if (f.is_inferred)
			inferred[nr++] = f;
	}
	return nr && m->to->locations.p[base].nr_frames
		       ? profile_tail_location(m->to, base, inferred, nr)
		       : base;
}

static void merge_locations(struct merge *m)
{
	m->loc = ids(m, m->from->locations.n);
	for (size_t i = 1; i < m->from->locations.n; i++) {
		const struct location *l = &m->from->locations.p[i];
		enum module_kind kind = m->from->modules.p[l->module].kind;
		uint64_t offset = l->offset;
		if (kind == MODULE_PSEUDO || kind == MODULE_NAMED)
			offset = named_offset(m, l);
		loc_id loc = profile_location(m->to, m->module[l->module], offset, l->flags);
		if ((l->flags & LOCATION_SYMBOLIZED) && !m->to->locations.p[loc].nr_frames)
			merge_frames(m, l, loc);
		m->loc[i] = l->flags & LOCATION_TAIL ? merge_tail(m, l, loc) : loc;
	}
}

static void merge_stacks(struct merge *m)
{
	m->stack = ids(m, m->from->stacks.n);
	for (size_t i = 1; i < m->from->stacks.n; i++) { /* parents come before children */
		const struct stack_node *s = &m->from->stacks.p[i];
		ASSERT(s->parent < i);
		m->stack[i] = profile_stack(m->to, m->stack[s->parent], m->loc[s->loc]);
	}
}

static uint64_t thread_key(const struct task *t)
{
	return (uint64_t)(uint32_t)t->pid << 32 | (uint32_t)t->tid;
}

/* The names of a thread stay in their order: one that it got again is another task. */
static void merge_tasks(struct merge *m)
{
	CLEANUP(map_release) struct map last = {0}; /* by thread */
	m->task = ids(m, m->from->tasks.n);
	for (task_id i = 1; i < m->to->tasks.n; i++)
		*map_put(&last, thread_key(&m->to->tasks.p[i]), NULL) = i;
	for (size_t i = 1; i < m->from->tasks.n; i++) {
		const struct task *t = &m->from->tasks.p[i];
		bool is_new;
		task_id id = profile_task(m->to, t->pid, t->tid, text(m, t->comm), t->start_ns);
		uint32_t *at = map_put(&last, thread_key(t), &is_new);
		if (t->tid > 0 && !is_new && id < *at)
			id = profile_task_again(m->to, id, t->start_ns);
		m->task[i] = *at = id;
		struct task *task = &m->to->tasks.p[id];
		task->end_ns = MAX(task->end_ns, t->end_ns);
	}
}

static void merge_tags(struct merge *m)
{
	m->tag = ids(m, m->from->tags.n);
	for (size_t i = 1; i < m->from->tags.n; i++) {
		struct tag tag = m->from->tags.p[i];
		tag.object = text(m, tag.object);
		tag.detail = text(m, tag.detail);
		tag.other = m->task[tag.other];
		tag.other_stack = m->stack[tag.other_stack];
		tag.direct = m->task[tag.direct];
		tag.direct_stack = m->stack[tag.direct_stack];
		m->tag[i] = profile_tag(m->to, &tag);
	}
}

/* Appends the rows to a table of the same shape. */
static void merge_rows(struct merge *m, const struct table *t, struct table *to)
{
	table_reserve(to, t->n);
	for (size_t i = 0; i < t->n; i++) {
		to->stack[to->n + i] = m->stack[t->stack[i]];
		to->task[to->n + i] = m->task[t->task[i]];
		if (t->has_tags)
			to->tag[to->n + i] = m->tag[t->tag[i]];
	}
	if (t->n) {
		memcpy(to->time_ns + to->n, t->time_ns, t->n * sizeof(*t->time_ns));
		memcpy(to->cpu + to->n, t->cpu, t->n * sizeof(*t->cpu));
		memcpy(to->values + to->n * to->nr_columns, t->values,
		       t->n * t->nr_columns * sizeof(*t->values));
	}
	to->n += t->n;
}

static void merge_tables(struct merge *m)
{
	vec_foreach(t, &m->from->tables) {
		struct table shape = *t;
		shape.event = text(m, t->event);
		for (uint32_t c = 0; c < t->nr_columns; c++)
			shape.columns[c].name = text(m, t->columns[c].name);
		uint32_t to = profile_table(m->to, &shape);
		merge_rows(m, t, &m->to->tables.p[to]);
	}
	vec_foreach(mark, &m->from->marks)
		vec_push(&m->to->marks, (struct mark){mark->time_ns, text(m, mark->text)});
}

/* Adds a time to the union of times, which is sorted and has no overlaps. */
static void add_piece(struct profile *to, struct recorded piece)
{
	size_t n = 0;
	if (piece.to_ns <= piece.from_ns)
		return;
	for (size_t i = 0; i < to->pieces.n; i++) {
		struct recorded old = to->pieces.p[i];
		if (old.to_ns < piece.from_ns || old.from_ns > piece.to_ns) {
			to->pieces.p[n++] = old;
			continue;
		}
		piece.from_ns = MIN(piece.from_ns, old.from_ns);
		piece.to_ns = MAX(piece.to_ns, old.to_ns);
	}
	to->pieces.n = n;
	vec_push(&to->pieces, piece);
	for (size_t i = n; i && to->pieces.p[i - 1].from_ns > piece.from_ns; i--) {
		to->pieces.p[i] = to->pieces.p[i - 1];
		to->pieces.p[i - 1] = piece;
	}
}

static void merge_pieces(struct profile *to, const struct profile *from)
{
	if (!to->pieces.n && to->start_ns)
		add_piece(to, (struct recorded){to->start_ns, to->end_ns});
	for (size_t i = 0; i < from->pieces.n; i++)
		add_piece(to, from->pieces.p[i]);
	if (!from->pieces.n && from->start_ns)
		add_piece(to, (struct recorded){from->start_ns, from->end_ns});
}

/* Facts that are true of one recording only; of several they stay if all have the same value. */
static bool is_of_one(const char *key)
{
	static const enum fact_id of_one[] = {FACT_COMMAND, FACT_CPU_TIME, FACT_ACCURACY,
					      FACT_TAIL_CALLS, FACT_INTERVALS};
	for (size_t i = 0; i < ARRAY_LEN(of_one); i++)
		if (!strcmp(key, fact_key(of_one[i])))
			return true;
	return false;
}

static void merge_facts(struct merge *m, bool is_first)
{
	struct profile *to = m->to;
	size_t n = 0;
	vec_foreach(f, &to->facts) {
		const char *key = profile_text(to, f->key);
		const char *other = profile_get_fact_text(m->from, key);
		if (!is_of_one(key) || (other && !strcmp(other, profile_text(to, f->value))))
			to->facts.p[n++] = *f;
	}
	to->facts.n = n;
	vec_foreach(f, &m->from->facts) {
		const char *key = profile_text(m->from, f->key);
		if (!profile_get_fact_text(to, key) && (is_first || !is_of_one(key)))
			vec_push(&to->facts, (struct fact){text(m, f->key), text(m, f->value)});
	}
}

static void merge(struct profile *to, const struct profile *from, unsigned flags)
{
	struct merge m = {.to = to, .from = from, .flags = flags};
	bool is_first = !to->start_ns && !to->end_ns;
	m.str = ids(&m, intern_count(&from->strings));
	merge_modules(&m);
	merge_functions(&m);
	merge_locations(&m);
	merge_stacks(&m);
	merge_tasks(&m);
	merge_tags(&m);
	merge_tables(&m);
	merge_facts(&m, is_first);
	losses_merge(&to->losses, &from->losses);
	merge_pieces(to, from);
	to->start_ns = is_first ? from->start_ns : MIN(to->start_ns, from->start_ns);
	to->end_ns = MAX(to->end_ns, from->end_ns);
	if (!to->wall_start_ns)
		to->wall_start_ns = from->wall_start_ns;
	to->is_incomplete |= from->is_incomplete;
	arena_release(&m.arena);
}

void profile_merge(struct profile *to, const struct profile *from)
{
	merge(to, from, 0);
}

struct profile *profile_copy(const struct profile *from, unsigned flags)
{
	struct profile *p = profile_new();
	merge(p, from, flags);
	profile_seal(p);
	return p;
}
