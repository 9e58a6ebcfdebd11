/* The HTML page of a profile; see htmlpage.h. */
#include "base/base.h"
#include "cmd/read/htmlpage.h"

#include "analyze/page/pagedata.h"
#include "cmd/hints.h"
#include "base/file/file.h"
#include "base/process/work.h"
#include "base/vec.h"
#include "cmd/read/flamegraph.h"
#include "format/page/pagefile.h"
#include "render/page/pagehtml.h"
#include "render/text.h"

enum part { PART_DATA, PART_RECORDING, PART_PICTURE, PART_TEXT, PART_NR }; /* the longest first */

struct maker {
	const struct profile *p;
	const struct page *page;
	const char *input;
	struct buf parts[PART_NR];
	struct err err; /* of the recording */
	int rc;
};

static void maker_release(struct maker *m)
{
	for (size_t i = 0; i < PART_NR; i++)
		buf_release(&m->parts[i]);
	err_release(&m->err);
}

/* The default flame graph, for browsers without scripts; empty if there is nothing to draw. */
static void add_picture(struct buf *to, const struct profile *p, const char *input)
{
	CLEANUP(picture_release) struct picture pic = {0};
	const struct svg_options svg = {.min_width_px = 1, .flags = SVG_STATIC | SVG_INVERTED};
	picture_add(&pic, p, input ? input : "profile");
	if (flamegraph_svg(to, &pic, &svg, NULL))
		buf_clear(to);
}

/* For the same: the first page and what proves the findings of the diagnosis. */
static void add_text(struct buf *to, const struct page *page)
{
	text_render(to, page->first,
		    &(struct text_style){.has_details = true, .add_hint = hint_add_words});
	buf_add_str(to, "\n");
	text_render(to, page->diagnosis, &(struct text_style){0});
}

static int add_recording(struct buf *to, const struct maker *m, struct err *err)
{
	CLEANUP(buf_release) struct buf recording = {0};
	CLEANUP(buf_release) struct buf rows = {0};
	VEC(struct pagefile_stream) streams = {0};
	vec_foreach(s, &m->page->streams)
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
	int rc = pagefile_make(&recording, &rows, m->p, streams.p, streams.n, m->page->start_ns,
			       m->input ? path_base(m->input) : NULL, err);
	vec_release(&streams);
	if (!rc)
		pagehtml_add_recording(to, buf_sv(&recording), buf_sv(&rows));
	return rc;
}

static void make_part(void *ctx, size_t item, unsigned worker)
{
	struct maker *m = ctx;
	struct buf *to = &m->parts[item];
	(void)worker;
	switch ((enum part)item) {
	case PART_DATA:
		pagehtml_add_data(to, m->page, m->input);
		break;
	case PART_RECORDING:
		m->rc = add_recording(to, m, &m->err);
		break;
	case PART_PICTURE:
		add_picture(to, m->p, m->input);
		break;
	case PART_TEXT:
		add_text(to, m->page);
		break;
	case PART_NR:
		break;
	}
}

int htmlpage_make(struct buf *to, const struct profile *p, const char *input,
		  const struct code_access *code, struct err *err)
{
	struct page page;
	CLEANUP(work_free_p) struct work_pool *pool = work_new(0);
	if (profile_get_fact(p, FACT_REDACTED)) /* the name of the file, too */
		input = NULL;
	TRY(page_make(&page, p, input, code, pool, err));
	CLEANUP(maker_release) struct maker m = {.p = p, .page = &page, .input = input};
	work_run(pool, PART_NR, make_part, &m);
	if (!m.rc)
		pagehtml_write(to, &page,
			       &(struct pagehtml_parts){.text = buf_sv(&m.parts[PART_TEXT]),
							.picture = buf_sv(&m.parts[PART_PICTURE]),
							.data = buf_sv(&m.parts[PART_DATA]),
							.recording =
								buf_sv(&m.parts[PART_RECORDING])});
	page_release(&page);
	return m.rc ? err_move(err, &m.err) : 0;
}
