/*
 * The DWARF reader; see dwarf.h.
 *
 *	vaddrs -> dw_index: pairs (unit, address) -> grouped by unit: jobs, the largest first
 *	       -> worker threads, a whole job each: dw_scan (functions, inlines), dw_names, dw_lines
 *	       -> frames in the order of the addresses, on the caller's thread
 *
 * Jobs share only read-only data. Names that a worker builds are stored in its arena until
 * dwarf_free, so that later queries reuse them; paths are freed after the query.
 */
#include "base/base.h"
#include "symbol/dwarf/dwarf.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process/work.h"
#include "symbol/dwarf/dwarf_file.h"
#include "symbol/dwarf/index.h"
#include "symbol/dwarf/part.h"
#include "symbol/dwarf/dwarf_query.h"
#include "symbol/dwarf/sections.h"

/* A thread is started per this much of .debug_info; less is read faster than a thread starts. */
#define BYTES_PER_THREAD_MIN ((uint64_t)128 << 10)

enum loaded { LOADED_NOTHING, LOADED_PART, LOADED_WHOLE };

struct dwarf {
	struct elf *elf; /* borrowed; NULL: sections in memory */
	enum loaded loaded;
	struct dw_part part;
	struct dw_file main;
	struct dw_file alt;
	struct elf *alt_elf;
	struct dw_package package;
	char *path;
	struct dw_env env;
	struct dw_index index;
	struct dw_worker *workers;
	unsigned nr_workers;
};

/* Returns the lowest address of code. Linkers set discarded functions to addresses below it. */
static uint64_t lowest_code(const struct elf *e)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < nr; i++) {
		if (s[i].flags & SHF_EXECINSTR)
			lowest = MIN(lowest, s[i].vaddr);
	}
	return lowest == UINT64_MAX ? 0 : lowest;
}

static void load_alt(struct dwarf *d, struct elf *elf)
{
	if (elf_section(elf, ".gnu_debugaltlink"))
		d->alt_elf = debugfile_find_alt(elf, d->path, d->env.search);
	else if (elf_section(elf, ".debug_sup"))
		d->alt_elf = dw_sup_open(elf, d->path, d->env.search);
	if (!d->alt_elf)
		return;
	d->alt.number = 1;
	if (dw_file_load(&d->alt, d->alt_elf, false, NULL)) {
		elf_free_p(&d->alt_elf);
		return;
	}
	d->main.alt = &d->alt;
}

static bool has_split_units(const struct dw_file *f)
{
	vec_foreach(u, &f->units) {
		if (u->dwo_name.n || u->type == DW_UT_skeleton)
			return true;
	}
	return false;
}

/* Makes the path absolute, to search files beside the image. */
static char *absolute_path(const char *path)
{
	CLEANUP(free_p) char *cwd = path[0] && path[0] != '/' ? getcwd(NULL, 0) : NULL;
	return cwd ? xasprintf("%s/%s", cwd, path) : xstrdup(path);
}

static struct dwarf *dwarf_alloc(const char *path, const struct debug_search *search,
				 unsigned nr_threads)
{
	struct dwarf *d = xcalloc(1, sizeof(*d));
	d->path = absolute_path(path ? path : "");
	d->env = (struct dw_env){
		.main = &d->main, .package = &d->package, .path = d->path, .search = search};
	d->nr_workers = work_threads_wanted(nr_threads);
	d->workers = xcalloc(d->nr_workers, sizeof(*d->workers));
	for (unsigned i = 0; i < d->nr_workers; i++)
		dw_worker_init(&d->workers[i]);
	return d;
}

static void build_index(struct dwarf *d)
{
	d->workers[0].abbrevs.budget_bytes =
		4 * (uint64_t)d->main.sec[DW_SEC_ABBREV].n + (64 << 20);
	dw_index_build(&d->index, &d->main, &d->workers[0].abbrevs, d->env.min_vaddr);
}

static void index_units(struct dwarf *d)
{
	dw_file_index(&d->alt);
	dw_file_index(&d->main);
	build_index(d);
	d->loaded = LOADED_WHOLE;
}

static int load_whole(struct dwarf *d, struct err *err)
{
	int r = dw_file_load(&d->main, d->elf, false, err);
	if (r < 0)
		return r;
	load_alt(d, d->elf);
	index_units(d);
	if (has_split_units(&d->main))
		dw_package_open(&d->package, d->path, d->env.search);
	return 0;
}

int dwarf_new(struct dwarf **ret_d, struct elf *elf, const char *path,
	      const struct debug_search *search, unsigned nr_threads, struct err *err)
{
	const struct elf_section *info = elf_debug_section(elf, ".debug_info");
	if (!info) {
		*ret_d = NULL;
		return 0;
	}
	struct dwarf *d = dwarf_alloc(path, search, nr_threads);
	d->elf = elf;
	d->env.min_vaddr = lowest_code(elf);
	/* If a partial load is possible, the first query loads. */
	int r = dw_part_is_possible(elf) ? 0 : load_whole(d, err);
	if (r < 0)
		dwarf_free(d);
	else
		*ret_d = d;
	return r;
}

