/*
 * Writer of folded stacks; see folded.h.
 *
 * Samples are summed by (thread, stack) first. The stacks' nodes are then merged into a tree of
 * texts (functions at several addresses become one frame), whose nodes are sorted among their
 * siblings only: that sorts all lines without ever comparing two of them.
 *
 *	samples --sum--> (thread, stack) --merge--> tree of texts --sort siblings--> lines
 *
 * The order is that of the stacks' bytes followed by a blank: a frame's text is ranked once with
 * ';' and once with ' ' behind it, and siblings compare by rank. That is the order of
 * `LC_ALL=C sort` unless a frame's name goes on, after another's, with a blank and a digit.
 */
#include "base/base.h"
#include "format/folded.h"

#include <errno.h>
#include <stdlib.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/textframes.h"

struct run {
	uint32_t first;
	uint32_t nr;
};

struct node {
	uint32_t text;
	uint32_t parent;
	uint64_t count; /* of the samples that end here */
};

/* The node of a stack in the tree below one thread's root. */
struct place {
	uint32_t root; /* node + 1; 0 = none */
	uint32_t node;
};

/* A line or a subtree below one parent. */
struct entry {
	uint32_t rank;
	uint32_t node;
	bool is_line; /* else the subtree below the node */
};

struct folded_writer {
	const struct profile *p;
	const struct format_options *options;
	unsigned flags;
	struct intern texts;      /* frames as written */
	VEC(struct run) loc_runs; /* by loc_id: its texts, outermost first, in `run_texts` */
	VEC(uint32_t) run_texts;
	struct map func_texts;    /* func_id << 2 | mark -> text */
	VEC(uint32_t) task_nodes; /* by task_id: node of its root frame, 0 = not created yet */
	VEC(struct node) nodes;   /* 0 = the root; parents come before their children */
	struct map children;      /* parent << 32 | text -> node, except next to the parent */
	VEC(struct place) places; /* by stack_id */
	VEC(stack_id) chain;
	VEC(uint32_t) ranks; /* by text * 2 + (1 for ';', 0 for ' ') */
	VEC(struct entry) entries;
	VEC(uint32_t) first_entry; /* by node */
	struct buf line;
	struct buf scratch;
};

static void writer_release(struct folded_writer *w)
{
	intern_release(&w->texts);
	vec_release(&w->loc_runs);
	vec_release(&w->run_texts);
	map_release(&w->func_texts);
	vec_release(&w->task_nodes);
	vec_release(&w->nodes);
	map_release(&w->children);
	vec_release(&w->places);
	vec_release(&w->chain);
	vec_release(&w->ranks);
	vec_release(&w->entries);
	vec_release(&w->first_entry);
	buf_release(&w->line);
	buf_release(&w->scratch);
}

/* ---- texts -------------------------------------------------------------------------------- */

static void add_clean(struct buf *to, struct sv name, char for_blank)
{
	char *at = buf_reserve(to, name.n);
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		c = c == ';' ? ':' : c == ' ' ? for_blank : c;
		*at = c;
		at += (unsigned char)c >= ' ' && c != 0x7f;
	}
	to->n = (size_t)(at - to->p);
	while (to->n && to->p[to->n - 1] == ' ') /* would precede the count */
		to->n--;
}

static uint32_t text_of_scratch(struct folded_writer *w)
{
	return intern_add(&w->texts, w->scratch.n ? w->scratch.p : "[empty]",
			  w->scratch.n ? w->scratch.n : sizeof("[empty]") - 1);
}

enum frame_mark { MARK_NONE, MARK_INLINED, MARK_KERNEL, MARK_JIT, MARK_INFERRED };

static enum frame_mark mark_of(const struct folded_writer *w, const struct location *l,
			       const struct frame *f)
{
	unsigned func_flags = w->p->functions.p[f->func].flags;
	bool is_kernel = l->flags & LOCATION_KERNEL || func_flags & FUNC_KERNEL;
	if (f->is_inlined && w->flags & FOLDED_INLINE)
		return MARK_INLINED;
	if (f->is_inferred && w->flags & FOLDED_INLINE)
		return MARK_INFERRED;
	if (is_kernel && w->flags & FOLDED_KERNEL)
		return MARK_KERNEL;
	return func_flags & FUNC_JIT && w->flags & FOLDED_JIT ? MARK_JIT : MARK_NONE;
}

