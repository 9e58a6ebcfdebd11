/*
 * What each command may do here, from what was tried (host/features.h), why not, and the remedy;
 * and the least that each needs, which tests/e2e/rights_least.sh holds to be true.
 */
#ifndef ASSAY_ANALYZE_RIGHTSREPORT_H
#define ASSAY_ANALYZE_RIGHTSREPORT_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/rights.h"

/*
 * Adds the tables, @has_least: also that of the least rights. True when every command works, if
 * only partly.
 */
bool rights_report(struct report *r, const struct features *f, bool has_least);
/* What was tried and how the kernel is set. */
void rights_host_report(struct report *r, const struct features *f);

#endif
