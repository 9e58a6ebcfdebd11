/* Tables of I/O; see iosum.h. */
#include "base/base.h"

#include "analyze/io/iosum.h"

#include <errno.h>

#include "analyze/diagnose/diagnose.h"
#include "analyze/io/taggroups.h"
#include "analyze/view.h"
#include "analyze/wait/frames.h"
#include "base/iocalls.h"
#include "base/text/num.h"

enum { READS = 0, WRITES = 1, SYNCS = 2 };

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Copies between descriptors (sendfile, splice ...) count as writes. */
static int side_of(const char *detail)
{
	if (starts_with(detail, "read"))
		return READS;
	return starts_with(detail, "write") || starts_with(detail, "copy") ? WRITES : SYNCS;
}

/* ---- adding up ---------------------------------------------------------------------------- */

static uint64_t weight_of_bytes(const struct tag_group *g)
{
	/* calls that moved no bytes are sorted by their number, after all others */
	uint64_t bytes = g->amounts[READS].bytes + g->amounts[WRITES].bytes;
	uint64_t nr = g->amounts[READS].nr + g->amounts[WRITES].nr + g->amounts[SYNCS].nr;
	return bytes ? MIN(bytes, UINT64_MAX >> 1) + (1ull << 40) : MIN(nr, 1ull << 40);
}

static uint64_t time_of(const struct tag_group *g)
{
	return g->amounts[READS].ns + g->amounts[WRITES].ns + g->amounts[SYNCS].ns;
}

/* "read failed" is of the same kind as "read". */
static const char *kind_of(struct arena *a, const char *detail)
{
	const char *space = strchr(detail, ' ');
	return space ? arena_strndup(a, detail, (size_t)(space - detail)) : detail;
}

struct iosum {
	struct report *r;
	const struct profile *p;
	const struct view_limits *limits;
	struct arena *a;
	struct arena *out; /* of texts of the figures */
	double seconds;
	const struct selection *sel;
	const struct select_spec *spec;
	struct waitframes *frames;
	struct tag_groups calls;
	struct tag_groups files;
	struct tag_groups functions;
	struct tag_groups syncs;
	struct amount total[3];
	uint64_t nr_uring;
	uint64_t nr_libaio;
	bool has_uring_rows;
	bool has_syncs_only; /* reads and writes were not recorded */
	uint64_t nr_messages;
};

static void iosum_release(struct iosum *s)
{
	tag_groups_release(&s->calls);
	tag_groups_release(&s->files);
	tag_groups_release(&s->functions);
	tag_groups_release(&s->syncs);
}

static void add_row(struct iosum *s, const struct tag_row *row)
{
	int side = side_of(row->detail);
	const char *call = iocall_name(row->tag->syscall);
	const char *kind = kind_of(s->a, row->detail);
	const char *file = profile_text(s->p, row->tag->object);
	struct waitframe f = waitframe_of(s->frames, row->stack);
	const char *function = waitframe_name(s->p, &f);
	const char *via = profile_text(s->p, f.via);
	amount_add(&s->total[side], row);
	amount_add(tag_groups_at(&s->calls, (const char *[]){kind, call}, 2)->amounts, row);
	amount_add(&tag_groups_at(&s->files, &file, 1)->amounts[side], row);
	amount_add(&tag_groups_at(&s->functions, (const char *[]){function, via}, 2)->amounts[side],
		   row);
	if (!strcmp(kind, "fsync"))
		amount_add(tag_groups_at(&s->syncs, (const char *[]){function, file}, 2)->amounts,
			   row);
	bool is_uring = call && !strcmp(call, "io_uring_enter");
	if (is_uring && strcmp(kind, "batch") != 0)
		s->has_uring_rows = true;
	if (call && !strcmp(kind, "batch")) {
		bool is_messages = strstr(call, "mmsg") != NULL;
		*(is_messages ? &s->nr_messages
		  : is_uring  ? &s->nr_uring
			      : &s->nr_libaio) += row->nr;
	}
}

/* ---- the tables --------------------------------------------------------------------------- */

static const struct tag_column call_columns[] = {
	{{"what", "kind", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"call", "call", CELL_TEXT, "the system call"}, TAG_TEXT, 1},
	{{"calls", "calls", CELL_COUNT, NULL}, TAG_NR, 0},
	{{"bytes", "bytes", CELL_BYTES, "as returned by the calls, not as requested"},
	 TAG_BYTES,
	 0},
	{{"mean_bytes", "mean size", CELL_BYTES, "of successful calls"}, TAG_MEAN_BYTES, 0},
	{{"bytes_per_s", "bytes/s", CELL_BYTES, NULL}, TAG_BYTES_PER_S, 0},
	{{"time_ns", "time", CELL_NS, "in the calls"}, TAG_NS, 0},
	{{"mean_ns", "mean", CELL_NS, NULL}, TAG_MEAN_NS, 0},
	TAG_QUANTILES,
	{{"failed", "failed", CELL_COUNT, "returned an error, EAGAIN included"}, TAG_FAILED, 0},
};