/* The text of a frame. Cached, since a function occurs at many locations; one text per suffix. */
static uint32_t text_of_frame(struct folded_writer *w, const struct location *l,
			      const struct frame *f)
{
	static const char *const marks[] = {"", "_[i]", "_[k]", "_[j]", "_[t]"};
	enum frame_mark mark = mark_of(w, l, f);
	bool is_new;
	uint32_t *text = map_put(&w->func_texts, (uint64_t)f->func << 3 | mark, &is_new);
	if (is_new) {
		buf_clear(&w->scratch);
		add_clean(&w->scratch, sv_from_str(profile_frame_name(w->p, f)), ' ');
		buf_add_str(&w->scratch, marks[mark]);
		*text = text_of_scratch(w);
	}
	return *text;
}

/* Text formats name the perf map as the module of code that was compiled at run time. */
static bool is_jit(const struct profile *p, module_id module)
{
	const struct module *m = &p->modules.p[module];
	return m->kind == MODULE_JIT || text_func_flags(profile_sv(p, m->path)) & FUNC_JIT;
}

static uint32_t text_of_unnamed(struct folded_writer *w, loc_id loc)
{
	const struct location *l = &w->p->locations.p[loc];
	CLEANUP(buf_release) struct buf name = {0};
	text_add_unsymbolized(&name, w->p, loc, w->flags & FOLDED_ADDRS ? TEXT_ADDRS : 0);
	buf_clear(&w->scratch);
	add_clean(&w->scratch, buf_sv(&name), ' ');
	if (l->flags & LOCATION_KERNEL && w->flags & FOLDED_KERNEL)
		buf_add_str(&w->scratch, "_[k]");
	else if (is_jit(w->p, l->module) && w->flags & FOLDED_JIT)
		buf_add_str(&w->scratch, "_[j]");
	return text_of_scratch(w);
}

/* The texts of a location, created when it is first used. */
static struct run run_of_loc(struct folded_writer *w, loc_id loc)
{
	struct run *run = &w->loc_runs.p[loc];
	if (run->nr)
		return *run;
	const struct location *l = &w->p->locations.p[loc];
	run->first = (uint32_t)w->run_texts.n;
	for (size_t i = l->nr_frames; i--;) {
		const struct frame *f = &w->p->frames.p[l->first_frame + i];
		if (f->is_inlined && w->flags & FOLDED_NO_INLINE && i + 1 < l->nr_frames)
			continue;
		uint32_t text = text_of_frame(w, l, f);
		vec_push(&w->run_texts, text);
	}
	if (!l->nr_frames)
		vec_push(&w->run_texts, text_of_unnamed(w, loc));
	run->nr = (uint32_t)w->run_texts.n - run->first;
	return *run;
}

static void add_id(struct buf *to, int32_t id)
{
	if (id < 0)
		buf_add_ch(to, '?');
	else
		buf_add_u64(to, (uint64_t)id);
}

static uint32_t text_of_task(struct folded_writer *w, task_id id)
{
	const struct task *t = &w->p->tasks.p[id];
	struct sv comm = profile_sv(w->p, t->comm);
	buf_clear(&w->scratch);
	add_clean(&w->scratch, comm.n ? comm : SV("?"), '_');
	if (w->flags & (FOLDED_PID | FOLDED_TID)) {
		buf_add_ch(&w->scratch, '-');
		add_id(&w->scratch, t->pid);
	}
	if (w->flags & FOLDED_TID) {
		buf_add_ch(&w->scratch, '/');
		add_id(&w->scratch, t->tid);
	}
	return text_of_scratch(w);
}

/* ---- the tree of texts -------------------------------------------------------------------- */

/* As in profile_stack, a node right after its parent is found without the index. */
static uint32_t child_of(struct folded_writer *w, uint32_t parent, uint32_t text)
{
	uint32_t next = parent + 1;
	if (next < w->nodes.n && w->nodes.p[next].parent == parent && w->nodes.p[next].text == text)
		return next;
	uint32_t id = (uint32_t)w->nodes.n;
	if (id != next) {
		bool is_new;
		uint32_t *known = map_put(&w->children, (uint64_t)parent << 32 | text, &is_new);
		if (!is_new)
			return *known;
		*known = id;
	}
	vec_push(&w->nodes, (struct node){.text = text, .parent = parent});
	return id;
}

static uint32_t root_of_task(struct folded_writer *w, task_id task)
{
	if (!task || w->flags & FOLDED_NO_COMM)
		return 0;
	uint32_t *node = &w->task_nodes.p[task];
	if (!*node)
		*node = child_of(w, 0, text_of_task(w, task));
	return *node;
}

