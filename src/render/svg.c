/*
 * Flame graphs in SVG; see svg.h.
 *
 *	svg        header (title, subtitle, losses), frames, data
 *	  style    flame.css + the colours that are used, light and dark
 *	  g.head   text lines
 *	  g.flame  one rect with a title per frame; frames under THIN_PX share one path per colour,
 *	           because the number of elements determines how long the file takes to open
 *	  g.labels text
 *	  metadata packed tree: gzip, base64
 *	  script   flame.js
 */
#include "base/base.h"
#include "render/svg.h"

#include <math.h>
#include <stdlib.h>

#include "base/text/escape.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/wrap.h"
#include "base/file/zio.h"
#include "render/assets.h"
#include "base/text/base64.h"
#include "render/flame.h"
#include "render/cells.h"

#define PAD_PX      12.0
#define THIN_PX     3.0
#define STATIC_PX   1200 /* width of a window-wide graph before the script knows the window */
#define FOOT_PX     46.0
#define LINE_PX     17.0
#define COLUMN_PX   6.5 /* of notes, on average */
#define FONT_FAMILY "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

struct box {
	uint32_t node;
	double x;
	double w;
};

struct svg {
	struct buf *to;
	const struct report *r;
	const struct report_tree *t;
	const struct svg_options *o;
	enum palette palette;
	struct flame f;
	VEC(struct box) boxes;
	struct buf thin[PALETTE_COLORS_MAX]; /* path data by colour */
	bool is_used[PALETTE_COLORS_MAX];
	double width;
	double row;
	double font;
	double min_width;
	double top;    /* of the rows */
	double bottom; /* of the rows */
	uint32_t max_depth;
	double foot; /* height of the area below the rows */
};

static void add_attr(struct buf *to, const char *key, const char *value)
{
	buf_addf(to, " %s=\"", key);
	escape_xml(to, sv_from_str(value));
	buf_add_ch(to, '"');
}

/* Two decimals without trailing zeros: short, and the same in every locale. */
static void add_px(struct buf *to, double v)
{
	long n = (long)(v * 100 + (v < 0 ? -0.5 : 0.5));
	if (n < 0)
		buf_add_ch(to, '-');
	n = labs(n);
	buf_add_u64(to, (uint64_t)(n / 100));
	if (n % 100)
		buf_addf(to, n % 10 ? ".%02ld" : ".%01ld", n % 10 ? n % 100 : n % 100 / 10);
}

static void add_coord(struct buf *to, const char *key, double v)
{
	buf_addf(to, " %s=\"", key);
	add_px(to, v);
	buf_add_ch(to, '"');
}

/* ---- layout ------------------------------------------------------------------------------- */

/* Computes the boxes in preorder; subtrees below the minimum width are skipped. */
static void lay_out(struct svg *s)
{
	const struct report_tree *t = s->t;
	double inner = s->width - 2 * PAD_PX;
	double scale = s->f.width[0] ? inner / (double)s->f.width[0] : 0;
	double min_width =
		s->o->min_width_pct > 0 ? inner * s->o->min_width_pct / 100 : s->min_width;
	uint64_t *at = xcalloc(t->nr_nodes, sizeof(*at)); /* where the next child starts */
	size_t i = 0;
	while (i < t->nr_nodes && s->f.width[0]) {
		const struct tree_node *n = &t->nodes[i];
		uint64_t start = at[n->parent];
		double w = (double)s->f.width[i] * scale;
		if (i)
			at[n->parent] += s->f.width[i];
		at[i] = start;
		if (w < min_width && i) {
			for (i++; i < t->nr_nodes && t->nodes[i].depth > n->depth;)
				i++;
			continue;
		}
		vec_push(&s->boxes, (struct box){(uint32_t)i, PAD_PX + (double)start * scale, w});
		s->max_depth = MAX(s->max_depth, n->depth);
		i++;
	}
	free(at);
}

static double row_y(const struct svg *s, uint32_t depth)
{
	uint32_t row = s->o->flags & SVG_INVERTED ? depth : s->max_depth - depth;
	return s->top + row * s->row;
}

/* ---- header ------------------------------------------------------------------------------- */

static void add_part(struct buf *to, const char *text)
{
	if (!text || !*text)
		return;
	if (to->n)
		buf_add_str(to, " \xc2\xb7 ");
	buf_add_str(to, text);
}

