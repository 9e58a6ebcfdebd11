/*
 * Names of JIT code: /tmp/perf-PID.map text ("START SIZE name" in hex) and jitdump files.
 * Later entries replace earlier ones that they overlap. Hostile input: limits on size and count.
 */
#ifndef ASSAY_SYMBOL_PERFMAP_H
#define ASSAY_SYMBOL_PERFMAP_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

struct perfmap;

int perfmap_parse(struct perfmap **ret_m, struct sv text, struct err *err);
/* jitdump, kernel tools/perf/Documentation/jitdump-specification.txt; code load/move/close, with
 * debug info records for lines. */
int perfmap_parse_jitdump(struct perfmap **ret_m, struct sv bytes, struct err *err);
void perfmap_free(struct perfmap *m);
/* @time_ns: as of then (jitdump), 0 = the last state. */
bool perfmap_find(const struct perfmap *m, uint64_t addr, uint64_t time_ns, struct sv *ret_name,
                  uint64_t *ret_start, struct sv *ret_file, uint32_t *ret_line);

#endif
