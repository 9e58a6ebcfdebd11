/* The HTML page of a profile; see htmlpage.h. */
#include "base/base.h"
#include "cmd/read/htmlpage.h"

#include "analyze/page/pagedata.h"
#include "cmd/hints.h"
#include "cmd/read/flamegraph.h"
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

int htmlpage_make(struct buf *to, const struct profile *p, const char *input, struct err *err)
{
	struct page page;
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf picture = {0};
	if (profile_get_fact(p, FACT_REDACTED)) /* the name of the file, too */
		input = NULL;
	TRY(page_make(&page, p, input, err));
	text_render(&text, page.first,
		    &(struct text_style){.has_details = true, .add_hint = hint_add_words});
	add_picture(&picture, p, input);
	pagehtml_write(to, &page,
		       &(struct pagehtml_options){
			       .input = input, .text = buf_sv(&text), .picture = buf_sv(&picture)});
	page_release(&page);
	return 0;
}
