/*
 * Call trees; see calltree.h.
 *
 * During construction a node has only a link to its parent; nodes are found by (parent, name) in
 * one hash table. The stacks of a profile are a prefix tree already: each of its nodes is looked up
 * once per root frame, by walking from a leaf to the nearest ancestor with a known tree node and
 * back. tree_nodes[] caches the tree node by stack node.
 *
 *	row.stack --> leaf -> ... -> known ancestor             up, collecting
 *	tree_nodes[known] -> child(name) -> child(name) ...     down, adding nodes
 *
 * If every location of the first profile has a name of its own (text formats), two stacks never
 * merge and the hash table is not needed; it is built when a second profile is added.
 *
 * treelayout.c sorts the nodes into preorder, siblings by name, and sums weights.
 */
#include "base/base.h"
#include "analyze/stacks/calltree.h"

#include <stdlib.h>

#include "analyze/diff/plainname.h"
#include "analyze/stacks/threads.h"
#include "analyze/stacks/treelayout.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

struct calltree {
	struct report *r;
	unsigned flags;
	bool has_before;
	VEC(struct treelayout_node) nodes; /* parents before children; 0: root */
	struct map children;               /* parent << 32 | name -> node */
	size_t nr_indexed;                 /* nodes that are in `children` */
	VEC(uint32_t) open;                /* time order: the path of the last sample */
	uint32_t *place; /* by node: its index in the tree that was finished; with is_placed */
	bool is_placed;
	uint64_t nr_samples;
	bool has_input; /* a selection, whose samples are known */
};

/* Caches per element of one profile, while its rows are added. */
struct input {
	struct calltree *ct;
	const struct selection *sel;
	const struct profile *p;
	bool is_before;
	bool is_distinct;     /* no two of its stacks have equal names */
	str_id *func_names;   /* by func_id and marks; 0: not set yet */
	str_id *module_names; /* by module_id */
	struct map groups;    /* CALLTREE_ROOT_GROUP: name with # -> its only name, or itself */
	uint32_t *tree_nodes; /* by stack_id: tree node of its innermost frame; 0: not set yet */
	struct step *steps;   /* is_distinct: by loc_id; name 0: not set yet */
	VEC(stack_id) path;
	uint32_t root; /* is_distinct: node of the current root frame */
};

struct calltree *calltree_new(struct report *r, unsigned flags)
{
	struct calltree *ct = xcalloc(1, sizeof(*ct));
	ct->r = r;
	ct->flags = flags;
	vec_push(&ct->nodes, (struct treelayout_node){.name = intern_add_str(&r->names, "all")});
	return ct;
}

void calltree_free(struct calltree *ct)
{
	if (!ct)
		return;
	vec_release(&ct->nodes);
	vec_release(&ct->open);
	map_release(&ct->children);
	free(ct->place);
	free(ct);
}

void calltree_free_p(struct calltree **ct)
{
	calltree_free(*ct);
}

struct step {
	str_id name;
	str_id module;
	uint32_t flags;
};

static uint32_t add_node(struct calltree *ct, uint32_t parent, struct step s)
{
	ASSERT(ct->nodes.n < UINT32_MAX);
	vec_push(&ct->nodes,
		 (struct treelayout_node){
			 .parent = parent, .name = s.name, .module = s.module, .flags = s.flags});
	return (uint32_t)ct->nodes.n - 1;
}

/* Adds nodes that were made without the hash table to it. */
static void index_nodes(struct calltree *ct)
{
	for (; ct->nr_indexed < ct->nodes.n; ct->nr_indexed++) {
		const struct treelayout_node *n = &ct->nodes.p[ct->nr_indexed];
		if (ct->nr_indexed)
			*map_put(&ct->children, (uint64_t)n->parent << 32 | n->name, NULL) =
				(uint32_t)ct->nr_indexed;
	}
}

