/*
 * Writes a page as one self-contained HTML file: time axis, flame graph, tables, details, in any
 * browser of the last years, from file:// or in a sandboxed frame. The file refers to no other file
 * and its content security policy allows no request. Without a script it shows the first page's text
 * and a static flame graph.
 *
 *	style, header and text (static) -> data block (pagepack.h; gzip, base64) -> script
 *
 * Scripts and styles are those of assets/page/, joined at build time. The same page gives the same
 * bytes with the same build on the same processor (zio.h: how large data are compressed).
 */
#ifndef ASSAY_RENDER_PAGE_PAGEHTML_H
#define ASSAY_RENDER_PAGE_PAGEHTML_H

#include "analyze/page/pagedata.h"
#include "base/base.h"
#include "base/buf.h"

/* Made one by one, so that threads can share the work. */
struct pagehtml_parts {
	struct sv text;      /* the first page as text, for browsers without scripts */
	struct sv picture;   /* a static SVG, for the same; empty: none */
	struct sv data;      /* of the script: pagehtml_add_data */
	struct sv recording; /* pagehtml_add_recording */
};

/* @input: name of the recording, for commands on the page; NULL: not known. */
void pagehtml_add_data(struct buf *to, const struct page *page, const char *input);
/* What makes the page a recording (format/page/pagefile.h); its own script does not read it. */
void pagehtml_add_recording(struct buf *to, struct sv recording, struct sv rows);
void pagehtml_write(struct buf *to, const struct page *page, const struct pagehtml_parts *parts);

#endif
