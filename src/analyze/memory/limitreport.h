/* Result of `assay limit`: a command under a memory limit, as a report and as facts. */
#ifndef ASSAY_ANALYZE_MEMORY_LIMITREPORT_H
#define ASSAY_ANALYZE_MEMORY_LIMITREPORT_H

#include "analyze/report.h"
#include "base/base.h"
#include "model/memory.h"
#include "model/profile.h"

struct limit_result {
	const struct limit_spec *spec;
	const struct limit_outcome *outcome;
	const char *command;
	const struct profile *profile; /* with direct reclaim and live memory; may be NULL */
	bool has_reclaim;              /* direct reclaim was recorded (BPF) */
	int exit_code;                 /* of the command, as a shell reports it: 128 + signal */
};

void limit_facts(struct profile *p, const struct limit_spec *spec, const struct limit_outcome *s);
/* Adds the readings of the group as table "cgroup", and the time of an OOM kill. */
void limit_rows(struct profile *p, const struct limit_spec *spec, const struct limit_outcome *s);
/* @max_rows: rows of the table of memory over time; 0: all. */
void limit_report(struct report *r, const struct limit_result *e, size_t max_rows);

#endif