static uint32_t child(struct calltree *ct, uint32_t parent, struct step s)
{
	if (ct->flags & CALLTREE_FOLD_RECURSION && parent && ct->nodes.p[parent].name == s.name)
		return parent;
	index_nodes(ct);
	bool is_new;
	uint32_t *v = map_put(&ct->children, (uint64_t)parent << 32 | s.name, &is_new);
	if (is_new) {
		*v = add_node(ct, parent, s);
		ct->nr_indexed++;
		return *v;
	}
	/* A name may be inlined or inferred at one place and called at another: keeps the common flags. */
	struct treelayout_node *n = &ct->nodes.p[*v];
	n->flags &= s.flags | ~(uint32_t)(TREE_INLINED | TREE_INFERRED);
	if (!n->module)
		n->module = s.module;
	return *v;
}

static void add_weight(struct calltree *ct, uint32_t node, uint64_t weight, bool is_before)
{
	struct treelayout_node *n = &ct->nodes.p[node];
	if (is_before)
		n->before = u64_add(n->before, weight);
	else
		n->self = u64_add(n->self, weight);
}

/* ---- names of frames ---------------------------------------------------------------------- */

static str_id module_name(struct input *in, module_id id)
{
	if (!in->module_names[id])
		in->module_names[id] =
			intern_add_str(&in->ct->r->names, profile_module_name(in->p, id));
	return in->module_names[id];
}

static const char *mark_of(const struct input *in, uint32_t flags)
{
	if (in->ct->flags & CALLTREE_MARK_KERNEL && flags & TREE_KERNEL)
		return "_[k]";
	if (in->ct->flags & CALLTREE_MARK_JIT && flags & TREE_JIT)
		return "_[j]";
	if (in->ct->flags & CALLTREE_MARK_INLINED && flags & TREE_INLINED)
		return "_[i]";
	if (in->ct->flags & CALLTREE_MARK_INLINED && flags & TREE_INFERRED)
		return "_[t]";
	return "";
}

static str_id marked(struct input *in, const char *name, const char *mark)
{
	struct intern *names = &in->ct->r->names;
	struct sv s = sv_from_str(name);
	if (in->ct->flags & CALLTREE_PLAIN_NAMES)
		s = plainname_of_function(s);
	if (!*mark)
		return intern_add(names, s.p, s.n);
	CLEANUP(free_p) char *text = xasprintf("%.*s%s", (int)s.n, s.p, mark);
	return intern_add_str(names, text);
}

static uint32_t location_flags(const struct input *in, const struct location *l)
{
	uint32_t flags = 0;
	const struct module *m = &in->p->modules.p[l->module];
	if (l->flags & LOCATION_KERNEL || m->kind == MODULE_KERNEL || m->kind == MODULE_KMODULE)
		flags |= TREE_KERNEL;
	if (m->kind == MODULE_JIT)
		flags |= TREE_JIT;
	if (m->kind == MODULE_PSEUDO)
		flags |= TREE_PSEUDO;
	return flags;
}

static struct step step_of(struct input *in, const struct frame_ref *f)
{
	const struct profile *p = in->p;
	const struct location *l = &p->locations.p[f->loc];
	uint32_t flags = location_flags(in, l);
	if (f->frame_idx == UINT32_MAX)
		return (struct step){marked(in, "[unknown]", mark_of(in, flags)),
				     module_name(in, l->module), flags};
	const struct frame *fr = &p->frames.p[f->frame_idx];
	const struct function *fn = &p->functions.p[fr->func];
	flags |= fr->is_inlined ? TREE_INLINED : 0;
	flags |= fr->is_inferred ? TREE_INFERRED : 0;
	flags |= fn->flags & FUNC_KERNEL ? TREE_KERNEL : 0;
	flags |= fn->flags & FUNC_JIT ? TREE_JIT : 0;
	flags |= fn->flags & FUNC_PYTHON ? TREE_PYTHON : 0;
	flags |= fn->flags & FUNC_GUESSED ? TREE_GUESSED : 0;
	const char *mark = mark_of(in, flags);
	str_id *memo = &in->func_names[fr->func];
	str_id name = *memo;
	if (*mark || !name) {
		name = marked(in, profile_frame_name(p, fr), mark);
		if (!*mark)
			*memo = name;
	}
	return (struct step){name, module_name(in, profile_frame_module(p, l, fr)), flags};
}

