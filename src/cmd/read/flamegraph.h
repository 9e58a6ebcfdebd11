/* Pictures as files: what `assay flame` and the capture commands share. */
#ifndef ASSAY_CMD_READ_FLAMEGRAPH_H
#define ASSAY_CMD_READ_FLAMEGRAPH_H

#include "analyze/stacks/picture.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "render/svg.h"

/* A flame graph; @svg NULL: as they look by default. Errors as picture_make. */
int flamegraph_svg(struct buf *to, const struct picture *pic, const struct svg_options *svg,
		   struct err *err);
/* The same to a file, whole or not at all. */
int flamegraph_write(const char *path, const struct picture *pic, const struct svg_options *svg,
		     struct err *err);
/* The same tree as folded stacks, weights as in the picture. */
int flamegraph_folded(struct buf *to, const struct picture *pic, struct err *err);

#endif
