/*
 * Text for a file, pipe or socket as the BPF programs report it (struct kernel_file): the path of a
 * file, the address of a connection. The bytes are untrusted: any length or content gives some
 * text.
 */
#ifndef ASSAY_CAPTURE_BPF_FILENAME_H
#define ASSAY_CAPTURE_BPF_FILENAME_H

#include "base/base.h"
#include "base/buf.h"
#include "kernel_io.h"

/*
 * Appends the text:
 *
 *	/var/lib/db/data.mdb, /tmp/x (deleted), pipe:[4711], [eventfd], unix /run/x.sock
 *	tcp 10.0.0.5:5432          the remote side is the service
 *	tcp :6379 from 10.0.0.7    this process is the service
 */
void filename_add(struct buf *to, const struct kernel_file *r);

#endif
