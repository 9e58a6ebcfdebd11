/*
 * Options of assay diagnose about its rules, of a recording and of a capture that it makes.
 *
 *	if (diagnose_rules_read(&o.rules, &err))
 *		return cmd_refuse(&err);
 *	diagnosis_report(r, p, &spec, &o.rules.all, path, diagnose_rules_flags(&o.rules));
 */
#ifndef ASSAY_CMD_DIAGNOSERULES_H
#define ASSAY_CMD_DIAGNOSERULES_H

#include "analyze/diagnose/rules.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"

struct diagnose_rules {
	const char *path; /* --rules FILE */
	bool lists_all;   /* --all-rules */
	struct rules all; /* the built-in rules, and those of the file */
	struct arena a;
};

extern const struct opt_group diagnose_rules_group;

int diagnose_rules_read(struct diagnose_rules *o, struct err *err);
void diagnose_rules_release(struct diagnose_rules *o);
/* For diagnosis_report. */
unsigned diagnose_rules_flags(const struct diagnose_rules *o);

#endif
