/*
 * Writer of heaptrack's files, version 3; see heaptrack.c.
 *
 * A profile has sums per slice of time (model/heap.h), not events. The events of a slice are generated such that totals,
 * live bytes at the end of each slice and the peak equal the profile's, and live bytes never
 * exceed the peak. Blocks of one row get sizes that differ by at most one byte and add up to the
 * row's bytes.
 *
 * The blocks of a slice are grouped into runs of equal size. The runs are ordered such that live
 * bytes stay between 0 and the larger of the values at the start and the end of the slice: frees
 * come first while there is something to free. The slice with the peak is written in two parts,
 * before and after the peak, so that the live bytes of each stack at the peak are those of the
 * profile. heaptrack counts an allocation as temporary if the next event is a free with the same
 * number. So frees have their own numbers, except for temporary pairs, which are written when live
 * bytes are low enough for them. A temporary block that is live at the end of a slice is a pair in one
 * of its two slices, so live bytes there lack it: at most one block for each thread.
 */
#include "base/base.h"
#include "format/format.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "format/heap/heapsteps.h"
#include "model/heap.h"
#include "model/tables.h"

#define MS_NS ((uint64_t)1000000)
#define PAGE  4096

/* Blocks of one size. */
struct run {
	uint32_t key;
	uint64_t nr_bytes;
	int64_t nr;
};

struct runs {
	struct run *p;
	size_t n;
	size_t cap;
};

struct writer {
	struct format_output *to;
	const struct profile *p;
	struct heapsteps rows;
	struct map strings; /* str_id -> number */
	uint32_t nr_strings;
	uint32_t *ips; /* by location: number, 0 = not yet */
	uint32_t nr_ips;
	uint32_t *nodes; /* by stack */
	uint32_t nr_nodes;
	struct map infos; /* (key, size, kind) -> number */
	uint32_t nr_infos;

	struct heap_amount *held;  /* by key: live now */
	struct heap_amount *carry; /* by key: frees postponed to the next slice */
	struct runs frees;
	struct runs allocs;
	struct runs pairs; /* temporary pairs not yet written */
	int64_t level;
	bool is_past_peak;
	struct run bridge; /* the temporary block that was live at the peak, if any */

	const struct table *memory; /* or NULL */
	size_t memory_row;
	uint64_t time_ms;
	bool has_time;
};

static void writer_release(struct writer *w)
{
	heapsteps_release(&w->rows);
	map_release(&w->strings);
	map_release(&w->infos);
	free(w->ips);
	free(w->nodes);
	free(w->held);
	free(w->carry);
	vec_release(&w->frees);
	vec_release(&w->allocs);
	vec_release(&w->pairs);
}

/* ---- strings, addresses, stacks, infos ----------------------------------------------------- */

static void add_text(struct buf *to, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_add_ch(to, s.p[i] == '\n' || s.p[i] == '\r' ? ' ' : s.p[i]);
}

static uint32_t string_number(struct writer *w, str_id id)
{
	if (!id)
		return 0;
	bool is_new;
	uint32_t *number = map_put(&w->strings, id, &is_new);
	if (is_new) {
		*number = ++w->nr_strings;
		struct sv s = profile_sv(w->p, id);
		buf_add_str(&w->to->buf, "s ");
		buf_add_hex(&w->to->buf, s.n);
		buf_add_ch(&w->to->buf, ' ');
		add_text(&w->to->buf, s);
		buf_add_ch(&w->to->buf, '\n');
	}
	return *number;
}

static void add_number(struct writer *w, uint64_t v)
{
	buf_add_ch(&w->to->buf, ' ');
	buf_add_hex(&w->to->buf, v);
}

static uint32_t ip_number(struct writer *w, loc_id loc)
{
	if (w->ips[loc])
		return w->ips[loc];
	const struct location *l = &w->p->locations.p[loc];
	uint32_t module = string_number(w, w->p->modules.p[l->module].path);
	VEC(uint64_t) fields = {0};
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &w->p->frames.p[l->first_frame + i];
		vec_push(&fields, string_number(w, w->p->functions.p[f->func].name));
		vec_push(&fields, string_number(w, f->file));
		vec_push(&fields, f->line);
	}
	buf_add_ch(&w->to->buf, 'i');
	add_number(w, l->offset);
	add_number(w, module);
	vec_foreach(v, &fields)
		add_number(w, *v);
	buf_add_ch(&w->to->buf, '\n');
	vec_release(&fields);
	return w->ips[loc] = ++w->nr_ips;
}

