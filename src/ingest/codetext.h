/*
 * Disassembles functions of a profile: opens their binaries by path, used only if the build-id (else
 * the inode) is the recorded one, finds where each function begins and ends (symbol tables, else
 * .eh_frame) and names the targets of its calls.
 *
 * A function of which only a part fits CODETEXT_BYTES_MAX is cut before the limit.
 */
#ifndef ASSAY_INGEST_CODETEXT_H
#define ASSAY_INGEST_CODETEXT_H

#include "base/base.h"
#include "ingest/file_access.h"
#include "model/code.h"

#define CODETEXT_BYTES_MAX ((uint64_t)1 << 18)

/* Fills what @f is asked for. Texts and instructions live in the arena. */
void codetext_read(struct arena *a, const struct profile *p, const struct file_access *files,
		   struct code_function *f, size_t n);

#endif
