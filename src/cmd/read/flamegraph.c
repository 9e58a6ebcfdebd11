/* Renders flame graphs; see flamegraph.h. */
#include "base/base.h"
#include "cmd/read/flamegraph.h"

#include "base/file/file.h"
#include "render/foldedtree.h"

int flamegraph_svg(struct buf *to, const struct picture *pic, const struct svg_options *svg,
		   struct err *err)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct picture wide = *pic;
	const struct report_tree *t;
	wide.total = svg ? svg->total : 0;
	TRY(picture_make(r, &wide, &t, err));
	svg_write(to, r, t, svg ? svg : &(struct svg_options){.min_width_px = -1});
	return 0;
}

int flamegraph_write(const char *path, const struct picture *pic, const struct svg_options *svg,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	TRY(flamegraph_svg(&text, pic, svg, err));
	return out_file(path, 0644, &text, err);
}

int flamegraph_folded(struct buf *to, const struct picture *pic, struct err *err)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct report_tree *t;
	TRY(picture_make(r, pic, &t, err));
	foldedtree_write(to, r, t);
	return 0;
}