/* ---- root frames -------------------------------------------------------------------------- */

#define ROOT_FLAGS \
	(CALLTREE_ROOT_COMM | CALLTREE_ROOT_GROUP | CALLTREE_ROOT_PROCESS | CALLTREE_ROOT_THREAD)

static str_id group_of(struct input *in, task_id task)
{
	return intern_add_str(&in->ct->r->names, profile_thread_group(in->p, task));
}

/* Finds the names of threads with rows that differ in digits only. */
static void find_groups(struct input *in)
{
	CLEANUP(free_p) uint8_t *is_seen = xcalloc(in->p->tasks.n, 1);
	for (size_t i = 0; i < in->sel->nr_rows; i++) {
		task_id task = in->sel->rows[i].task;
		if (is_seen[task])
			continue;
		is_seen[task] = 1;
		const char *comm = profile_text(in->p, in->p->tasks.p[task].comm);
		str_id name = intern_add_str(&in->ct->r->names, comm);
		str_id group = group_of(in, task);
		bool is_new;
		uint32_t *shown = map_put(&in->groups, group, &is_new);
		*shown = is_new || *shown == name ? name : group;
	}
}

static str_id root_name(struct input *in, task_id task)
{
	const struct task *t = &in->p->tasks.p[task];
	struct intern *names = &in->ct->r->names;
	unsigned flags = in->ct->flags;
	bool has_ids = t->pid > 0;
	if (has_ids && flags & CALLTREE_ROOT_PROCESS) {
		CLEANUP(free_p)
		char *s = xasprintf(
			"%s-%d",
			profile_text(in->p, in->p->tasks.p[profile_main_task(in->p, task)].comm),
			t->pid);
		return intern_add_str(names, s);
	}
	const char *comm = profile_text(in->p, t->comm);
	if (has_ids && flags & CALLTREE_ROOT_THREAD) {
		CLEANUP(free_p) char *s = xasprintf("%s-%d/%d", comm, t->pid, t->tid);
		return intern_add_str(names, s);
	}
	const uint32_t *shown =
		flags & CALLTREE_ROOT_GROUP ? map_get(&in->groups, group_of(in, task)) : NULL;
	/* 0: thread not known, no root frame */
	return shown ? *shown : intern_add_str(names, comm);
}

/* ---- adding a profile --------------------------------------------------------------------- */

/* Returns the tree node of a stack, below @root; tree_nodes cache nodes of this root. */
static uint32_t seat_of(struct input *in, stack_id leaf, uint32_t root)
{
	const struct selection *sel = in->sel;
	stack_id stop = sel->roots ? sel->roots[leaf] : 0;
	stack_id node = leaf;
	vec_clear(&in->path);
	while (node && !in->tree_nodes[node]) {
		vec_push(&in->path, node);
		if (node == stop)
			break;
		node = in->p->stacks.p[node].parent;
	}
	uint32_t at = node && in->tree_nodes[node] ? in->tree_nodes[node] : root;
	for (size_t i = in->path.n; i-- > 0;) {
		stack_id s = in->path.p[i];
		loc_id loc = in->p->stacks.p[s].loc;
		const struct location *l = &in->p->locations.p[loc];
		uint32_t nr = l->nr_frames;
		if (s == stop && sel->root_frames && nr)
			nr = MIN(nr, (uint32_t)sel->root_frames[loc] + 1);
		struct frame_ref ref = {loc, UINT32_MAX};
		if (in->is_distinct) {
			struct step *only = &in->steps[loc];
			ref.frame_idx = l->first_frame;
			if (!only->name)
				*only = step_of(in, &ref);
			at = in->tree_nodes[s] = add_node(in->ct, at, *only);
			continue;
		}
		if (!nr)
			at = child(in->ct, at, step_of(in, &ref));
		while (nr-- > 0) {
			ref.frame_idx = l->first_frame + nr;
			at = child(in->ct, at, step_of(in, &ref));
		}
		in->tree_nodes[s] = at;
	}
	return at;
}

