/*
 * Reads the memory use of a process from /proc/PID/{statm,status,stat,smaps_rollup}. All values are
 * bytes. maps.h reads single mappings.
 *
 * Cost and accuracy of the files (Documentation/filesystems/proc.rst):
 *	status, statm, stat   counters that the kernel keeps: microseconds, no lock of the target,
 *	                      readable by every user. In kernels 6.2 to 6.15 the values are wrong by
 *	                      up to 32 pages per CPU
 *	smaps_rollup          walks the page tables under the mmap lock, for which mmap and munmap of
 *	                      the target wait: about a millisecond per GiB. Exact. Needs
 *	                      permission to ptrace the process
 * memstat.has is the set of values that could be read; the others are 0. rss = anon + file + shmem
 * always.
 *
 * Sums over processes (memstat_add) are correct for pss, swap_pss and private memory. In sums of
 * rss memory that processes share is counted once for each of them.
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
 * Reads the files of @parts. -ESRCH: no such process, or it is a zombie, which has no memory. A
 * refused smaps_rollup is not an error: MEMSTAT_HAS_PSS is missing and *ret_refused (may be NULL)
 * is the -errno.
 */
int memstat_read(struct memstat *ret_m, int32_t pid, unsigned parts, int *ret_refused,
		 struct err *err);
/* The peak RSS of a process so far, 0 = unknown. */
uint64_t memstat_peak(int32_t pid);
/*
 * The peak RSS of a command that has ended. @peak_bytes: struct spawn's, which is exact, but includes
 * the time before the execve, when it was a copy of assay; @before_bytes: memstat_peak before that. It is
 * the command's if it is larger by more than what assay could touch since. 0: not known.
 */
uint64_t memstat_command_peak(uint64_t peak_bytes, uint64_t before_bytes);
void memstat_add(struct memstat *sum, const struct memstat *one);
/* Returns the machine's memory (MemTotal); 0 = unknown. */
uint64_t memstat_machine_bytes(void);

/* Parse the text of a file into *m; false: it has no known field. Public for tests. */
bool memstat_parse_status(struct memstat *m, struct sv text);
bool memstat_parse_statm(struct memstat *m, struct sv text, uint64_t page_bytes);
bool memstat_parse_stat(struct memstat *m, struct sv text);
bool memstat_parse_rollup(struct memstat *m, struct sv text);

/* The member of a struct that a field of the kernel's text is added to. */
struct memstat_field {
	const char *key;
	size_t at; /* offset of a uint64_t */
};
/* Adds @v to the member for @key; false: there is none. Saturates. */
bool memstat_add_field(void *to, const struct memstat_field *fields, size_t nr, struct sv key,
		       uint64_t v);
/*
 * Parses a line "Key:  123 kB": *ret_v is the value in bytes, or the number itself if it has no
 * unit. False: another kind of line.
 */
bool memstat_line(struct sv line, struct sv *ret_key, uint64_t *ret_v);

#endif
