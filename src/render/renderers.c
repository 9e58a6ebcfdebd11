/* The renderers of reports; see renderers.h. */
#include "base/base.h"
#include "render/renderers.h"

#include <unistd.h>

#include "base/process/term.h"
#include "base/sv.h"
#include "render/csvout.h"
#include "render/jsonout.h"
#include "render/markdown.h"

/* One row per renderer, with its option. Without an option the renderer is text. */
enum { TEXT, JSON, MARKDOWN, CSV };

static void render_json(struct buf *to, const struct report *r, const struct text_style *style)
{
	(void)style; /* readers of JSON get everything */
	jsonout_render(to, r);
}

static void render_csv(struct buf *to, const struct report *r, const struct text_style *style)
{
	(void)style;
	csvout_render(to, r);
}

static void (*const renderers[])(struct buf *to, const struct report *r,
				 const struct text_style *style) = {
	[TEXT] = text_render,
	[JSON] = render_json,
	[MARKDOWN] = markdown_render,
	[CSV] = render_csv,
};

static const struct opt options[] = {
	OPT_SET('j', "json", struct renderer_choice, idx, JSON,
		"print JSON; its schema is in docs/formats/report-json.md"),
	OPT_SET(0, "md", struct renderer_choice, idx, MARKDOWN,
		"print Markdown, for an issue or for a program that reads text"),
	OPT_SET(0, "csv", struct renderer_choice, idx, CSV,
		"print CSV: each table, with its key in the first column"),
	OPT_U64_IN(0, "rows", struct renderer_choice, rows, 1, 1000000, "N",
		   "rows of all tables together (default: what fits on 40 lines; --md: 40)"),
	OPT_FLAG(0, "details", struct renderer_choice, is_details,
		 "print all tables and notes, losses with their causes, how it was recorded"),
	OPT_U64_IN(0, "width", struct renderer_choice, width, 40, 10000, "N",
		   "columns of a line (default: the terminal's, $COLUMNS, or 120)"),
	OPT_FLAG(0, "wide", struct renderer_choice, is_wide,
		 "lines of any width, with whole names and all columns"),
	OPT_END,
};
const struct opt_group renderer_group = {"Format of the report (default: text)", options};

#define PAGE_LINES 40
#define PAGE_ROWS  40 /* of Markdown */
#define PIPE_WIDTH 120
#define LEAST      40 /* columns */

static unsigned width_of(const struct renderer_choice *choice, int fd)
{
	uint64_t columns;
	const char *env = getenv("COLUMNS");
	if (choice->is_wide)
		return 0;
	if (choice->width)
		return (unsigned)choice->width;
	if (env && sv_to_u64(sv_from_str(env), &columns) && columns && columns < 10000)
		return MAX((unsigned)columns, (unsigned)LEAST);
	return isatty(fd) ? MAX((unsigned)term_columns(fd), (unsigned)LEAST) : PIPE_WIDTH;
}

struct text_style renderer_style(const struct renderer_choice *choice, int fd)
{
	bool is_page = !choice->is_details && !choice->has_limit && !choice->rows;
	return (struct text_style){
		.width = width_of(choice, fd),
		.max_lines = is_page && choice->idx == TEXT ? PAGE_LINES : 0,
		.max_rows = choice->rows                         ? choice->rows
			    : is_page && choice->idx == MARKDOWN ? PAGE_ROWS
								 : 0,
		.has_details = choice->is_details,
	};
}

void renderer_render(const struct renderer_choice *choice, struct buf *to, const struct report *r,
		     const struct text_style *style)
{
	ASSERT((size_t)choice->idx < ARRAY_LEN(renderers));
	renderers[choice->idx](to, r, style);
}
