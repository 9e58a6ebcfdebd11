/*
 * The path of calls that most of the CPU time is on: a sentence for the first page. The hottest leaf
 * is often a helper (memcpy); this names its callers too.
 */
#ifndef ASSAY_ANALYZE_STACKS_HOTPATH_H
#define ASSAY_ANALYZE_STACKS_HOTPATH_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/*
 * Adds the note to @r: "hottest path: 88 % (+-2.1) of CPU time in main > load > parse: 50 % in memcpy,
 * 31 % in hash". The path goes from the root to the callee with the largest part, as long as that has
 * half of all the time and twice that of the next one. No path, or too few samples: no note.
 */
void hotpath_note(struct report *r, const struct selection *sel);

#endif
