/*
 * Internal to the DWARF reader: a worker looks up the addresses of one unit at a time; the results
 * are then converted to frames.
 */
#ifndef ASSAY_SYMBOL_DWARF_DWARF_QUERY_H
#define ASSAY_SYMBOL_DWARF_DWARF_QUERY_H

#include "base/arena.h"
#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/dwarf/abbrev.h"
#include "symbol/dwarf/line.h"
#include "symbol/dwarf/name.h"
#include "symbol/dwarf/scan.h"
#include "symbol/dwarf/split.h"

struct dw_worker {              /* state that one thread reuses from unit to unit */
	struct arena text;      /* built names; lives as long as the reader */
	struct arena path_text; /* built paths; lives as long as the query */
	struct dw_abbrev_cache abbrevs;
	struct dw_names names;
	struct dw_lines lines;
	VEC(uint32_t) path_of_file; /* idx + 1 in the job's paths, by file number */
	VEC(uint32_t) order;        /* used nodes, sorted by the offset of their name */
	struct dwarf_stats stats;
};

/*
 * The part of a query that falls into one unit: nr_slots consecutive elements of the query's sorted
 * arrays (addresses, leaves, rows), which start at first_slot.
 */
struct dw_job {
	uint32_t unit;
	size_t first_slot;
	size_t nr_slots;
	struct dw_scan scan; /* scan.leaves points to the leaves of these slots */
	VEC(struct sv) paths;
};

struct dw_env { /* read-only while the workers run */
	const struct dw_file *main;
	const struct dw_package *package;
	const char *path;
	const struct debug_search *search;
	uint64_t min_vaddr;
	unsigned flags; /* dwarf_flags */
};

void dw_worker_init(struct dw_worker *w);
void dw_worker_release(struct dw_worker *w);
/* Looks up the job's addresses: fills leaves and @rows of its slots, and the nodes of job->scan. */
void dw_job_run(struct dw_job *job, const struct dw_env *env, struct dw_worker *w,
		const uint64_t *vaddrs, struct dw_line_row *rows);
void dw_job_release(struct dw_job *job);

typedef VEC(struct dwarf_frame) dw_frames;

/*
 * Replaces the contents of @frames by the frames of one slot, innermost first. @leaf: the slot's
 * innermost node in job->scan, or DW_NO_NODE.
 */
void dw_job_frames(const struct dw_job *job, uint32_t leaf, const struct dw_line_row *row,
		   dw_frames *frames);

#endif
