/*
 * The common part of flame graphs in SVG and HTML: widths, labels, and the packed form of the whole
 * tree that a page's script reads.
 *
 * The packed tree contains every node, drawn or not, so that search and zoom are exact:
 *
 *	uleb  version (1), flags (enum flame_pack_flags)
 *	uleb  number of names, modules, symbols, nodes
 *	text  its length in bytes as uleb, then the names and the modules, each ended by "\n"; valid
 *	      UTF-8, control bytes as \xNN
 *	symbols, each: uleb name, uleb module, uleb tree_flags, uleb colour
 *	four columns over the nodes in preorder, each preceded by its length in bytes as uleb:
 *	      levels to go up from the previous node before adding a child (root: 0)
 *	      symbol
 *	      self weight
 *	      self weight of "before" (empty unless differential)
 *
 * uleb: little-endian base 128. Symbols are sorted by use, so most of them take one byte.
 */
#ifndef ASSAY_RENDER_FLAME_H
#define ASSAY_RENDER_FLAME_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "render/palette.h"

enum flame_pack_flags {
	FLAME_PACK_DIFFERENTIAL = 1 << 0,
	FLAME_PACK_NORMALISED = 1 << 1,
	FLAME_PACK_REVERSED = 1 << 2,
	FLAME_PACK_BIG = 1 << 3, /* has numbers above 2^53 */
};

/* A distinct (name, module, flags) of a tree, and its colour. */
struct flame_symbol {
	str_id name;
	str_id module;
	uint32_t flags;
	uint32_t color;
	uint32_t nr_nodes;
};

struct flame {
	const struct report *r;
	const struct report_tree *t;
	struct flame_symbol *symbols; /* most used first */
	uint32_t nr_symbols;
	uint32_t *symbol; /* of each node */
	uint64_t *width;  /* of each node, in units of weight; its total, unless differential */
	double max_delta; /* largest |delta| of a node below the root */
};

/*
 * Computes symbols, colours and widths of a tree. In a differential tree the self width is the
 * larger of before and after, so that functions that are gone remain visible and children fit into
 * parents.
 */
void flame_init(struct flame *f, const struct report *r, const struct report_tree *t,
		enum palette palette);
void flame_release(struct flame *f);

/* Returns a node's change relative to the largest change in the graph, -1..1. */
double flame_delta_share(const struct flame *f, uint32_t node);

/* Appends the packed tree. */
void flame_pack(struct buf *to, const struct flame *f);

/*
 * Appends the longest form of a name that fits into @avail_px (base/text/shortname.h), the shortest one
 * truncated, or nothing. Widths are those of a wide sans-serif font, so text does not overflow.
 */
void flame_label(struct buf *to, struct sv name, double avail_px, double font_px);
double flame_text_px(struct sv text, double font_px);

#endif
