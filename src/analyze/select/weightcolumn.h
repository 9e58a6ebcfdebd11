/*
 * Chooses the column that views use as weight, for events with several columns (calls, bytes,
 * time).
 */
#ifndef ASSAY_ANALYZE_SELECT_WEIGHTCOLUMN_H
#define ASSAY_ANALYZE_SELECT_WEIGHTCOLUMN_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

/*
 * Makes @column the weight of the table of @event; @event NULL: of each table that has the column.
 * Call before any selection. -EINVAL: no such column, or one that cannot be summed; the hint lists
 * the others. -ENOENT: no such event.
 */
int weightcolumn_set(struct profile *p, const char *event, const char *column, struct err *err);

#endif