#define SIDE_COLUMNS                                                                            \
	{{"reads", "reads", CELL_COUNT, NULL}, TAG_NR, READS},                                  \
		{{"read_bytes", "read", CELL_BYTES, NULL}, TAG_BYTES, READS},                   \
		{{"mean_read_bytes", "mean read", CELL_BYTES, NULL}, TAG_MEAN_BYTES, READS},    \
		{{"writes", "writes", CELL_COUNT, NULL}, TAG_NR, WRITES},                       \
		{{"write_bytes", "written", CELL_BYTES, NULL}, TAG_BYTES, WRITES},              \
		{{"mean_write_bytes", "mean write", CELL_BYTES, NULL}, TAG_MEAN_BYTES, WRITES}, \
		{{"syncs", "syncs", CELL_COUNT,                                                 \
		  "fsync and similar; also submit and reap calls (io_uring, libaio)"},          \
		 TAG_NR,                                                                        \
		 SYNCS},                                                                        \
		{{"time_ns", "time", CELL_NS, "in the calls"}, TAG_NS, TAG_AMOUNTS},            \
		{{"p99_ns", "p99", CELL_NS, NULL}, TAG_P99_NS, TAG_AMOUNTS},                    \
	{                                                                                       \
		{"longest_ns", "longest", CELL_NS, NULL}, TAG_LONGEST_NS, TAG_AMOUNTS           \
	}

static const struct tag_column file_columns[] = {
	SIDE_COLUMNS,
	{{"file", "file or socket", CELL_TEXT, NULL}, TAG_TEXT, 0},
};

static const struct tag_column function_columns[] = {
	SIDE_COLUMNS,
	{{"function", "function", CELL_TEXT, "innermost function of the program"}, TAG_TEXT, 0},
	{{"call", "call", CELL_TEXT, "what it called"}, TAG_TEXT, 1},
};

static const struct tag_column sync_columns[] = {
	{{"calls", "calls", CELL_COUNT, NULL}, TAG_NR, 0},
	{{"time_ns", "time", CELL_NS, NULL}, TAG_NS, 0},
	{{"mean_ns", "mean", CELL_NS, NULL}, TAG_MEAN_NS, 0},
	TAG_QUANTILES,
	{{"function", "function", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"file", "file", CELL_TEXT, NULL}, TAG_TEXT, 1},
};

static const struct tag_column block_columns[] = {
	{{"what", "kind", CELL_TEXT, NULL}, TAG_TEXT, 0},
	{{"requests", "requests", CELL_COUNT, NULL}, TAG_NR, 0},
	{{"bytes", "bytes", CELL_BYTES, NULL}, TAG_BYTES, 0},
	{{"mean_bytes", "mean size", CELL_BYTES, NULL}, TAG_MEAN_BYTES, 0},
	{{"mean_ns", "mean", CELL_NS, "from issue to completion"}, TAG_MEAN_NS, 0},
	TAG_QUANTILES,
	{{"process", "process", CELL_TEXT, "process that issued them, or a file system worker"},
	 TAG_TEXT,
	 1},
	{{"object", "device and file", CELL_TEXT, NULL}, TAG_TEXT, 2},
};

static const struct tag_table calls_table = {
	TAG_TABLE("io_calls", "reads, writes and syncs", call_columns), .note = TAG_QUANTILE_NOTE,
	.weight = weight_of_bytes, .flags = TAG_WHOLE};
static const struct tag_table files_table = {
	TAG_TABLE("io_files", "I/O by file and socket, sorted by bytes", file_columns),
	.weight = weight_of_bytes};
static const struct tag_table functions_table = {
	TAG_TABLE("io_functions", "I/O by function, sorted by bytes", function_columns),
	.weight = weight_of_bytes};
static const struct tag_table syncs_table = {TAG_TABLE("io_syncs", "fsync calls", sync_columns),
					     .weight = time_of};
static const struct tag_table block_table = {
	TAG_TABLE("block", "block device requests (whole machine)", block_columns),
	.weight = weight_of_bytes};

