/* Appends bytes as base64 (RFC 4648) with padding, for data in SVG and HTML files. */
#ifndef ASSAY_RENDER_BASE64_H
#define ASSAY_RENDER_BASE64_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

void base64_add(struct buf *to, struct sv s);

#endif
