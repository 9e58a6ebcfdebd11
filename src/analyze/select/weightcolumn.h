/*
 * Which column of a profile's tables views weigh by: of an event with several (calls, bytes, time)
 * the user may want another than the one that it comes with.
 */
#ifndef ASSAY_ANALYZE_SELECT_WEIGHTCOLUMN_H
#define ASSAY_ANALYZE_SELECT_WEIGHTCOLUMN_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

/*
 * Makes @column the weight of the table that @event names, with NULL of each table that has it.
 * To be called before any selection. -EINVAL: no such column, or one that cannot be added up; the
 * hint lists those that can. -ENOENT: no such event.
 */
int weightcolumn_set(struct profile *p, const char *event, const char *column, struct err *err);

#endif