/* Walks up to a stack whose node below this root is known, then adds nodes downwards. */
static uint32_t node_of_stack(struct folded_writer *w, uint32_t root, stack_id stack)
{
	const struct stack_node *stacks = w->p->stacks.p;
	struct place *places = w->places.p;
	vec_clear(&w->chain);
	for (; stack && places[stack].root != root + 1; stack = stacks[stack].parent)
		vec_push(&w->chain, stack);
	uint32_t node = stack ? places[stack].node : root;
	for (size_t i = w->chain.n; i--;) {
		stack_id id = w->chain.p[i];
		struct run run = run_of_loc(w, stacks[id].loc);
		for (uint32_t k = 0; k < run.nr; k++)
			node = child_of(w, node, w->run_texts.p[run.first + k]);
		places[id] = (struct place){root + 1, node};
	}
	return node;
}

/* Sorts the rows by root (counting sort), since `places` is for one root at a time. */
static uint32_t *order_by_root(struct folded_writer *w, const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		(void)root_of_task(w, t->task[i]); /* creates the nodes */
	uint32_t nr_roots = (uint32_t)w->nodes.n;
	size_t *next = xcalloc(nr_roots + 1, sizeof(*next));
	for (size_t i = 0; i < t->n; i++)
		next[root_of_task(w, t->task[i]) + 1]++;
	for (size_t i = 1; i <= nr_roots; i++)
		next[i] += next[i - 1];
	uint32_t *rows = xreallocarray(NULL, MAX(t->n, 1), sizeof(*rows));
	for (size_t i = 0; i < t->n; i++)
		rows[next[root_of_task(w, t->task[i])]++] = (uint32_t)i;
	free(next);
	return rows;
}

/* The node of a row: its stack's, or the child of it for the synthetic leaf (wait reason). */
static uint32_t node_of_synth_leaf(struct folded_writer *w, const struct table *t, uint32_t row,
				   uint32_t node)
{
	const struct format_options *o = w->options;
	const char *synth_leaf = o->synth_leaf_of && t->has_tags
					 ? o->synth_leaf_of(o->synth_leaf_ctx, t, row)
					 : NULL;
	return synth_leaf ? child_of(w, node, intern_add(&w->texts, synth_leaf, strlen(synth_leaf)))
			  : node;
}

static int add_samples(struct folded_writer *w, const struct table *t, struct err *err)
{
	if (t->n > UINT32_MAX)
		return err_set(err, -EFBIG, "more than %u samples of one event", UINT32_MAX);
	uint32_t *rows = order_by_root(w, t);
	vec_reserve(&w->places, w->p->stacks.n);
	memset(w->places.p, 0, w->p->stacks.n * sizeof(*w->places.p));
	for (size_t i = 0; i < t->n; i++) {
		uint32_t row = rows[i];
		int64_t value = t->values[(size_t)row * t->nr_columns + t->weight_column];
		uint32_t root = root_of_task(w, t->task[row]);
		uint32_t node =
			node_of_synth_leaf(w, t, row, node_of_stack(w, root, t->stack[row]));
		w->nodes.p[node].count += value > 0 ? (uint64_t)value : 0;
	}
	free(rows);
	return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

/* key: text * 2 + (';' behind it?) */
static int by_text(const void *a, const void *b, void *texts)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;
	struct sv s = intern_get(texts, x / 2);
	struct sv t = intern_get(texts, y / 2);
	size_t n = MIN(s.n, t.n);
	int c = memcmp(s.p, t.p, n);
	if (c)
		return c;
	unsigned char after_s = s.n > n ? (unsigned char)s.p[n] : x % 2 ? ';' : ' ';
	unsigned char after_t = t.n > n ? (unsigned char)t.p[n] : y % 2 ? ';' : ' ';
	if (after_s != after_t)
		return after_s < after_t ? -1 : 1;
	return s.n < t.n ? -1 : s.n > t.n;
}

static void rank_texts(struct folded_writer *w)
{
	size_t n = intern_count(&w->texts) * 2;
	uint32_t *keys = xreallocarray(NULL, n, sizeof(*keys));
	for (size_t i = 0; i < n; i++)
		keys[i] = (uint32_t)i;
	qsort_r(keys, n, sizeof(*keys), by_text, &w->texts);
	vec_reserve(&w->ranks, n);
	w->ranks.n = n;
	for (size_t i = 0; i < n; i++)
		w->ranks.p[keys[i]] = (uint32_t)i;
	free(keys);
}

