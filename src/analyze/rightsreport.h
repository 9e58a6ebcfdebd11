/*
 * Tables for `assay doctor`: what each command can do with the current privileges, from the tested
 * features (host/features.h), with reason and remedy; and the least privileges that each command
 * needs (checked by tests/e2e/product/minimal_capabilities.sh).
 */
#ifndef ASSAY_ANALYZE_RIGHTSREPORT_H
#define ASSAY_ANALYZE_RIGHTSREPORT_H

#include "analyze/report.h"
#include "analyze/rightsjudge.h"
#include "base/base.h"
#include "model/rights.h"

struct rights_page {
	struct report *report;
	const struct features *features;
	const struct rights_row *rows; /* all uses of all commands */
	size_t nr_rows;
	unsigned whose;     /* bits of enum rights_whose: of which targets */
	bool is_one_target; /* the features are of one process, of one of these kinds */
	bool has_details;   /* the detailed tables follow */
};

/*
 * Adds the tables of one screen: what works, what works in part, what does not, and the remedies.
 * Returns true if every command works at least in part.
 */
bool rights_report(const struct rights_page *p);
/* Adds a table with a row for each command and kind of target, and that of the least privileges. */
void rights_detail_report(const struct rights_page *p);
/* Adds the table of tested features and kernel settings. */
void rights_host_report(struct report *r, const struct features *f);
/* Appends flags of docker and podman for a container that runs commands with these needs. */
void rights_add_flags(struct buf *to, uint64_t caps, unsigned needs);

#endif
