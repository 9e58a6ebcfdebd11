/*
 * Renders flame graphs as SVG or folded stacks, for `assay flame` and the capture commands.
 *
 *	CLEANUP(picture_release) struct picture pic = {.spec = spec};
 *	picture_add(&pic, profile, path);
 *	if (flamegraph_write("a.svg", &pic, NULL, &err)) ...
 *
 * Errors are those of picture_make (analyze/stacks/picture.h); -ENODATA: nothing to draw.
 */
#ifndef ASSAY_CMD_READ_FLAMEGRAPH_H
#define ASSAY_CMD_READ_FLAMEGRAPH_H

#include "analyze/stacks/picture.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "render/svg.h"

/* Appends the SVG document. @svg: appearance, NULL = the default. */
int flamegraph_svg(struct buf *to, const struct picture *pic, const struct svg_options *svg,
		   struct err *err);
/* Writes the SVG document to a file, whole or not at all. */
int flamegraph_write(const char *path, const struct picture *pic, const struct svg_options *svg,
		     struct err *err);
/* Appends the same stacks and weights as folded stacks. */
int flamegraph_folded(struct buf *to, const struct picture *pic, struct err *err);

#endif
