/*
 * Judges a series of memory readings of a process: growth rate with its confidence interval, and a
 * verdict: leak, fragmentation, shared pages used for the first time, page cache of mapped files,
 * bloat, steady, inconclusive.
 *
 * Kept memory is anon + shmem + swap: what the kernel cannot reclaim without writing it to swap.
 *
 * Slope. The Theil-Sen estimate (median of the slopes between all pairs of points; P. K. Sen, JASA
 * 63, 1968), which is robust against single jumps. Readings of memory are not independent, they
 * often are random walks, so the interval comes from batch means: the series is divided into up to
 * 12 batches, and the steps between the means of consecutive batches are a sample of the growth
 * with a Student interval. It is widened by sqrt(9/5) to fit random walks (verdict.c); for noise
 * around a line it is wider than necessary.
 *
 * Readings much closer in time than usual (as at the beginning of a capture) are left out first.
 *
 * Verdict, the first that applies. "Now" is the median of the last third of the readings.
 *
 * - inconclusive: fewer than MEMVERDICT_POINTS_MIN readings, or the readings span less than
 *   MEMVERDICT_SPAN_MIN_NS.
 * - fragmentation: an allocator reports its bytes in use, and its resident bytes exceed these by 30 %
 *   and by 16 MiB now; or kept memory grows (as for a leak) and the bytes in use grow less than a
 *   quarter as fast, and the resident bytes of the allocator at least half as fast; or kept memory is within 10 % of its peak, and the bytes in use fell by 40 % and
 *   by 16 MiB from their peak. The allocator's last reading must be in the second half of the time;
 *   its slope needs MEMVERDICT_ANSWERS_MIN readings that span half of the time.
 * - first use: kept memory grows (as for a leak), but not without its shared memory, and the address
 *   space of the process with most shared memory grows less than half as much as that: the pages are
 *   of mappings that exist, as of a buffer pool that fills.
 * - leak: kept memory grows. Its interval is above 0; it grew by 256 KiB and 0.1 % at least; three
 *   of four steps between batches are up; and it continues: the last third alone grows at least a
 *   third as fast as the whole, and the last batch is the highest.
 * - page cache: half of the RSS now, and 16 MiB, are pages of files; or it grows by 16 MiB, and
 *   70 % of that are pages of files.
 * - bloat: kept memory is 80 % of the cgroup's limit now, or a quarter of the machine's memory.
 * - steady: kept memory changed by less than 10 % or 4 MiB, at both ends of the interval; or in the
 *   last third by less than 5 % or 2 MiB, without growing there as a leak does; or it rises and
 *   falls at least three times, and in the second half of the time falls as low and does not rise
 *   higher than in the first, within a tenth of its range or one step between two readings.
 * - inconclusive: anything else: kept memory grew unevenly or ever more slowly, or varies too much.
 *
 * A cache that is still filling up, or memory that rises and falls over a longer time than was
 * recorded, cannot be distinguished from a leak; the evidence text says so. Of series without
 * growth (noise, random walks, sawteeth shorter than a third of the window, warm-up) at most 5 %
 * are reported as leaks (tests/unit/analyze/test_verdict.c).
 */
#ifndef ASSAY_ANALYZE_MEMORY_VERDICT_H
#define ASSAY_ANALYZE_MEMORY_VERDICT_H

#include "base/arena.h"
#include "base/base.h"

#define MEMVERDICT_POINTS_MIN  20
#define MEMVERDICT_SPAN_MIN_NS 5000000000ull
#define MEMVERDICT_ANSWERS_MIN 6 /* readings with in_use_bytes */
#define MEMPOINT_UNKNOWN       UINT64_MAX

struct mempoint {
	uint64_t time_ns;
	uint64_t rss_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t
		shmem_bytes; /* of several processes: the largest, as they may share the same pages */
	uint64_t shmem_space_bytes; /* address space of the process with shmem_bytes; 0: unknown */
	uint64_t swap_bytes;
	uint64_t stack_bytes; /* part of anon_bytes; 0: not known yet */
	/*
	 * Reported by the allocator: live bytes, resident bytes. MEMPOINT_UNKNOWN: not reported, or
	 * not queried at this reading.
	 */
	uint64_t in_use_bytes;
	uint64_t resident_bytes;
};

/* Growth in bytes per second. */
struct memslope {
	bool is_known; /* false: too few points, all 0 */
	double per_s;
	double low; /* 95 % interval */
	double high;
};

/* Estimates the slope. Times ascend; needs at least four points. */
struct memslope memslope_of(const uint64_t *time_ns, const double *values, size_t n);

enum memverdict_kind {
	MEMVERDICT_INCONCLUSIVE = 0,
	MEMVERDICT_STEADY,
	MEMVERDICT_LEAK,
	MEMVERDICT_FRAGMENTATION,
	MEMVERDICT_FIRST_USE,
	MEMVERDICT_PAGE_CACHE,
	MEMVERDICT_BLOAT,
	MEMVERDICT_NR
};

struct memverdict_host {
	uint64_t machine_bytes; /* 0: not known */
	uint64_t limit_bytes;   /* of the cgroup; UINT64_MAX or 0: none */
	uint64_t every_ns;      /* intended time between readings; 0: not known */
	bool has_sites;         /* allocations were recorded by call stack */
	bool is_in_use_partial; /* in_use_bytes is of blocks allocated in the capture only */
};

struct memverdict {
	enum memverdict_kind kind;
	struct memslope rss;
	struct memslope
		kept; /* as judged: of a leak beside shared memory in first use without that */
	struct memslope file;
	struct memslope in_use; /* not known: no allocator reports, or too rarely */
	double kept_bytes;      /* now */
	uint64_t span_ns;
	size_t nr_points;
	const char *evidence; /* one or two sentences, in the arena */
};

struct memverdict memverdict_of(struct arena *a, const struct mempoint *points, size_t n,
				const struct memverdict_host *host);
/* The least time from the first reading to the last for a verdict. */
uint64_t memverdict_min_ns(uint64_t every_ns);
/*
 * Returns what a verdict needs: "20 readings, 19.0 s with --every 1.00 s (in 6.00 s: --every 300ms)", the
 * latter if readings of @span_ns could be enough. In the arena. @every_ns: 0, not known.
 */
const char *memverdict_needs(struct arena *a, uint64_t every_ns, uint64_t span_ns);
/* Returns "leak", "page-cache" ...: stable names, for scripts. */
const char *memverdict_key(enum memverdict_kind kind);
/* Returns "+61.2 MiB/min (95 %: 58.8 MiB/min to 63.6 MiB/min)"; "" if not known. In the arena. */
const char *memslope_text(struct arena *a, const struct memslope *s);

#endif
