/*
 * The data block of the HTML page, as bytes before compression. The page's script reads it
 * (assets/page/data.js).
 *
 *	text  "assay-page-2\n"
 *	uleb  bytes of the header, then the header: JSON, see docs/formats/report-html.md
 *	uleb  bytes of the tree, then the tree: every stack (render/flame.h), self weights 0
 *	for each stream of the header, its columns in this order, those that it has; each preceded by
 *	its length in bytes as uleb, with one uleb a row, or one for all rows if they are equal:
 *	      time   difference to the row before, ms
 *	      length of the time that the row is a sum over, ms; 0: an instant
 *	      node   of other form: as uleb the number of nodes that rows have; these, the most
 *	             frequent first, as zigzag differences; then the indexes of all rows in this
 *	             table, their lowest bytes first, then the next ones. As many bytes an index as
 *	             the last one needs; none: all rows have the same node
 *	      thread index in the header's threads
 *	      count
 *	      weight
 *	      state  index in the header's states
 *	      log2   1 + floor(log2(ns)) of the waits, 0: not known
 *	      object index in the header's texts
 *	      waker  index in the header's texts
 *	      shape  how the waits were spread over the row's second: 0 not known, 1 as the row before,
 *	             2 as the next of the shapes
 *	after the streams with states, the shapes, of which each divides a second into 100 bins:
 *	      rest   weight that is spread evenly over the second
 *	      bins   number of bins that have a weight of their own
 *	      bin    of those of all shapes: difference to the one before, of the first its number
 *	      weight of these bins; only the ratios within a shape mean something
 *	after all streams, of each that has_places one more column:
 *	      place  instruction at the leaf, as the block of assembly numbers them; 0: none of it
 */
#ifndef ASSAY_RENDER_PAGE_PAGEPACK_H
#define ASSAY_RENDER_PAGE_PAGEPACK_H

#include "analyze/page/pagedata.h"
#include "base/base.h"
#include "base/buf.h"

#define PAGE_MAGIC "assay-page-2\n"

void pagepack_write(struct buf *to, const struct page *page);

#endif
