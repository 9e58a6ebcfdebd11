/*
 * Names of files as the kernel's programs tell them (struct kernel_file): the path of a file,
 * the two ends of a connection. Foreign bytes: any length or content gives some name.
 */
#ifndef ASSAY_CAPTURE_BPF_FILENAME_H
#define ASSAY_CAPTURE_BPF_FILENAME_H

#include "base/base.h"
#include "base/buf.h"
#include "kernel_io.h"

/*
 * "/var/lib/db/data.mdb", "/tmp/x (deleted)", "pipe:[4711]", "[eventfd]", "tcp 10.0.0.5:5432" (the
 * other end is a service), "tcp :6379 from 10.0.0.7" (this end is), "unix /run/x.sock". Appended.
 */
void filename_add(struct buf *to, const struct kernel_file *r);

#endif
