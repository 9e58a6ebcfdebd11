/* Base64 (RFC 4648) with padding, for data in SVG and HTML files. */
#ifndef ASSAY_BASE_TEXT_BASE64_H
#define ASSAY_BASE_TEXT_BASE64_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

/* Appends bytes as base64. */
void base64_add(struct buf *to, struct sv s);
/* Appends the bytes of a text. -EBADMSG: it is not base64. */
int base64_decode(struct buf *to, struct sv text, struct err *err);

#endif