static int by_rank(const void *a, const void *b)
{
	const struct entry *x = a;
	const struct entry *y = b;
	return COMPARE(x->rank, y->rank);
}

/* Groups entries by parent (counting sort), then sorts each group by rank. */
static void sort_entries(struct folded_writer *w)
{
	size_t nr_nodes = w->nodes.n;
	vec_reserve(&w->first_entry, nr_nodes + 1);
	w->first_entry.n = nr_nodes + 1;
	uint32_t *first = w->first_entry.p;
	memset(first, 0, (nr_nodes + 1) * sizeof(*first));
	uint8_t *has_children = xcalloc(nr_nodes, 1);
	for (size_t i = nr_nodes; --i;) {
		const struct node *n = &w->nodes.p[i];
		bool is_used = n->count || has_children[i];
		has_children[n->parent] |= is_used;
		first[n->parent] += (n->count != 0) + has_children[i];
	}
	uint32_t sum = 0;
	for (size_t i = 0; i <= nr_nodes; i++) {
		sum += first[i];
		first[i] = sum; /* the end of group i; filling moves it down to the start */
	}
	vec_reserve(&w->entries, sum);
	w->entries.n = sum;
	for (uint32_t i = (uint32_t)nr_nodes; --i;) {
		const struct node *n = &w->nodes.p[i];
		const uint32_t *rank = &w->ranks.p[n->text * 2];
		if (n->count)
			w->entries.p[--first[n->parent]] = (struct entry){rank[0], i, true};
		if (has_children[i])
			w->entries.p[--first[n->parent]] = (struct entry){rank[1], i, false};
	}
	free(has_children);
	for (size_t i = 0; i < nr_nodes; i++)
		if (first[i + 1] - first[i] > 1)
			qsort(w->entries.p + first[i], first[i + 1] - first[i],
			      sizeof(*w->entries.p), by_rank);
}

/* ---- lines -------------------------------------------------------------------------------- */

struct level {
	uint32_t next; /* entries not yet written */
	uint32_t end;
	size_t nr_prefix; /* bytes of the line before them */
};

static int write_lines(struct folded_writer *w, struct format_output *to, struct err *err)
{
	VEC(struct level) levels = {0};
	int rc = 0;
	vec_push(&levels, (struct level){w->first_entry.p[0], w->first_entry.p[1], 0});
	while (levels.n && !rc) {
		struct level *top = vec_last(&levels);
		if (top->next == top->end) {
			levels.n--;
			continue;
		}
		const struct entry *e = &w->entries.p[top->next++];
		const struct node *n = &w->nodes.p[e->node];
		w->line.n = top->nr_prefix;
		buf_add_sv(&w->line, intern_get(&w->texts, n->text));
		if (e->is_line) {
			buf_add_sv(&to->buf, buf_sv(&w->line));
			buf_add_ch(&to->buf, ' ');
			buf_add_u64(&to->buf, n->count);
			buf_add_ch(&to->buf, '\n');
			rc = format_spill(to, err);
			continue;
		}
		buf_add_ch(&w->line, ';');
		const uint32_t *run = &w->first_entry.p[e->node];
		vec_push(&levels, (struct level){run[0], run[1], w->line.n});
	}
	vec_release(&levels);
	return rc;
}

int folded_write(struct format_output *to, const struct profile *p,
		 const struct format_options *options, struct err *err)
{
	const struct table *t = NULL;
	TRY(format_pick_table(p, options->event, &t, err));
	CLEANUP(writer_release)
	struct folded_writer w = {.p = p, .options = options, .flags = options->folded.flags};
	vec_reserve(&w.loc_runs, p->locations.n);
	memset(w.loc_runs.p, 0, p->locations.n * sizeof(*w.loc_runs.p));
	vec_reserve(&w.task_nodes, p->tasks.n);
	memset(w.task_nodes.p, 0, p->tasks.n * sizeof(*w.task_nodes.p));
	(void)vec_add(&w.nodes);
	TRY(t ? add_samples(&w, t, err) : 0);
	if (w.nodes.p[0].count) { /* neither thread nor stack is known */
		buf_clear(&w.scratch);
		buf_add_str(&w.scratch, "[unknown]");
		uint64_t count = w.nodes.p[0].count;
		uint32_t unknown = child_of(&w, 0, text_of_scratch(&w)); /* may move the nodes */
		w.nodes.p[unknown].count += count;
		w.nodes.p[0].count = 0;
	}
	rank_texts(&w);
	sort_entries(&w);
	return write_lines(&w, to, err);
}
