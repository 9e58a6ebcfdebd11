/* The HTML page of a benchmark; see benchhtml.h. */
#include "base/base.h"
#include "render/page/benchhtml.h"

#include <math.h>

#include "base/text/escape.h"
#include "base/text/num.h"
#include "render/page/htmlparts.h"

#define LEFT      78.0
#define RIGHT     448.0
#define TOP       22.0
#define BOTTOM    150.0
#define ALIKE_MAX 3.0 /* largest value / smallest one of commands that share a scale */

/* One decimal, the same in every locale. */
static void add_coord(struct buf *to, const char *key, double v)
{
	buf_addf(to, " %s=\"%s\"", key, num_double(v, 1).s);
}

static void add_text(struct buf *to, double x, double y, const char *anchor, const char *text)
{
	buf_add_str(to, "<text");
	add_coord(to, "x", x);
	add_coord(to, "y", y);
	buf_addf(to, " text-anchor=\"%s\">", anchor);
	escape_xml(to, sv_from_str(text));
	buf_add_str(to, "</text>\n");
}

static void add_rule(struct buf *to, const char *class, double y)
{
	buf_addf(to, "<line class=\"%s\"", class);
	add_coord(to, "x1", LEFT);
	add_coord(to, "x2", RIGHT);
	add_coord(to, "y1", y);
	add_coord(to, "y2", y);
	buf_add_str(to, "/>\n");
}

/* @what: for readers of the page who do not see it. */
static void start_chart(struct buf *to, const struct report_series *s, const char *what)
{
	buf_add_str(to, "<svg class=\"chart\" viewBox=\"0 0 460 176\" role=\"img\" aria-label=\"");
	escape_xml(to, sv_from_str(what));
	buf_add_str(to, " of ");
	escape_xml(to, sv_from_str(s->name));
	buf_add_str(to, "\">\n");
}

static void end_shape(struct buf *to, const char *shape, const char *title)
{
	buf_add_str(to, "><title>");
	escape_xml(to, sv_from_str(title));
	buf_addf(to, "</title></%s>\n", shape);
}

static void add_distribution(struct buf *to, const struct report_series *s)
{
	uint64_t most = 1;
	double step = (RIGHT - LEFT) / (double)MAX(s->nr_bins, (size_t)1);
	if (!s->nr_bins)
		return;
	for (size_t i = 0; i < s->nr_bins; i++)
		most = MAX(most, s->bins[i].nr);
	start_chart(to, s, "distribution");
	add_rule(to, "axis", BOTTOM);
	for (size_t i = 0; i < s->nr_bins; i++) {
		CLEANUP(buf_release) struct buf title = {0};
		double height = (BOTTOM - TOP) * (double)s->bins[i].nr / (double)most;
		double x = LEFT + step * (double)i;
		buf_addf(&title, "%s: %s", s->bins[i].range, num_noun(s->bins[i].nr, s->noun).s);
		buf_add_str(to, "<rect");
		add_coord(to, "x", x + 1);
		add_coord(to, "y", BOTTOM - height);
		add_coord(to, "width", step - 2);
		add_coord(to, "height", height);
		end_shape(to, "rect", buf_str(&title));
		if (s->bins[i].nr)
			add_text(to, x + step / 2, BOTTOM - height - 4, "middle",
				 num_count(s->bins[i].nr).s);
	}
	add_text(to, LEFT, BOTTOM + 16, "start", s->min_text);
	add_text(to, RIGHT, BOTTOM + 16, "end", s->max_text);
	add_text(to, LEFT - 8, BOTTOM, "end", s->noun);
	buf_add_str(to, "</svg>\n");
}

struct scale {
	double low;
	double high;
};

static double y_of(const struct scale *scale, double v)
{
	double share =
		scale->high > scale->low ? (v - scale->low) / (scale->high - scale->low) : 0.5;
	return BOTTOM - 8 - share * (BOTTOM - TOP - 16);
}

static void add_course(struct buf *to, const struct report_series *s, const struct scale *scale)
{
	double step = (RIGHT - LEFT) / (double)s->nr;
	double low_y = y_of(scale, s->min);
	double high_y = y_of(scale, s->max);
	double median_y = y_of(scale, s->median);
	start_chart(to, s, "course from run to run");
	add_rule(to, "axis", BOTTOM);
	add_rule(to, "median", median_y);
	for (size_t i = 0; i < s->nr; i++) {
		CLEANUP(buf_release) struct buf title = {0};
		buf_addf(&title, "%zu: %s", i + 1, s->texts[i]);
		buf_add_str(to, "<circle");
		add_coord(to, "cx", LEFT + step * ((double)i + 0.5));
		add_coord(to, "cy", y_of(scale, s->values[i]));
		buf_addf(to, " r=\"%s\"", s->nr > 100 ? "1.5" : "3");
		end_shape(to, "circle", buf_str(&title));
	}
	/* labels that would cover each other are left out: the median first stays */
	add_text(to, LEFT - 8, median_y + 4, "end", s->median_text);
	if (low_y - median_y >= 14)
		add_text(to, LEFT - 8, low_y + 4, "end", s->min_text);
	if (median_y - high_y >= 14)
		add_text(to, LEFT - 8, high_y + 4, "end", s->max_text);
	CLEANUP(buf_release) struct buf nr = {0};
	buf_addf(&nr, "%s in order; line: median", num_noun(s->nr, s->noun).s);
	add_text(to, RIGHT, BOTTOM + 16, "end", buf_str(&nr));
	add_text(to, LEFT, BOTTOM + 16, "start", "1");
	buf_add_str(to, "</svg>\n");
}

static struct scale common_scale(const struct report *r)
{
	struct scale all = {INFINITY, -INFINITY};
	vec_foreach(s, &r->series) {
		all.low = MIN(all.low, s->min);
		all.high = MAX(all.high, s->max);
	}
	return all;
}

static void add_charts(struct buf *to, const struct report *r)
{
	struct scale all = common_scale(r);
	bool is_common = all.low > 0 && all.high <= ALIKE_MAX * all.low;
	vec_foreach(s, &r->series) {
		struct scale own = {s->min, s->max};
		html_add_line(to, "h2", "command", sv_from_str(s->name));
		buf_add_str(to, "<div class=\"charts\">\n");
		add_distribution(to, s);
		add_course(to, s, is_common ? &all : &own);
		buf_add_str(to, "</div>\n");
	}
}

void benchhtml_write(struct buf *to, const struct report *r, const char *title)
{
	html_add_start(to, r, title, "");
	add_charts(to, r);
	vec_foreach(t, &r->tables) {
		if (!t->nr_rows || !strcmp(t->key, "histogram")) /* the charts have it */
			continue;
		if (t->is_detail)
			buf_addf(to, "<details><summary>%s</summary>\n", t->key);
		html_add_table(to, t);
		if (t->is_detail)
			buf_add_str(to, "</details>\n");
	}
	buf_add_str(to, "</main>\n</body>\n</html>\n");
}
