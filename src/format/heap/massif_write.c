/*
 * Writer of massif.out; see massif.h.
 *
 *	history (what was allocated and freed in each slice, and what was live between), snapshots
 *	or live
 *	    -> moments: time, level, thread stacks, whether there is a tree
 *	    -> at most 100 of them: peak, first, last and those with trees stay
 *	    -> trees: allocating function first, then its callers, as massif has them
 */
#include "base/base.h"
#include "format/heap/massif.h"

#include "base/mem.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/heap/heapsteps.h"
#include "model/heap.h"
#include "model/tables.h"

#define MS_NS         ((uint64_t)1000000)
#define SNAPSHOTS_MAX 100
#define MANY          20
#define TREES_MAX     12 /* detailed ones, besides the peak's */
#define DEPTH_MAX     200
#define THRESHOLD     0.01

struct moment {
	uint64_t time_ns; /* since the start */
	uint64_t heap_bytes;
	uint64_t extra_bytes;
	uint64_t stacks_bytes;
	bool is_peak;
	bool can_have_tree; /* the end of a slice: what is live is known by stack */
	bool has_tree;
};

/* A stack while a tree is built: the next frame to write, and its live bytes. */
struct branch {
	stack_id stack;     /* 0: no more frames */
	uint32_t frame_idx; /* of its location, innermost first */
	uint64_t nr_bytes;
	uint64_t key; /* of the frame */
};
struct branches {
	struct branch *p;
	size_t n;
	size_t cap;
};

struct writer {
	struct format_output *to;
	const struct profile *p;
	const struct heapwrite_options *options;
	struct heapsteps rows;
	VEC(struct moment) moments; /* by time */
	uint64_t *held;             /* live bytes by key, at the moment that is written */
	size_t next_step;
	struct branches branches;
	uint64_t unit_ns;
	double threshold_bytes; /* of the tree that is written */
	loc_id below;           /* HEAP_BELOW of a profile that came from massif, or 0 */
};

static void writer_release(struct writer *w)
{
	heapsteps_release(&w->rows);
	vec_release(&w->moments);
	vec_release(&w->branches);
	free(w->held);
}

/* ---- moments ------------------------------------------------------------------------------ */

static void add_moment(struct writer *w, uint64_t time_ns, uint64_t heap_bytes, bool has_tree)
{
	struct moment *last = w->moments.n ? vec_last(&w->moments) : NULL;
	if (last && last->time_ns == time_ns && !last->is_peak) {
		last->heap_bytes = heap_bytes;
		last->has_tree |= has_tree;
		return;
	}
	vec_push(&w->moments, (struct moment){.time_ns = time_ns,
					      .heap_bytes = heap_bytes,
					      .has_tree = has_tree});
}

static void add_peak(struct writer *w)
{
	vec_push(&w->moments, (struct moment){.time_ns = w->rows.peak_ns,
					      .heap_bytes = (uint64_t)w->rows.peak_bytes,
					      .is_peak = true,
					      .has_tree = true});
}

/* Live bytes at the start, at the end of each slice, and at the peak. */
static void moments_of_history(struct writer *w)
{
	uint64_t level = 0;
	bool has_peak = w->rows.peak;
	add_moment(w, 0, 0, false);
	for (size_t i = 0; i < w->rows.steps.n;) {
		const struct heap_step *first = &w->rows.steps.p[i];
		uint64_t end_ns = first->end_ns;
		for (; i < w->rows.steps.n && w->rows.steps.p[i].end_ns == end_ns; i++) {
			level += (uint64_t)w->rows.steps.p[i].allocated.nr_bytes;
			level -= (uint64_t)w->rows.steps.p[i].freed.nr_bytes;
		}
		if (has_peak && w->rows.peak_ns < end_ns) {
			add_peak(w);
			has_peak = false;
		}
		/* the last slice may be incomplete */
		if (i == w->rows.steps.n && w->rows.end_ns > first->begin_ns)
			end_ns = MIN(end_ns, w->rows.end_ns);
		uint64_t last_ns = vec_last(&w->moments)->time_ns;
		add_moment(w, MAX(end_ns, last_ns), (int64_t)level < 0 ? 0 : level, false);
		vec_last(&w->moments)->can_have_tree = true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct moment *x = a;
	const struct moment *y = b;
	return COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->can_have_tree, y->can_have_tree);
}