static void add_table(struct iosum *s, const struct tag_table *table, struct tag_groups *groups)
{
	tag_report(groups, s->r, table, s->limits->max_rows, s->seconds);
}

static void fill_block(struct io_figures *f, const struct tag_groups *groups)
{
	struct amount all = {0};
	vec_foreach(g, &groups->groups)
		amount_merge(&all, g->amounts);
	f->nr_requests = all.nr;
	f->request_ns = all.ns;
	f->request_p50_ns = all.q.nr_all ? quantile_at(&all.q, 0.5) : 0;
	f->request_p99_ns = all.q.nr_all ? quantile_at(&all.q, 0.99) : 0;
}

static int add_block(struct iosum *s, struct io_figures *f, const struct select_spec *spec,
		     struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_BLOCK, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tag_groups_release) struct tag_groups groups = {.arena = s->a};
	while (tag_rows_next(&rows, &row)) {
		const char *comm = profile_text(s->p, s->p->tasks.p[row.task].comm);
		const char *texts[] = {row.detail, comm[0] ? comm : "[no name]",
				       profile_text(s->p, row.tag->object)};
		amount_add(tag_groups_at(&groups, texts, 3)->amounts, &row);
	}
	fill_block(f, &groups);
	struct tag_table table = block_table;
	if (select_scope(spec) != SELECT_ALL)
		table.title = "block device requests (of the selection)";
	if (groups.groups.n && s->r)
		add_table(s, &table, &groups);
	return 0;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void add_ratio(struct iosum *s)
{
	const struct amount *rd = &s->total[READS];
	const struct amount *wr = &s->total[WRITES];
	if (!(rd->bytes + wr->bytes))
		return;
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%.1f %% of bytes read, %.1f %% written",
		 view_pct(rd->bytes, rd->bytes + wr->bytes),
		 view_pct(wr->bytes, rd->bytes + wr->bytes));
	report_fact(s->r, FACT_READ_WRITE, view_of_selection(s->r, s->sel, buf_str(&text)));
}

static const struct tag_group *largest(const struct tag_groups *groups,
				       uint64_t (*weight)(const struct tag_group *g))
{
	const struct tag_group *most = NULL;
	vec_foreach(g, &groups->groups)
		if (!most || weight(g) > weight(most))
			most = g;
	return most;
}

/*
 * The time of sync calls is that from call to return, the reason fsync of waits only what is blocked. A page
 * that has both says how much of the one is the other.
 */
static const char *blocked_part(const struct iosum *s, uint64_t in_calls_ns)
{
	struct select_spec own = *s->spec;
	struct selection sel;
	uint64_t ns = 0;
	own.event = table_key(TABLE_OFF_CPU);
	if (!s->has_syncs_only || !tables_has_rows(s->p, TABLE_OFF_CPU) ||
	    select_run(s->a, s->p, &own, &sel, NULL))
		return "";
	for (size_t i = 0; i < sel.nr_tagged; i++)
		if (sel.tagged[i].reason == WAIT_FSYNC)
			ns += (uint64_t)MAX(sel.tagged[i].values[1], 0);
	if (ns > in_calls_ns)
		return "";
	return arena_fmt(s->out,
			 "; from call to return: blocked for %s of it (fsync in the thread time "
			 "breakdown), on CPU or runnable in the rest",
			 num_ns(ns).s);
}

static const char *file_name(const struct tag_group *g)
{
	return g && g->texts[0] && *g->texts[0] ? g->texts[0] : "files of unknown path";
}

static void fill_calls(struct io_figures *f, const struct iosum *s)
{
	const struct amount *rd = &s->total[READS];
	const struct amount *wr = &s->total[WRITES];
	const struct tag_group *call = largest(&s->calls, time_of);
	const struct tag_group *file = largest(&s->files, time_of);
	const struct tag_group *bytes = largest(&s->files, weight_of_bytes);
	struct amount syncs = {0};
	vec_foreach(g, &s->syncs.groups)
		amount_merge(&syncs, g->amounts);
	f->has_syncs_only = s->has_syncs_only;
	f->ns = rd->ns + wr->ns + s->total[SYNCS].ns;
	f->blocked = blocked_part(s, s->total[SYNCS].ns);
	f->call = call ? arena_strdup(s->out, call->texts[1]) : "";
	f->call_nr = call ? call->amounts->nr : 0;
	f->call_ns = call ? call->amounts->ns : 0;
	f->file = arena_strdup(s->out, file_name(file));
	f->file_ns = file ? time_of(file) : 0;
	f->bytes_file = arena_strdup(s->out, file_name(bytes));
	f->nr_reads = rd->nr;
	f->read_bytes = rd->bytes;
	f->write_bytes = wr->bytes;
	f->nr_syncs = syncs.nr;
	f->sync_ns = syncs.ns;
	f->sync_p99_ns = syncs.q.nr_all ? quantile_at(&syncs.q, 0.99) : 0;
}