struct dwarf *dwarf_new_sections(const struct sv sections[DW_SEC_NR], const struct sv *alt,
				 uint64_t min_vaddr, unsigned nr_threads)
{
	struct dwarf *d = dwarf_alloc(NULL, NULL, nr_threads);
	d->env.min_vaddr = min_vaddr;
	memcpy(d->main.sec, sections, sizeof(d->main.sec));
	if (alt) {
		memcpy(d->alt.sec, alt, sizeof(d->alt.sec));
		d->alt.number = 1;
		d->main.alt = &d->alt;
	}
	index_units(d);
	return d;
}

void dwarf_free(struct dwarf *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->nr_workers; i++)
		dw_worker_release(&d->workers[i]);
	free(d->workers);
	dw_index_release(&d->index);
	dw_file_release(&d->main);
	dw_file_release(&d->alt);
	elf_free_p(&d->alt_elf);
	dw_package_release(&d->package);
	dw_part_release(&d->part);
	free(d->path);
	free(d);
}

struct dwarf_stats dwarf_stats(const struct dwarf *d)
{
	struct dwarf_stats sum = {.nr_units = d->main.units.n,
				  .nr_units_bad = d->main.nr_units_bad};
	for (unsigned i = 0; i < d->nr_workers; i++) {
		const struct dwarf_stats *s = &d->workers[i].stats;
		sum.nr_units_scanned += s->nr_units_scanned;
		sum.nr_units_bad += s->nr_units_bad;
		sum.nr_dwo_missing += s->nr_dwo_missing;
		sum.nr_scanned_bytes += s->nr_scanned_bytes;
	}
	return sum;
}

/* The state of one query: pairs (unit, address), grouped by unit into slots. */
struct query {
	struct dwarf *d;
	dw_hits hits;      /* sorted by query */
	uint32_t *slot_of; /* of each hit */
	uint32_t *job_of;  /* of each unit: idx + 1 */
	uint64_t *vaddrs;  /* of each slot, as the next two */
	uint32_t *leaves;
	struct dw_line_row *rows;
	VEC(struct dw_job) jobs;
	uint32_t *order; /* jobs, the largest first */
};

static void query_release(struct query *q)
{
	vec_foreach(job, &q->jobs)
		dw_job_release(job);
	vec_release(&q->jobs);
	vec_release(&q->hits);
	free(q->slot_of);
	free(q->job_of);
	free(q->vaddrs);
	free(q->leaves);
	free(q->rows);
	free(q->order);
}

/* Counting sort by unit. Queries are ascending, so the slots of each unit are, too. */
static void group_by_unit(struct query *q, const uint64_t *vaddrs)
{
	size_t nr_hits = q->hits.n;
	q->job_of = xcalloc(q->d->main.units.n + 1, sizeof(*q->job_of));
	q->slot_of = xcalloc(nr_hits + 1, sizeof(*q->slot_of));
	q->vaddrs = xcalloc(nr_hits + 1, sizeof(*q->vaddrs));
	q->leaves = xcalloc(nr_hits + 1, sizeof(*q->leaves));
	q->rows = xcalloc(nr_hits + 1, sizeof(*q->rows));
	vec_foreach(hit, &q->hits) {
		uint32_t *job = &q->job_of[hit->unit];
		if (!*job) {
			vec_push(&q->jobs, (struct dw_job){.unit = hit->unit});
			*job = (uint32_t)q->jobs.n;
		}
		q->jobs.p[*job - 1].nr_slots++;
	}
	size_t next = 0;
	vec_foreach(job, &q->jobs) {
		job->first_slot = next;
		job->scan.leaves = q->leaves + next;
		next += job->nr_slots;
		job->nr_slots = 0; /* counted again below */
	}
	for (size_t i = 0; i < nr_hits; i++) {
		struct dw_job *job = &q->jobs.p[q->job_of[q->hits.p[i].unit] - 1];
		size_t slot = job->first_slot + job->nr_slots++;
		q->slot_of[i] = (uint32_t)slot;
		q->vaddrs[slot] = vaddrs[q->hits.p[i].query];
	}
}

