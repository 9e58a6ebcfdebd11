/* Reader of jemalloc's heap dumps; see jemallocheap.h. */
#include "base/base.h"
#include "format/heap/jemallocheap.h"

#include <errno.h>

#include "base/text/lines.h"
#include "format/heap/dumpmaps.h"
#include "format/format.h"
#include "model/heap.h"
#include "model/tables.h"

#define HEADER    SV("heap_v2/")
#define DEPTH_CUT 128 /* jemalloc keeps no more frames */

struct row {
	task_id task;
	struct dump_sum live;
	struct dump_sum all;
};

struct dump {
	struct profile *p;
	struct dumpmaps maps;
	uint64_t interval;
	int32_t pid;
	uint32_t live_table;
	uint32_t all_table;
	bool has_all; /* prof_accum: the numbers in brackets are valid */
	task_id no_thread;
	struct map by_uid; /* -> index into tasks + 1 */
	VEC(task_id) tasks;

	bool is_open; /* the following rows belong to a stack */
	stack_id stack;
	size_t depth;
	bool has_total;
	struct row total;
	VEC(struct row) rows; /* by thread */
	uint64_t head_bytes;  /* live, as its head says, and in its stacks */
	uint64_t stack_bytes;
};

static void dump_release(struct dump *d)
{
	dumpmaps_release(&d->maps);
	map_release(&d->by_uid);
	vec_release(&d->tasks);
	vec_release(&d->rows);
}

static task_id task_of(struct dump *d, uint64_t uid, struct sv name)
{
	bool is_new;
	uint32_t *idx = map_put(&d->by_uid, uid, &is_new);
	if (is_new) {
		str_id comm = name.n ? profile_str(d->p, name.p, name.n) : d->maps.comm;
		int32_t tid = uid <= INT32_MAX ? (int32_t)uid : -1;
		*idx = (uint32_t)d->tasks.n;
		vec_push(&d->tasks, profile_task(d->p, d->pid, tid, comm, 0));
	}
	return d->tasks.p[*idx];
}

/* ---- one stack ---------------------------------------------------------------------------- */

/*
 * Shares of a whole, as integers that add up to it: each is the difference of two rounded sums.
 */
struct share {
	double whole;
	double total; /* of the parts */
	double done;
	int64_t given;
};