/* Parents have smaller ids than children: mark used nodes from high to low ids, then write. */
static int write_stacks(struct writer *w, struct err *err)
{
	vec_foreach(k, &w->rows.keys)
		w->nodes[k->stack] = 1;
	for (size_t i = w->p->stacks.n; i-- > 1;)
		if (w->nodes[i])
			w->nodes[w->p->stacks.p[i].parent] = 1;
	w->nodes[0] = 0;
	for (size_t i = 1; i < w->p->stacks.n; i++) {
		if (!w->nodes[i])
			continue;
		const struct stack_node *n = &w->p->stacks.p[i];
		uint32_t ip = ip_number(w, n->loc);
		buf_add_ch(&w->to->buf, 't');
		add_number(w, ip);
		add_number(w, w->nodes[n->parent]);
		buf_add_ch(&w->to->buf, '\n');
		w->nodes[i] = ++w->nr_nodes;
		TRY(format_spill(w->to, err));
	}
	return 0;
}

enum info_kind { INFO_ALLOCATED = 0, INFO_FREED = 1 };

static uint32_t info_number(struct writer *w, uint32_t key, uint64_t nr_bytes, enum info_kind kind)
{
	bool is_new;
	uint32_t *number =
		map_put(&w->infos, hash_mix((uint64_t)key << 1 | kind, nr_bytes), &is_new);
	if (is_new) {
		*number = w->nr_infos++;
		buf_add_ch(&w->to->buf, 'a');
		add_number(w, nr_bytes);
		add_number(w, w->nodes[w->rows.keys.p[key].stack]);
		buf_add_ch(&w->to->buf, '\n');
	}
	return *number;
}

/* ---- events ------------------------------------------------------------------------------- */

static void event(struct writer *w, char what, uint64_t number)
{
	buf_add_ch(&w->to->buf, what);
	add_number(w, number);
	buf_add_ch(&w->to->buf, '\n');
}

/* Unsigned arithmetic, as sums of a damaged profile may wrap. */
static void shift(struct writer *w, uint64_t nr_bytes)
{
	w->level = (int64_t)((uint64_t)w->level + nr_bytes);
}

static bool has_room(const struct writer *w, int64_t limit, uint64_t nr_bytes)
{
	return (__int128)w->level + nr_bytes <= limit;
}

static void allocate(struct writer *w, struct run *r)
{
	event(w, '+', info_number(w, r->key, r->nr_bytes, INFO_ALLOCATED));
	shift(w, r->nr_bytes);
	r->nr--;
}

static void release(struct writer *w, struct run *r)
{
	event(w, '-', info_number(w, r->key, r->nr_bytes, INFO_FREED));
	shift(w, -r->nr_bytes);
	r->nr--;
}

/* Adds runs for an amount: its number of blocks, of sizes that differ by at most one byte. */
static void add_runs(struct runs *to, uint32_t key, struct heap_amount a)
{
	if (a.nr <= 0)
		return;
	uint64_t nr_bytes = (uint64_t)a.nr_bytes / (uint64_t)a.nr;
	int64_t nr_larger = a.nr_bytes % a.nr;
	if (nr_larger)
		vec_push(to, (struct run){key, nr_bytes + 1, nr_larger});
	if (a.nr > nr_larger)
		vec_push(to, (struct run){key, nr_bytes, a.nr - nr_larger});
}

/* Writes the temporary pairs that fit below the peak; @is_last: all of them. */
static int write_pairs(struct writer *w, bool is_last, struct err *err)
{
	int64_t limit = w->rows.peak ? w->rows.peak_bytes - !w->is_past_peak : INT64_MAX;
	size_t nr_left = 0;
	for (size_t i = 0; i < w->pairs.n; i++) {
		struct run *r = &w->pairs.p[i];
		bool is_fit = is_last || has_room(w, limit, r->nr_bytes);
		if (!is_fit) {
			w->pairs.p[nr_left++] = *r;
			continue;
		}
		uint32_t number = info_number(w, r->key, r->nr_bytes, INFO_ALLOCATED);
		for (; r->nr > 0; r->nr--) {
			event(w, '+', number);
			event(w, '-', number);
			TRY(format_spill(w->to, err));
		}
	}
	w->pairs.n = nr_left;
	return 0;
}