/* A weight as it is shown. */
static uint64_t factored(const struct svg *s, uint64_t v)
{
	double by = s->o->factor;
	return by > 0 ? (uint64_t)llrint(MIN((double)v * by, 9e18)) : v;
}

static const char *count_name(const struct svg *s)
{
	return s->o->count_name ? s->o->count_name : s->t->count_name;
}

static void add_total(struct buf *to, const struct svg *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint64_t total = s->t->nodes[0].total;
	cells_add_number(&b, s->t->unit, factored(s, total));
	if (s->t->unit == UNIT_COUNT || s->o->count_name)
		buf_addf(&b, " %s", count_name(s));
	bool is_of_samples = !s->r->noun || !strcmp(s->r->noun, "samples");
	if (!is_of_samples && s->t->unit != UNIT_COUNT) {
		buf_addf(&b, " in %s", num_noun(s->r->nr_samples, s->r->noun).s);
		add_part(to, buf_str(&b));
		return;
	}
	add_part(to, buf_str(&b));
	if (s->t->unit == UNIT_COUNT || !s->r->nr_samples)
		return;
	buf_clear(&b);
	buf_addf(&b, "%s", num_noun(s->r->nr_samples, "samples").s);
	add_part(to, buf_str(&b));
}

static void add_subtitle(struct buf *to, const struct svg *s)
{
	static const enum fact_id ids[] = {FACT_TARGET, FACT_EVENT, FACT_DURATION, FACT_VIEW};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		const char *value = report_get_fact(s->r, ids[i]);
		/* Already in the title or the total. */
		bool is_said = value && (!strcmp(value, "samples") || !strcmp(value, s->r->title));
		if (value && !is_said)
			add_part(to, value);
	}
	add_total(to, s);
}

static void add_loss(struct buf *to, const char *what, uint64_t nr, uint64_t of)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%s %s", num_count(nr).s, what);
	if (nr && nr <= of)
		buf_addf(&b, " (%.2f %%)", 100.0 * (double)nr / (double)of);
	add_part(to, buf_str(&b));
}

/* Returns whether anything was lost. */
static bool add_losses(struct buf *to, const struct svg *s)
{
	const struct losses *l = &s->r->losses;
	uint64_t lost = 0;
	for (int i = 0; i < LOSS_NR; i++)
		if (loss_class((enum loss_kind)i) == LOSS_CLASS_LOST)
			lost = u64_add(lost, l->nr[i]);
	CLEANUP(buf_release) struct buf beside = {0};
	losses_add_other(&beside, l);
	if (!losses_has_samples(l)) {
		add_part(to, beside.n ? buf_str(&beside) : "losses: not recorded by this input");
		return beside.n > 0;
	}
	uint64_t seen = MAX(l->nr[LOSS_SEEN], l->nr[LOSS_WRITTEN]);
	uint64_t truncated = losses_truncated(l);
	uint64_t unnamed = losses_unsymbolized(l);
	const char *noun = s->r->noun;
	uint64_t shown = s->r->nr_samples;
	bool is_of_samples =
		(!noun || !strcmp(noun, "samples")) && (!shown || shown == l->nr[LOSS_WRITTEN]);
	/* The noun is that of the rows shown; losses are those of all events. */
	add_loss(to,
		 is_of_samples        ? "samples taken"
		 : s->r->is_estimated ? "events"
				      : "events seen",
		 seen, 0);
	add_loss(to, "lost", lost, seen);
	add_loss(to, "stacks truncated", truncated, seen);
	if (unnamed || !(s->r->frames.unnamed > 0))
		add_loss(to, unnamed ? "innermost frames unsymbolized" : "unsymbolized", unnamed,
			 seen);
	if (l->nr[LOSS_THROTTLED])
		add_loss(to, "times throttled", l->nr[LOSS_THROTTLED], 0);
	add_part(to, buf_str(&beside));
	return lost || truncated || unnamed || beside.n;
}

static void add_line(struct svg *s, double y, const char *class, struct sv text)
{
	buf_addf(s->to, "<text class=\"%s\"", class);
	add_coord(s->to, "x", PAD_PX);
	add_coord(s->to, "y", y);
	buf_add_ch(s->to, '>');
	escape_xml(s->to, text);
	buf_add_str(s->to, "</text>\n");
}

