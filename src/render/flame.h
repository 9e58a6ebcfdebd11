/*
 * What flame graphs in SVG and HTML share: widths, labels, and the compact form of a whole tree
 * that a page's script reads.
 *
 * The packed tree holds every node, drawn or not, so that a page can search and zoom exactly:
 *
 *	uleb  version (1), flags (enum flame_pack_flags)
 *	uleb  number of names, modules, symbols, nodes
 *	text  bytes as uleb, then the names and the modules, each ended by "\n", made safe like XML
 *	      text: valid UTF-8, control bytes as \xNN
 *	symbols, each: uleb name, uleb module, uleb tree_flags, uleb colour
 *	four columns over the nodes in preorder, each with its bytes as uleb before it:
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
	FLAME_PACK_BIG = 1 << 3, /* numbers beyond 2^53 */
};

/* Distinct (name, module, flags) of a tree and the colour of each. In the report's arena. */
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
	uint32_t *symbol; /* by node */
	uint64_t *width;  /* by node: what its width stands for; the total, unless differential */
	double max_delta; /* largest |delta| of a node below the root */
};

/*
 * Symbols, colours and widths of a tree. Widths of a differential tree: self is the larger of
 * before and now, so that what vanished is still seen, and the parts fit into the whole.
 */
void flame_init(struct flame *f, const struct report *r, const struct report_tree *t,
		enum palette palette);
void flame_release(struct flame *f);

/* A node's change over the largest change in the picture, -1..1. */
double flame_delta_share(const struct flame *f, uint32_t node);

void flame_pack(struct buf *to, const struct flame *f);

/*
 * The name as it fits into @avail_px, or nothing: whole, without template and call arguments, its
 * last part, that part cut. Widths are those of a wide sans-serif font, so text never overflows.
 */
void flame_label(struct buf *to, struct sv name, double avail_px, double font_px);
double flame_text_px(struct sv text, double font_px);

#endif
