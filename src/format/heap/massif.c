/* Reader of massif.out; see massif.h. The writer is massif_write.c. */
#include "base/base.h"
#include "format/heap/massif.h"

#include <errno.h>

#include "base/text/lines.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/textframes.h"
#include "model/heap.h"
#include "model/tables.h"

#define START_NS \
	((uint64_t)1000000000) /* added to times, which begin at 0 in the file: 0 means unknown */
#define TIME_MAX_NS    ((uint64_t)1 << 62)
#define DEPTH_MAX      4096
#define READ_STEP      ((size_t)64 << 10)
#define LINE_MAX_BYTES ((size_t)1 << 20)

struct node {
	loc_id loc;           /* 0: the tree's root */
	uint64_t nr_left;     /* bytes not in the children read so far */
	uint64_t nr_children; /* that are not read yet */
};

struct reader {
	struct profile *p;
	uint64_t unit_ns;
	task_id task;
	uint32_t memory;
	uint32_t snapshots;
	uint32_t live;
	uint32_t peak;

	bool is_open;  /* the following lines belong to a snapshot */
	bool has_kind; /* its last pair: which tree follows */
	bool has_tree;
	bool is_peak;
	uint64_t time_ns;
	int64_t values[HEAP_MEMORY_NR];
	int64_t nr_extra;
	VEC(struct node) path;
	size_t last_first;  /* rows of the last tree in "snapshots" */
	int64_t last_bytes; /* live at the last snapshot */
	uint64_t tree_nr;   /* number of the last snapshot with a tree, from 0 as massif's */
	uint64_t nr_tree_bytes;
	uint64_t nr_snapshots;
	uint64_t line_nr;
	uint64_t first_bad_nr;
};

static void reader_release(struct reader *r)
{
	vec_release(&r->path);
}

/* ---- trees -------------------------------------------------------------------------------- */

/* The path is leaf first from its second node on: build the stack from its end. */
static void add_row(struct reader *r, uint64_t nr_bytes)
{
	stack_id stack = 0;
	for (size_t i = r->path.n; i-- > 1;)
		stack = profile_stack(r->p, stack, r->path.p[i].loc);
	int64_t values[HEAP_BLOCK_NR] = {[HEAP_BYTES] = (int64_t)MIN(nr_bytes, INT64_MAX / 2)};
	profile_sample(r->p, r->snapshots, r->time_ns, stack, r->task, -1, values);
	if (r->is_peak)
		profile_sample(r->p, r->peak, r->time_ns, stack, r->task, -1, values);
}

static void close_nodes(struct reader *r, size_t depth)
{
	while (r->path.n > depth) {
		if (vec_last(&r->path)->nr_left)
			add_row(r, vec_last(&r->path)->nr_left);
		r->path.n--;
	}
}

/* "leaf_alloc (t1.c:5)", "main (in /usr/bin/prog)", "???" */
static loc_id location_of(struct reader *r, uint64_t address, struct sv text)
{
	struct text_frame f = {0};
	for (size_t i = text.n; text.n && text.p[text.n - 1] == ')' && i-- > 1;) {
		if (text.p[i] != '(' || text.p[i - 1] != ' ')
			continue;
		struct sv where = sv_from(text.p + i + 1, text.n - i - 2);
		ssize_t colon = sv_rindex(where, ':');
		uint64_t line;
		if (sv_has_prefix(where, SV("in "))) {
			f.path = profile_str(r->p, where.p + 3, where.n - 3);
		} else if (colon > 0 && sv_to_u64(sv_from_idx(where, (size_t)colon + 1), &line)) {
			f.file = profile_str(r->p, where.p, (size_t)colon);
			f.line = (uint32_t)MIN(line, (uint64_t)UINT32_MAX);
		} else {
			break;
		}
		text.n = i - 1;
		break;
	}
	if (!text.n || sv_eq(text, SV("???")))
		return text_unsymbolized(r->p, address, f.path, 0);
	f.name = profile_str(r->p, text.p, text.n);
	return text_location(r->p, &f, 1);
}

static bool take_digits(struct sv *s, uint64_t *ret_v)
{
	size_t n = 0;
	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	bool is_good = sv_to_u64(sv_from(s->p, n), ret_v);
	*s = sv_from_idx(*s, n);
	return is_good;
}

/* "n2: 5072200 0x1091D6: cache_fill (t1.c:6)", after its blanks. */
static bool parse_node(struct reader *r, struct sv s, bool is_root, struct node *ret_n)
{
	struct node n = {0};
	s = sv_from_idx(s, 1);
	if (!take_digits(&s, &n.nr_children) || !sv_has_prefix(s, SV(": ")))
		return false;
	s = sv_from_idx(s, 2);
	if (!take_digits(&s, &n.nr_left))
		return false;
	s = sv_trim(s);
	if (is_root) {
		*ret_n = n;
		return true;
	}
	uint64_t address;
	struct sv rest = s;
	struct sv word = sv_split(&rest, ':');
	if (sv_has_prefix(word, SV("0x")) && sv_to_hex(word, &address)) {
		n.loc = location_of(r, address, sv_trim(rest));
	} else {
		bool is_below = sv_has_prefix(s, SV("in "));
		CLEANUP(buf_release) struct buf name = {0};
		buf_add_sv(&name, s);
		n.loc = profile_pseudo_location(r->p, is_below ? HEAP_BELOW : buf_str(&name));
	}
	*ret_n = n;
	return true;
}

