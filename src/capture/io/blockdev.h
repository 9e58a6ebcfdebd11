/* Names of block devices. */
#ifndef ASSAY_CAPTURE_IO_BLOCKDEV_H
#define ASSAY_CAPTURE_IO_BLOCKDEV_H

#include "base/base.h"
#include "base/buf.h"

/* Appends the name ("vda1") of a kernel device number (major << 20 | minor), else "device 254:1". */
void blockdev_name(struct buf *to, uint32_t dev);

#endif
