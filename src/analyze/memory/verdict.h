/*
 * What a series of readings of a process's memory says: how fast it grows, with its uncertainty,
 * and what that is: a leak, fragmentation, page cache of mapped files, bloat, nothing.
 *
 * Kept memory is anon + shmem + swap: what the kernel cannot take back without writing it to swap.
 *
 * Slope. The Theil-Sen estimate (median of the slopes between all pairs of points; P. K. Sen, JASA
 * 63, 1968), which single jumps do not move. Readings of memory are not independent of each other,
 * they often walk at random, so its interval is not taken from them but from batch means: the
 * series is cut into up to 12 batches, and the steps from the mean of one to the mean of the next
 * are a sample of the growth with a Student interval. It is made for random walks, for which it is
 * widened by sqrt(9/5) (verdict.c); of noise around a line it is wider than it need be.
 *
 * Verdict, the first that applies. "Now" is the median of the last third of the readings.
 *
 * - inconclusive: fewer than MEMVERDICT_POINTS_MIN readings, or in less than
 *   MEMVERDICT_SPAN_MIN_NS.
 * - fragmentation: an allocator told what it has in use, and it holds 30 % and 16 MiB more than
 *   that now; or kept memory grows (as for a leak) and what is in use does not grow a quarter as
 *   fast; or kept memory is within 10 % of its peak while what is in use fell by 40 % and 16 MiB
 *   from its own. Of what the allocator says a level has to be of the second half of the
 *   time, a change to come of MEMVERDICT_ANSWERS_MIN answers over half of it.
 * - leak: kept memory grows. Its interval is above 0; it grew by 256 KiB and 0.1 % at least; three
 *   of four steps between batches are up; and it goes on: the last third alone grows at least a
 *   third as fast as the whole, and the last batch is the highest.
 * - page cache: half of the RSS now, and 16 MiB, are pages of files; or it grows by 16 MiB, and
 *   70 % of that are pages of files.
 * - bloat: kept memory is 80 % of the cgroup's limit now, or a quarter of the machine's memory.
 * - steady: it changed by less than 10 % of itself or than 4 MiB, to the ends of its interval; or
 *   in the last third by less than 5 % of itself or than 2 MiB, and does not grow there as a leak;
 *   or it rises and falls, three times at least, and in the second half of the time it comes down
 *   as low and does not go higher than in the first, to a tenth of its
 *   range or a step between two readings.
 * - inconclusive: anything else. It grew, but not evenly, or ever more slowly, or varies too much
 *   to tell.
 *
 * What no rule can tell from a leak is a cache that is still filling up, or memory that rises and
 * falls more slowly than was watched: the text of a leak says so. Of series without growth (noise,
 * random walks, sawteeth shorter than a third of the window, warm-up) at most 5 % are called leaks
 * (test_memverdict.c).
 */
#ifndef ASSAY_ANALYZE_MEMORY_VERDICT_H
#define ASSAY_ANALYZE_MEMORY_VERDICT_H

#include "base/arena.h"
#include "base/base.h"

#define MEMVERDICT_POINTS_MIN  20
#define MEMVERDICT_SPAN_MIN_NS 5000000000ull
#define MEMVERDICT_ANSWERS_MIN 6
#define MEMPOINT_UNKNOWN       UINT64_MAX

struct mempoint {
	uint64_t time_ns;
	uint64_t rss_bytes;
	uint64_t anon_bytes;
	uint64_t file_bytes;
	uint64_t shmem_bytes; /* of several processes of the one that has most */
	uint64_t swap_bytes;
	/*
	 * The allocator's: handed out and not freed; what it holds in memory; or UNKNOWN, also
	 * where it was not asked at this reading.
	 */
	uint64_t in_use_bytes;
	uint64_t resident_bytes;
};

/* Bytes a second. */
struct memslope {
	bool is_known; /* else there were too few points: all 0 */
	double per_s;
	double low; /* 95 % interval */
	double high;
};

/* times in ascending order. Four points at least. */
struct memslope memslope_of(const uint64_t *time_ns, const double *values, size_t n);

enum memverdict_kind {
	MEMVERDICT_INCONCLUSIVE = 0,
	MEMVERDICT_STEADY,
	MEMVERDICT_LEAK,
	MEMVERDICT_FRAGMENTATION,
	MEMVERDICT_PAGE_CACHE,
	MEMVERDICT_BLOAT,
	MEMVERDICT_NR
};

struct memverdict_host {
	uint64_t machine_bytes; /* 0 = not known */
	uint64_t limit_bytes;   /* of the cgroup; UINT64_MAX or 0 = none */
};

struct memverdict {
	enum memverdict_kind kind;
	struct memslope rss;
	struct memslope kept;
	struct memslope file;
	struct memslope in_use; /* not known: no allocator told, or too seldom */
	uint64_t span_ns;
	size_t nr_points;
	const char *evidence; /* one or two sentences, in the arena */
};

struct memverdict memverdict_of(struct arena *a, const struct mempoint *points, size_t n,
				const struct memverdict_host *host);
/* "leak", "page-cache"...: stable, for scripts. */
const char *memverdict_key(enum memverdict_kind kind);
/* "+61.2 MiB/min (95 %: 58.8 MiB/min to 63.6 MiB/min)", "" if it is not known; in the arena. */
const char *memslope_text(struct arena *a, const struct memslope *s);

#endif