static bool take_node(struct reader *r, struct sv line)
{
	size_t depth = 0;
	while (depth < line.n && line.p[depth] == ' ')
		depth++;
	struct node n;
	if (depth > r->path.n || depth > DEPTH_MAX ||
	    !parse_node(r, sv_from_idx(line, depth), depth == 0, &n))
		return false;
	close_nodes(r, depth);
	if (depth) {
		struct node *parent = vec_last(&r->path);
		bool is_more = n.nr_left > parent->nr_left; /* more than the parent: malformed */
		parent->nr_left = is_more ? 0 : parent->nr_left - n.nr_left;
		parent->nr_children -= parent->nr_children > 0;
	}
	vec_push(&r->path, n);
	return true;
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void close_snapshot(struct reader *r)
{
	close_nodes(r, 0);
	if (!r->is_open)
		return;
	r->is_open = false;
	r->last_bytes = r->values[HEAP_MEMORY_LIVE];
	r->nr_snapshots++;
	int64_t anon = 0;
	if (__builtin_add_overflow(r->values[HEAP_MEMORY_LIVE], r->values[HEAP_MEMORY_STACKS],
				   &anon) ||
	    __builtin_add_overflow(anon, r->nr_extra, &anon))
		anon = INT64_MAX;
	r->values[HEAP_MEMORY_ANON] = anon;
	profile_sample(r->p, r->memory, r->time_ns, 0, r->task, -1, r->values);
	r->p->end_ns = MAX(r->p->end_ns, r->time_ns);
	r->p->losses.nr[LOSS_SEEN]++;
	r->p->losses.nr[LOSS_WRITTEN]++;
}

static void open_snapshot(struct reader *r)
{
	close_snapshot(r);
	r->is_open = true;
	r->is_peak = r->has_tree = r->has_kind = false;
	r->nr_extra = 0;
	memset(r->values, 0, sizeof(r->values));
}

static bool take_tree(struct reader *r, struct sv kind)
{
	r->is_peak = sv_eq(kind, SV("peak"));
	r->has_tree = r->is_peak || sv_eq(kind, SV("detailed"));
	r->has_kind = r->has_tree || sv_eq(kind, SV("empty"));
	if (r->has_tree) {
		r->last_first = r->p->tables.p[r->snapshots].n;
		r->tree_nr = r->nr_snapshots;
		r->nr_tree_bytes = (uint64_t)r->values[HEAP_MEMORY_LIVE];
	}
	return r->has_kind;
}

static bool take_pair(struct reader *r, struct sv key, struct sv value)
{
	uint64_t v;
	if (sv_eq(key, SV("snapshot"))) {
		open_snapshot(r);
		return true;
	}
	if (sv_eq(key, SV("heap_tree")))
		return r->is_open && take_tree(r, value);
	if (!r->is_open || !sv_to_u64(value, &v) || v > (uint64_t)INT64_MAX)
		return false;
	if (sv_eq(key, SV("time"))) {
		r->time_ns = v < TIME_MAX_NS / r->unit_ns ? START_NS + v * r->unit_ns : TIME_MAX_NS;
		return true;
	}
	if (sv_eq(key, SV("mem_heap_B")))
		r->values[HEAP_MEMORY_LIVE] = (int64_t)v;
	else if (sv_eq(key, SV("mem_heap_extra_B")))
		r->nr_extra = (int64_t)v;
	else if (sv_eq(key, SV("mem_stacks_B")))
		r->values[HEAP_MEMORY_STACKS] = (int64_t)v;
	else
		return false;
	return true;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void keep_fact(struct reader *r, enum fact_id id, struct sv value)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_sv(&b, value);
	if (value.n)
		profile_fact(r->p, id, buf_str(&b));
}

static bool take_head(struct reader *r, struct sv key, struct sv value)
{
	if (sv_eq(key, SV("desc"))) {
		keep_fact(r, FACT_MASSIF_OPTIONS, value);
	} else if (sv_eq(key, SV("cmd"))) {
		keep_fact(r, FACT_COMMAND, value);
		struct sv program = sv_split(&value, ' ');
		struct sv base = sv_from_idx(program, (size_t)(sv_rindex(program, '/') + 1));
		r->task = profile_task(r->p, -1, -1, profile_str(r->p, base.p, base.n), 0);
	} else if (sv_eq(key, SV("time_unit"))) {
		keep_fact(r, FACT_MASSIF_UNIT, value);
		r->unit_ns = sv_eq(value, SV("ms")) ? 1000000 : 1;
	} else {
		return false;
	}
	return true;
}

static bool take_line(struct reader *r, struct sv line)
{
	if (!line.n || line.p[0] == '#')
		return true;
	if (r->has_tree && (line.p[0] == ' ' || (line.p[0] == 'n' && line.n > 1 &&
						 line.p[1] >= '0' && line.p[1] <= '9')))
		return take_node(r, line);
	ssize_t equals = sv_index(line, '=');
	ssize_t colon = sv_index(line, ':');
	if (!r->is_open && colon > 0 && (equals < 0 || colon < equals)) {
		struct sv key = sv_from(line.p, (size_t)colon);
		return take_head(r, key, sv_trim(sv_from_idx(line, (size_t)colon + 1)));
	}
	if (equals < 0)
		return false;
	return take_pair(r, sv_from(line.p, (size_t)equals),
			 sv_trim(sv_from_idx(line, (size_t)equals + 1)));
}

/* Whether the file ends within a snapshot or its tree. */
static bool is_within_snapshot(const struct reader *r)
{
	vec_foreach(n, &r->path)
		if (n->nr_children)
			return true;
	return r->is_open && (!r->has_kind || (r->has_tree && !r->path.n));
}

/* Without a tree the last snapshot has only its sum; the last tree is of another time. */
static void add_sum(struct reader *r)
{
	int64_t nr_bytes = r->last_bytes;
	int64_t values[HEAP_BLOCK_NR] = {[HEAP_BYTES] = nr_bytes};
	loc_id loc = profile_pseudo_location(r->p, "[no sites in the last snapshot]");
	if (nr_bytes)
		profile_sample(r->p, r->live, 0, profile_stack(r->p, 0, loc), r->task, -1, values);
	if (r->p->tables.p[r->snapshots].n)
		profile_factf(r->p, FACT_MASSIF_LAST_SITES,
			      "number %" PRIu64
			      ", %s live (sites at the end: valgrind --detailed-freq=1)",
			      r->tree_nr, num_bytes(r->nr_tree_bytes).s);
}

/* The tree of the last snapshot becomes "live". */
static void add_live(struct reader *r)
{
	if (!r->has_tree) {
		add_sum(r);
		return;
	}
	size_t n = r->p->tables.p[r->snapshots].n;
	for (size_t i = r->last_first; i < n; i++) {
		const struct table *t = &r->p->tables.p[r->snapshots];
		int64_t values[HEAP_BLOCK_NR];
		memcpy(values, &t->values[i * t->nr_columns], sizeof(values));
		profile_sample(r->p, r->live, 0, t->stack[i], r->task, -1, values);
	}
}

static void set_facts(struct reader *r)
{
	profile_fact(r->p, FACT_SOURCE, "massif");
	profile_fact(r->p, FACT_HEAP_METHOD, "dump: read from a file of massif's");
	profile_fact(r->p, FACT_HEAP_SAMPLING, "every allocation");
	profile_fact_nr(r->p, FACT_MASSIF_BAD_LINE, r->first_bad_nr);
}

static int take_lines(void *ctx, struct sv text)
{
	struct reader *r = ctx;
	struct lines lines = lines_from(text.p, text.n);
	struct sv line;
	while (lines_next(&lines, &line)) {
		r->line_nr++;
		if (!take_line(r, line))
			format_bad_line(r->p, r->line_nr, &r->first_bad_nr);
	}
	return 0;
}

int massif_read(struct profile *p, const struct format_input *in,
		const struct format_options *options, struct err *err)
{
	(void)options;
	CLEANUP(reader_release) struct reader r = {.p = p, .unit_ns = 1};
	r.peak = tables_add(p, TABLE_PEAK, 0); /* first: what is converted by default */
	r.live = tables_add(p, TABLE_LIVE, 0);
	r.memory = tables_add(p, TABLE_MEMORY, 0);
	r.snapshots = tables_add(p, TABLE_SNAPSHOTS, 0);
	p->start_ns = p->end_ns = START_NS;
	struct format_lines to = {p, READ_STEP, LINE_MAX_BYTES, take_lines, NULL, &r};
	TRY(format_input_lines(in, &to, err));
	if (to.is_open || is_within_snapshot(&r))
		format_truncated(p,
				 to.is_open ? FORMAT_OPEN_LINE : "its last snapshot is incomplete");
	if (r.is_open && !r.has_kind) /* its last number may lack digits */
		r.is_open = false;
	close_snapshot(&r);
	if (!r.nr_snapshots)
		return err_set(err, -EINVAL, "it has no snapshots");
	add_live(&r);
	set_facts(&r);
	return 0;
}

int massif_sniff(struct sv head)
{
	struct lines in = lines_from(head.p, head.n);
	struct sv line;
	if (!lines_next(&in, &line) || !sv_has_prefix(line, SV("desc:")) ||
	    !lines_next(&in, &line) || !sv_has_prefix(line, SV("cmd:")))
		return 0;
	return 95;
}
