/* What to type next (struct report_hint) as a command line. */
#ifndef ASSAY_CMD_HINTS_H
#define ASSAY_CMD_HINTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"

/* "assay flame 'my file' --event io", quoted for a shell; false if it cannot be typed. */
bool hint_add_words(struct buf *to, const struct report_hint *h);

#endif
