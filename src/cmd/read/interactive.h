/* The terminal view of `assay report`: its views and filters, as queries of a profile. */
#ifndef ASSAY_CMD_READ_INTERACTIVE_H
#define ASSAY_CMD_READ_INTERACTIVE_H

#include "analyze/query.h"
#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

/*
 * Shows the profile until the user quits. @query: with the filters of the command line; @name: of the
 * file. Error: the terminal cannot show it; nothing was shown.
 */
int interactive_run(const struct profile *p, const struct query *query, const char *name,
		    struct err *err);

#endif