static int64_t share_next(struct share *s, double part)
{
	s->done += part;
	double upto = s->total > 0 ? s->whole * (s->done / s->total) : 0;
	int64_t now = dumpmaps_round(MIN(upto, s->whole));
	int64_t v = now > s->given ? now - s->given : 0;
	s->given += v;
	return v;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct dump_sum sum_of(const struct row *r, bool is_all)
{
	return is_all ? r->all : r->live;
}

/* The stack's row minus its rows by thread: threads that have ended. */
static struct dump_sum left_over(const struct dump *d, bool is_all)
{
	struct dump_sum left = sum_of(&d->total, is_all);
	vec_foreach(r, &d->rows) {
		struct dump_sum s = sum_of(r, is_all);
		left.nr = minus(left.nr, s.nr);
		left.nr_bytes = minus(left.nr_bytes, s.nr_bytes);
	}
	/* the difference may be rounding: each row's count was rounded down */
	if (left.nr <= d->rows.n && d->rows.n)
		left = (struct dump_sum){0};
	return left;
}

static void add_sample(struct dump *d, uint32_t table, task_id task, const int64_t *values)
{
	profile_sample(d->p, table, 0, d->stack, task, -1, values);
	uint64_t nr = (uint64_t)values[HEAP_BLOCKS];
	profile_lose(d->p, LOSS_SEEN, nr);
	profile_lose(d->p, LOSS_WRITTEN, nr);
	if (d->depth >= DEPTH_CUT)
		profile_lose(d->p, LOSS_TRUNC_DEPTH, nr);
}

static void write_rows(struct dump *d, uint32_t table, bool is_all)
{
	struct dump_sum sum = sum_of(&d->total, is_all);
	if (!sum.nr && !sum.nr_bytes)
		return;
	struct dump_estimate whole = dumpmaps_unbias(sum, d->interval);
	struct dump_sum left = left_over(d, is_all);
	struct dump_estimate rest = dumpmaps_unbias(left, d->interval);
	struct share blocks = {.whole = whole.nr, .total = rest.nr};
	struct share bytes = {.whole = whole.nr_bytes, .total = rest.nr_bytes};
	struct share seen = {.whole = (double)sum.nr, .total = (double)left.nr};
	vec_foreach(r, &d->rows) {
		struct dump_estimate e = dumpmaps_unbias(sum_of(r, is_all), d->interval);
		blocks.total += e.nr;
		bytes.total += e.nr_bytes;
		seen.total += (double)sum_of(r, is_all).nr;
	}
	bool is_alone = !(bytes.total > 0);
	for (size_t i = 0; i <= d->rows.n; i++) {
		bool is_rest = i == d->rows.n;
		struct dump_sum s = is_rest ? left : sum_of(&d->rows.p[i], is_all);
		struct dump_estimate e = dumpmaps_unbias(s, d->interval);
		if (is_rest && is_alone) { /* no thread has a row for it */
			blocks.total = bytes.total = seen.total = 1;
			e = (struct dump_estimate){1, 1, 0};
			s.nr = 1;
		}
		double part = bytes.total > 0 ? e.nr_bytes / bytes.total : 0;
		int64_t values[HEAP_BLOCK_NR] = {
			[HEAP_BLOCKS] = share_next(&blocks, e.nr),
			[HEAP_BYTES] = share_next(&bytes, e.nr_bytes),
			[HEAP_SAMPLES] = share_next(&seen, (double)s.nr),
			[HEAP_VARIANCE] = dumpmaps_round(whole.variance * part),
		};
		if (values[HEAP_BLOCKS] || values[HEAP_BYTES])
			add_sample(d, table, is_rest ? d->no_thread : d->rows.p[i].task, values);
	}
}

static void close_stack(struct dump *d)
{
	if (d->is_open && d->has_total) {
		d->stack_bytes += d->total.live.nr_bytes;
		write_rows(d, d->live_table, false);
		if (d->has_all)
			write_rows(d, d->all_table, true);
	}
	d->is_open = d->has_total = false;
	vec_clear(&d->rows);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* "t*: ..." or "t12: ... [..] name"; before the first stack they are sums of the whole dump. */
static bool take_row(struct dump *d, struct sv line, bool is_header)
{
	struct sv rest = line;
	struct sv who = sv_split(&rest, ':');
	struct row row = {0};
	struct sv name;
	uint64_t uid = 0;
	if (who.n < 2 || who.p[0] != 't' || !dumpmaps_row(rest, &row.live, &row.all, &name))
		return false;
	bool is_total = who.n == 2 && who.p[1] == '*';
	if (!is_total && !sv_to_u64(sv_from_idx(who, 1), &uid))
		return false;
	if (is_header && is_total) {
		d->head_bytes = row.live.nr_bytes;
		d->has_all = row.all.nr || row.all.nr_bytes;
		if (d->has_all)
			d->all_table = tables_add(d->p, TABLE_ALLOCATED,
						  TABLES_ESTIMATE | TABLES_NO_TEMPORARY);
	} else if (is_header) {
		(void)task_of(d, uid, name); /* the only place with its name */
	} else if (is_total) {
		d->total = row;
		d->has_total = true;
	} else {
		row.task = task_of(d, uid, (struct sv){0});
		vec_push(&d->rows, row);
	}
	return true;
}

static void take_line(struct dump *d, struct sv text, uint64_t line_nr, bool *is_header)
{
	struct sv line = sv_trim(text);
	if (!line.n)
		return;
	if (line.p[0] == '@') {
		close_stack(d);
		*is_header = false;
		d->is_open =
			dumpmaps_stack(&d->maps, sv_from_idx(line, 1), 0, &d->stack, &d->depth);
		if (!d->is_open)
			format_bad_line(d->p, line_nr, &d->maps.first_bad_nr);
		return;
	}
	/* rows of a stack that could not be parsed are skipped */
	bool is_pending_free = !*is_header && !d->is_open;
	if (!is_pending_free && !take_row(d, line, *is_header))
		format_bad_line(d->p, line_nr, &d->maps.first_bad_nr);
}

static void set_facts(struct dump *d)
{
	CLEANUP(buf_release) struct buf b = {0};
	profile_fact(d->p, FACT_SOURCE, "jemalloc heap dump");
	profile_fact(d->p, FACT_HEAP_ALLOCATOR, "jemalloc");
	profile_fact(d->p, FACT_HEAP_METHOD, "dump: read from a file of jemalloc's profiler");
	buf_add_u64(&b, d->interval);
	profile_fact(d->p, FACT_HEAP_SAMPLING, buf_str(&b));
	dumpmaps_add_damage(&d->maps, d->stack_bytes, d->head_bytes);
}

int jemallocheap_read(struct profile *p, const struct format_input *in,
		      const struct format_options *options, struct err *err)
{
	CLEANUP(buf_release) struct buf all = {0};
	struct sv text;
	TRY(format_input_text(in, &all, &text, err));
	struct sv stacks;
	struct sv maps;
	dumpmaps_split(text, &stacks, &maps);
	uint64_t stored = format_input_stored(in);
	struct lines lines = lines_from(stacks.p, stacks.n);
	struct sv line = {0};
	CLEANUP(dump_release) struct dump d = {.p = p};
	if (!lines_next(&lines, &line) || !sv_has_prefix(line, HEADER) ||
	    !sv_to_u64(sv_trim(sv_from_idx(line, HEADER.n)), &d.interval))
		return err_set(err, -EINVAL, "line 1: expected 'heap_v2/BYTES', found '%.*s'",
			       (int)MIN(line.n, (size_t)80), line.p);
	d.pid = options->jemallocheap.pid > 0 ? options->jemallocheap.pid : -1;
	dumpmaps_parse(&d.maps, p, MAX(d.pid, 0), maps);
	d.no_thread = profile_task(p, d.pid, d.pid, d.maps.comm, 0);
	d.live_table = tables_add(p, TABLE_LIVE, TABLES_ESTIMATE);
	bool is_header = true;
	while (lines_next(&lines, &line)) {
		take_line(&d, line, lines.nr, &is_header);
		TRY(lines.nr % ROOM_LINES ? 0 : format_check_room(stored, p, text.n, err));
	}
	close_stack(&d);
	set_facts(&d);
	return 0;
}

int jemallocheap_sniff(struct sv head)
{
	return sv_has_prefix(head, HEADER) ? 100 : 0;
}

/* ---- file names --------------------------------------------------------------------------- */

/* Cuts ".word" off the end. */
static bool cut_word(struct sv *s, struct sv *ret_word)
{
	ssize_t dot = sv_rindex(*s, '.');
	if (dot < 0)
		return false;
	*ret_word = sv_from_idx(*s, (size_t)dot + 1);
	s->n = (size_t)dot;
	return true;
}

bool jemallocheap_parse_name(struct sv path, struct jemallocheap_name *ret_n)
{
	struct jemallocheap_name n = {.prefix = path};
	struct sv heap;
	struct sv kind;
	struct sv sequence;
	struct sv pid;
	uint64_t v;
	if (!cut_word(&n.prefix, &heap) || !sv_eq(heap, SV("heap")) ||
	    !cut_word(&n.prefix, &kind) || !kind.n || !memchr("fimu", kind.p[0], 4) ||
	    !cut_word(&n.prefix, &sequence) || !sv_to_u64(sequence, &n.sequence) ||
	    !cut_word(&n.prefix, &pid) || !sv_to_u64(pid, &v) || !v || v > INT32_MAX)
		return false;
	if (kind.n > 1 && !sv_to_u64(sv_from_idx(kind, 1), &(uint64_t){0}))
		return false;
	n.kind = kind.p[0];
	n.pid = (int32_t)v;
	*ret_n = n;
	return true;
}