/* Adds what was live between the ends of slices, where one process was recorded in full. */
static void add_levels(struct writer *w)
{
	const struct table *t = heap_levels_of(w->p);
	if (!t)
		return;
	uint64_t last_ns = vec_last(&w->moments)->time_ns;
	for (size_t i = 0; i < t->n; i++) {
		int64_t v = t->values[i * t->nr_columns + HEAP_BYTES];
		uint64_t at = heapsteps_since(w->p, t->time_ns[i]);
		if (at < last_ns)
			vec_push(&w->moments,
				 (struct moment){.time_ns = at, .heap_bytes = (uint64_t)MAX(v, 0)});
	}
	qsort(w->moments.p, w->moments.n, sizeof(*w->moments.p), by_time);
}

/* Moments from the rows of "memory" and "snapshots", as read from massif files. */
static void moments_of_snapshots(struct writer *w, const struct table *snapshots,
				 const struct table *peak, const struct table *memory)
{
	size_t s = 0;
	for (size_t i = 0; memory && i < memory->n; i++) {
		const int64_t *v = &memory->values[i * memory->nr_columns];
		uint64_t at = memory->time_ns[i];
		while (s < snapshots->n && snapshots->time_ns[s] < at)
			s++;
		bool has_tree = s < snapshots->n && snapshots->time_ns[s] == at;
		add_moment(w, heapsteps_since(w->p, at), (uint64_t)MAX(v[HEAP_MEMORY_LIVE], 0),
			   has_tree);
		struct moment *m = vec_last(&w->moments);
		m->stacks_bytes = (uint64_t)MAX(v[HEAP_MEMORY_STACKS], 0);
		int64_t extra = v[HEAP_MEMORY_ANON] - v[HEAP_MEMORY_LIVE] - v[HEAP_MEMORY_STACKS];
		m->extra_bytes = (uint64_t)MAX(extra, 0);
		m->is_peak = peak && peak->n && peak->time_ns[0] == at;
	}
	for (size_t i = 0; !memory && i < snapshots->n;) {
		uint64_t at = snapshots->time_ns[i];
		uint64_t sum = 0;
		for (; i < snapshots->n && snapshots->time_ns[i] == at; i++)
			sum += (uint64_t)snapshots->values[i * snapshots->nr_columns + HEAP_BYTES];
		add_moment(w, heapsteps_since(w->p, at), sum, true);
	}
}

/* Adds the bytes of thread stacks, from the latest row of "memory". */
static void add_stacks(struct writer *w, const struct table *memory)
{
	size_t row = 0;
	uint64_t last = 0;
	vec_foreach(m, &w->moments) {
		for (; memory && row < memory->n; row++) {
			if (heapsteps_since(w->p, memory->time_ns[row]) > m->time_ns)
				break;
			int64_t v = memory->values[row * memory->nr_columns + HEAP_MEMORY_STACKS];
			last = (uint64_t)MAX(v, 0);
		}
		m->stacks_bytes = last;
	}
}

static bool is_required(const struct writer *w, size_t i)
{
	const struct moment *m = &w->moments.p[i];
	return m->is_peak || (m->can_have_tree && m->has_tree) || !i || i + 1 == w->moments.n;
}

/* Drops every other moment that is not required. */
static void halve(struct writer *w)
{
	size_t nr = 0;
	size_t nr_plain = 0;
	size_t n = w->moments.n;
	for (size_t i = 0; i < n; i++)
		if (is_required(w, i) || nr_plain++ % 2 == 0)
			w->moments.p[nr++] = w->moments.p[i];
	w->moments.n = nr;
}

/* Drops the moment that is nearest to its neighbours, as massif does. */
static void drop_nearest(struct writer *w)
{
	struct moment *m = w->moments.p;
	size_t at = 0;
	for (size_t i = 1; i + 1 < w->moments.n; i++)
		if (!is_required(w, i) && (!at || m[i + 1].time_ns - m[i - 1].time_ns <
							  m[at + 1].time_ns - m[at - 1].time_ns))
			at = i;
	memmove(m + at, m + at + 1, (--w->moments.n - at) * sizeof(*m));
}

static void thin_out(struct writer *w)
{
	while (w->moments.n > MANY * SNAPSHOTS_MAX) /* dropping the nearest one takes n steps */
		halve(w);
	while (w->moments.n > SNAPSHOTS_MAX)
		drop_nearest(w);
}

