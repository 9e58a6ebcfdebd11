/*
 * What the kernel says about the memory of a process, from /proc/PID/{statm,status,stat,
 * smaps_rollup}. Bytes throughout; single mappings are memmaps.h.
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
#ifndef ASSAY_HOST_MEMSTAT_H
#define ASSAY_HOST_MEMSTAT_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"

enum memstat_parts {
	MEMSTAT_COUNTERS = 1 << 0, /* status, else statm; stat */
	MEMSTAT_ROLLUP = 1 << 1,   /* smaps_rollup */
};

enum memstat_has {
	MEMSTAT_HAS_RSS = 1 << 0,    /* also virtual_bytes */
	MEMSTAT_HAS_SPLIT = 1 << 1,  /* shmem told apart from file; swap, page tables, peak */
	MEMSTAT_HAS_FAULTS = 1 << 2, /* nr_minor, nr_major, start_ticks */
	MEMSTAT_HAS_PSS = 1 << 3,    /* what smaps_rollup says */
};

struct memstat {
	unsigned has; /* enum memstat_has, of all processes that were added up */
	uint32_t nr_processes;
	uint32_t nr_threads;
	uint64_t rss_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t shmem_bytes;
	uint64_t virtual_bytes;
	uint64_t swap_bytes;
	uint64_t peak_rss_bytes;
	uint64_t peak_virtual_bytes;
	uint64_t page_table_bytes; /* the kernel's, not part of rss */
	uint64_t locked_bytes;
	uint64_t nr_minor; /* faults since the process began */
	uint64_t nr_major;
	uint64_t start_ticks; /* when it began: with the pid, which process this is */
	/* smaps_rollup. */
	uint64_t walked_rss_bytes; /* by the page tables, at the moment of the walk */
	uint64_t pss_bytes;
	uint64_t pss_anon_bytes;
	uint64_t pss_file_bytes;
	uint64_t pss_shmem_bytes;
	uint64_t private_clean_bytes;
	uint64_t private_dirty_bytes;
	uint64_t shared_clean_bytes;
	uint64_t shared_dirty_bytes;
	uint64_t lazy_free_bytes; /* given back by MADV_FREE, still counted in rss */
	uint64_t anon_huge_bytes;
	uint64_t file_huge_bytes;
	uint64_t shmem_huge_bytes;
	uint64_t swap_pss_bytes;
	uint64_t counters_ns; /* what reading cost us, wall time */
	uint64_t rollup_ns;
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

/*
 * "Key:  123 kB" lines. True and the bytes (a number without kB as it is) if @line is one; *ret_key
 * is what stands before the colon.
 */
bool memstat_line(struct sv line, struct sv *ret_key, uint64_t *ret_v);

#endif
