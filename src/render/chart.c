/*
 * Charts in SVG; see chart.h.
 *
 *	svg        title, subtitle, note, legend
 *	  style    chart.css
 *	  g.grid   lines and numbers of both axes
 *	  g.plot   areas from the top of the stack down, lines over them, marks
 *	  metadata the points as JSON, for the script
 *	  script   chart.js
 */
#include "base/base.h"
#include "render/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/text/escape.h"
#include "base/text/json.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "render/assets.h"
#include "render/flame.h"

#define WIDTH       1200.0
#define HEIGHT      520.0
#define LEFT        84.0
#define RIGHT       (WIDTH - 24)
#define TOP         104.0
#define BOTTOM      (HEIGHT - 40)
#define Y_TICKS     6
#define X_TICKS     8
#define FONT_FAMILY "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

struct draw {
	struct buf *to;
	const struct chart *c;
	size_t *rows; /* points that are drawn */
	size_t nr_rows;
	double top_bytes; /* of the y axis */
};

/* ---- numbers ------------------------------------------------------------------------------ */

/* One decimal, the same in every locale. */
static void add_px(struct buf *to, double v)
{
	long n = lround(v * 10);
	buf_addf(to, "%s%ld", n < 0 ? "-" : "", labs(n) / 10);
	if (n % 10)
		buf_addf(to, ".%ld", labs(n) % 10);
}

static void add_coord(struct buf *to, const char *key, double v)
{
	buf_addf(to, " %s=\"", key);
	add_px(to, v);
	buf_add_ch(to, '"');
}

static double x_of(const struct draw *d, uint64_t ns)
{
	const struct chart *c = d->c;
	uint64_t first = c->ns[0];
	uint64_t span = c->ns[c->nr_points - 1] - first;
	double share = span ? (double)(ns - MIN(first, ns)) / (double)span : 0;
	return LEFT + MIN(share, 1.0) * (RIGHT - LEFT);
}

static double y_of(const struct draw *d, double bytes)
{
	return BOTTOM - bytes / d->top_bytes * (BOTTOM - TOP);
}

static double stacked_at(const struct chart *c, size_t row, size_t nr_series)
{
	double sum = 0;
	for (size_t s = 0; s < nr_series; s++)
		if (c->series[s].kind == CHART_AREA)
			sum += (double)c->series[s].bytes[row];
	return sum;
}

static double highest_at(const struct chart *c, size_t row)
{
	double most = stacked_at(c, row, c->nr_series);
	for (size_t s = 0; s < c->nr_series; s++)
		if (c->series[s].kind == CHART_LINE && c->series[s].bytes[row] != CELL_NO_BYTES)
			most = MAX(most, (double)c->series[s].bytes[row]);
	return most;
}

/* Chooses the points to draw: the first, the last, and of each group the highest. */
static void choose_rows(struct draw *d)
{
	const struct chart *c = d->c;
	size_t nr = MIN(c->nr_points, (size_t)CHART_POINTS_MAX);
	d->rows = xcalloc(MAX(nr, (size_t)1), sizeof(*d->rows));
	for (size_t k = 0; k < nr; k++) {
		size_t from = k * c->nr_points / nr;
		size_t to = (k + 1) * c->nr_points / nr;
		size_t best = k + 1 == nr ? to - 1 : from;
		for (size_t i = from; i < to && k && k + 1 < nr; i++)
			if (highest_at(c, i) > highest_at(c, best))
				best = i;
		d->rows[d->nr_rows++] = best;
	}
}

/*
 * The axis step: 1, 2 or 5 times a power of ten of the largest binary unit that fits, at least KiB.
 */
static double nice_bytes(double about)
{
	double unit = 1024;
	while (about / unit >= 1024)
		unit *= 1024;
	double power = unit;
	while (power * 10 <= about)
		power *= 10;
	return about <= power       ? power
	       : about <= 2 * power ? 2 * power
	       : about <= 5 * power ? 5 * power
				    : 10 * power;
}

static double nice_seconds(double about)
{
	static const double steps[] = {1e-3, 2e-3, 5e-3, .01,  .02,  .05,   .1,    .2,    .5,
				       1,    2,    5,    10,   15,   30,    60,    120,   300,
				       600,  900,  1800, 3600, 7200, 14400, 21600, 43200, 86400};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i] >= about)
			return steps[i];
	return ceil(about / 86400) * 86400;
}

/* ---- axes --------------------------------------------------------------------------------- */

static void add_text(struct draw *d, const char *class, double x, double y, const char *anchor,
		     const char *text)
{
	buf_addf(d->to, "<text class=\"%s\"", class);
	add_coord(d->to, "x", x);
	add_coord(d->to, "y", y);
	buf_addf(d->to, " text-anchor=\"%s\">", anchor);
	escape_xml(d->to, sv_from_str(text));
	buf_add_str(d->to, "</text>\n");
}

