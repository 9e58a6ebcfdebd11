/* Writes the chart of memory over time; see memchart.h. */
#include "base/base.h"
#include "cmd/read/memchart.h"

#include <errno.h>

#include "analyze/memory/timeline.h"
#include "base/file/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "render/chart.h"

#define SUFFIX ".memory.svg"

static int draw(struct buf *to, const struct profile *p, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct chart c;
	TRY(memtime_chart(&a, p, NULL, &c, err));
	chart_write(to, &c);
	return 0;
}

int memchart_file(const char *path, const struct profile *p, struct err *err)
{
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(out_release) struct out out = {.fd = -1};
	TRY(draw(&svg, p, err));
	TRY(out_open(&out, path, 0644, err));
	TRY(out_write(&out, svg.p, svg.n, err));
	return out_commit(&out, err);
}

int memchart_output(const struct outputs *o, const struct profile *p)
{
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = draw(&svg, p, &err);
	if (rc == -ENODATA)
		return EXIT_OK;
	if (rc) {
		log_err(&err);
		return EXIT_FAILED;
	}
	int status = outputs_write(o, SUFFIX, &svg);
	if (status == EXIT_OK) {
		CLEANUP(free_p) char *path = store_path(&o->place, SUFFIX);
		log_note("chart:       %s (memory over time)", path);
	}
	return status;
}
