/* Looks up the addresses of one unit; see dwarf_query.h. */
#include "base/base.h"
#include "symbol/dwarf/dwarf_query.h"

#include <stdlib.h>

#define FILES_MAX 65536 /* paths of file numbers below this are cached */

void dw_worker_init(struct dw_worker *w)
{
	*w = (struct dw_worker){0};
	w->names.abbrevs = &w->abbrevs;
	w->names.text = &w->text;
}

void dw_worker_release(struct dw_worker *w)
{
	arena_release(&w->text);
	arena_release(&w->path_text);
	dw_abbrev_cache_release(&w->abbrevs);
	dw_names_release(&w->names);
	dw_lines_release(&w->lines);
	vec_release(&w->path_of_file);
	vec_release(&w->order);
}

void dw_job_release(struct dw_job *job)
{
	dw_scan_release(&job->scan);
	vec_release(&job->paths);
}

/* Marks and lists the nodes from each leaf outwards. */
static void mark_used(struct dw_worker *w, struct dw_scan *s)
{
	vec_clear(&w->order);
	for (size_t i = 0; i < s->nr_vaddrs; i++) {
		for (uint32_t n = s->leaves[i]; n != DW_NO_NODE && !s->nodes.p[n].is_used;
		     n = s->nodes.p[n].parent) {
			s->nodes.p[n].is_used = true;
			vec_push(&w->order, n);
		}
	}
}

static int by_name_place(const void *pa, const void *pb, void *ctx)
{
	const struct dw_node *nodes = ctx;
	const struct dw_ref *a = &nodes[*(const uint32_t *)pa].name_at;
	const struct dw_ref *b = &nodes[*(const uint32_t *)pb].name_at;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Sorted by file offset, so that other units which are referenced are read only once. */
static void name_nodes(struct dw_worker *w, struct dw_scan *s)
{
	const struct dw_file *f = s->unit->file;
	if (w->order.n)
		qsort_r(w->order.p, w->order.n, sizeof(*w->order.p), by_name_place, s->nodes.p);
	vec_foreach(i, &w->order) {
		struct dw_node *node = &s->nodes.p[*i];
		const struct dw_file *at = node->name_at.is_alt ? f->alt : f;
		if (at)
			node->name =
				dw_name_at(&w->names, at, node->name_at.offset, &node->is_plain);
	}
}

static uint32_t path_idx(struct dw_job *job, struct dw_worker *w, uint32_t file)
{
	if (file >= w->path_of_file.n)
		return 0;
	uint32_t *idx = &w->path_of_file.p[file];
	if (!*idx) {
		vec_push(&job->paths, dw_lines_path(&w->lines, file, &w->path_text));
		*idx = (uint32_t)job->paths.n;
	}
	return *idx;
}

static void run_lines(struct dw_job *job, const struct dw_env *env, struct dw_worker *w,
		      const struct dw_unit *u, const uint64_t *vaddrs, struct dw_line_row *rows)
{
	if (!dw_lines_open(&w->lines, u)) {
		w->stats.nr_units_bad += u->stmt_list != DW_NO_OFFSET;
		vec_clear(&w->lines.files);
	} else if (!dw_lines_run(&w->lines, vaddrs, job->nr_slots, env->min_vaddr, rows)) {
		w->stats.nr_units_bad++;
	}
	vec_clear(&w->path_of_file);
	vec_reserve(&w->path_of_file, MIN(w->lines.files.n, FILES_MAX));
	while (w->path_of_file.n < MIN(w->lines.files.n, FILES_MAX))
		vec_push(&w->path_of_file, 0);
	for (size_t i = 0; i < job->nr_slots; i++) {
		if (rows[i].seq_end)
			rows[i].file = path_idx(job, w, rows[i].file);
	}
	vec_foreach(i, &w->order) {
		struct dw_node *node = &job->scan.nodes.p[*i];
		if (node->is_inlined)
			node->path_idx = path_idx(job, w, node->call_file);
	}
}

static void run_scan(struct dw_job *job, struct dw_worker *w, const struct dw_unit *u)
{
	CLEANUP(dw_abbrevs_put_p) struct dw_abbrevs *t = dw_abbrevs_get(&w->abbrevs, u);
	job->scan.unit = u;
	job->scan.abbrevs = t;
	w->stats.nr_units_scanned++;
	if (!t) {
		w->stats.nr_units_bad++;
		return;
	}
	w->stats.nr_scanned_bytes += u->end - u->offset;
	if (!dw_scan_run(&job->scan))
		w->stats.nr_units_bad++;
	mark_used(w, &job->scan);
	name_nodes(w, &job->scan);
}

void dw_job_run(struct dw_job *job, const struct dw_env *env, struct dw_worker *w,
		const uint64_t *vaddrs, struct dw_line_row *rows)
{
	const struct dw_unit *u = &env->main->units.p[job->unit];
	struct dw_scan *s = &job->scan;

	s->vaddrs = vaddrs;
	s->nr_vaddrs = job->nr_slots;
	s->min_vaddr = env->min_vaddr;
	s->flags = env->flags;
	for (size_t i = 0; i < job->nr_slots; i++)
		s->leaves[i] = DW_NO_NODE;
	vec_clear(&w->order);
	/* Well-formed files need each table and each unit once; this bounds hostile ones. */
	w->abbrevs.budget_bytes = 16 * (uint64_t)env->main->sec[DW_SEC_ABBREV].n + (64 << 20);
	w->names.budget_bytes = 4 * (uint64_t)env->main->sec[DW_SEC_INFO].n + (64 << 20);

	if (u->dwo_name.n || u->type == DW_UT_skeleton) {
		struct dw_split split;
		if (dw_split_open(&split, u, env->package, env->path, env->search, job->unit + 2)) {
			run_scan(job, w, split.unit);
			dw_names_drop_file(&w->names, &split.file);
			dw_split_release(&split);
		} else {
			/* Some compilers leave the inlines in the skeleton as well. */
			w->stats.nr_dwo_missing++;
			if (u->has_children)
				run_scan(job, w, u);
		}
	} else {
		run_scan(job, w, u);
	}
	if (!(env->flags & DWARF_NO_LINES))
		run_lines(job, env, w, u, vaddrs, rows);
	s->unit = NULL;
	s->abbrevs = NULL;
}

static struct sv path_at(const struct dw_job *job, uint32_t idx)
{
	return idx ? job->paths.p[idx - 1] : sv_from("", 0);
}

void dw_job_frames(const struct dw_job *job, uint32_t leaf, const struct dw_line_row *row,
		   dw_frames *frames)
{
	struct sv file = sv_from("", 0);
	uint32_t line = 0;
	if (row->seq_end) {
		file = path_at(job, row->file);
		line = row->line;
	}
	vec_clear(frames);
	if (leaf == DW_NO_NODE) {
		if (row->seq_end)
			vec_push(frames, (struct dwarf_frame){.linkage = sv_from("", 0),
							      .file = file,
							      .line = line});
		return;
	}
	for (uint32_t n = leaf; n != DW_NO_NODE;) {
		const struct dw_node *node = &job->scan.nodes.p[n];
		vec_push(frames, (struct dwarf_frame){.linkage = node->name,
						      .file = file,
						      .line = line,
						      .func_start = node->func_start,
						      .is_inlined = node->is_inlined,
						      .is_plain = node->is_plain});
		file = path_at(job, node->path_idx);
		line = node->call_line;
		n = node->parent;
	}
	uint64_t start = vec_last(frames)->func_start;
	vec_foreach(f, frames) {
		f->func_start = start;
		if (!f->linkage.p)
			f->linkage = sv_from("", 0);
	}
}