static void add_point(struct draw *d, char op, double x, double y)
{
	buf_add_ch(d->to, op);
	add_px(d->to, x);
	buf_add_ch(d->to, ' ');
	add_px(d->to, y);
}

static void add_line(struct draw *d, const char *class, double x1, double y1, double x2, double y2)
{
	buf_addf(d->to, "<path class=\"%s\" d=\"", class);
	add_point(d, 'M', x1, y1);
	add_point(d, 'L', x2, y2);
	buf_add_str(d->to, "\"/>\n");
}

static void add_y_axis(struct draw *d)
{
	double most = 0;
	for (size_t i = 0; i < d->c->nr_points; i++)
		most = MAX(most, highest_at(d->c, i));
	double step = nice_bytes(most / Y_TICKS);
	d->top_bytes = MAX(ceil(most / step), 1.0) * step;
	for (double v = 0; v <= d->top_bytes + step / 2; v += step) {
		add_line(d, "grid", LEFT, y_of(d, v), RIGHT, y_of(d, v));
		add_text(d, "tick", LEFT - 8, y_of(d, v) + 4, "end", num_bytes((uint64_t)v).s);
	}
}

static void add_x_axis(struct draw *d)
{
	const struct chart *c = d->c;
	double first = (double)c->ns[0] / 1e9;
	double last = (double)c->ns[c->nr_points - 1] / 1e9;
	double step = nice_seconds(MAX((last - first) / X_TICKS, 1e-3));
	for (double t = ceil(first / step) * step; t <= last + step * 1e-6; t += step) {
		uint64_t ns = (uint64_t)llround(MAX(t, 0.0) * 1e9);
		double x = x_of(d, ns);
		add_line(d, "axis", x, BOTTOM, x, BOTTOM + 4);
		add_text(d, "tick", x, BOTTOM + 18, "middle",
			 !ns         ? "0"
			 : c->x_unit ? num_count(ns).s
				     : num_ns(ns).s);
	}
	add_line(d, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
}

/* ---- curves ------------------------------------------------------------------------------- */

static void end_path(struct draw *d, const struct chart_series *series)
{
	buf_add_str(d->to, "\"><title>");
	escape_xml(d->to, sv_from_str(series->name));
	buf_add_str(d->to, "</title></path>\n");
}

static void add_area(struct draw *d, size_t s)
{
	const struct chart *c = d->c;
	buf_addf(d->to, "<path class=\"area\" style=\"fill:var(--s%u);stroke:var(--s%u)\" d=\"",
		 c->series[s].color, c->series[s].color);
	for (size_t i = 0; i < d->nr_rows; i++)
		add_point(d, i ? 'L' : 'M', x_of(d, c->ns[d->rows[i]]),
			  y_of(d, stacked_at(c, d->rows[i], s + 1)));
	for (size_t i = d->nr_rows; i-- > 0;)
		add_point(d, 'L', x_of(d, c->ns[d->rows[i]]),
			  y_of(d, stacked_at(c, d->rows[i], s)));
	buf_add_ch(d->to, 'z');
	end_path(d, &c->series[s]);
}

static void add_curve(struct draw *d, const struct chart_series *series)
{
	const struct chart *c = d->c;
	size_t nr_known = 0;
	for (size_t i = 0; i < c->nr_points; i++)
		nr_known += series->bytes[i] != CELL_NO_BYTES;
	/* Values between which others are not known may be at none of the chosen rows. */
	bool is_sparse = nr_known < c->nr_points;
	size_t step = is_sparse ? nr_known / CHART_POINTS_MAX + 1 : 1;
	size_t nr = is_sparse ? c->nr_points : d->nr_rows;
	size_t nr_seen = 0;
	buf_addf(d->to, "<path class=\"curve\" style=\"stroke:var(--s%u)\" d=\"", series->color);
	for (size_t i = 0; i < nr; i++) {
		size_t row = is_sparse ? i : d->rows[i];
		if (series->bytes[row] == CELL_NO_BYTES || nr_seen++ % step)
			continue;
		add_point(d, nr_seen > 1 ? 'L' : 'M', x_of(d, c->ns[row]),
			  y_of(d, (double)series->bytes[row]));
	}
	end_path(d, series);
}

static void add_plot(struct draw *d)
{
	buf_add_str(d->to, "<g class=\"plot\" tabindex=\"0\" role=\"img\">\n<rect");
	add_coord(d->to, "x", LEFT);
	add_coord(d->to, "y", TOP);
	add_coord(d->to, "width", RIGHT - LEFT);
	add_coord(d->to, "height", BOTTOM - TOP);
	buf_add_str(d->to, " fill=\"transparent\"/>\n");
	for (size_t s = 0; s < d->c->nr_series; s++)
		if (d->c->series[s].kind == CHART_AREA)
			add_area(d, s);
	for (size_t s = 0; s < d->c->nr_series; s++)
		if (d->c->series[s].kind == CHART_LINE)
			add_curve(d, &d->c->series[s]);
	for (size_t i = 0; i < d->c->nr_marks; i++) {
		double x = x_of(d, d->c->marks[i].ns);
		bool is_right = x > (LEFT + RIGHT) / 2;
		add_line(d, "mark", x, TOP, x, BOTTOM);
		add_text(d, "tick", is_right ? x - 5 : x + 5, TOP + 12, is_right ? "end" : "start",
			 d->c->marks[i].text);
	}
	buf_add_str(d->to, "</g>\n");
}

static void add_legend(struct draw *d)
{
	double x = LEFT;
	for (size_t s = 0; s < d->c->nr_series; s++) {
		bool is_line = d->c->series[s].kind == CHART_LINE;
		buf_addf(d->to, "<rect style=\"fill:var(--s%u)\" width=\"12\" height=\"%d\"",
			 d->c->series[s].color, is_line ? 3 : 12);
		add_coord(d->to, "x", x);
		buf_addf(d->to, " y=\"%d\"/>\n", is_line ? 84 : 80);
		add_text(d, "key", x + 17, 90, "start", d->c->series[s].name);
		x += 17 + flame_text_px(sv_from_str(d->c->series[s].name), 12) + 20;
	}
}

/* ---- data --------------------------------------------------------------------------------- */

static void add_value(struct json *j, uint64_t bytes)
{
	if (bytes == CELL_NO_BYTES)
		json_null(j);
	else
		json_u64(j, bytes);
}

static void add_data(struct draw *d)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct chart *c = d->c;
	struct json j = json_to(&b);
	json_obj(&j);
	const struct {
		const char *key;
		double v;
	} frame[] = {{"left", LEFT}, {"right", RIGHT}, {"top", TOP}, {"bottom", BOTTOM}};
	for (size_t i = 0; i < ARRAY_LEN(frame); i++) {
		json_put_double(&j, frame[i].key, frame[i].v, 0);
	}
	json_put_arr(&j, "names");
	for (size_t s = 0; s < c->nr_series; s++)
		json_str(&j, c->series[s].name);
	json_end(&j);
	json_put_arr(&j, "colors");
	for (size_t s = 0; s < c->nr_series; s++)
		json_u64(&j, c->series[s].color);
	json_end(&j);
	json_put_arr(&j, "ns");
	for (size_t i = 0; i < d->nr_rows; i++)
		json_u64(&j, c->ns[d->rows[i]]);
	json_end(&j);
	json_put_arr(&j, "bytes");
	for (size_t s = 0; s < c->nr_series; s++) {
		json_arr(&j);
		for (size_t i = 0; i < d->nr_rows; i++)
			add_value(&j, c->series[s].bytes[d->rows[i]]);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_add_str(d->to, "<metadata class=\"data\">");
	escape_xml(d->to, buf_sv(&b));
	buf_add_str(d->to, "</metadata>\n<script><![CDATA[\n(function () {\n'use strict';\n");
	buf_add_sv(d->to, asset_chart_js());
	buf_add_str(d->to, "})();\n]]></script>\n");
}

static void add_head(struct draw *d)
{
	const struct chart *c = d->c;
	buf_addf(d->to,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\""
		 " class=\"assay-chart\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\""
		 " font-size=\"12\" font-family=\"%s\">\n<title>",
		 (int)WIDTH, (int)HEIGHT, (int)WIDTH, (int)HEIGHT, FONT_FAMILY);
	escape_xml(d->to, sv_from_str(c->title));
	buf_add_str(d->to, "</title>\n<style>\n");
	buf_add_sv(d->to, asset_chart_css());
	buf_add_str(d->to, "</style>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	add_text(d, "title", 12, 26, "start", c->title);
	if (c->subtitle)
		add_text(d, "sub", 12, 46, "start", c->subtitle);
	if (c->note)
		add_text(d, "note", 12, 64, "start", c->note);
}

void chart_write(struct buf *to, const struct chart *c)
{
	struct draw d = {.to = to, .c = c};
	ASSERT(c->nr_series <= CHART_SERIES_MAX);
	add_head(&d);
	if (c->nr_points) {
		choose_rows(&d);
		add_y_axis(&d);
		add_x_axis(&d);
		add_plot(&d);
		add_legend(&d);
		add_data(&d);
		free(d.rows);
	}
	buf_add_str(to, "</svg>\n");
}
