/* The renderers of reports; see renderers.h. */
#include "base/base.h"
#include "render/renderers.h"

#include "render/jsonout.h"
#include "render/markdown.h"

/* One row per renderer, with its option. Without an option the renderer is text. */
enum { TEXT, JSON, MARKDOWN };

static void render_json(struct buf *to, const struct report *r, const struct text_style *style)
{
	(void)style; /* readers of JSON get everything */
	jsonout_render(to, r);
}

static void (*const renderers[])(struct buf *to, const struct report *r,
				 const struct text_style *style) = {
	[TEXT] = text_render,
	[JSON] = render_json,
	[MARKDOWN] = markdown_render,
};

static const struct opt options[] = {
	OPT_SET('j', "json", struct renderer_choice, idx, JSON,
		"print JSON; its schema is in docs/formats/report-json.md"),
	OPT_SET(0, "md", struct renderer_choice, idx, MARKDOWN,
		"print Markdown, for an issue or a pull request"),
	OPT_END,
};
const struct opt_group renderer_group = {"Format of the report (default: text)", options};

void renderer_render(const struct renderer_choice *choice, struct buf *to, const struct report *r,
		     const struct text_style *style)
{
	ASSERT((size_t)choice->idx < ARRAY_LEN(renderers));
	renderers[choice->idx](to, r, style);
}
