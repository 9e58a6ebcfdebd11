/*
 * Tables of a report, and the diagnosis, for the script of the page: cells are text already, with one unit a column
 * (render/cells.h), names whole.
 */
#ifndef ASSAY_RENDER_PAGE_PAGETABLES_H
#define ASSAY_RENDER_PAGE_PAGETABLES_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/text/json.h"

/*
 * Adds the array "tables", without empty ones: "title", "note", "columns" of [title, is a number, is prose, help],
 * "rows" of cells, "rows_total", "nr_sums": of the last rows are sums of the others.
 */
void pagetables_add(struct json *j, const struct report *r);
/*
 * Adds the object "diagnosis" of the report of diagnosis_report: "findings" of [sentence, rule, [title, text]...],
 * "notes".
 */
void pagetables_add_diagnosis(struct json *j, const struct report *r);

#endif
