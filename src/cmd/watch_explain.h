/*
 * assay watch: what the RSS consists of (analyze/memexplain.h) and single mappings as pmap -x shows
 * them, from the mappings of the processes.
 */
#ifndef ASSAY_CMD_WATCH_EXPLAIN_H
#define ASSAY_CMD_WATCH_EXPLAIN_H

#include "analyze/memexplain.h"
#include "analyze/report.h"
#include "base/base.h"
#include "cmd/watch_probe.h"

/* By the mappings alone, while the processes are there. Owned by the caller. */
struct memexplain *watch_explain(const struct watch_maps *m);
/* Table "mappings": every one, in order of addresses, or the @max_rows with the largest RSS. */
void watch_mappings_report(struct report *r, const struct watch_maps *m, uint64_t max_rows);

#endif
