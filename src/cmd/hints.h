/* Converts hints of reports (struct report_hint) to command lines that can be typed. */
#ifndef ASSAY_CMD_HINTS_H
#define ASSAY_CMD_HINTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

/* Appends "assay flame 'my file' --event io", quoted. False: a word has control characters. */
bool hint_add_words(struct buf *to, const struct report_hint *h);

#endif
