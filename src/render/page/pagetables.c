/* Tables of the page; see pagetables.h. */
#include "base/base.h"
#include "render/page/pagetables.h"

#include "base/mem.h"
#include "render/cells.h"

static void add_column(struct json *j, const struct report_column *c, const struct cells_form *form)
{
	CLEANUP(buf_release) struct buf title = {0};
	cells_add_title(&title, c, form);
	json_arr(j);
	json_sv(j, buf_sv(&title));
	json_u64(j, c->kind != CELL_TEXT);
	json_u64(j, column_is_cut_at_end(c));
	json_str(j, c->help ? c->help : "");
	json_end(j);
}

static void add_cell(struct json *j, const struct report_column *c, const struct cells_form *form,
		     const union cell *v)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (c->kind == CELL_TEXT) {
		json_str(j, v->text);
		return;
	}
	cells_add(&text, c, form, v);
	json_sv(j, buf_sv(&text));
}

static void add_rows(struct json *j, const struct report_table *t, const struct cells_form *forms)
{
	json_put_arr(j, "rows");
	for (size_t i = 0; i < t->nr_rows; i++) {
		json_arr(j);
		for (size_t c = 0; c < t->nr_columns; c++)
			if (cells_has_column(t, c))
				add_cell(j, &t->columns[c], &forms[c],
					 &t->cells[i * t->nr_columns + c]);
		json_end(j);
	}
	json_end(j);
}

static void add_table(struct json *j, const struct report_table *t)
{
	CLEANUP(free_p) size_t *rows = xcalloc(t->nr_rows + 1, sizeof(*rows));
	CLEANUP(free_p) struct cells_form *forms = xcalloc(t->nr_columns + 1, sizeof(*forms));
	for (size_t i = 0; i < t->nr_rows; i++)
		rows[i] = i;
	for (size_t c = 0; c < t->nr_columns; c++)
		forms[c] = cells_form_of(t, c, rows, t->nr_rows);
	json_obj(j);
	json_put_str(j, "title", t->title);
	json_put_str(j, "note", t->note ? t->note : "");
	json_put_arr(j, "columns");
	for (size_t c = 0; c < t->nr_columns; c++)
		if (cells_has_column(t, c))
			add_column(j, &t->columns[c], &forms[c]);
	json_end(j);
	add_rows(j, t, forms);
	json_put_u64(j, "rows_total", t->nr_rows_total);
	json_put_u64(j, "nr_sums", MIN((size_t)t->has_other + t->has_total, t->nr_rows));
	json_end(j);
}

void pagetables_add(struct json *j, const struct report *r)
{
	json_put_arr(j, "tables");
	vec_foreach(t, &r->tables)
		if (t->nr_rows)
			add_table(j, t);
	json_end(j);
}

static const char *rule_at(const struct report_table *t, size_t row)
{
	return t && row < t->nr_rows ? t->cells[row * t->nr_columns].text : "";
}

/* The rows of a rule are neighbours. */
static size_t count_rules(const struct report_table *t)
{
	size_t n = 0;
	for (size_t i = 0; t && i < t->nr_rows; i++)
		n += !i || strcmp(rule_at(t, i), rule_at(t, i - 1)) != 0;
	return n;
}

static size_t add_parts(struct json *j, const struct report_table *t, size_t row)
{
	const char *rule = rule_at(t, row);
	for (; *rule && !strcmp(rule_at(t, row), rule); row++) {
		const union cell *cells = &t->cells[row * t->nr_columns];
		json_arr(j);
		json_str(j, cells[1].text);
		json_str(j, cells[2].text);
		json_end(j);
	}
	return row;
}

void pagetables_add_diagnosis(struct json *j, const struct report *r)
{
	const struct report_table *t = r->tables.n ? &r->tables.p[0] : NULL;
	/* A sentence above those of the rules says what they are. */
	size_t nr_above = r->findings.n - MIN(count_rules(t), r->findings.n);
	size_t row = 0;
	json_put_obj(j, "diagnosis");
	json_put_arr(j, "findings");
	for (size_t i = 0; i < r->findings.n; i++) {
		json_arr(j);
		json_str(j, r->findings.p[i]);
		json_str(j, i < nr_above ? "" : rule_at(t, row));
		if (i >= nr_above)
			row = add_parts(j, t, row);
		json_end(j);
	}
	json_end(j);
	json_put_arr(j, "notes");
	for (size_t i = r->findings.n; i < r->notes.n; i++)
		json_str(j, r->notes.p[i]);
	json_end(j);
	json_end(j);
}