static uint32_t leaf_first(struct input *in, stack_id leaf, uint32_t root)
{
	struct frame_ref f;
	uint32_t at = root;
	for (struct frame_it it = select_frames(in->sel, leaf); frame_next(&it, &f);)
		at = child(in->ct, at, step_of(in, &f));
	return at;
}

struct grouped {
	str_id root;
	uint32_t row;
};

static int by_root(const void *a, const void *b)
{
	const struct grouped *x = a;
	const struct grouped *y = b;
	return COMPARE(x->root, y->root) ?: COMPARE(x->row, y->row);
}

static struct step root_step(str_id name)
{
	return (struct step){name, 0, TREE_PSEUDO};
}

/* Rows are sorted by root, so a new root is a new node unless the previous rows had the same. */
static uint32_t root_node(struct input *in, struct step step)
{
	if (!in->is_distinct)
		return child(in->ct, 0, step);
	if (!in->root || in->ct->nodes.p[in->root].name != step.name)
		in->root = add_node(in->ct, 0, step);
	return in->root;
}

/* Adds the synthetic leaf of a row: "[lock]". */
static uint32_t add_synth_leaf(struct input *in, uint32_t at, unsigned synth_leaf)
{
	const char *name = select_leaf_name(synth_leaf);
	if (!name)
		return at;
	in->is_distinct = false; /* from here on a node of a stack may get children */
	return child(in->ct, at, root_step(intern_add_str(&in->ct->r->names, name)));
}

static uint32_t add_row(struct input *in, const struct select_row *row, str_id root)
{
	struct calltree *ct = in->ct;
	unsigned flags = ct->flags;
	/* In reversed folded text, the thread name comes last. */
	bool is_synth_leaf =
		flags & CALLTREE_REVERSE && flags & (CALLTREE_ROOT_COMM | CALLTREE_ROOT_GROUP);
	struct step step = root_step(root);
	uint32_t at = root && !is_synth_leaf ? root_node(in, step) : 0;
	if (flags & CALLTREE_REVERSE)
		at = leaf_first(in, row->stack, add_synth_leaf(in, at, row->synth_leaf));
	else
		at = add_synth_leaf(in, seat_of(in, row->stack, at), row->synth_leaf);
	if (root && is_synth_leaf)
		at = child(ct, at, step);
	add_weight(ct, at, row->weight, in->is_before);
	return at;
}

/* Sorts rows by root frame, so that tree_nodes are valid for one root at a time. */
static struct grouped *group_rows(struct input *in, const struct select_row *rows, size_t n)
{
	struct grouped *g = xreallocarray(NULL, n + 1, sizeof(*g));
	CLEANUP(free_p) str_id *roots = xcalloc(in->p->tasks.n, sizeof(*roots));
	bool is_sorted = true;
	for (size_t i = 0; i < n; i++) {
		task_id task = rows[i].task;
		if (in->ct->flags & ROOT_FLAGS && !roots[task])
			roots[task] = root_name(in, task);
		g[i] = (struct grouped){roots[task], (uint32_t)i};
		is_sorted &= !i || g[i - 1].root <= g[i].root;
	}
	if (!is_sorted)
		qsort(g, n, sizeof(*g), by_root);
	return g;
}