/* Text beside the graph that may be longer than it is wide; returns the y coordinate of its end. */
static double add_note(struct svg *s, double y, struct sv text)
{
	CLEANUP(buf_release) struct buf lines = {0};
	wrap_add(&lines, text, 0, 0, (size_t)MAX((s->width - 2 * PAD_PX) / COLUMN_PX, 20.0));
	struct sv rest = buf_sv(&lines);
	while (rest.n)
		add_line(s, y += LINE_PX, "sub", sv_split(&rest, '\n'));
	return y;
}

/* Returns the y coordinate of the header's end. */
static double add_header(struct svg *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	double y = 28;
	const char *title = s->o->title ? s->o->title : s->r->title;
	add_line(s, y, "title", sv_from_str(*title ? title : "Flame graph"));
	if (s->o->subtitle)
		buf_add_str(&b, s->o->subtitle);
	else
		add_subtitle(&b, s);
	add_line(s, y += 20, "sub", buf_sv(&b));
	buf_clear(&b);
	bool is_lossy = add_losses(&b, s);
	CLEANUP(arena_release) struct arena a = {0};
	const char *unsymbolized = report_unnamed(&a, s->r);
	if (unsymbolized) {
		is_lossy = true;
		add_part(&b, unsymbolized);
	}
	add_line(s, y += LINE_PX, is_lossy ? "loss some" : "loss", buf_sv(&b));
	if (s->o->notes)
		y = add_note(s, y, sv_from_str(s->o->notes));
	vec_foreach(note, &s->r->notes)
		y = add_note(s, y, sv_from_str(*note));
	return y + 12;
}

/* ---- style -------------------------------------------------------------------------------- */

static void add_rgb(struct buf *to, struct rgb c)
{
	buf_addf(to, "#%02x%02x%02x", c.r, c.g, c.b);
}

static struct rgb color_rgb(const struct svg *s, unsigned color, bool is_dark)
{
	return s->t->is_differential ? palette_delta_rgb(color, is_dark)
				     : palette_rgb(s->palette, color, is_dark);
}

static void add_colors(struct svg *s, bool is_dark)
{
	unsigned n = s->t->is_differential ? PALETTE_DELTA_NR : PALETTE_COLORS_MAX;
	for (unsigned c = 0; c < n; c++) {
		if (!s->is_used[c])
			continue;
		buf_addf(s->to, ".c%u{fill:", c);
		add_rgb(s->to, color_rgb(s, c, is_dark));
		buf_add_str(s->to, "}");
	}
	buf_add_ch(s->to, '\n');
}

static void add_background(struct svg *s, bool is_dark)
{
	struct rgb light;
	struct rgb dark;
	if (!s->o->background || !palette_background(s->o->background, &light, &dark))
		return;
	buf_add_str(s->to, ".assay-flame{--bg:");
	add_rgb(s->to, is_dark ? dark : light);
	buf_add_str(s->to, "}\n");
}

static void add_style(struct svg *s)
{
	buf_add_str(s->to, "<style>\n");
	buf_add_sv(s->to, asset_flame_css());
	add_background(s, false);
	add_colors(s, false);
	/* Dark colours on screens only: printed pages are white. */
	buf_add_str(s->to, "@media screen and (prefers-color-scheme:dark){\n");
	add_background(s, true);
	add_colors(s, true);
	buf_add_str(s->to, "}\n");
	if (s->o->match)
		buf_addf(s->to, ".assay-flame{--match:%s}\n", s->o->match);
	if (s->o->stroke)
		buf_addf(
			s->to,
			".assay-flame .flame rect,.assay-flame .flame path{stroke:%s;stroke-width:.5}\n",
			s->o->stroke);
	if (s->o->ui)
		buf_addf(s->to, ".assay-flame{--ink:%s;--muted:%s}\n", s->o->ui, s->o->ui);
	buf_add_str(s->to, "</style>\n");
}

/* ---- frames ------------------------------------------------------------------------------- */

