/*
 * Adds a column with the text of source lines to the tables of a report whose rows are lines
 * ("src/a.c:12"), of the lines that it can read.
 */
#ifndef ASSAY_ANALYZE_STACKS_SOURCETEXT_H
#define ASSAY_ANALYZE_STACKS_SOURCETEXT_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/code.h"

/* To all tables that the report has by now. */
void sourcetext_add(struct report *r, const struct code_access *code);

#endif
