/*
 * Writer of call graphs for Graphviz (dot): functions with their own and total amounts, calls with the
 * amount of the samples that contain them. Only written. docs/formats/dot.md
 *
 * The graph is cut to the functions with the largest totals. A call between two of them through others
 * that were cut is dashed. What the cut removed is stated in the graph.
 */
#include "base/base.h"
#include "format/format.h"

#include <math.h>
#include <stdlib.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "format/textframes.h"
#include "model/heap.h"

#define NODES_MAX      80
#define NODE_SHARE_MIN 0.005
#define EDGE_SHARE_MIN 0.001
#define LABEL_BYTES    64

struct node {
	uint64_t self;
	uint64_t total;
	uint32_t seen; /* number of the last stack that contained it, + 1 */
	uint32_t id;   /* number in the file, 0 = cut */
};

struct edge {
	uint32_t from;
	uint32_t to;
	uint64_t weight;
	uint32_t seen;
	bool is_indirect;
};

struct sum {
	stack_id stack;
	uint32_t leaf; /* name of a frame on top of it, 0 = none */
	uint64_t weight;
};

struct dot_writer {
	const struct profile *p;
	const struct format_options *options;
	const struct table *t;
	struct intern names;    /* id: index in nodes */
	VEC(struct node) nodes; /* 0 is not used */
	VEC(struct sum) sums;
	VEC(struct edge) edges;
	struct map edge_index; /* from << 32 | to, with the top bit for an indirect one */
	VEC(uint32_t) path;    /* nodes of a stack, innermost first */
	uint32_t *first_of_loc;
	VEC(uint32_t) loc_nodes;
	uint64_t total;
};

static void writer_release(struct dot_writer *w)
{
	intern_release(&w->names);
	vec_release(&w->nodes);
	vec_release(&w->sums);
	vec_release(&w->edges);
	map_release(&w->edge_index);
	vec_release(&w->path);
	free_p(&w->first_of_loc);
	vec_release(&w->loc_nodes);
}

/* ---- sums --------------------------------------------------------------------------------- */

static uint32_t node_of(struct dot_writer *w, struct sv name)
{
	uint32_t id = intern_add(&w->names, name.n ? name.p : "[empty]",
				 name.n ? name.n : sizeof("[empty]") - 1);
	while (w->nodes.n <= id)
		vec_push(&w->nodes, (struct node){0});
	return id;
}

/* As in our reports, the allocator's own functions at the leaf are left out. */
static stack_id stack_of(const struct dot_writer *w, size_t row)
{
	const struct heapwrite_options *o = &w->options->heapwrite;
	bool is_heap = w->t->id >= TABLE_ALLOCATED && w->t->id <= TABLE_SNAPSHOTS;
	stack_id stack = w->t->stack[row];
	return is_heap && o->trim ? o->trim(o->trim_ctx, stack) : stack;
}

static void add_sums(struct dot_writer *w)
{
	const struct format_options *o = w->options;
	struct map index = {0};
	for (size_t i = 0; w->t && i < w->t->n; i++) {
		int64_t weight = w->t->values[i * w->t->nr_columns + w->t->weight_column];
		const char *leaf = o->synth_leaf_of && w->t->has_tags
					   ? o->synth_leaf_of(o->synth_leaf_ctx, w->t, i)
					   : NULL;
		struct sum s = {.stack = stack_of(w, i),
				.leaf = leaf ? node_of(w, sv_from_str(leaf)) : 0,
				.weight = weight > 0 ? (uint64_t)weight : 0};
		bool is_new;
		uint32_t *at = map_put(&index, (uint64_t)s.stack << 32 | s.leaf, &is_new);
		if (is_new) {
			*at = (uint32_t)w->sums.n;
			vec_push(&w->sums, (struct sum){s.stack, s.leaf, 0});
		}
		w->sums.p[*at].weight += s.weight;
		w->total += s.weight;
	}
	map_release(&index);
}

static uint32_t nr_frames_of(const struct dot_writer *w, loc_id loc)
{
	return MAX(w->p->locations.p[loc].nr_frames, 1u);
}

/* The nodes of a location, innermost first, when it is first used. */
static uint32_t first_node(struct dot_writer *w, loc_id loc)
{
	if (w->first_of_loc[loc])
		return w->first_of_loc[loc] - 1;
	const struct location *l = &w->p->locations.p[loc];
	uint32_t first = (uint32_t)w->loc_nodes.n;
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &w->p->frames.p[l->first_frame + i];
		uint32_t node = node_of(w, sv_from_str(profile_frame_name(w->p, f)));
		vec_push(&w->loc_nodes, node);
	}
	if (!l->nr_frames) {
		CLEANUP(buf_release) struct buf name = {0};
		text_add_unsymbolized(&name, w->p, loc, 0);
		uint32_t node = node_of(w, buf_sv(&name));
		vec_push(&w->loc_nodes, node);
	}
	w->first_of_loc[loc] = first + 1;
	return first;
}