/* True if each location has one frame, with a name that no other location has. */
static bool has_distinct_names(const struct input *in)
{
	const struct profile *p = in->p;
	if (in->sel->roots || in->ct->nodes.n > 1 ||
	    in->ct->flags & (CALLTREE_REVERSE | CALLTREE_FOLD_RECURSION | CALLTREE_TIME_ORDER |
			     CALLTREE_PLAIN_NAMES))
		return false;
	bool *is_taken = xcalloc(intern_count(&p->strings), sizeof(*is_taken));
	bool is_distinct = true;
	for (size_t i = 1; i < p->locations.n && is_distinct; i++) {
		const struct location *l = &p->locations.p[i];
		str_id name = l->nr_frames == 1
				      ? p->functions.p[p->frames.p[l->first_frame].func].name
				      : 0;
		is_distinct = name && !is_taken[name];
		is_taken[name] = true;
	}
	free(is_taken);
	return is_distinct;
}

/* @ret_nodes: by row; may be NULL. */
static void add_rows(struct input *in, uint32_t *ret_nodes)
{
	CLEANUP(free_p) struct grouped *g = group_rows(in, in->sel->rows, in->sel->nr_rows);
	size_t nr_stacks = in->p->stacks.n;
	/*
	 * True if a stack without a root frame begins with a name that is a root frame elsewhere.
	 */
	if (in->sel->nr_rows && !g[0].root && g[in->sel->nr_rows - 1].root)
		in->is_distinct = false;
	for (size_t i = 0; i < in->sel->nr_rows; i++) {
		if (i && g[i].root != g[i - 1].root)
			memset(in->tree_nodes, 0, nr_stacks * sizeof(*in->tree_nodes));
		uint32_t at = add_row(in, &in->sel->rows[g[i].row], g[i].root);
		if (ret_nodes)
			ret_nodes[g[i].row] = at;
	}
}

/* ---- flame charts: samples in the order of time ------------------------------------------- */

typedef VEC(struct step) step_vec;

/* Collects the frames of a stack, leaf first. */
static void add_frames(struct input *in, stack_id stack, step_vec *steps)
{
	struct frame_ref f;
	for (struct frame_it it = select_frames(in->sel, stack); frame_next(&it, &f);)
		vec_push(steps, step_of(in, &f));
}

/* Extends the open frames that equal those of the row before, from the root on. */
static void add_in_turn(struct input *in, const struct select_row *row, str_id root,
			step_vec *steps)
{
	struct calltree *ct = in->ct;
	const char *synth_leaf = select_leaf_name(row->synth_leaf);
	vec_clear(steps);
	if (synth_leaf)
		vec_push(steps, root_step(intern_add_str(&ct->r->names, synth_leaf)));
	add_frames(in, row->stack, steps);
	if (root)
		vec_push(steps, root_step(root));
	size_t depth = 0;
	uint32_t at = 0;
	for (size_t i = steps->n; i-- > 0; depth++) {
		struct step s = steps->p[ct->flags & CALLTREE_REVERSE ? steps->n - 1 - i : i];
		bool is_open = depth < ct->open.n && ct->nodes.p[ct->open.p[depth]].name == s.name;
		if (is_open) {
			at = ct->open.p[depth];
			continue;
		}
		ct->open.n = MIN(ct->open.n, depth);
		at = add_node(ct, at, s);
		vec_push(&ct->open, at);
	}
	ct->open.n = MIN(ct->open.n, depth);
	add_weight(ct, at, row->weight, in->is_before);
}

typedef VEC(struct select_row) row_vec;

/*
 * Rows of a selection are sums without times, so this loops over the samples again: those whose
 * stack and task have a row, within the time window. If these are not all of the rows (phases by
 * time, inputs without timestamps), uses the rows themselves, in order of first occurrence.
 */