/* Writes the runs in frees and allocs in an order that keeps live bytes below @limit. */
static int write_runs(struct writer *w, int64_t limit, struct err *err)
{
	size_t f = 0;
	size_t a = 0;
	bool has_pairs = w->pairs.n != 0;
	int rc = 0;
	while (!rc && (f < w->frees.n || a < w->allocs.n)) {
		struct run *fr = f < w->frees.n ? &w->frees.p[f] : NULL;
		struct run *al = a < w->allocs.n ? &w->allocs.p[a] : NULL;
		bool can_free = fr && w->level >= 0 && (uint64_t)w->level >= fr->nr_bytes;
		bool can_allocate = al && has_room(w, limit, al->nr_bytes);
		if (!can_free &&
		    has_pairs) { /* live bytes are at their minimum: write pairs once */
			rc = write_pairs(w, false, err);
			has_pairs = false;
		}
		if (can_free || (fr && !can_allocate))
			release(w, fr);
		else if (al)
			allocate(w, al);
		f += fr && !fr->nr;
		a += al && !al->nr;
		if (!rc)
			rc = format_spill(w->to, err);
	}
	vec_clear(&w->frees);
	vec_clear(&w->allocs);
	return rc ? rc : write_pairs(w, false, err);
}

/* ---- time --------------------------------------------------------------------------------- */

static void write_time(struct writer *w, uint64_t ms)
{
	if (w->has_time && ms <= w->time_ms)
		return;
	w->time_ms = ms;
	w->has_time = true;
	event(w, 'c', ms);
}

/* Advances the time, and writes the RSS values up to it. */
static void advance(struct writer *w, uint64_t ms)
{
	const struct table *t = w->memory;
	for (; t && w->memory_row < t->n; w->memory_row++) {
		uint64_t at = heapsteps_since(w->p, t->time_ns[w->memory_row]) / MS_NS;
		if (at > ms)
			break;
		int64_t rss = t->values[w->memory_row * t->nr_columns + HEAP_MEMORY_RSS];
		write_time(w, at);
		if (rss > 0) {
			buf_add_ch(&w->to->buf, 'R');
			add_number(w, (uint64_t)rss / PAGE);
			buf_add_ch(&w->to->buf, '\n');
		}
	}
	write_time(w, ms);
}

/* ---- slices ------------------------------------------------------------------------------- */

static struct heap_amount minus(struct heap_amount a, struct heap_amount b)
{
	/* unsigned: sums of a damaged profile may wrap */
	return (struct heap_amount){(int64_t)((uint64_t)a.nr - (uint64_t)b.nr),
				    (int64_t)((uint64_t)a.nr_bytes - (uint64_t)b.nr_bytes)};
}

static struct heap_amount plus(struct heap_amount a, struct heap_amount b)
{
	return (struct heap_amount){(int64_t)((uint64_t)a.nr + (uint64_t)b.nr),
				    (int64_t)((uint64_t)a.nr_bytes + (uint64_t)b.nr_bytes)};
}

/* Whether both or none of blocks and bytes are there. */
static bool is_whole(struct heap_amount a)
{
	return a.nr >= 0 && a.nr_bytes >= 0 && (a.nr || !a.nr_bytes);
}

static bool is_part(struct heap_amount part, struct heap_amount of)
{
	return is_whole(part) && is_whole(minus(of, part));
}

/* @nr blocks of the mean size of others. */
static struct heap_amount blocks_like(struct heap_amount of, int64_t nr)
{
	return (struct heap_amount){nr, of.nr_bytes / of.nr * nr};
}

/* The change of a key in a slice; temporary blocks separately. */
struct change {
	struct heap_amount allocated;
	struct heap_amount freed;
	struct heap_amount temporary;
};

static struct change change_of(struct writer *w, const struct heap_step *s)
{
	struct change c = {.allocated = minus(s->allocated, s->temporary),
			   .temporary = s->temporary};
	if (c.allocated.nr < 0 && s->temporary.nr > 0) {
		/* allocation and free of a pair are in different slices */
		c.temporary = blocks_like(s->temporary, s->allocated.nr);
		c.allocated = minus(s->allocated, c.temporary);
	}
	if (!is_whole(c.allocated) || !is_whole(c.temporary)) {
		c.allocated = s->allocated;
		c.temporary = (struct heap_amount){0};
	}
	c.freed = plus(minus(s->freed, c.temporary), w->carry[s->key]);
	w->carry[s->key] = (struct heap_amount){0};
	if (!is_whole(c.freed)) {
		w->carry[s->key] = c.freed;
		c.freed = (struct heap_amount){0};
	}
	return c;
}