static void set_path(struct dot_writer *w, const struct sum *s)
{
	vec_clear(&w->path);
	if (s->leaf)
		vec_push(&w->path, s->leaf);
	for (stack_id at = s->stack; at; at = w->p->stacks.p[at].parent) {
		loc_id loc = w->p->stacks.p[at].loc;
		uint32_t first = first_node(w, loc);
		for (uint32_t i = 0; i < nr_frames_of(w, loc); i++)
			vec_push(&w->path, w->loc_nodes.p[first + i]);
	}
	if (!w->path.n)
		vec_push(&w->path, node_of(w, SV("[no stack]")));
}

static void add_nodes(struct dot_writer *w)
{
	for (uint32_t i = 0; i < w->sums.n; i++) {
		const struct sum *s = &w->sums.p[i];
		set_path(w, s);
		w->nodes.p[w->path.p[0]].self += s->weight;
		vec_foreach(id, &w->path) {
			struct node *n = &w->nodes.p[*id];
			n->total += n->seen == i + 1 ? 0 : s->weight;
			n->seen = i + 1;
		}
	}
}

/* ---- the cut ------------------------------------------------------------------------------ */

struct ranked {
	uint32_t node;
	uint64_t total;
	uint64_t self;
};

static int by_total(const void *a, const void *b)
{
	const struct ranked *x = a;
	const struct ranked *y = b;
	return COMPARE(y->total, x->total) ?: COMPARE(y->self, x->self)
					      ?: COMPARE(x->node, y->node);
}

static size_t choose_nodes(struct dot_writer *w)
{
	VEC(struct ranked) all = {0};
	for (uint32_t i = 1; i < w->nodes.n; i++)
		vec_push(&all, (struct ranked){i, w->nodes.p[i].total, w->nodes.p[i].self});
	if (all.n)
		qsort(all.p, all.n, sizeof(*all.p), by_total);
	size_t nr = 0;
	for (; nr < all.n && nr < NODES_MAX; nr++) {
		if ((double)all.p[nr].total < NODE_SHARE_MIN * (double)w->total || !all.p[nr].total)
			break;
		w->nodes.p[all.p[nr].node].id = (uint32_t)nr + 1;
	}
	vec_release(&all);
	return nr;
}

static void add_edge(struct dot_writer *w, uint32_t from, uint32_t to, bool is_indirect, uint32_t i)
{
	bool is_new;
	uint64_t key = (uint64_t)is_indirect << 63 | (uint64_t)from << 32 | to;
	uint32_t *at = map_put(&w->edge_index, key, &is_new);
	if (is_new) {
		*at = (uint32_t)w->edges.n;
		vec_push(&w->edges,
			 (struct edge){.from = from, .to = to, .is_indirect = is_indirect});
	}
	struct edge *e = &w->edges.p[*at];
	e->weight += e->seen == i + 1 ? 0 : w->sums.p[i].weight;
	e->seen = i + 1;
}