static int by_size(const void *pa, const void *pb, void *ctx)
{
	const struct query *q = ctx;
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct dw_unit *a = &q->d->main.units.p[q->jobs.p[ia].unit];
	const struct dw_unit *b = &q->d->main.units.p[q->jobs.p[ib].unit];
	uint64_t na = a->end - a->offset, nb = b->end - b->offset;
	if (na != nb)
		return na > nb ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

static void run_job(void *ctx, size_t item, unsigned worker)
{
	struct query *q = ctx;
	struct dw_job *job = &q->jobs.p[q->order[item]];
	dw_job_run(job, &q->d->env, &q->d->workers[worker], q->vaddrs + job->first_slot,
		   q->rows + job->first_slot);
}

/* Threads are started for each query and end with it. */
static void run_jobs(struct query *q)
{
	uint64_t nr_bytes = 0;
	vec_foreach(job, &q->jobs) {
		const struct dw_unit *u = &q->d->main.units.p[job->unit];
		nr_bytes += u->end - u->offset;
	}
	q->order = xcalloc(q->jobs.n + 1, sizeof(*q->order));
	for (size_t i = 0; i < q->jobs.n; i++)
		q->order[i] = (uint32_t)i;
	qsort_r(q->order, q->jobs.n, sizeof(*q->order), by_size, q);
	uint64_t nr_useful = MIN(q->jobs.n, 1 + nr_bytes / BYTES_PER_THREAD_MIN);
	struct work_pool *pool = work_new((unsigned)MAX(MIN(nr_useful, q->d->nr_workers), 1));
	work_run(pool, q->jobs.n, run_job, q);
	work_free(pool);
}

/* Chooses among the units that may cover an address: one with a function, else one with a line. */
static size_t best_hit(const struct query *q, size_t first, size_t end)
{
	size_t best = first;
	for (size_t i = first; i < end; i++) {
		if (q->leaves[q->slot_of[i]] != DW_NO_NODE)
			return i;
		if (!q->rows[q->slot_of[best]].seq_end && q->rows[q->slot_of[i]].seq_end)
			best = i;
	}
	return best;
}

static void give_results(struct query *q, size_t nr, dwarf_result_fn result, void *ctx)
{
	dw_frames frames = {0};
	size_t next = 0;
	for (size_t i = 0; i < nr; i++) {
		size_t first = next;
		while (next < q->hits.n && q->hits.p[next].query == i)
			next++;
		vec_clear(&frames);
		if (next > first) {
			size_t hit = best_hit(q, first, next);
			uint32_t slot = q->slot_of[hit];
			const struct dw_job *job = &q->jobs.p[q->job_of[q->hits.p[hit].unit] - 1];
			dw_job_frames(job, q->leaves[slot], &q->rows[slot], &frames);
		}
		result(ctx, i, frames.p, frames.n);
	}
	vec_release(&frames);
}

/* ---- loading ---- */

/* Releases everything derived from the loaded sections; the counters are kept. */
static void release_loaded(struct dwarf *d)
{
	for (unsigned i = 0; i < d->nr_workers; i++) {
		struct dwarf_stats stats = d->workers[i].stats;
		dw_worker_release(&d->workers[i]);
		dw_worker_init(&d->workers[i]);
		d->workers[i].stats = stats;
	}
	dw_index_release(&d->index);
	dw_file_release(&d->main);
	d->main = (struct dw_file){0};
	dw_part_release(&d->part);
}

static bool load_part(struct dwarf *d, const struct dw_part_query *query)
{
	if (!dw_part_load(&d->part, &d->main, d->elf, query))
		return false;
	build_index(d);
	dw_hits hits = {0};
	dw_index_find(&d->index, query->vaddrs, query->nr_vaddrs, &hits);
	size_t nr_found = 0;
	for (size_t i = 0; i < hits.n; i++)
		nr_found += !i || hits.p[i].query != hits.p[i - 1].query;
	vec_release(&hits);
	/* The units must cover the addresses that .debug_aranges assigned to them. */
	return nr_found >= d->part.nr_covered;
}

/* If the sections cannot be read, there are no results; symbol tables are still used. */
static void reload_whole(struct dwarf *d)
{
	release_loaded(d);
	if (load_whole(d, NULL))
		d->main.nr_units_bad++;
	d->loaded = LOADED_WHOLE;
}

/* A partial load is used for one query only: repeated queries need most of the file anyway. */
static void load_for(struct dwarf *d, const struct dw_part_query *query)
{
	if (d->loaded == LOADED_WHOLE)
		return;
	if (d->loaded == LOADED_NOTHING && load_part(d, query))
		d->loaded = LOADED_PART;
	else
		reload_whole(d);
}

static void run_query(struct query *q, const uint64_t *vaddrs, size_t nr)
{
	struct dwarf *d = q->d;
	dw_index_find(&d->index, vaddrs, nr, &q->hits);
	group_by_unit(q, vaddrs);
	run_jobs(q);
	if (!atomic_load(&d->part.is_unit_missing))
		return;
	/* A unit that was not loaded is referenced. */
	query_release(q);
	*q = (struct query){.d = d};
	reload_whole(d);
	run_query(q, vaddrs, nr);
}

int dwarf_query(struct dwarf *d, const uint64_t *vaddrs, size_t nr, unsigned flags,
		dwarf_result_fn result, void *ctx, struct err *err)
{
	if (nr >= UINT32_MAX / DW_CANDIDATES_MAX)
		return err_set(err, -E2BIG, "too many addresses in one query: %zu", nr);
	for (size_t i = 1; i < nr; i++)
		ASSERT(vaddrs[i - 1] <= vaddrs[i]);

	const struct dw_part_query query = {vaddrs, nr, d->env.min_vaddr,
					    !(flags & DWARF_NO_LINES)};
	load_for(d, &query);
	CLEANUP(query_release) struct query q = {.d = d};
	d->env.flags = flags;
	run_query(&q, vaddrs, nr);
	give_results(&q, nr, result, ctx);
	for (unsigned i = 0; i < d->nr_workers; i++)
		arena_release(&d->workers[i].path_text);
	return 0;
}
