/*
 * Symbols of JIT code from /tmp/perf-PID.map files ("START SIZE name", numbers in hexadecimal with
 * or without 0x, names may contain spaces) and from jitdump files. Where entries overlap, the later
 * one wins.
 *
 * The input is untrusted: malformed lines and records are skipped and counted; a record that
 * extends past the end of the file ends the parsing (the writer may still be writing it). Limits:
 * 2^23 entries, names of 4 kB.
 */
#ifndef ASSAY_SYMBOL_PERFMAP_H
#define ASSAY_SYMBOL_PERFMAP_H

#include "base/base.h"
#include "base/err.h"
#include "base/file/bytesource.h"
#include "base/sv.h"

struct perfmap; /* opaque; holds copies of all names */

int perfmap_parse(struct perfmap **ret_m, struct sv text, struct err *err);
/*
 * Reads a perf map in small steps: of 1 GB of text only names and ranges are in memory. @file stays
 * the caller's. -EFBIG: more than 2 GB.
 */
int perfmap_read(struct perfmap **ret_m, const struct byte_source *file, struct err *err);
/*
 * Parses a jitdump file (kernel tools/perf/Documentation/jitdump-specification.txt): code load,
 * move and close records, and debug records for lines; unwinding records are skipped. Times are
 * CLOCK_MONOTONIC. For a file with TSC time stamps, perfmap_find ignores time_ns and uses the last
 * state.
 */
int perfmap_parse_jitdump(struct perfmap **ret_m, struct sv bytes, struct err *err);
void perfmap_free(struct perfmap *m);
DEFINE_FREE_P(perfmap, struct perfmap)
/*
 * Finds the function at @addr at time @time_ns (jitdump only; 0 = the last state). If no code was
 * loaded there by then, the first code loaded later is returned. Where unknown, *ret_file is empty
 * and *ret_line is 0.
 */
bool perfmap_find(const struct perfmap *m, uint64_t addr, uint64_t time_ns, struct sv *ret_name,
		  uint64_t *ret_start, struct sv *ret_file, uint32_t *ret_line);

#endif