static void add_edges(struct dot_writer *w)
{
	for (uint32_t i = 0; i < w->sums.n; i++) {
		uint32_t below = 0; /* the nearest callee that is shown */
		bool is_indirect = false;
		set_path(w, &w->sums.p[i]);
		vec_foreach(id, &w->path) {
			if (!w->nodes.p[*id].id) {
				is_indirect = true;
				continue;
			}
			if (below)
				add_edge(w, *id, below, is_indirect, i);
			below = *id;
			is_indirect = false;
		}
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct edge *x = a;
	const struct edge *y = b;
	return COMPARE(y->weight, x->weight) ?: COMPARE(x->from, y->from) ?: COMPARE(x->to, y->to)
		       ?: COMPARE(x->is_indirect, y->is_indirect);
}

/* ---- the file ----------------------------------------------------------------------------- */

/* The inside of a quoted string: backslashes are escapes of labels, "\N". */
static void add_quoted(struct buf *to, struct sv text)
{
	CLEANUP(buf_release) struct buf clean = {0};
	escape_term(&clean, text);
	for (size_t i = 0; i < clean.n; i++) {
		if (clean.p[i] == '"' || clean.p[i] == '\\')
			buf_add_ch(to, '\\');
		buf_add_ch(to, clean.p[i]);
	}
}

static void add_label(struct buf *to, struct sv name)
{
	size_t n = 0;
	while (n < name.n && n < LABEL_BYTES)
		n += MAX(utf8_len(sv_from_idx(name, n)), (size_t)1);
	add_quoted(to, sv_from(name.p, MIN(n, name.n)));
	if (n < name.n)
		buf_add_str(to, "...");
}

static void add_amount(struct buf *to, const struct dot_writer *w, uint64_t v)
{
	switch (w->t->columns[w->t->weight_column].unit) {
	case UNIT_NS:
		num_add_ns(to, v);
		return;
	case UNIT_BYTES:
		num_add_bytes(to, v);
		return;
	case UNIT_COUNT:
		buf_add_u64(to, v);
		return;
	}
}

static double share_of(const struct dot_writer *w, uint64_t v)
{
	return w->total ? (double)v / (double)w->total : 0;
}

static void add_node(struct buf *to, const struct dot_writer *w, uint32_t id)
{
	const struct node *n = &w->nodes.p[id];
	struct sv name = intern_get(&w->names, id);
	buf_addf(to, "\tn%u [label=\"", n->id);
	add_label(to, name);
	buf_add_str(to, "\\n");
	add_amount(to, w, n->self);
	buf_addf(to, " (%.2f%%)", 100 * share_of(w, n->self));
	if (n->self != n->total) {
		buf_add_str(to, "\\nof ");
		add_amount(to, w, n->total);
		buf_addf(to, " (%.2f%%)", 100 * share_of(w, n->total));
	}
	buf_addf(to,
		 "\", self=%" PRIu64 ", total=%" PRIu64
		 ", fontsize=%.0f, fillcolor=\"0.08 %.2f 1.0\", tooltip=\"",
		 n->self, n->total, 8 + 32 * sqrt(share_of(w, n->self)),
		 share_of(w, n->total) * 0.6);
	add_quoted(to, name);
	buf_add_str(to, "\"];\n");
}

static void add_edge_line(struct buf *to, const struct dot_writer *w, const struct edge *e)
{
	double share = share_of(w, e->weight);
	buf_addf(to, "\tn%u -> n%u [label=\"", w->nodes.p[e->from].id, w->nodes.p[e->to].id);
	add_amount(to, w, e->weight);
	buf_addf(to, "\", penwidth=%.2f, weight=%.0f%s];\n", 0.5 + 5 * share, 1 + 100 * share,
		 e->is_indirect ? ", style=dashed" : "");
}

/* What is shown and what is not; counters of losses are in it. */
static void add_legend(struct buf *to, const struct dot_writer *w, size_t nr_nodes, size_t nr_edges)
{
	uint64_t self = 0;
	for (uint32_t i = 1; i < w->nodes.n; i++)
		self += w->nodes.p[i].id ? w->nodes.p[i].self : 0;
	buf_add_str(to, "\tlegend [shape=note, fontsize=14, fillcolor=white, label=\"");
	add_quoted(to, profile_sv(w->p, w->t->event));
	buf_add_str(to, ", ");
	add_quoted(to, profile_sv(w->p, w->t->columns[w->t->weight_column].name));
	buf_add_str(to, ": ");
	add_amount(to, w, w->total);
	buf_addf(to, "\\l%zu of %s: ", nr_nodes,
		 num_noun(w->nodes.n ? w->nodes.n - 1 : 0, "functions").s);
	add_amount(to, w, w->total - self);
	buf_addf(to, " (%.2f%%) of their own in those not shown\\l",
		 100 * share_of(w, w->total - self));
	buf_addf(to, "%zu of %s; dashed: through functions not shown\\l", nr_edges,
		 num_noun(w->edges.n, "calls").s);
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (w->p->losses.nr[k] && k != LOSS_SEEN && k != LOSS_WRITTEN)
			buf_addf(to, "%s: %" PRIu64 "\\l", loss_text(k), w->p->losses.nr[k]);
	buf_add_str(to, "\"];\n");
}

static void add_graph(struct buf *to, struct dot_writer *w, size_t nr_nodes)
{
	if (w->edges.n)
		qsort(w->edges.p, w->edges.n, sizeof(*w->edges.p), by_weight);
	size_t nr_edges = 0;
	while (nr_edges < w->edges.n && share_of(w, w->edges.p[nr_edges].weight) >= EDGE_SHARE_MIN)
		nr_edges++;
	buf_add_str(to, "digraph assay {\n\tnode [shape=box, style=filled, fillcolor=white];\n");
	if (w->t)
		add_legend(to, w, nr_nodes, nr_edges);
	for (uint32_t i = 1; i < w->nodes.n; i++)
		if (w->nodes.p[i].id)
			add_node(to, w, i);
	for (size_t i = 0; i < nr_edges; i++)
		add_edge_line(to, w, &w->edges.p[i]);
	buf_add_str(to, "}\n");
}

int dot_write(struct format_output *to, const struct profile *p,
	      const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release) struct dot_writer w = {.p = p, .options = options};
	TRY(format_pick_table(p, options->event, &w.t, err));
	w.first_of_loc = xcalloc(p->locations.n, sizeof(*w.first_of_loc));
	add_sums(&w);
	add_nodes(&w);
	size_t nr_nodes = choose_nodes(&w);
	add_edges(&w);
	add_graph(&to->buf, &w, nr_nodes);
	return 0;
}
