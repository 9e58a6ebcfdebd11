/*
 * Names of JIT code: /tmp/perf-PID.map text ("START SIZE name" in hex, 0x allowed, names may hold
 * spaces) and jitdump files. Later entries replace earlier ones where they overlap. Hostile
 * input: lines and records that make no sense are passed over and counted, a record that passes the
 * end stops the reading (the writer may still be at it), at most 2^23 entries and names of 4 kB.
 */
#ifndef ASSAY_SYMBOL_PERFMAP_H
#define ASSAY_SYMBOL_PERFMAP_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

struct perfmap; /* opaque; holds copies of all names */

int perfmap_parse(struct perfmap **ret_m, struct sv text, struct err *err);
/*
 * jitdump, kernel tools/perf/Documentation/jitdump-specification.txt: code load, move and close,
 * debug records for lines; unwinding records are passed over. Times are CLOCK_MONOTONIC; a file
 * with the processor's own time stamps answers with its last state whatever the time.
 */
int perfmap_parse_jitdump(struct perfmap **ret_m, struct sv bytes, struct err *err);
void perfmap_free(struct perfmap *m);
DEFINE_FREE_P(perfmap, struct perfmap)
/*
 * @time_ns: as of then (jitdump; code that was only announced later is better than none),
 * 0 = the last state. *ret_file and *ret_line: empty and 0 when unknown.
 */
bool perfmap_find(const struct perfmap *m, uint64_t addr, uint64_t time_ns, struct sv *ret_name,
		  uint64_t *ret_start, struct sv *ret_file, uint32_t *ret_line);

#endif
