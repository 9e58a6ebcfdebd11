/*
 * Scales the sampled rows of a heap to the recorder's exact counts of allocations by size.
 *
 * A recorder that samples counts every allocation in classes of sizes (wire/heap_count.h). In each
 * class the sampled rows of "allocated" are scaled so that they add up to the exact number and the
 * exact bytes; the rows of the other tables are about the same blocks and get the same factors.
 * Rows without variance (blocks that were all recorded) are not scaled. The allocations of a class
 * of which none was sampled become one row with the frame HEAP_NOT_SAMPLED: their number and bytes
 * are exact, their stacks are not known.
 */
#ifndef ASSAY_MODEL_HEAPCALIBRATE_H
#define ASSAY_MODEL_HEAPCALIBRATE_H

#include "base/base.h"
#include "model/ids.h"

struct profile;

#define HEAP_NOT_SAMPLED "[not sampled]"

/*
 * Scales a profile that is not sealed. One without counts (FACT_HEAP_SIZES) stays as it is, and one
 * that is scaled already.
 */
void heapcalibrate(struct profile *p);
/* Whether the profile has exact counts, and thus heapcalibrate has scaled it. */
bool heapcalibrate_is_exact(const struct profile *p);
/* Whether it is the stack of allocations of which none was sampled. */
bool heap_is_not_sampled(const struct profile *p, stack_id stack);

#endif
