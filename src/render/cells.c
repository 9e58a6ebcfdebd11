/* Cells of tables as text; see cells.h. */
#include "base/base.h"
#include "render/cells.h"

#include <math.h>

#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"

#define LEAST_PCT 0.005 /* rounded to two decimals, less would be 0.00 */

struct unit_name {
	uint64_t size;
	const char *name;
};
static const struct unit_name times[] = {
	{1, "ns"}, {1000, "us"}, {1000000, "ms"}, {1000000000, "s"}};
static const struct unit_name sizes[] = {
	{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1ull << 40, "TiB"}};

static bool has_key(const struct report_column *c, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(c->key, keys[i]))
			return true;
	return false;
}

/* Columns that are compared with each other have one unit: durations of one wait, all sums of bytes. */
static bool are_compared(const struct report_column *a, const struct report_column *b)
{
	static const char *const durations[] = {"mean_ns", "p50_ns", "p90_ns", "p99_ns",
						"longest_ns"};
	static const char *const others[] = {"mean_bytes",  "mean_read_bytes", "mean_write_bytes",
					     "bytes_per_s", "growth_per_min",  "virtual_bytes",
					     "min_bytes",   "size_bytes"};
	if (a == b)
		return true;
	if (cell_unit(a->kind) != cell_unit(b->kind))
		return false;
	if (cell_unit(a->kind) == UNIT_BYTES)
		return !has_key(a, others, ARRAY_LEN(others)) &&
		       !has_key(b, others, ARRAY_LEN(others));
	return has_key(a, durations, ARRAY_LEN(durations)) &&
	       has_key(b, durations, ARRAY_LEN(durations));
}

struct range {
	uint64_t least; /* above 0 */
	uint64_t most;
};

/* The value of a number with a unit; 0: not known, or 0. */
static uint64_t amount_of(const struct report_column *c, const union cell *v)
{
	if (!cell_is_known(c, v))
		return 0;
	if (cell_form(c->kind) == CELL_CHANGE)
		return v->estimate.change < 0 ? 0 - (uint64_t)v->estimate.change
					      : (uint64_t)v->estimate.change;
	return cell_form(c->kind) == CELL_ESTIMATE ? v->estimate.value : v->u;
}

static void add_range(struct range *to, const struct report_table *t, size_t column,
		      const size_t *rows, size_t nr_rows)
{
	for (size_t i = 0; i < nr_rows; i++) {
		uint64_t v =
			amount_of(&t->columns[column], &t->cells[rows[i] * t->nr_columns + column]);
		if (!v)
			continue;
		to->least = MIN(to->least, v);
		to->most = MAX(to->most, v);
	}
}

/* The unit of the largest value; the next smaller one if small values would have no digits. */
static const struct unit_name *unit_of(const struct range *r, enum unit unit)
{
	bool is_bytes = unit == UNIT_BYTES;
	const struct unit_name *units = is_bytes ? sizes : times;
	size_t nr_units = is_bytes ? ARRAY_LEN(sizes) : ARRAY_LEN(times);
	double most = is_bytes ? 1e4 : 1e5; /* in the smaller one */
	size_t u = 0;
	while (u + 1 < nr_units && r->most >= units[u + 1].size)
		u++;
	bool has_small = (double)r->least < 0.0995 * (double)units[u].size;
	return &units[u && has_small && (double)r->most < most * (double)units[u - 1].size ? u - 1
											   : u];
}

static int decimals_of(const struct range *r, uint64_t unit_size)
{
	double least = (double)r->least / (double)unit_size;
	double most = (double)r->most / (double)unit_size;
	int for_most = most < 9.995 ? 2 : most < 99.95 ? 1 : 0;
	int for_least = least >= 100 ? 0 : least >= 10 ? for_most : least >= 0.995 ? 1 : 2;
	if (unit_size == 1 || !r->most)
		return 0;
	return MAX(most >= 1000 ? 0 : for_most, for_least);
}

