/*
 * What each command may do here, from what was tried (host/features.h), why not, and the remedy;
 * and the least that each needs, which tests/e2e/rights_least.sh holds to be true.
 */
#ifndef ASSAY_CMD_DOCTOR_RIGHTS_H
#define ASSAY_CMD_DOCTOR_RIGHTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "host/features.h"

/*
 * Adds the tables, @has_least: also that of the least rights. True when every command works, if
 * only partly.
 */
bool doctor_add_rights(struct report *r, const struct features *f, bool has_least);
/* What was tried and how the kernel is set. */
void doctor_add_host(struct report *r, const struct features *f);

#endif
