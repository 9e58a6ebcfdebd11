/*
 * Reads memory pressure: the machine's pressure stall information (PSI), and how often a process's
 * memory cgroup reached its limit. All are counts since boot or since the cgroup was created: the
 * texts are made of the difference between two readings.
 */
#ifndef ASSAY_HOST_MEMORY_PRESSURE_H
#define ASSAY_HOST_MEMORY_PRESSURE_H

#include "base/base.h"
#include "base/buf.h"
#include "model/memory.h"

struct mempressure_group;

struct mempressure {
	bool has_psi;
	uint64_t some_us; /* PSI "some": at least one thread waited for memory */
	uint64_t full_us; /* PSI "full": all non-idle threads waited */
	bool has_group;
	struct memgroup_numbers numbers; /* of the cgroup */
	struct mempressure_group *group; /* open, for the second reading; owned, NULL = none */
};

void mempressure_release(struct mempressure *m);
/*
 * Reads what is available. @pid: the process whose cgroup is read, 0 = none. @before (may be NULL):
 * reads its cgroup again, since the process may have exited.
 */
void mempressure_read(struct mempressure *ret_m, int32_t pid, const struct mempressure *before);
/* Append a text about the time between two readings; nothing if one of them is missing. */
void mempressure_add_machine(struct buf *to, const struct mempressure *before,
			     const struct mempressure *after);
void mempressure_add_group(struct buf *to, const struct mempressure *before,
			   const struct mempressure *after);

#endif