struct cells_form cells_form_of(const struct report_table *t, size_t column, const size_t *rows,
				size_t nr_rows)
{
	struct range own = {UINT64_MAX, 0};
	struct range all = {UINT64_MAX, 0};
	enum unit unit = cell_unit(t->columns[column].kind);
	if (unit != UNIT_BYTES && unit != UNIT_NS)
		return (struct cells_form){0};
	add_range(&own, t, column, rows, nr_rows);
	for (size_t c = 0; c < t->nr_columns; c++)
		if (are_compared(&t->columns[column], &t->columns[c]))
			add_range(&all, t, c, rows, nr_rows);
	if (!all.most) /* 0 has no unit */
		return (struct cells_form){.unit_size = 1, .unit = ""};
	const struct unit_name *u = unit_of(&all, unit);
	return (struct cells_form){u->size, u->name, decimals_of(&own, u->size)};
}

/* "p99" and "ms" make "p99 ms", "growth/min" and "KiB" "growth KiB/min", "bytes/s" "KiB/s". */
void cells_add_title(struct buf *to, const struct report_column *c, const struct cells_form *f)
{
	struct sv per = sv_from_str(c->title);
	struct sv what = sv_split(&per, '/');
	bool is_bytes = sv_eq(what, SV("bytes"));
	if (!f->unit_size || !*f->unit || (is_bytes && f->unit_size == 1)) {
		buf_add_str(to, c->title);
		return;
	}
	if (!is_bytes)
		buf_addf(to, "%.*s ", SV_ARGS(what));
	buf_add_str(to, f->unit);
	if (per.n)
		buf_addf(to, "/%.*s", SV_ARGS(per));
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

/* A time or bytes: in the unit of the column, or with its own. */
static void add_amount(struct buf *to, enum unit unit, const struct cells_form *f, uint64_t amount)
{
	if (!f->unit_size) {
		cells_add_number(to, unit, amount);
		return;
	}
	double v = (double)amount / (double)f->unit_size;
	double least = f->decimals == 0 ? 0.5 : f->decimals == 1 ? 0.05 : 0.005;
	if (!amount)
		buf_add_ch(to, '0');
	else if (v < least)
		buf_add_str(to, f->decimals == 0 ? "<1" : f->decimals == 1 ? "<0.1" : "<0.01");
	else
		add_grouped(to, v, f->decimals);
}

/* "1.20 +-8 %"; "1.20, <= 3.10" where the interval reaches to 0. */
static void add_estimate(struct buf *to, enum unit unit, const struct cells_form *f,
			 const struct cell_estimate *e)
{
	add_amount(to, unit, f, e->value);
	if (!e->error || !e->value)
		return;
	if (e->error > e->value) {
		buf_add_str(to, ", <= ");
		add_amount(to, unit, f, u64_add(e->value, e->error));
		return;
	}
	double pct = 100.0 * (double)e->error / (double)e->value;
	buf_addf(to, " +-%s %%", pct < 0.1 ? "<0.1" : num_double(pct, pct < 10 ? 1 : 0).s);
}

/* "+1.20 +-0.31" */
static void add_change(struct buf *to, enum unit unit, const struct cells_form *f,
		       const struct cell_estimate *e)
{
	if (e->change)
		buf_add_ch(to, e->change < 0 ? '-' : '+');
	add_amount(to, unit, f, e->change < 0 ? 0 - (uint64_t)e->change : (uint64_t)e->change);
	if (!e->error)
		return;
	buf_add_str(to, " +-");
	add_amount(to, unit, f, e->error);
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
	if (c->kind == CELL_TEXT)
		escape_term(to, sv_from_str(v->text));
	else if (c->kind == CELL_PERCENT)
		cells_add_pct(to, v->d);
	else if (c->kind == CELL_FLOAT)
		add_float(to, v->d);
	else if (!cell_is_known(c, v))
		buf_add_ch(to, '-');
	else if (c->kind == CELL_ID)
		buf_add_u64(to, v->u);
	else if (cell_form(c->kind) == CELL_ESTIMATE)
		add_estimate(to, unit, f, &v->estimate);
	else if (cell_form(c->kind) == CELL_CHANGE)
		add_change(to, unit, f, &v->estimate);
	else
		add_amount(to, unit, f, v->u);
}

bool cells_has_column(const struct report_table *t, size_t column)
{
	return !t->has_counts || t->columns[column].kind != CELL_PERCENT;
}
