/*
 * The data block of the HTML page, as bytes before compression. The page's script reads it
 * (assets/page/data.js).
 *
 *	text  "assay-page-1\n"
 *	uleb  bytes of the header, then the header: JSON, see docs/formats/report-html.md
 *	uleb  bytes of the tree, then the tree: every stack (render/flame.h), self weights 0
 *	for each stream of the header, its columns in this order, those that it has; each preceded by
 *	its length in bytes as uleb, with one uleb a row, or one for all rows if they are equal:
 *	      time   difference to the row before, ms
 *	      length of the time that the row is a sum over, ms; 0: an instant
 *	      node   index in the tree
 *	      thread index in the header's threads
 *	      count
 *	      weight
 *	      state  index in the header's states
 *	      log2   1 + floor(log2(ns)) of the waits, 0: not known
 *	      object index in the header's texts
 *	      waker  index in the header's texts
 */
#ifndef ASSAY_RENDER_PAGE_PAGEPACK_H
#define ASSAY_RENDER_PAGE_PAGEPACK_H

#include "analyze/page/pagedata.h"
#include "base/base.h"
#include "base/buf.h"

#define PAGE_MAGIC "assay-page-1\n"

void pagepack_write(struct buf *to, const struct page *page);

#endif
