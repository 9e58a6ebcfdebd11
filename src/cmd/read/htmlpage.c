/* The HTML page of a profile; see htmlpage.h. */
#include "base/base.h"
#include "cmd/read/htmlpage.h"

#include "analyze/page/pagedata.h"
#include "cmd/hints.h"
#include "base/file/file.h"
#include "base/vec.h"
#include "cmd/read/flamegraph.h"
#include "format/page/pagefile.h"
#include "render/page/pagehtml.h"
#include "render/text.h"

/* The default flame graph, for browsers without scripts; empty if there is nothing to draw. */
static void add_picture(struct buf *to, const struct profile *p, const char *input)
{
	CLEANUP(picture_release) struct picture pic = {0};
	const struct svg_options svg = {.min_width_px = 1, .flags = SVG_STATIC | SVG_INVERTED};
	picture_add(&pic, p, input ? input : "profile");
	if (flamegraph_svg(to, &pic, &svg, NULL))
		buf_clear(to);
}

static int add_recording(struct buf *recording, struct buf *rows, const struct profile *p,
			 const struct page *page, const char *input, struct err *err)
{
	VEC(struct pagefile_stream) streams = {0};
	vec_foreach(s, &page->streams)
		vec_push(&streams, (struct pagefile_stream){.n = s->n,
							    .table = s->table,
							    .source = s->source,
							    .time_ms = s->time_ms,
							    .node = s->node,
							    .thread = s->thread,
							    .count = s->count,
							    .weight = s->weight,
							    .state = s->state,
							    .log2_ns = s->log2_ns,
							    .object = s->object,
							    .waker = s->waker});
	int rc = pagefile_make(recording, rows, p, streams.p, streams.n, page->start_ns,
			       input ? path_base(input) : NULL, err);
	vec_release(&streams);
	return rc;
}

int htmlpage_make(struct buf *to, const struct profile *p, const char *input,
		  const struct code_access *code, struct err *err)
{
	struct page page;
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf picture = {0};
	CLEANUP(buf_release) struct buf recording = {0};
	CLEANUP(buf_release) struct buf rows = {0};
	if (profile_get_fact(p, FACT_REDACTED)) /* the name of the file, too */
		input = NULL;
	TRY(page_make(&page, p, input, code, err));
	text_render(&text, page.first,
		    &(struct text_style){.has_details = true, .add_hint = hint_add_words});
	add_picture(&picture, p, input);
	int rc = add_recording(&recording, &rows, p, &page, input, err);
	if (!rc)
		pagehtml_write(to, &page,
			       &(struct pagehtml_options){.input = input,
							  .text = buf_sv(&text),
							  .picture = buf_sv(&picture),
							  .recording = buf_sv(&recording),
							  .rows = buf_sv(&rows)});
	page_release(&page);
	return rc;
}
