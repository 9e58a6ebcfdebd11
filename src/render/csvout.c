/* Reports as CSV; see csvout.h. */
#include "base/base.h"
#include "render/csvout.h"

#include "base/text/escape.h"

static void end_line(struct buf *to)
{
	buf_add_str(to, "\r\n");
}

/* A field of text. Names come from programs and files: a cell must never become a formula. */
void csvout_add_text(struct buf *to, struct sv text)
{
	CLEANUP(buf_release) struct buf clean = {0};
	escape_term(&clean, text);
	struct sv s = buf_sv(&clean);
	bool is_formula = s.n > 1 && strchr("=+-@", s.p[0]);
	bool has_quotes = false;
	for (size_t i = 0; i < s.n; i++)
		has_quotes |= s.p[i] == ',' || s.p[i] == '"';
	if (has_quotes)
		buf_add_ch(to, '"');
	if (is_formula)
		buf_add_ch(to, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"')
			buf_add_ch(to, '"');
		buf_add_ch(to, s.p[i]);
	}
	if (has_quotes)
		buf_add_ch(to, '"');
}

static void add_cell_text(struct buf *to, struct sv text)
{
	buf_add_ch(to, ',');
	csvout_add_text(to, text);
}

static void add_number(struct buf *to, uint64_t v)
{
	buf_add_ch(to, ',');
	buf_add_u64(to, v);
}

/* A value and its error. */
static void add_estimate(struct buf *to, const struct report_column *c, const union cell *v)
{
	if (!cell_is_known(c, v))
		buf_add_str(to, ",,");
	else if (cell_form(c->kind) == CELL_CHANGE)
		buf_addf(to, ",%" PRId64 ",%" PRIu64, v->estimate.change, v->estimate.error);
	else
		buf_addf(to, ",%" PRIu64 ",%" PRIu64, v->estimate.value, v->estimate.error);
}

static void add_cell(struct buf *to, const struct report_column *c, const union cell *v)
{
	if (cell_form(c->kind) != CELL_PLAIN)
		add_estimate(to, c, v);
	else if (c->kind == CELL_TEXT)
		add_cell_text(to, sv_from_str(v->text));
	else if (!cell_is_known(c, v))
		buf_add_ch(to, ',');
	else if (c->kind != CELL_PERCENT && c->kind != CELL_FLOAT)
		add_number(to, v->u);
	else
		buf_addf(to, ",%.4f", v->d);
}

static void add_table(struct buf *to, const struct report_table *t)
{
	buf_add_str(to, "table");
	for (size_t c = 0; c < t->nr_columns; c++) {
		buf_addf(to, ",%s", t->columns[c].key);
		if (cell_form(t->columns[c].kind) != CELL_PLAIN)
			buf_addf(to, ",%s_error", t->columns[c].key);
	}
	end_line(to);
	for (size_t i = 0; i < t->nr_rows; i++) {
		csvout_add_text(to, sv_from_str(t->key));
		for (size_t c = 0; c < t->nr_columns; c++)
			add_cell(to, &t->columns[c], &t->cells[i * t->nr_columns + c]);
		end_line(to);
	}
}

static void add_tree(struct buf *to, const struct report *r, const struct report_tree *t)
{
	buf_add_str(to, "table,node,parent,depth,name,module,total,self");
	end_line(to);
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const struct tree_node *n = &t->nodes[i];
		csvout_add_text(to, sv_from_str(t->key));
		add_number(to, i);
		if (i)
			add_number(to, n->parent);
		else
			buf_add_ch(to, ',');
		add_number(to, n->depth);
		add_cell_text(to, intern_get(&r->names, n->name));
		add_cell_text(to, intern_get(&r->names, n->module));
		add_number(to, n->total);
		add_number(to, n->self);
		end_line(to);
	}
}

static void add_losses(struct buf *to, const struct losses *l)
{
	buf_add_str(to, "table,kind,count");
	end_line(to);
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (!l->nr[k] && loss_class(k) == LOSS_CLASS_OTHER)
			continue;
		buf_addf(to, "losses,%s", loss_key(k));
		add_number(to, l->nr[k]);
		end_line(to);
	}
}

void csvout_render(struct buf *to, const struct report *r)
{
	vec_foreach(t, &r->tables) {
		add_table(to, t);
		end_line(to);
	}
	vec_foreach(t, &r->trees) {
		add_tree(to, r, t);
		end_line(to);
	}
	add_losses(to, &r->losses);
}