static unsigned box_color(const struct svg *s, uint32_t node)
{
	if (!s->t->is_differential)
		return s->f.symbols[s->f.symbol[node]].color;
	bool is_changed = s->t->nodes[node].flags & TREE_CHANGED;
	double share = is_changed ? flame_delta_share(&s->f, node) : 0;
	return palette_delta(s->o->flags & SVG_NEGATE ? -share : share);
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* With a count name given by the user, the number is exact instead of scaled. */
static void add_weight(struct svg *s, uint64_t v)
{
	enum unit unit = s->o->count_name ? UNIT_COUNT : s->t->unit;
	cells_add_number(s->to, unit, factored(s, v));
	if (unit != UNIT_COUNT)
		return;
	buf_add_ch(s->to, ' ');
	escape_xml(s->to, sv_from_str(count_name(s)));
}

static void add_tooltip(struct svg *s, uint32_t node)
{
	const struct tree_node *n = &s->t->nodes[node];
	struct sv module = intern_get(&s->r->names, n->module);
	buf_add_str(s->to, "<title>");
	escape_xml(s->to, intern_get(&s->r->names, n->name));
	if (module.n) {
		buf_add_str(s->to, " (");
		escape_xml(s->to, module);
		buf_add_ch(s->to, ')');
	}
	if (n->flags & TREE_INFERRED)
		buf_add_str(s->to, ", inferred from a tail call");
	buf_add_str(s->to, " \xe2\x80\x94 ");
	add_weight(s, n->total);
	buf_addf(s->to, ", %.2f %%", share_of(n->total, s->t->nodes[0].total));
	if (s->t->before && !s->t->is_normalised) {
		buf_add_str(s->to, "; before ");
		add_weight(s, s->t->before[node].total);
	} else if (s->t->before) {
		buf_addf(s->to, "; before %.2f %%",
			 share_of(s->t->before[node].total, s->t->before[0].total));
	}
	buf_add_str(s->to, "</title>");
}

static void add_thin(struct svg *s, const struct box *b, unsigned color, double y)
{
	struct buf *d = &s->thin[color];
	buf_add_ch(d, 'M');
	add_px(d, b->x);
	buf_add_ch(d, ' ');
	add_px(d, y);
	buf_add_ch(d, 'h');
	add_px(d, MAX(b->w, 0.3));
	buf_add_ch(d, 'v');
	add_px(d, s->row - 1);
	buf_add_ch(d, 'h');
	add_px(d, -MAX(b->w, 0.3));
	buf_add_ch(d, 'z');
}

static void add_boxes(struct svg *s)
{
	buf_add_str(s->to, "<g class=\"flame\">\n");
	vec_foreach(b, &s->boxes) {
		unsigned color = box_color(s, b->node);
		double y = row_y(s, s->t->nodes[b->node].depth);
		s->is_used[color] = true;
		if (b->w < THIN_PX) {
			add_thin(s, b, color, y);
			continue;
		}
		buf_addf(s->to, "<rect class=\"c%u\"", color);
		add_coord(s->to, "x", b->x);
		add_coord(s->to, "y", y);
		add_coord(s->to, "width", b->w - 0.6);
		add_coord(s->to, "height", s->row - 1);
		buf_add_str(s->to, b->w > 8 ? " rx=\"2\">" : ">");
		add_tooltip(s, b->node);
		buf_add_str(s->to, "</rect>\n");
	}
	for (unsigned c = 0; c < PALETTE_COLORS_MAX; c++) {
		if (!s->thin[c].n)
			continue;
		buf_addf(s->to, "<path class=\"c%u\" d=\"", c);
		buf_add_sv(s->to, buf_sv(&s->thin[c]));
		buf_add_str(s->to, "\"/>\n");
	}
	buf_add_str(s->to, "</g>\n");
}

static void add_labels(struct svg *s)
{
	CLEANUP(buf_release) struct buf label = {0};
	buf_add_str(s->to, "<g class=\"labels\">\n");
	vec_foreach(b, &s->boxes) {
		const struct tree_node *n = &s->t->nodes[b->node];
		buf_clear(&label);
		flame_label(&label, intern_get(&s->r->names, n->name), b->w - 7, s->font);
		if (!label.n)
			continue;
		buf_add_str(s->to, "<text");
		add_coord(s->to, "x", b->x + 3.5);
		add_coord(s->to, "y", row_y(s, n->depth) + (s->row - 1) / 2 + s->font * 0.35);
		buf_add_ch(s->to, '>');
		escape_xml(s->to, buf_sv(&label));
		buf_add_str(s->to, "</text>\n");
	}
	buf_add_str(s->to, "</g>\n");
}

/* ---- legend ------------------------------------------------------------------------------- */

#define LEGEND_ROW_PX 18.0

struct legend {
	struct svg *s;
	double x;
	double y;
};

static void add_swatch(struct legend *l, unsigned color, const char *text)
{
	struct svg *s = l->s;
	double w = 15 + flame_text_px(sv_from_str(text), 11) + 16;
	if (l->x + w > s->width - PAD_PX && l->x > PAD_PX) {
		l->x = PAD_PX;
		l->y += LEGEND_ROW_PX;
	}
	buf_addf(s->to, "<rect class=\"c%u\"", color);
	add_coord(s->to, "y", l->y);
	buf_add_str(s->to, " width=\"10\" height=\"10\"");
	add_coord(s->to, "x", l->x);
	buf_add_str(s->to, " rx=\"2\"/><text");
	add_coord(s->to, "y", l->y + 9);
	add_coord(s->to, "x", l->x + 15);
	buf_addf(s->to, ">%s</text>\n", text);
	l->x += w;
}

static void add_delta_swatches(struct legend *l)
{
	struct svg *s = l->s;
	bool is_negated = s->o->flags & SVG_NEGATE;
	unsigned less = palette_delta(is_negated ? 1 : -1);
	unsigned more = palette_delta(is_negated ? -1 : 1);
	unsigned same = palette_delta(0);
	s->is_used[less] = s->is_used[more] = s->is_used[same] = true;
	add_swatch(l, more, "more than before");
	add_swatch(l, less, "less than before");
	add_swatch(l, same, "no change beyond chance");
}

/* One swatch per meaning, in the first of its colours that is used, wrapped into rows. */
static void add_legend(struct svg *s)
{
	const char *seen = NULL;
	struct legend l = {s, PAD_PX, 10};
	buf_add_str(s->to, "<g class=\"legend\" transform=\"translate(0,");
	add_px(s->to, s->bottom);
	buf_add_str(s->to, ")\">\n");
	if (s->t->is_differential)
		add_delta_swatches(&l);
	for (unsigned c = 0; c < PALETTE_COLORS_MAX && !s->t->is_differential; c++) {
		const char *text = s->is_used[c] ? palette_meaning(s->palette, c) : NULL;
		if (!text || (seen && !strcmp(seen, text)))
			continue;
		seen = text;
		add_swatch(&l, c, text);
	}
	s->foot = FOOT_PX + l.y - 10;
	buf_add_str(s->to, "</g>\n");
}

/* ---- data and script ---------------------------------------------------------------------- */

#define DATA_CHUNK ((size_t)3 << 20) /* XML readers limit a text node to 10 MB */

static void add_settings(struct svg *s)
{
	const struct svg_options *o = s->o;
	add_coord(s->to, "data-row", s->row);
	add_coord(s->to, "data-font", s->font);
	add_coord(s->to, "data-min", s->min_width);
	if (o->min_width_pct > 0)
		buf_addf(s->to, " data-min-pct=\"%s\"", num_double(o->min_width_pct, 6).s);
	if (o->factor > 0)
		buf_addf(s->to, " data-factor=\"%s\"", num_double(o->factor, 9).s);
	add_coord(s->to, "data-top", s->top);
	add_coord(s->to, "data-pad", PAD_PX);
	add_coord(s->to, "data-foot", s->foot);
	add_coord(s->to, "data-thin", THIN_PX);
	buf_addf(s->to, " data-fluid=\"%d\" data-inverted=\"%d\" data-negate=\"%d\"", !o->width_px,
		 !!(o->flags & SVG_INVERTED), !!(o->flags & SVG_NEGATE));
	buf_addf(s->to, " data-unit=\"%d\"", (int)s->t->unit);
	add_attr(s->to, "data-count", count_name(s));
	add_attr(s->to, "data-type", o->name_type ? o->name_type : "");
}

static void add_data(struct svg *s)
{
	CLEANUP(buf_release) struct buf packed = {0};
	CLEANUP(buf_release) struct buf z = {0};
	flame_pack(&packed, &s->f);
	bool is_zipped = !zio_compress_embedded(&z, packed.p, packed.n, NULL);
	struct sv data = buf_sv(is_zipped ? &z : &packed);
	while (data.n) {
		struct sv part = sv_from(data.p, MIN(data.n, DATA_CHUNK));
		buf_add_str(s->to, "<metadata class=\"tree\">");
		base64_add(s->to, part);
		buf_add_str(s->to, "</metadata>\n");
		data = sv_from_idx(data, part.n);
	}
	if (s->o->flags & SVG_NO_SCRIPT)
		return;
	buf_add_str(s->to, "<script><![CDATA[\n(function () {\n'use strict';\n");
	buf_add_sv(s->to, asset_unpack_js());
	buf_add_sv(s->to, asset_names_js());
	buf_add_sv(s->to, asset_flame_js());
	buf_add_str(s->to, "})();\n]]></script>\n");
}

static void add_all_used(struct svg *s)
{
	for (uint32_t i = 0; i < s->f.nr_symbols && !s->t->is_differential; i++)
		s->is_used[s->f.symbols[i].color] = true;
	for (unsigned i = 0; i < PALETTE_DELTA_NR && s->t->is_differential; i++)
		s->is_used[i] = true;
}

static void set_up(struct svg *s)
{
	const struct svg_options *o = s->o;
	s->width = o->width_px ? MIN(MAX(o->width_px, SVG_WIDTH_MIN), SVG_WIDTH_MAX) : STATIC_PX;
	s->font = o->font_px > 0 ? MIN(o->font_px, 100) : 12;
	s->row = o->row_px ? MIN(o->row_px, 200) : s->font > 13 ? (unsigned)(s->font * 1.42) : 17;
	s->min_width = o->min_width_px >= 0 ? o->min_width_px : 0.3;
}

static void add_root_element(struct svg *s, double height)
{
	CLEANUP(buf_release) struct buf font = {0};
	buf_add_str(s->to, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
			   "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\""
			   " class=\"assay-flame\"");
	add_coord(s->to, "width", s->width);
	add_coord(s->to, "height", height);
	buf_add_str(s->to, " viewBox=\"0 0 ");
	add_px(s->to, s->width);
	buf_add_ch(s->to, ' ');
	add_px(s->to, height);
	buf_addf(s->to, "\" font-size=\"");
	add_px(s->to, s->font);
	buf_add_ch(s->to, '"');
	if (s->o->font)
		buf_addf(&font, "%s, ", s->o->font);
	buf_add_str(&font, FONT_FAMILY);
	add_attr(s->to, "font-family", buf_str(&font));
	add_settings(s);
	buf_add_str(s->to, ">\n");
}

static enum palette palette_of(const char *name)
{
	int p = name ? palette_from_name(name) : PALETTE_DEFAULT;
	return p < 0 ? PALETTE_DEFAULT : (enum palette)p;
}

void svg_write(struct buf *to, const struct report *r, const struct report_tree *t,
	       const struct svg_options *o)
{
	CLEANUP(buf_release) struct buf head = {0};
	CLEANUP(buf_release) struct buf body = {0};
	struct svg s = {.to = &head, .r = r, .t = t, .o = o, .foot = FOOT_PX};
	set_up(&s);
	s.palette = palette_of(o->palette ? o->palette : t->palette);
	flame_init(&s.f, r, t, s.palette);
	lay_out(&s);
	buf_add_str(&head, "<g class=\"head\">\n");
	s.top = add_header(&s);
	buf_add_str(&head, "</g>\n");
	s.bottom = s.top + (s.max_depth + 1) * s.row;
	s.to = &body;
	add_boxes(&s);
	add_labels(&s);

	if (!(o->flags & SVG_STATIC))
		add_all_used(&s);
	add_legend(&s);

	s.to = to;
	double height = s.bottom + s.foot;
	add_root_element(&s, height);
	const char *title = o->title ? o->title : *r->title ? r->title : "Flame graph";
	buf_add_str(to, "<title>");
	escape_xml(to, sv_from_str(title));
	buf_add_str(to, "</title>\n");
	add_style(&s);
	buf_add_str(to, "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
	buf_add_sv(to, buf_sv(&head));
	buf_add_sv(to, buf_sv(&body));
	if (!(o->flags & SVG_STATIC))
		add_data(&s);
	buf_add_str(to, "</svg>\n");

	for (size_t i = 0; i < PALETTE_COLORS_MAX; i++)
		buf_release(&s.thin[i]);
	vec_release(&s.boxes);
	flame_release(&s.f);
}