static void add_notes(struct iosum *s, const char *input)
{
	uint64_t nr_blind = s->nr_libaio + (s->has_uring_rows ? 0 : s->nr_uring);
	if (nr_blind)
		report_note(s->r,
			    "%" PRIu64
			    " calls submitted requests to io_uring or libaio: their bytes and "
			    "files are not in these tables",
			    nr_blind);
	if (s->nr_messages)
		report_note(s->r,
			    "%" PRIu64
			    " calls of recvmmsg and sendmmsg return message counts: their bytes "
			    "are not known",
			    s->nr_messages);
	if (input)
		report_hint(s->r, &(struct report_hint){
					  HINT_FLAME, input, {{HINT_EVENT, table_key(TABLE_IO)}}});
}

static int add_io(struct iosum *s, struct io_figures *f, const struct select_spec *spec,
		  const char *input, struct err *err)
{
	struct tag_rows rows;
	struct tag_row row;
	int rc = tag_rows_open(&rows, s->a, s->p, TABLE_IO, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (tag_rows_next(&rows, &row))
		add_row(s, &row);
	fill_calls(f, s);
	if (!s->r)
		return 0;
	add_ratio(s);
	struct tag_table calls = calls_table;
	if (s->has_syncs_only)
		calls.title = "sync calls";
	add_table(s, &calls, &s->calls);
	add_table(s, &files_table, &s->files);
	add_table(s, &functions_table, &s->functions);
	if (s->syncs.groups.n)
		add_table(s, &syncs_table, &s->syncs);
	add_notes(s, input);
	return 0;
}

/* @r NULL: only the figures, with texts in @out. */
static int sum_up(struct io_figures *f, struct arena *out, struct report *r,
		  const struct profile *p, const struct select_spec *spec,
		  const struct selection *sel, const char *input, const struct view_limits *limits,
		  struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	CLEANUP(iosum_release)
	struct iosum s = {
		.r = r,
		.p = p,
		.sel = sel,
		.spec = spec,
		.limits = limits,
		.a = &scratch,
		.out = out,
		.seconds = (double)view_duration_ns(sel) / 1e9,
		.has_syncs_only = profile_get_fact(p, FACT_IO_SYNCS_ONLY),
		.frames = waitframes_new(&scratch, p),
		.calls.arena = &scratch,
		.files.arena = &scratch,
		.functions.arena = &scratch,
		.syncs.arena = &scratch,
	};
	*f = (struct io_figures){.seconds = s.seconds};
	TRY(add_io(&s, f, spec, input, err));
	return add_block(&s, f, spec, err);
}

static int select_io(struct arena *a, const struct profile *p, struct select_spec *own,
		     struct selection *ret_sel, struct err *err)
{
	own->event = table_key(tables_has_rows(p, TABLE_IO) ? TABLE_IO : TABLE_BLOCK);
	return select_run(a, p, own, ret_sel, err);
}

int iosum_figures(struct io_figures *ret_f, struct arena *a, const struct profile *p,
		  const struct select_spec *spec, struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	TRY(select_io(&scratch, p, &own, &sel, err));
	return sum_up(ret_f, a, NULL, p, &own, &sel, NULL, NULL, err);
}

static int report_io(struct report *r, const struct profile *p, const struct select_spec *spec,
		     bool is_part, const char *input, const struct view_limits *limits,
		     struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	struct io_figures f;
	TRY(select_io(&scratch, p, &own, &sel, err));
	if (!is_part)
		view_begin(r, &sel, "file and network I/O");
	TRY(sum_up(&f, &scratch, r, p, &own, &sel, input, limits, err));
	CLEANUP(measures_free_p) struct measures *m = measures_new(p, &own, input);
	measures_give_io(m, &f);
	diagnose_page(r, m, 1u << MEASURE_IO, 0, is_part ? DIAGNOSE_PART : 0);
	return 0;
}

int iosum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const char *input, const struct view_limits *limits, struct err *err)
{
	return report_io(r, p, spec, false, input, limits, err);
}

int iosum_add(struct report *r, const struct profile *p, const struct select_spec *spec,
	      const struct view_limits *limits, struct err *err)
{
	return report_io(r, p, spec, true, NULL, limits, err);
}