/* Moves blocks from one slice to the other; false: it has no such blocks. */
static bool move_blocks(struct heap_amount *from, struct heap_amount *to, struct heap_amount n)
{
	if (!is_part(n, *from))
		return false;
	*from = minus(*from, n);
	*to = plus(*to, n);
	return true;
}

/*
 * Temporary blocks that were allocated in one slice and freed in the next in which their key has
 * events become pairs of the slice of their free; of that of their allocation, if they were live at
 * the peak in it.
 */
static void pair_across(const struct writer *w, struct heap_step *before, struct heap_step *s)
{
	int64_t nr = s->temporary.nr - s->allocated.nr;
	if (nr <= 0 || s->temporary.nr_bytes < 0)
		return;
	struct heap_amount n = blocks_like(s->temporary, nr);
	uint64_t peak_ns = w->rows.peak_ns;
	bool is_at_peak = w->rows.peak && w->rows.peak[s->key].nr > 0 &&
			  peak_ns >= before->begin_ns && peak_ns < s->end_ns;
	struct heap_amount others = minus(before->allocated, before->temporary);
	if (!is_part(n, others))
		return;
	if (!is_at_peak) {
		(void)move_blocks(&before->allocated, &s->allocated, n);
	} else if (peak_ns < before->end_ns && is_part(n, s->freed)) {
		(void)move_blocks(&s->temporary, &before->temporary, n);
		(void)move_blocks(&s->freed, &before->freed, n);
	}
}

static void pair_temporary(const struct writer *w)
{
	CLEANUP(free_p) uint32_t *last = xcalloc(w->rows.keys.n, sizeof(*last)); /* index + 1 */
	for (uint32_t i = 0; i < w->rows.steps.n; i++) {
		struct heap_step *s = &w->rows.steps.p[i];
		if (last[s->key])
			pair_across(w, &w->rows.steps.p[last[s->key] - 1], s);
		last[s->key] = i + 1;
	}
}

/* Finds the part of a change that raises the live amount by @up; false: there is none. */
static bool find_part(struct heap_amount up, const struct change *c, struct change *ret_part)
{
	struct heap_amount one = {1, c->freed.nr > 0 ? c->freed.nr_bytes / c->freed.nr : 0};
	const struct change tries[] = {
		{.allocated = up},
		{.freed = minus((struct heap_amount){0}, up)},
		{.allocated = c->allocated, .freed = minus(c->allocated, up)},
		{.allocated = plus(up, c->freed), .freed = c->freed},
		{.allocated = plus(up, one), .freed = one},
	};
	for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
		if (!is_part(tries[i].allocated, c->allocated) ||
		    !is_part(tries[i].freed, c->freed))
			continue;
		*ret_part = tries[i];
		return true;
	}
	return false;
}

/*
 * Returns the part of a change that leads from the live amount of a key to its amount at the peak,
 * and removes it from *c. A temporary block may have been live at the peak: one of them is
 * allocated last before the peak and freed right after it (w->bridge); others become ordinary
 * blocks.
 */
static struct change take_part_to_peak(struct writer *w, uint32_t key, struct change *c)
{
	struct heap_amount up = minus(w->rows.peak[key], w->held[key]);
	struct heap_amount *t = &c->temporary;
	struct change part = {0};
	bool is_found = find_part(up, c, &part);
	if (!is_found && t->nr > 0) {
		struct heap_amount one = {1, t->nr_bytes / t->nr};
		bool is_exact = t->nr == 1 || t->nr_bytes % t->nr == 0;
		if (!w->bridge.nr && is_exact && find_part(minus(up, one), c, &part)) {
			w->bridge = (struct run){key, (uint64_t)one.nr_bytes, 1};
			*t = minus(*t, one);
			is_found = true;
		}
	}
	if (!is_found && t->nr > 0) {
		c->allocated = plus(c->allocated, *t);
		c->freed = plus(c->freed, *t);
		*t = (struct heap_amount){0};
		is_found = find_part(up, c, &part);
	}
	if (!is_found)
		part = (struct change){0};
	c->allocated = minus(c->allocated, part.allocated);
	c->freed = minus(c->freed, part.freed);
	return part;
}

static void add_change(struct writer *w, uint32_t key, struct change c)
{
	add_runs(&w->allocs, key, c.allocated);
	add_runs(&w->frees, key, c.freed);
	add_runs(&w->pairs, key, c.temporary);
	w->held[key] = minus(plus(w->held[key], c.allocated), c.freed);
}

