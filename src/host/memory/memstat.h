/*
 * What the kernel says about the memory of a process, from /proc/PID/{statm,status,stat,
 * smaps_rollup}. Bytes throughout; single mappings are maps.h.
 *
 * Cost and truth of the sources (Documentation/filesystems/proc.rst):
 *	status, statm, stat   counters that the kernel keeps: microseconds, no lock of the target's,
 *	                      open to every user. Kernels 6.2 to 6.15 let them lag by up to 32 pages
 *	                      a CPU
 *	smaps_rollup          the page tables are walked under the lock for mappings, which mmap and
 *	                      munmap of the target wait for: a millisecond a GiB or so. Exact. Needs
 *	                      the right to trace the process
 * What a source has to say is in `has`; what no source said is 0. rss = anon + file + shmem always.
 *
 * Sums over processes (memstat_add): of pss, swap_pss and private memory they are right, of rss
 * they count what is shared once for each process.
 */
#ifndef ASSAY_HOST_MEMORY_MEMSTAT_H
#define ASSAY_HOST_MEMORY_MEMSTAT_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "model/memory.h"

enum memstat_parts {
	MEMSTAT_COUNTERS = 1 << 0, /* status, else statm; stat */
	MEMSTAT_ROLLUP = 1 << 1,   /* smaps_rollup */
};

/*
 * -ESRCH: no such process, or it is a zombie, which has no memory. A rollup that is refused is no
 * error: MEMSTAT_HAS_PSS is missing, and *ret_refused (may be NULL) the errno.
 */
int memstat_read(struct memstat *ret_m, int32_t pid, unsigned parts, int *ret_refused,
		 struct err *err);
void memstat_add(struct memstat *sum, const struct memstat *one);
/* Takes what only the rollup says from an older reading. */
void memstat_keep_rollup(struct memstat *m, const struct memstat *older);
/* Memory of the machine; 0 = not known. */
uint64_t memstat_machine_bytes(void);

/* For tests: text of the kernel into *m. False: nothing known was in it. */
bool memstat_parse_status(struct memstat *m, struct sv text);
bool memstat_parse_statm(struct memstat *m, struct sv text, uint64_t page_bytes);
bool memstat_parse_stat(struct memstat *m, struct sv text);
bool memstat_parse_rollup(struct memstat *m, struct sv text);

/* Where a number by that name belongs in a struct. */
struct memstat_field {
	const char *key;
	size_t at;
};
/* Adds it where it belongs; false: nowhere. */
bool memstat_add_field(void *to, const struct memstat_field *fields, size_t nr, struct sv key,
		       uint64_t v);
/*
 * "Key:  123 kB" lines. True and the bytes (a number without kB as it is) if @line is one; *ret_key
 * is what stands before the colon.
 */
bool memstat_line(struct sv line, struct sv *ret_key, uint64_t *ret_v);

#endif
