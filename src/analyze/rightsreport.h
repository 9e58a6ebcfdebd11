/*
 * Tables for `assay doctor`: what each command can do with the current privileges, from the tested
 * features (host/features.h), with reason and remedy; and the least privileges that each command
 * needs (checked by tests/e2e/product/minimal_capabilities.sh).
 */
#ifndef ASSAY_ANALYZE_RIGHTSREPORT_H
#define ASSAY_ANALYZE_RIGHTSREPORT_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/rights.h"

/*
 * Adds the tables; with @has_least also that of the least privileges. Returns true if every command
 * works at least partly.
 */
bool rights_report(struct report *r, const struct features *f, bool has_least);
/* Adds the table of tested features and kernel settings. */
void rights_host_report(struct report *r, const struct features *f);

#endif
