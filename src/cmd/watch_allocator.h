/*
 * assay watch: which allocator a process has (by its binaries, nothing is stopped), and with
 * --allocator what it says of itself: jemalloc, asked in the process on one thread that is borrowed
 * for a millisecond or so (remote/jemalloc.h), at most once a second and so seldom that the
 * borrowing takes less than a 250th of that thread's time.
 */
#ifndef ASSAY_CMD_WATCH_ALLOCATOR_H
#define ASSAY_CMD_WATCH_ALLOCATOR_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "cmd/watch_probe.h"

struct watch_asker {
	int32_t pid; /* 0: nobody is asked */
	struct heap_plan plan;
	bool has_plan;
	struct watch_allocator last;
	uint64_t next_ns;
	uint32_t nr_asked;
	uint64_t stopped_ns; /* of the borrowed thread, in all */
	uint64_t longest_ns;
};

/*
 * The allocator's name in words, "none found" among them; NULL: cannot be said. Owned. Reads the
 * binaries, which takes a tenth of a second. *ret_maps_itself: it takes its memory by mmap.
 */
char *watch_allocator_name(int32_t pid, bool *ret_maps_itself);
/* -ENOTSUP: an allocator that does not tell, with a hint. */
int watch_asker_open(struct watch_asker *a, int32_t pid, struct err *err);
void watch_asker_release(struct watch_asker *a);
/* Asks if it is time to; what was said last, NULL: nothing. */
const struct watch_allocator *watch_asker_ask(struct watch_asker *a, uint64_t now_ns);

#endif
