/* Reports as JSON; see jsonout.h. */
#include "base/base.h"
#include "render/jsonout.h"

#include "base/buf.h"
#include "base/text/json.h"

static const char *unit_name(enum unit unit)
{
	static const char *const names[] = {
		[UNIT_COUNT] = "count", [UNIT_NS] = "ns", [UNIT_BYTES] = "bytes"};
	return names[unit];
}

/* Writes a column ("live") and its error, if it has one ("live_error"). */
static void add_estimate(struct json *j, const struct report_column *c, const union cell *v)
{
	bool is_change = cell_form(c->kind) == CELL_CHANGE;
	bool is_known = cell_is_known(c, v);
	if (!is_known)
		json_null(j);
	else if (is_change)
		json_i64(j, v->estimate.change);
	else
		json_u64(j, v->estimate.value);
	CLEANUP(buf_release) struct buf key = {0};
	buf_addf(&key, "%s_error", c->key);
	json_key(j, buf_str(&key));
	if (is_known)
		json_u64(j, v->estimate.error);
	else
		json_null(j);
}

static void add_cell(struct json *j, const struct report_column *c, const union cell *v)
{
	json_key(j, c->key);
	if (cell_form(c->kind) != CELL_PLAIN)
		add_estimate(j, c, v);
	else if (c->kind == CELL_TEXT)
		json_str(j, v->text);
	else if (c->kind == CELL_PERCENT || c->kind == CELL_FLOAT)
		json_double(j, v->d, 4);
	else if (!cell_is_known(c, v))
		json_null(j);
	else
		json_u64(j, v->u);
}

static void add_columns(struct json *j, const struct report_table *t)
{
	json_put_arr(j, "columns");
	for (size_t c = 0; c < t->nr_columns; c++) {
		json_obj(j);
		json_put_str(j, "key", t->columns[c].key);
		json_put_str(j, "title", t->columns[c].title);
		json_put_str(j, "kind", cell_name(t->columns[c].kind));
		if (t->columns[c].help)
			json_put_str(j, "help", t->columns[c].help);
		json_end(j);
	}
	json_end(j);
}

static void add_rows(struct json *j, const struct report_table *t)
{
	json_put_arr(j, "rows");
	for (size_t i = 0; i < t->nr_rows; i++) {
		json_obj(j);
		for (size_t c = 0; c < t->nr_columns; c++)
			add_cell(j, &t->columns[c], &t->cells[i * t->nr_columns + c]);
		json_end(j);
	}
	json_end(j);
}

static void add_table(struct json *j, const struct report_table *t)
{
	json_obj(j);
	json_put_str(j, "key", t->key);
	json_put_str(j, "title", t->title);
	if (t->note)
		json_put_str(j, "note", t->note);
	add_columns(j, t);
	json_put_u64(j, "rows_total", t->nr_rows_total);
	add_rows(j, t);
	json_end(j);
}

static void add_flags(struct json *j, uint32_t flags)
{
	static const char *const names[] = {"kernel", "inlined", "jit",
					    "pseudo", "guessed", "inferred"};
	if (!flags)
		return;
	json_put_arr(j, "flags");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (flags & 1u << i)
			json_str(j, names[i]);
	json_end(j);
}

static void add_node(struct json *j, const struct report *r, const struct tree_node *n,
		     bool has_parent)
{
	json_obj(j);
	json_key(j, "parent");
	if (has_parent)
		json_u64(j, n->parent);
	else
		json_null(j);
	json_put_sv(j, "name", intern_get(&r->names, n->name));
	if (n->module) {
		json_put_sv(j, "module", intern_get(&r->names, n->module));
	}
	json_put_u64(j, "total", n->total);
	json_put_u64(j, "self", n->self);
	add_flags(j, n->flags);
	json_end(j);
}

/*
 * Trees are flat arrays: stacks may be thousands of frames deep, more than JSON readers can nest.
 */
static void add_tree(struct json *j, const struct report *r, const struct report_tree *t)
{
	json_obj(j);
	json_put_str(j, "key", t->key);
	json_put_str(j, "title", t->title);
	json_put_str(j, "unit", unit_name(t->unit));
	json_put_arr(j, "nodes");
	for (size_t i = 0; i < t->nr_nodes; i++)
		add_node(j, r, &t->nodes[i], i > 0);
	json_end(j);
	json_end(j);
}

static void add_losses(struct json *j, const struct losses *l)
{
	json_put_obj(j, "losses");
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (l->nr[k] || loss_class(k) != LOSS_CLASS_OTHER)
			json_put_u64(j, loss_key(k), l->nr[k]);
	json_end(j);
}

static void add_facts(struct json *j, const struct report *r)
{
	json_put_obj(j, "facts");
	vec_foreach(f, &r->facts) {
		json_key(j, intern_str(&r->names, f->key));
		json_sv(j, intern_get(&r->names, f->value));
	}
	json_end(j);
}

static void add_sentences(struct json *j, const char *key, const char *const *p, size_t n)
{
	json_put_arr(j, key);
	for (size_t i = 0; i < n; i++)
		json_str(j, p[i]);
	json_end(j);
}

void jsonout_render(struct buf *to, const struct report *r)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_str(&j, "schema", "assay-report/1");
	json_put_str(&j, "title", r->title);
	json_put_str(&j, "unit", unit_name(r->unit));
	if (r->count_name)
		json_put_str(&j, "counted", r->count_name);
	json_put_u64(&j, "total", r->total);
	json_put_u64(&j, "samples", r->nr_samples);
	add_losses(&j, &r->losses);
	if (r->frames.all > 0) {
		json_key(&j, "unsymbolized_frames_pct");
		json_double(&j, 100 * r->frames.unnamed / r->frames.all, 4);
	}
	add_facts(&j, r);
	add_sentences(&j, "notes", r->notes.p, r->notes.n);
	add_sentences(&j, "findings", r->findings.p, r->findings.n);
	json_put_arr(&j, "tables");
	vec_foreach(t, &r->tables)
		add_table(&j, t);
	json_end(&j);
	json_put_arr(&j, "trees");
	vec_foreach(t, &r->trees)
		add_tree(&j, r, t);
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}