static bool collect_samples(struct input *in, row_vec *to)
{
	const struct selection *sel = in->sel;
	if (sel->table >= in->p->tables.n || in->p->tables.p[sel->table].has_tags)
		return false;
	const struct table *t = &in->p->tables.p[sel->table];
	CLEANUP(map_release) struct map shown = {0};
	for (size_t i = 0; i < sel->nr_rows; i++)
		*map_put(&shown, (uint64_t)sel->rows[i].stack << 32 | sel->rows[i].task, NULL) = 1;
	uint64_t sum = 0;
	for (size_t i = 0; i < t->n; i++) {
		bool is_timely = !sel->last_ns ||
				 (t->time_ns[i] >= sel->first_ns && t->time_ns[i] <= sel->last_ns);
		if (!is_timely || !map_get(&shown, (uint64_t)t->stack[i] << 32 | t->task[i]))
			continue;
		uint64_t weight = (uint64_t)MAX(t->values[i * t->nr_columns + t->weight_column], 0);
		vec_push(to, (struct select_row){
				     .stack = t->stack[i], .task = t->task[i], .weight = weight});
		sum += weight;
	}
	return sum == sel->weight;
}

static void add_in_time(struct input *in)
{
	row_vec samples = {0};
	step_vec steps = {0};
	bool has_samples = collect_samples(in, &samples);
	const struct select_row *rows = has_samples ? samples.p : in->sel->rows;
	size_t n = has_samples ? samples.n : in->sel->nr_rows;
	/* Sorted by thread: interleaved, no frame would span several samples. */
	CLEANUP(free_p) struct grouped *g = group_rows(in, rows, n);
	vec_clear(&in->ct->open);
	for (size_t i = 0; i < n; i++)
		add_in_turn(in, &rows[g[i].row], g[i].root, &steps);
	vec_release(&steps);
	vec_release(&samples);
}

/* ---- one profile -------------------------------------------------------------------------- */

static struct input open_input(struct calltree *ct, const struct selection *sel, bool is_before)
{
	const struct profile *p = sel->p;
	ct->r->unit = sel->unit;
	ct->nr_samples += is_before ? 0 : sel->nr_samples;
	ct->has_input = true;
	ct->has_before |= is_before;
	struct input in = {.ct = ct, .sel = sel, .p = p, .is_before = is_before};
	in.func_names = xcalloc(p->functions.n, sizeof(*in.func_names));
	in.module_names = xcalloc(p->modules.n, sizeof(*in.module_names));
	in.tree_nodes = xcalloc_huge(p->stacks.n, sizeof(*in.tree_nodes));
	if (ct->flags & CALLTREE_ROOT_GROUP)
		find_groups(&in);
	return in;
}

static void input_release(struct input *in)
{
	vec_release(&in->path);
	map_release(&in->groups);
	free(in->steps);
	free(in->tree_nodes);
	free(in->module_names);
	free(in->func_names);
}

static void add_input(struct calltree *ct, const struct selection *sel, bool is_before)
{
	CLEANUP(input_release) struct input in = open_input(ct, sel, is_before);
	in.is_distinct = has_distinct_names(&in);
	if (in.is_distinct) {
		in.steps = xcalloc(in.p->locations.n, sizeof(*in.steps));
		vec_reserve(&ct->nodes, in.p->stacks.n + 1);
	}
	if (ct->flags & CALLTREE_TIME_ORDER)
		add_in_time(&in);
	else
		add_rows(&in, NULL);
}

void calltree_add(struct calltree *ct, const struct selection *sel)
{
	add_input(ct, sel, false);
}

void calltree_add_placed(struct calltree *ct, const struct selection *sel, uint32_t *ret_nodes)
{
	CLEANUP(input_release) struct input in = open_input(ct, sel, false);
	ct->is_placed = true;
	add_rows(&in, ret_nodes);
}

uint32_t calltree_place(const struct calltree *ct, uint32_t node)
{
	return ct->place[node];
}

void calltree_add_before(struct calltree *ct, const struct selection *sel)
{
	add_input(ct, sel, true);
}

/* ---- stacks put together ------------------------------------------------------------------ */

