/* Who had the memory when the kernel killed: the largest functions of a profile's live blocks. */
#ifndef ASSAY_CMD_LIMIT_LIVE_H
#define ASSAY_CMD_LIMIT_LIVE_H

#include "base/base.h"
#include "base/buf.h"
#include "model/profile.h"

/* "; largest allocators: parse 1.20 GiB (70 %), ..." appended; nothing without such a table. */
void limit_live_add(struct buf *to, const struct profile *p);

#endif