/* Finds the peak if it is not known; chooses the last and some other moments for trees. */
static void choose_trees(struct writer *w, bool has_history)
{
	size_t highest = 0;
	size_t nr_ends = 0;
	size_t nr = 0;
	bool has_peak = false;
	vec_foreach(m, &w->moments)
		nr_ends += m->can_have_tree;
	for (size_t i = 0; i < w->moments.n; i++) {
		struct moment *m = &w->moments.p[i];
		bool can_be = has_history ? m->can_have_tree : m->has_tree;
		if (can_be && m->heap_bytes > w->moments.p[highest].heap_bytes)
			highest = i;
		has_peak |= m->is_peak;
		size_t step = nr_ends / TREES_MAX + 1;
		if (has_history && m->can_have_tree && (++nr == nr_ends || nr % step == 0))
			m->has_tree = true;
	}
	if (!has_peak && w->moments.n && w->moments.p[highest].heap_bytes)
		w->moments.p[highest].is_peak = w->moments.p[highest].has_tree = true;
}

/* ---- trees -------------------------------------------------------------------------------- */

static void add_branch(struct writer *w, stack_id stack, uint64_t nr_bytes)
{
	if (nr_bytes)
		vec_push(&w->branches, (struct branch){.stack = stack, .nr_bytes = nr_bytes});
}

static uint64_t key_of(const struct writer *w, const struct branch *b)
{
	if (!b->stack)
		return 0;
	loc_id loc = w->p->stacks.p[b->stack].loc;
	const struct location *l = &w->p->locations.p[loc];
	if (!l->nr_frames)
		return (uint64_t)1 << 63 | loc;
	const struct frame *f = &w->p->frames.p[l->first_frame + b->frame_idx];
	return (uint64_t)f->func << 24 | (f->line & 0xffffff);
}

static void step_up(const struct writer *w, struct branch *b)
{
	const struct location *l = &w->p->locations.p[w->p->stacks.p[b->stack].loc];
	if (++b->frame_idx < l->nr_frames)
		return;
	b->frame_idx = 0;
	b->stack = w->p->stacks.p[b->stack].parent;
}

static int by_key(const void *a, const void *b)
{
	const struct branch *x = a;
	const struct branch *y = b;
	return COMPARE(x->key, y->key)
		       ?: COMPARE(x->stack, y->stack)
		       ?: COMPARE(x->frame_idx, y->frame_idx);
}

struct group {
	size_t first;
	size_t nr;
	uint64_t nr_bytes;
};

static int by_bytes(const void *a, const void *b)
{
	const struct group *x = a;
	const struct group *y = b;
	return COMPARE(y->nr_bytes, x->nr_bytes) ?: COMPARE(x->first, y->first);
}

static void add_text(struct buf *to, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_add_ch(to, (uint8_t)s.p[i] < ' ' ? ' ' : s.p[i]);
}

static void add_frame(struct writer *w, const struct branch *b)
{
	struct buf *to = &w->to->buf;
	if (!b->stack) {
		buf_add_str(to, "0x0: [start of the stack]\n");
		return;
	}
	const struct location *l = &w->p->locations.p[w->p->stacks.p[b->stack].loc];
	struct sv path = profile_sv(w->p, w->p->modules.p[l->module].path);
	/* the offset is not an address in MODULE_NAMED modules */
	bool is_address = w->p->modules.p[l->module].kind != MODULE_NAMED || !l->nr_frames;
	buf_addf(to, "0x%" PRIX64 ": ", is_address ? l->offset : 0);
	const struct frame *f =
		l->nr_frames ? &w->p->frames.p[l->first_frame + b->frame_idx] : NULL;
	add_text(to, f ? sv_from_str(profile_frame_name(w->p, f)) : SV("???"));
	if (f && f->file) {
		buf_add_str(to, " (");
		add_text(to, profile_sv(w->p, f->file));
		buf_addf(to, ":%" PRIu32 ")", f->line);
	} else if (path.n) {
		buf_add_str(to, " (in ");
		add_text(to, path);
		buf_add_str(to, ")");
	}
	buf_add_ch(to, '\n');
}

static bool is_left_out(const struct writer *w, const struct branch *b)
{
	return w->below && b->stack && w->p->stacks.p[b->stack].loc == w->below;
}

