/*
 * How short of memory the machine and a process's memory cgroup were, as the kernel counts it:
 * pressure stall information, and how often the group was at its limit. Counts since boot: take
 * one before and one after, and subtract.
 */
#ifndef ASSAY_HOST_MEMPRESSURE_H
#define ASSAY_HOST_MEMPRESSURE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

struct mempressure {
	bool has_psi;
	uint64_t some_us; /* some threads of the machine waited for memory */
	uint64_t full_us; /* all that were not idle did */
	bool has_group;
	uint64_t nr_at_limit; /* v1: memory.failcnt; v2: "max" of memory.events */
	uint64_t nr_refaults; /* pages that had just been given back */
	uint64_t limit_bytes; /* UINT64_MAX = none */
	char *group;          /* its folder, or NULL; owned */
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

/* For tests: the folder of the memory cgroup by the text of /proc/PID/cgroup, under @root
 * ("/sys/fs/cgroup"). False: it is in none. */
bool mempressure_group_path(struct buf *to, struct sv text, const char *root);
/* The number after a key at a line's start, in text of "key number" lines, or 0. */
uint64_t mempressure_value(struct sv text, const char *key);

#endif
