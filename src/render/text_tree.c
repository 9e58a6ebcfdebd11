/* Call trees as indented text; see text_table.h. */
#include "base/base.h"
#include "render/text_table.h"

#include "base/mem.h"
#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/shortname.h"
#include "render/cells.h"

#define GAP        2  /* spaces before each column */
#define NAME_MIN   20 /* a name has at least this many columns */
#define PCT_WIDTH  7  /* "100.00", and the headings of a tree */
#define INDENT_MAX 60 /* deeper levels of a tree do not move further right */

struct tree_text {
	struct buf *to;
	const struct report *r;
	const struct report_tree *t;
	const struct text_style *style;
	size_t *indents; /* by node */
	char **names;    /* by node: short forms that differ from those of siblings; NULL: whole */
};

static size_t left_of(const struct tree_text *tt, size_t indent)
{
	size_t most = INDENT_MAX;
	size_t least = 2 * (GAP + PCT_WIDTH) + GAP + 2;
	if (tt->style->width) /* narrower than that, deep levels need the room for their names */
		most = tt->style->width > least + NAME_MIN
			       ? MIN(most, (tt->style->width - least - NAME_MIN) / 2)
			       : 0;
	return least + MIN(indent, most) * 2;
}

static void add_whole_name(struct buf *to, const struct tree_text *tt, uint32_t node)
{
	const struct tree_node *n = &tt->t->nodes[node];
	escape_term(to, intern_get(&tt->r->names, n->name));
	buf_add_str(to, n->flags & TREE_INFERRED ? " [tail call]" : "");
}

/* The names of all children of a node, which are in one column. */
static void shorten_children(const struct tree_text *tt, uint32_t first, size_t left)
{
	CLEANUP(buf_release) struct buf text = {0};
	VEC(size_t) at = {0};
	for (uint32_t i = first; i; i = tt->t->nodes[i].next) {
		vec_push(&at, text.n);
		add_whole_name(&text, tt, i);
	}
	vec_push(&at, text.n);
	CLEANUP(free_p) struct sv *names = xcalloc(at.n, sizeof(*names));
	for (size_t i = 0; i + 1 < at.n; i++)
		names[i] = (struct sv){buf_str(&text) + at.p[i], at.p[i + 1] - at.p[i]};
	CLEANUP(shortnames_release) struct shortnames s;
	shortnames_make(&s, names, at.n - 1,
			tt->style->width > left + 1 ? tt->style->width - left : 1);
	size_t k = 0;
	for (uint32_t i = first; i; i = tt->t->nodes[i].next)
		tt->names[i] = xstrdup(shortnames_at(&s, k++));
	vec_release(&at);
}

static void add_node(const struct tree_text *tt, uint32_t node, bool is_branch)
{
	const struct tree_node *n = &tt->t->nodes[node];
	uint64_t all = tt->t->nodes[0].total;
	uint64_t shown[2] = {n->total, n->self};
	CLEANUP(buf_release) struct buf num = {0};
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		buf_clear(&num);
		if (tt->t->has_counts)
			cells_add_number(&num, tt->t->unit, shown[i]);
		else
			cells_add_pct(&num, all ? 100.0 * (double)shown[i] / (double)all : 0);
		buf_add_repeat(tt->to, ' ', GAP + (num.n < PCT_WIDTH ? PCT_WIDTH - num.n : 0));
		buf_add_sv(tt->to, buf_sv(&num));
	}
	buf_add_repeat(tt->to, ' ', left_of(tt, tt->indents[node]) - 2 * (GAP + PCT_WIDTH) - 2);
	buf_add_str(tt->to, is_branch ? "- " : "  ");
	if (tt->names[node])
		buf_add_str(tt->to, tt->names[node]);
	else
		add_whole_name(tt->to, tt, node);
	buf_add_ch(tt->to, '\n');
}

/*
 * Appends the nodes in preorder. An only child is in its parent's column; where a node has several
 * children, they are indented one step and start with a dash.
 */
static void add_nodes(const struct tree_text *tt)
{
	const struct report_tree *t = tt->t;
	for (uint32_t i = 0;;) {
		const struct tree_node *n = &t->nodes[i];
		const struct tree_node *parent = &t->nodes[n->parent];
		bool is_chain = i && parent->first_child == i && !n->next;
		tt->indents[i] = i ? tt->indents[n->parent] + !is_chain : 0;
		if (tt->style->width && i && parent->first_child == i)
			shorten_children(tt, i, left_of(tt, tt->indents[i]));
		add_node(tt, i, !is_chain);
		if (n->first_child) {
			i = n->first_child;
			continue;
		}
		while (i && !t->nodes[i].next)
			i = t->nodes[i].parent;
		if (!i)
			return;
		i = t->nodes[i].next;
	}
}

void text_add_tree(struct buf *to, const struct report *r, const struct report_tree *t,
		   const struct text_style *style)
{
	buf_add_ch(to, '\n');
	text_add_heading(to, style, t->title);
	if (!t->nr_nodes || !t->nodes[0].total) {
		buf_add_str(to, "  (nothing to show)\n");
		return;
	}
	CLEANUP(free_p) size_t *indents = xcalloc(t->nr_nodes, sizeof(*indents));
	CLEANUP(free_p) char **names = xcalloc(t->nr_nodes, sizeof(*names));
	buf_add_str(to, t->has_counts ? "    total     self\n" : "  total %   self %\n");
	add_nodes(&(struct tree_text){to, r, t, style, indents, names});
	for (size_t i = 0; i < t->nr_nodes; i++)
		free(names[i]);
}