static void add_below(struct writer *w, size_t depth, size_t nr, uint64_t nr_bytes)
{
	buf_add_repeat(&w->to->buf, ' ', depth);
	buf_addf(&w->to->buf, "n0: %" PRIu64 " in %zu %s below massif's threshold (1.00%%)\n",
		 nr_bytes, nr, nr == 1 ? "place," : "places, all");
}

struct groups {
	struct group *p;
	size_t n;
	size_t cap;
	size_t nr_below; /* sites below the threshold, and their bytes */
	uint64_t bytes_below;
};

/* Groups branches by their next frame, largest first. */
static void group_branches(struct writer *w, struct group of, struct groups *to)
{
	struct branch *b = w->branches.p;
	size_t end = of.first + of.nr;
	for (size_t i = of.first; i < end; i++)
		b[i].key = key_of(w, &b[i]);
	qsort(b + of.first, of.nr, sizeof(*b), by_key);
	for (size_t i = of.first; i < end;) {
		struct group g = {.first = i};
		for (; i < end && b[i].key == b[g.first].key; i++)
			g.nr_bytes += b[i].nr_bytes;
		g.nr = i - g.first;
		bool is_below = (double)g.nr_bytes < w->threshold_bytes;
		if (is_below || is_left_out(w, &b[g.first])) {
			to->nr_below++;
			to->bytes_below += g.nr_bytes;
		} else {
			vec_push(to, g);
		}
	}
	if (to->n)
		qsort(to->p, to->n, sizeof(*to->p), by_bytes);
}

static bool has_more(const struct writer *w, struct group of)
{
	for (size_t i = of.first; i < of.first + of.nr; i++)
		if (w->branches.p[i].stack)
			return true;
	return false;
}

/* Writes a node and its subtree; @depth 0 is the root, for all allocation functions. */
static void write_node(struct writer *w, struct group of, size_t depth)
{
	const struct branch first = w->branches.p[of.first];
	for (size_t i = of.first; depth && i < of.first + of.nr; i++)
		if (w->branches.p[i].stack)
			step_up(w, &w->branches.p[i]);
	struct groups groups = {0};
	if (depth < DEPTH_MAX && (!depth || has_more(w, of)))
		group_branches(w, of, &groups);
	struct buf *to = &w->to->buf;
	buf_add_repeat(to, ' ', depth);
	buf_addf(to, "n%zu: %" PRIu64 " ", groups.n + (groups.nr_below != 0), of.nr_bytes);
	if (depth)
		add_frame(w, &first);
	else
		buf_add_str(to,
			    "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n");
	vec_foreach(g, &groups)
		write_node(w, *g, depth + 1);
	if (groups.nr_below)
		add_below(w, depth + 1, groups.nr_below, groups.bytes_below);
	vec_release(&groups);
}

static void collect_held(struct writer *w)
{
	for (size_t i = 0; i < w->rows.keys.n; i++)
		if ((int64_t)w->held[i] > 0)
			add_branch(w, w->rows.keys.p[i].stack, w->held[i]);
}

static void collect_peak(struct writer *w)
{
	for (size_t i = 0; i < w->rows.keys.n; i++)
		add_branch(w, w->rows.keys.p[i].stack, (uint64_t)w->rows.peak[i].nr_bytes);
}

static void collect_snapshot(struct writer *w, const struct table *t, uint64_t time_ns)
{
	for (size_t i = 0; i < t->n; i++) {
		stack_id stack = t->stack[i];
		if (heapsteps_since(w->p, t->time_ns[i]) != time_ns)
			continue;
		if (w->options->trim)
			stack = w->options->trim(w->options->trim_ctx, stack);
		add_branch(w, stack, (uint64_t)MAX(t->values[i * t->nr_columns + HEAP_BYTES], 0));
	}
}

/* Advances the live bytes to the end of the last slice before @time_ns. */
static void advance(struct writer *w, uint64_t time_ns)
{
	for (; w->next_step < w->rows.steps.n; w->next_step++) {
		const struct heap_step *s = &w->rows.steps.p[w->next_step];
		bool is_last = s->end_ns == vec_last(&w->rows.steps)->end_ns;
		if (s->end_ns > time_ns && !(is_last && time_ns >= w->rows.end_ns))
			return;
		w->held[s->key] += (uint64_t)s->allocated.nr_bytes;
		w->held[s->key] -= (uint64_t)s->freed.nr_bytes;
	}
}