static int64_t level_after(const struct writer *w)
{
	uint64_t level = (uint64_t)w->level;
	vec_foreach(r, &w->allocs)
		level += (uint64_t)r->nr * r->nr_bytes;
	vec_foreach(r, &w->frees)
		level -= (uint64_t)r->nr * r->nr_bytes;
	return (int64_t)level;
}

static int write_pending(struct writer *w, struct err *err)
{
	return write_runs(w, MAX(w->level, level_after(w)), err);
}

static void write_bridge(struct writer *w)
{
	if (!w->bridge.nr)
		return;
	uint32_t number = info_number(w, w->bridge.key, w->bridge.nr_bytes, INFO_ALLOCATED);
	event(w, '+', number);
	event(w, '-', number);
}

/* Writes steps [first, end), which are of one slice. */
static int write_slice(struct writer *w, size_t first, size_t end, struct err *err)
{
	const struct heap_step *slice = &w->rows.steps.p[first];
	bool has_peak = w->rows.peak && !w->is_past_peak && w->rows.peak_ns < slice->end_ns;
	advance(w, (has_peak ? w->rows.peak_ns : slice->begin_ns) / MS_NS);
	VEC(struct change) changes = {0};
	for (size_t i = first; i < end; i++)
		vec_push(&changes, change_of(w, &w->rows.steps.p[i]));
	int rc = 0;
	for (size_t i = 0; has_peak && i < changes.n; i++) {
		uint32_t key = w->rows.steps.p[first + i].key;
		struct change part = take_part_to_peak(w, key, &changes.p[i]);
		/* there may be no room for them at and after the peak */
		part.temporary = changes.p[i].temporary;
		changes.p[i].temporary = (struct heap_amount){0};
		add_change(w, key, part);
	}
	if (has_peak) {
		rc = write_pending(w, err);
		write_bridge(w);
		w->is_past_peak = true;
	}
	for (size_t i = 0; i < changes.n; i++)
		add_change(w, w->rows.steps.p[first + i].key, changes.p[i]);
	vec_release(&changes);
	return rc ? rc : write_pending(w, err);
}

/* ---- the file ----------------------------------------------------------------------------- */

static void write_head(struct writer *w)
{
	struct buf *to = &w->to->buf;
	const char *command = profile_get_fact(w->p, FACT_COMMAND);
	const char *target = profile_get_fact(w->p, FACT_TARGET);
	const char *name = command ? command : target ? target : "unknown";
	const char *attached = profile_get_fact(w->p, FACT_HEAP_ATTACHED);
	buf_add_str(to, "v 10400 3\nX ");
	add_text(to, sv_from_str(name));
	buf_addf(to, "\nI %x 0\n", PAGE);
	if (attached && !strcmp(attached, "attach"))
		buf_add_str(to, "A\n");
}

int heaptrack_write(struct format_output *to, const struct profile *p,
		    const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release) struct writer w = {.to = to, .p = p};
	TRY(heapsteps_init(&w.rows, p, &options->heapwrite,
			   "heaptrack's files hold what assay heap records", err));
	w.ips = xcalloc(p->locations.n, sizeof(*w.ips));
	w.nodes = xcalloc(p->stacks.n, sizeof(*w.nodes));
	w.held = xcalloc(w.rows.keys.n, sizeof(*w.held));
	w.carry = xcalloc(w.rows.keys.n, sizeof(*w.carry));
	w.memory = tables_find(p, TABLE_MEMORY);
	pair_temporary(&w);
	write_head(&w);
	int rc = write_stacks(&w, err);
	/* Number 0 is not used: heaptrack would count a free of it after another as temporary. */
	buf_addf(&to->buf, "a 0 %x\n", w.nr_nodes != 0);
	w.nr_infos = 1;
	for (size_t i = 0; !rc && i < w.rows.steps.n;) {
		size_t end = i + 1;
		while (end < w.rows.steps.n &&
		       w.rows.steps.p[end].end_ns == w.rows.steps.p[i].end_ns)
			end++;
		rc = write_slice(&w, i, end, err);
		i = end;
	}
	if (!rc)
		rc = write_pairs(&w, true, err);
	advance(&w, w.rows.end_ns / MS_NS);
	if (!p->is_incomplete) /* the end of a file that is whole */
		buf_addf(&to->buf, "# strings: %u\n# ips: %u\n", w.nr_strings, w.nr_ips);
	return rc;
}
