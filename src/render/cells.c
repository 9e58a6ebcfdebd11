/* Cells of tables as text; see cells.h. */
#include "base/base.h"
#include "render/cells.h"

#include <math.h>

#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"

#define LEAST_PCT 0.005 /* rounded to two decimals, less would be 0.00 */

static const struct {
	uint64_t ns;
	const char *name;
} units[] = {{1, "ns"}, {1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};

/* Columns that are compared with each other have one unit. */
static bool is_duration(const struct report_column *c)
{
	static const char *const keys[] = {"mean_ns", "p50_ns", "p90_ns", "p99_ns", "longest_ns"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(c->key, keys[i]))
			return true;
	return false;
}

struct range {
	uint64_t least; /* above 0 */
	uint64_t most;
};

static void add_range(struct range *to, const struct report_table *t, size_t column,
		      const size_t *rows, size_t nr_rows)
{
	for (size_t i = 0; i < nr_rows; i++) {
		uint64_t ns = t->cells[rows[i] * t->nr_columns + column].u;
		if (!ns || ns == CELL_NS_NONE)
			continue;
		to->least = MIN(to->least, ns);
		to->most = MAX(to->most, ns);
	}
}

/* The unit of the largest value; the next smaller one if small values would have no digits. */
static size_t unit_of(const struct range *r)
{
	size_t u = 0;
	while (u + 1 < ARRAY_LEN(units) && r->most >= units[u + 1].ns)
		u++;
	bool has_small = (double)r->least < 0.0995 * (double)units[u].ns;
	return u && has_small && (double)r->most < 1e5 * (double)units[u - 1].ns ? u - 1 : u;
}

static int decimals_of(const struct range *r, uint64_t unit_ns)
{
	double least = (double)r->least / (double)unit_ns;
	double most = (double)r->most / (double)unit_ns;
	int for_most = most < 9.995 ? 2 : most < 99.95 ? 1 : 0;
	int for_least = least >= 100 ? 0 : least >= 10 ? for_most : least >= 0.995 ? 1 : 2;
	if (unit_ns == 1 || !r->most)
		return 0;
	return MAX(most >= 1000 ? 0 : for_most, for_least);
}

struct cells_form cells_form_of(const struct report_table *t, size_t column, const size_t *rows,
				size_t nr_rows)
{
	struct range own = {UINT64_MAX, 0};
	struct range all = {UINT64_MAX, 0};
	if (t->columns[column].kind != CELL_NS)
		return (struct cells_form){0};
	add_range(&own, t, column, rows, nr_rows);
	all = own;
	for (size_t c = 0; is_duration(&t->columns[column]) && c < t->nr_columns; c++)
		if (t->columns[c].kind == CELL_NS && is_duration(&t->columns[c]))
			add_range(&all, t, c, rows, nr_rows);
	size_t u = unit_of(&all);
	return (struct cells_form){units[u].ns, units[u].name, decimals_of(&own, units[u].ns)};
}

void cells_add_title(struct buf *to, const struct report_column *c, const struct cells_form *f)
{
	buf_add_str(to, c->title);
	if (f->unit_ns)
		buf_addf(to, " %s", f->unit);
}

/* The width of a line whose text columns are shortened to @text_min. */
static size_t least_width(const struct report_table *t, const size_t *widths, size_t text_min)
{
	size_t sum = 0;
	for (size_t c = 0; c < t->nr_columns; c++) {
		bool is_text = t->columns[c].kind == CELL_TEXT;
		if (widths[c])
			sum += CELLS_GAP + (is_text ? MIN(widths[c], text_min) : widths[c]);
	}
	return sum;
}

void cells_fit(const struct report_table *t, size_t *widths, size_t width, size_t text_min)
{
	size_t kept = 0; /* the first column is */
	while (kept + 1 < t->nr_columns && !widths[kept])
		kept++;
	size_t most = MAX(t->text_min, text_min);
	for (const char *const *key = t->hide_first;
	     key && *key && least_width(t, widths, most) > width; key++)
		for (size_t c = 0; c < t->nr_columns; c++)
			if (!strcmp(t->columns[c].key, *key))
				widths[c] = 0;
	for (size_t c = t->nr_columns; c-- > kept + 1 && least_width(t, widths, text_min) > width;)
		if (t->columns[c].kind != CELL_TEXT)
			widths[c] = 0;
	for (size_t c = t->nr_columns; c-- > kept + 1 && least_width(t, widths, text_min) > width;)
		widths[c] = 0;
}

void cells_add_number(struct buf *to, enum unit unit, uint64_t v)
{
	switch (unit) {
	case UNIT_COUNT:
		num_add_count(to, v);
		break;
	case UNIT_NS:
		num_add_ns(to, v);
		break;
	case UNIT_BYTES:
		num_add_bytes(to, v);
		break;
	}
}

/* "1,234.5": with thousands separators. */
static void add_grouped(struct buf *to, double v, int decimals)
{
	CLEANUP(buf_release) struct buf plain = {0};
	num_add_double(&plain, v, decimals);
	struct sv fraction = buf_sv(&plain);
	struct sv whole = sv_split(&fraction, '.');
	uint64_t n = 0;
	(void)sv_to_u64(whole, &n); /* a number that we made */
	num_add_count(to, n);
	if (decimals)
		buf_addf(to, ".%.*s", SV_ARGS(fraction));
}

static void add_ns(struct buf *to, const struct cells_form *f, uint64_t ns)
{
	double v = (double)ns / (double)f->unit_ns;
	double least = f->decimals == 0 ? 0.5 : f->decimals == 1 ? 0.05 : 0.005;
	if (!ns)
		buf_add_ch(to, '0');
	else if (v < least)
		buf_add_str(to, f->decimals == 0 ? "<1" : f->decimals == 1 ? "<0.1" : "<0.01");
	else
		add_grouped(to, v, f->decimals);
}

/* "1.20 MiB +-8 %"; "1.20 MiB, <= 3.10 MiB" where the interval reaches to 0. */
static void add_estimate(struct buf *to, enum unit unit, const struct cell_estimate *e)
{
	if (e->value == CELL_NO_ESTIMATE) {
		buf_add_ch(to, '-');
		return;
	}
	cells_add_number(to, unit, e->value);
	if (!e->error || !e->value)
		return;
	if (e->error > e->value) {
		buf_add_str(to, ", <= ");
		cells_add_number(to, unit, u64_add(e->value, e->error));
		return;
	}
	double pct = 100.0 * (double)e->error / (double)e->value;
	buf_addf(to, " +-%s %%", pct < 0.1 ? "<0.1" : num_double(pct, pct < 10 ? 1 : 0).s);
}

/* "+1.20 MiB +-310 KiB" */
static void add_change(struct buf *to, enum unit unit, const struct cell_estimate *e)
{
	if (e->change == CELL_NO_CHANGE) {
		buf_add_ch(to, '-');
		return;
	}
	if (e->change)
		buf_add_ch(to, e->change < 0 ? '-' : '+');
	cells_add_number(to, unit, e->change < 0 ? 0 - (uint64_t)e->change : (uint64_t)e->change);
	if (!e->error)
		return;
	buf_add_str(to, " +-");
	cells_add_number(to, unit, e->error);
}

void cells_add_pct(struct buf *to, double pct)
{
	if (isnan(pct))
		buf_add_ch(to, '-');
	else if (pct != 0 && fabs(pct) < LEAST_PCT)
		buf_add_str(to, pct < 0 ? ">-0.01" : "<0.01");
	else
		num_add_double(to, pct, 2);
}

static void add_float(struct buf *to, double v)
{
	if (v >= 1000 && v < 1e15) /* decimals are below the precision */
		num_add_count(to, (uint64_t)(v + 0.5));
	else
		cells_add_pct(to, v);
}

void cells_add(struct buf *to, const struct report_column *c, const struct cells_form *f,
	       const union cell *v)
{
	enum unit unit = cell_unit(c->kind);
	if (cell_form(c->kind) == CELL_ESTIMATE)
		add_estimate(to, unit, &v->estimate);
	else if (cell_form(c->kind) == CELL_CHANGE)
		add_change(to, unit, &v->estimate);
	else if (c->kind == CELL_TEXT)
		escape_term(to, sv_from_str(v->text));
	else if (c->kind == CELL_PERCENT)
		cells_add_pct(to, v->d);
	else if (c->kind == CELL_FLOAT)
		add_float(to, v->d);
	else if (!cell_is_known(c, v))
		buf_add_ch(to, '-');
	else if (c->kind == CELL_ID)
		buf_add_u64(to, v->u);
	else if (f->unit_ns)
		add_ns(to, f, v->u);
	else
		cells_add_number(to, unit, v->u);
}

bool cells_has_column(const struct report_table *t, size_t column)
{
	return !t->has_counts || t->columns[column].kind != CELL_PERCENT;
}
