/*
 * Writes a page as one self-contained HTML file: time axis, flame graph, tables, details, in any
 * browser of the last years, from file:// or in a sandboxed frame. The file refers to no other file
 * and its content security policy allows no request. Without a script it shows the first page's text
 * and a static flame graph.
 *
 *	style, header and text (static) -> data block (pagepack.h; gzip, base64) -> script
 *
 * Scripts and styles are those of assets/page/, joined at build time. The same page gives the same
 * bytes.
 */
#ifndef ASSAY_RENDER_PAGE_PAGEHTML_H
#define ASSAY_RENDER_PAGE_PAGEHTML_H

#include "analyze/page/pagedata.h"
#include "base/base.h"
#include "base/buf.h"

struct pagehtml_options {
	const char *input;   /* name of the recording, for commands on the page */
	struct sv text;      /* the first page as text, for browsers without scripts */
	struct sv recording; /* blocks of the page as a recording (format/page/pagefile.h) */
	struct sv rows;
	struct sv picture; /* a static SVG, for the same; empty: none */
};

void pagehtml_write(struct buf *to, const struct page *page,
		    const struct pagehtml_options *options);

#endif
