/*
 * How short of memory the machine and a process's memory cgroup were, as the kernel counts it:
 * pressure stall information, and how often the group was at its limit. Counts since boot: take
 * one before and one after, and subtract.
 */
#ifndef ASSAY_HOST_MEMORY_PRESSURE_H
#define ASSAY_HOST_MEMORY_PRESSURE_H

#include "base/base.h"
#include "base/buf.h"
#include "model/memory.h"

struct mempressure_group;

struct mempressure {
	bool has_psi;
	uint64_t some_us; /* some threads of the machine waited for memory */
	uint64_t full_us; /* all that were not idle did */
	bool has_group;
	struct memgroup_numbers numbers; /* of the group */
	struct mempressure_group *group; /* to read it again; owned, NULL = none */
};

void mempressure_release(struct mempressure *m);
/* What can be read is read; @pid: whose cgroup, 0 = none. @before, may be NULL: the same group
 * again, for the process may have gone. */
void mempressure_read(struct mempressure *ret_m, int32_t pid, const struct mempressure *before);
/* What came between, in words: "machine: some 12 ms, full 3 ms"; "" where nothing is known. */
void mempressure_add_machine(struct buf *to, const struct mempressure *before,
			     const struct mempressure *after);
void mempressure_add_group(struct buf *to, const struct mempressure *before,
			   const struct mempressure *after);

#endif