static void write_tree(struct writer *w, const struct moment *m, const struct table *snapshots)
{
	vec_clear(&w->branches);
	if (snapshots)
		collect_snapshot(w, snapshots, m->time_ns);
	else if (m->is_peak && w->rows.peak)
		collect_peak(w);
	else
		collect_held(w);
	struct group all = {.nr = w->branches.n};
	vec_foreach(b, &w->branches)
		all.nr_bytes += b->nr_bytes;
	uint64_t total = m->heap_bytes + m->extra_bytes + m->stacks_bytes;
	w->threshold_bytes = THRESHOLD * (double)total;
	if (!all.nr) {
		buf_add_str(&w->to->buf, "heap_tree=empty\n");
		return;
	}
	buf_addf(&w->to->buf, "heap_tree=%s\n", m->is_peak ? "peak" : "detailed");
	write_node(w, all, 0);
}

/* ---- the file ----------------------------------------------------------------------------- */

static void write_moment(struct writer *w, size_t i, const struct table *snapshots)
{
	const struct moment *m = &w->moments.p[i];
	struct buf *to = &w->to->buf;
	buf_addf(to, "#-----------\nsnapshot=%zu\n#-----------\ntime=%" PRIu64 "\n", i,
		 m->time_ns / w->unit_ns);
	buf_addf(to,
		 "mem_heap_B=%" PRIu64 "\nmem_heap_extra_B=%" PRIu64 "\nmem_stacks_B=%" PRIu64 "\n",
		 m->heap_bytes, m->extra_bytes, m->stacks_bytes);
	if (!snapshots)
		advance(w, m->time_ns);
	if (m->has_tree)
		write_tree(w, m, snapshots);
	else
		buf_add_str(to, "heap_tree=empty\n");
}

static void write_head(struct writer *w)
{
	struct buf *to = &w->to->buf;
	const char *options = profile_get_fact(w->p, FACT_MASSIF_OPTIONS);
	const char *command = profile_get_fact(w->p, FACT_COMMAND);
	const char *target = profile_get_fact(w->p, FACT_TARGET);
	const char *unit = profile_get_fact(w->p, FACT_MASSIF_UNIT);
	bool is_small = unit && (!strcmp(unit, "i") || !strcmp(unit, "B"));
	w->unit_ns = is_small ? 1 : MS_NS;
	buf_add_str(to, "desc: ");
	add_text(to, sv_from_str(options ? options : "(none)"));
	buf_add_str(to, "\ncmd: ");
	add_text(to, sv_from_str(command ? command : target ? target : "unknown"));
	buf_addf(to, "\ntime_unit: %s\n", is_small ? unit : "ms");
}

static void find_below(struct writer *w)
{
	for (size_t i = 1; i < w->p->locations.n; i++) {
		const struct location *l = &w->p->locations.p[i];
		if (l->nr_frames && w->p->modules.p[l->module].kind == MODULE_PSEUDO &&
		    !strcmp(profile_frame_name(w->p, &w->p->frames.p[l->first_frame]), HEAP_BELOW))
			w->below = (loc_id)i;
	}
}

int massif_write(struct format_output *to, const struct profile *p,
		 const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release)
	struct writer w = {.to = to, .p = p, .options = &options->heapwrite};
	const struct table *snapshots = tables_find(p, TABLE_SNAPSHOTS);
	const struct table *memory = tables_find(p, TABLE_MEMORY);
	TRY(heapsteps_init(&w.rows, p, &options->heapwrite,
			   "massif.out holds what assay heap records", err));
	w.held = xcalloc(w.rows.keys.n, sizeof(*w.held));
	if (snapshots && snapshots->n) {
		moments_of_snapshots(&w, snapshots, tables_find(p, TABLE_PEAK),
				     memory && memory->n ? memory : NULL);
	} else {
		snapshots = NULL;
		moments_of_history(&w);
		add_levels(&w);
		add_stacks(&w, memory);
	}
	choose_trees(&w, !snapshots);
	thin_out(&w);
	write_head(&w);
	find_below(&w);
	int rc = 0;
	for (size_t i = 0; !rc && i < w.moments.n; i++) {
		write_moment(&w, i, snapshots);
		rc = format_spill(to, err);
	}
	return rc;
}
