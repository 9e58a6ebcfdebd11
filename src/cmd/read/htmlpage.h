/* Writes the HTML page of a profile (render/page/), for `assay view` and for captures. */
#ifndef ASSAY_CMD_READ_HTMLPAGE_H
#define ASSAY_CMD_READ_HTMLPAGE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/code.h"
#include "model/profile.h"

/*
 * @input: name of the recording, for the commands on the page. @code: opens binaries for the assembly
 * of hot functions, and source files. Errors as page_make.
 */
int htmlpage_make(struct buf *to, const struct profile *p, const char *input,
		  const struct code_access *code, struct err *err);

#endif