/* From the outermost frame of the part to its leaf. */
static void add_part_steps(struct input *in, const struct calltree_part *part, step_vec *steps)
{
	if (part->text) {
		vec_push(steps, root_step(intern_add_str(&in->ct->r->names, part->text)));
		return;
	}
	size_t first = steps->n;
	const struct selection *sel = in->sel;
	struct selection whole = *sel;
	whole.roots = NULL;
	in->sel = part->is_whole ? &whole : sel;
	add_frames(in, part->stack, steps);
	in->sel = sel;
	for (size_t i = first, k = steps->n; i + 1 < k; i++) {
		struct step swap = steps->p[i];
		steps->p[i] = steps->p[--k];
		steps->p[k] = swap;
	}
}

void calltree_add_parts(struct calltree *ct, const struct selection *sel,
			const struct calltree_row *rows, size_t nr)
{
	CLEANUP(input_release) struct input in = open_input(ct, sel, false);
	step_vec steps = {0};
	for (size_t i = 0; i < nr; i++) {
		vec_clear(&steps);
		str_id root = ct->flags & ROOT_FLAGS ? root_name(&in, rows[i].task) : 0;
		if (root)
			vec_push(&steps, root_step(root));
		for (size_t k = 0; k < rows[i].nr_parts; k++)
			add_part_steps(&in, &rows[i].parts[k], &steps);
		uint32_t at = 0;
		for (size_t k = 0; k < steps.n; k++)
			at = child(ct, at,
				   steps.p[ct->flags & CALLTREE_REVERSE ? steps.n - 1 - k : k]);
		add_weight(ct, at, rows[i].weight, false);
	}
	vec_release(&steps);
}

void calltree_add_names(struct calltree *ct, const struct sv *names, size_t nr, uint64_t weight,
			uint64_t weight_before)
{
	uint32_t at = 0;
	bool is_reverse = ct->flags & CALLTREE_REVERSE;
	for (size_t i = 0; i < nr; i++) {
		struct sv s = names[is_reverse ? nr - 1 - i : i];
		struct step step = {.name = intern_add(&ct->r->names, s.p, s.n)};
		at = child(ct, at, step);
	}
	add_weight(ct, at, weight, false);
	add_weight(ct, at, weight_before, true);
	ct->has_before |= weight_before != 0;
}

struct report_tree *calltree_finish(struct calltree *ct, const char *key, const char *title)
{
	struct report *r = ct->r;
	struct report_tree *t = vec_add(&r->trees);
	size_t n = ct->nodes.n;
	t->key = arena_strdup(&r->arena, key);
	t->title = arena_strdup(&r->arena, title);
	t->unit = r->unit;
	t->count_name = r->unit == UNIT_NS      ? "ns"
			: r->unit == UNIT_BYTES ? "bytes"
			: r->count_name         ? r->count_name
						: "samples";
	t->nr_nodes = n;
	t->nodes = arena_alloc(&r->arena, n * sizeof(*t->nodes));
	t->before = ct->has_before ? arena_alloc(&r->arena, n * sizeof(*t->before)) : NULL;
	t->is_differential = ct->has_before;
	t->is_normalised = ct->has_before && ct->flags & CALLTREE_NORMALISE;
	t->is_reversed = ct->flags & CALLTREE_REVERSE;
	t->is_time_ordered = ct->flags & CALLTREE_TIME_ORDER;
	if (ct->is_placed)
		ct->place = xreallocarray(ct->place, n, sizeof(*ct->place));
	treelayout_fill(t, ct->nodes.p, &r->names, ct->place);
	r->total = t->nodes[0].total;
	if (ct->has_input)
		r->nr_samples = ct->nr_samples;
	vec_clear(&ct->nodes);
	map_clear(&ct->children);
	vec_push(&ct->nodes, (struct treelayout_node){.name = intern_add_str(&r->names, "all")});
	ct->nr_indexed = 0;
	ct->has_before = ct->has_input = false;
	ct->nr_samples = 0;
	return t;
}
