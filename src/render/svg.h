/*
 * Writes flame graphs as one self-contained SVG file. Without a script it has a header with losses,
 * frames, labels and tooltips. The embedded script adds zoom, exact search, keyboard navigation and
 * a details line. It works on the packed tree (flame.h), which also contains the frames that are
 * too narrow to draw.
 *
 * The same report and options give the same bytes, as far as zio_compress_embedded does. Nothing in
 * the file refers to another file.
 */
#ifndef ASSAY_RENDER_SVG_H
#define ASSAY_RENDER_SVG_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/palette.h"

enum svg_flags {
	SVG_INVERTED = 1 << 0,  /* icicle: root at the top */
	SVG_NEGATE = 1 << 1,    /* differential: swap the two hues */
	SVG_STATIC = 1 << 2,    /* no script, no packed tree */
	SVG_NO_SCRIPT = 1 << 3, /* the packed tree for a script of the page that will contain it */
};

#define SVG_WIDTH_MIN 300
#define SVG_WIDTH_MAX 20000

struct svg_options {
	const char *title;      /* NULL: the report's */
	const char *subtitle;   /* NULL: target, event, duration, samples */
	const char *notes;      /* NULL = none */
	const char *count_name; /* NULL: the tree's */
	const char *name_type;  /* "Function:" before names in details; NULL = none */
	const char *font;       /* CSS family; NULL: the system's sans-serif */
	const char *background; /* see palette_background; NULL: white, dark where preferred */
	double font_px;         /* 0 = 12 */
	double min_width_px;    /* frames narrower than this are not drawn; negative = 0.3 */
	double min_width_pct;   /* the same in per cent of the whole width; 0: min_width_px */
	double factor;          /* numbers are shown multiplied by this; 0 = 1 */
	uint64_t total;     /* weight of 100 %, if that is more than the tree has; 0: the tree's */
	const char *match;  /* "#rrggbb", colour of frames that a search finds; NULL = magenta */
	const char *stroke; /* "#rrggbb", lines around frames; NULL = none */
	const char *ui;    /* "#rrggbb", text beside the frames, buttons; NULL: by the background */
	unsigned width_px; /* 0: as wide as the window */
	unsigned row_px;   /* height of a frame; 0 = 17 */
	unsigned flags;    /* enum svg_flags */
	const char *palette; /* see palette_names; NULL: the tree's */
};

void svg_write(struct buf *to, const struct report *r, const struct report_tree *t,
	       const struct svg_options *options);

#endif
