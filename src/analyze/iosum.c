/* Reads, writes and syncs in tables; see iosum.h. */
#include "base/base.h"

#include "analyze/iosum.h"

#include <errno.h>
#include <string.h>

#include "analyze/overview.h"
#include "analyze/tallygroups.h"
#include "analyze/waitframes.h"
#include "base/iocalls.h"

enum { READS = 0, WRITES = 1, SYNCS = 2 };

static const char quantile_note[] =
	"p50 and p99 are interpolated within classes of durations, powers of two";

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Copies from descriptor to descriptor are reads and writes at once: they count as writes. */
static int side_of(const char *detail)
{
	if (starts_with(detail, "read"))
		return READS;
	return starts_with(detail, "write") || starts_with(detail, "copy") ? WRITES : SYNCS;
}

/* ---- by kind and call --------------------------------------------------------------------- */

static const struct report_column call_columns[] = {
	{"what", "what", CELL_TEXT, NULL},
	{"call", "call", CELL_TEXT, "the system call"},
	{"calls", "calls", CELL_COUNT, NULL},
	{"bytes", "bytes", CELL_BYTES, "returned by the calls, not asked for"},
	{"mean_bytes", "mean size", CELL_BYTES, "of calls that did not fail"},
	{"bytes_per_s", "per second", CELL_BYTES, NULL},
	{"time_ns", "time", CELL_NS, "in the calls"},
	{"mean_ns", "mean", CELL_NS, NULL},
	{"p50_ns", "p50", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, NULL},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"failed", "failed", CELL_COUNT, "returned an error, EAGAIN among them"},
};

static void add_call_row(struct report *r, struct report_table *t, const char *what,
			 const char *call, const struct amount *a, double seconds)
{
	uint64_t nr_good = a->nr - a->nr_failed;
	union cell cells[] = {
		{.text = what},
		{.text = call},
		{.u = a->nr},
		{.u = a->bytes},
		{.u = nr_good ? a->bytes / nr_good : 0},
		{.u = seconds > 0 ? (uint64_t)((double)a->bytes / seconds) : 0},
		{.u = a->ns},
		{.u = a->nr ? a->ns / a->nr : 0},
		{.u = quantile_at(&a->q, 0.5)},
		{.u = quantile_at(&a->q, 0.99)},
		{.u = a->q.longest_ns},
		{.u = a->nr_failed},
	};
	report_add_row(r, t, cells);
}

static uint64_t weight_of_bytes(const struct tally_group *g)
{
	/* what moved no bytes is ordered by its number, behind all that did */
	uint64_t bytes = g->amounts[READS].bytes + g->amounts[WRITES].bytes;
	uint64_t nr = g->amounts[READS].nr + g->amounts[WRITES].nr + g->amounts[SYNCS].nr;
	return bytes ? MIN(bytes, UINT64_MAX >> 1) + (1ull << 40) : MIN(nr, 1ull << 40);
}

static uint64_t weight_of_time(const struct tally_group *g)
{
	return g->amounts[READS].ns + g->amounts[WRITES].ns + g->amounts[SYNCS].ns;
}

/* "read failed" is the same kind as "read". */
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
	double seconds;
	struct waitframes *frames;
	struct tally_groups calls;
	struct tally_groups files;
	struct tally_groups functions;
	struct tally_groups syncs;
	struct amount total[3];
	uint64_t nr_uring;
	uint64_t nr_libaio;
	bool has_uring_rows;
	uint64_t nr_messages;
};

static void iosum_release(struct iosum *s)
{
	tally_groups_release(&s->calls);
	tally_groups_release(&s->files);
	tally_groups_release(&s->functions);
	tally_groups_release(&s->syncs);
}

static void add_row(struct iosum *s, const struct tally_row *row)
{
	int side = side_of(row->detail);
	const char *call = iocall_name(row->tag->syscall);
	const char *kind = kind_of(s->a, row->detail);
	const char *file = profile_text(s->p, row->tag->object);
	struct waitframe f = waitframe_of(s->frames, row->stack);
	const char *function = waitframe_name(s->p, &f);
	const char *via = profile_text(s->p, f.via);
	amount_add(&s->total[side], row);
	amount_add(tally_groups_at(&s->calls, (const char *[]){kind, call}, 2)->amounts, row);
	amount_add(&tally_groups_at(&s->files, &file, 1)->amounts[side], row);
	amount_add(
		&tally_groups_at(&s->functions, (const char *[]){function, via}, 2)->amounts[side],
		row);
	if (!strcmp(kind, "fsync"))
		amount_add(tally_groups_at(&s->syncs, (const char *[]){function, file}, 2)->amounts,
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

static void add_calls(struct iosum *s)
{
	struct report_table *t = report_add_table(s->r, "io_calls", "reads, writes and syncs",
						  call_columns, ARRAY_LEN(call_columns));
	t->note = quantile_note;
	tally_groups_sort(&s->calls, weight_of_bytes);
	vec_foreach(g, &s->calls.groups)
		add_call_row(s->r, t, g->texts[0], g->texts[1][0] ? g->texts[1] : "-", g->amounts,
			     s->seconds);
	t->nr_rows_total = t->nr_rows;
}

/* ---- by file and by function -------------------------------------------------------------- */

#define SIDE_COLUMNS                                                                            \
	{"reads", "reads", CELL_COUNT, NULL}, {"read_bytes", "read", CELL_BYTES, NULL},         \
		{"mean_read_bytes", "mean", CELL_BYTES, "of a read"},                           \
		{"writes", "writes", CELL_COUNT, NULL},                                         \
		{"write_bytes", "written", CELL_BYTES, NULL},                                   \
		{"mean_write_bytes", "mean", CELL_BYTES, "of a write"},                         \
		{"syncs", "syncs", CELL_COUNT, "and calls that hand in or reap others"},        \
		{"time_ns", "time", CELL_NS, "in the calls"}, {"p99_ns", "p99", CELL_NS, NULL}, \
	{                                                                                       \
		"longest_ns", "longest", CELL_NS, NULL                                          \
	}

static const struct report_column file_columns[] = {
	SIDE_COLUMNS,
	{"file", "file or peer", CELL_TEXT, NULL},
};

static const struct report_column function_columns[] = {
	SIDE_COLUMNS,
	{"function", "function", CELL_TEXT, "the nearest one that is the program's own"},
	{"call", "through", CELL_TEXT, "what it called"},
};

#define NR_SIDE_CELLS (ARRAY_LEN(file_columns) - 1)

static void fill_sides(union cell *cells, const struct amount *amounts)
{
	struct amount all = {0};
	for (int i = 0; i < TALLY_AMOUNTS; i++)
		amount_merge(&all, &amounts[i]);
	const struct amount *rd = &amounts[READS];
	const struct amount *wr = &amounts[WRITES];
	size_t n = 0;
	cells[n++].u = rd->nr;
	cells[n++].u = rd->bytes;
	cells[n++].u = rd->nr > rd->nr_failed ? rd->bytes / (rd->nr - rd->nr_failed) : 0;
	cells[n++].u = wr->nr;
	cells[n++].u = wr->bytes;
	cells[n++].u = wr->nr > wr->nr_failed ? wr->bytes / (wr->nr - wr->nr_failed) : 0;
	cells[n++].u = amounts[SYNCS].nr;
	cells[n++].u = all.ns;
	cells[n++].u = quantile_at(&all.q, 0.99);
	cells[n++].u = all.q.longest_ns;
	ASSERT(n == NR_SIDE_CELLS);
}

static void add_sides(struct iosum *s, struct tally_groups *groups, struct report_table *t,
		      size_t nr_texts)
{
	tally_groups_sort(groups, weight_of_bytes);
	tally_groups_report(groups, s->r, t,
			    &(struct tally_shape){.nr_cells = NR_SIDE_CELLS,
						  .nr_texts = nr_texts,
						  .fill = fill_sides,
						  .max_rows = s->limits->max_rows});
}

/* ---- syncs -------------------------------------------------------------------------------- */

static const struct report_column sync_columns[] = {
	{"calls", "calls", CELL_COUNT, NULL},      {"time_ns", "time", CELL_NS, NULL},
	{"mean_ns", "mean", CELL_NS, NULL},        {"p50_ns", "p50", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, NULL},          {"longest_ns", "longest", CELL_NS, NULL},
	{"function", "function", CELL_TEXT, NULL}, {"file", "file", CELL_TEXT, NULL},
};

static void add_sync_row(struct report *r, struct report_table *t, const struct amount *a,
			 const char *function, const char *file)
{
	union cell cells[] = {
		{.u = a->nr},
		{.u = a->ns},
		{.u = a->nr ? a->ns / a->nr : 0},
		{.u = quantile_at(&a->q, 0.5)},
		{.u = quantile_at(&a->q, 0.99)},
		{.u = a->q.longest_ns},
		{.text = function},
		{.text = file},
	};
	report_add_row(r, t, cells);
}

static void add_syncs(struct iosum *s)
{
	if (!s->syncs.groups.n)
		return;
	struct report_table *t = report_add_table(s->r, "io_syncs", "fsync and its kin",
						  sync_columns, ARRAY_LEN(sync_columns));
	struct amount *rest = arena_calloc(s->a, 1, sizeof(*rest));
	tally_groups_sort(&s->syncs, weight_of_time);
	for (size_t i = 0; i < s->syncs.groups.n; i++) {
		const struct tally_group *g = &s->syncs.groups.p[i];
		if (s->limits->max_rows && i >= s->limits->max_rows)
			amount_merge(rest, g->amounts);
		else
			add_sync_row(s->r, t, g->amounts, g->texts[0],
				     g->texts[1][0] ? g->texts[1] : "-");
	}
	if (rest->nr)
		add_sync_row(s->r, t, rest, "<other>", "");
	t->nr_rows_total = s->syncs.groups.n;
}

/* ---- block devices ------------------------------------------------------------------------ */

static const struct report_column block_columns[] = {
	{"what", "what", CELL_TEXT, NULL},
	{"requests", "requests", CELL_COUNT, NULL},
	{"bytes", "bytes", CELL_BYTES, NULL},
	{"mean_bytes", "mean size", CELL_BYTES, NULL},
	{"mean_ns", "mean", CELL_NS, "from issue to completion"},
	{"p50_ns", "p50", CELL_NS, NULL},
	{"p99_ns", "p99", CELL_NS, NULL},
	{"longest_ns", "longest", CELL_NS, NULL},
	{"process", "process", CELL_TEXT, "that issued them, or its file system's worker"},
	{"object", "device and file", CELL_TEXT, NULL},
};

static void add_block_row(struct report *r, struct report_table *t, const struct amount *a,
			  const char *const texts[3])
{
	union cell cells[] = {
		{.text = texts[0]},
		{.u = a->nr},
		{.u = a->bytes},
		{.u = a->nr ? a->bytes / a->nr : 0},
		{.u = a->nr ? a->ns / a->nr : 0},
		{.u = quantile_at(&a->q, 0.5)},
		{.u = quantile_at(&a->q, 0.99)},
		{.u = a->q.longest_ns},
		{.text = texts[1]},
		{.text = texts[2]},
	};
	report_add_row(r, t, cells);
}

static int add_block(struct iosum *s, const struct select_spec *spec, struct err *err)
{
	struct tally_rows rows;
	struct tally_row row;
	int rc = tally_rows_open(&rows, s->a, s->p, TABLE_BLOCK, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	CLEANUP(tally_groups_release) struct tally_groups groups = {.arena = s->a};
	while (tally_rows_next(&rows, &row)) {
		const char *comm = profile_text(s->p, s->p->tasks.p[row.task].comm);
		const char *texts[] = {row.detail, comm[0] ? comm : "[no name]",
				       profile_text(s->p, row.tag->object)};
		amount_add(tally_groups_at(&groups, texts, 3)->amounts, &row);
	}
	if (!groups.groups.n)
		return 0;
	struct report_table *t =
		report_add_table(s->r, "block", "requests of block devices, of the whole machine",
				 block_columns, ARRAY_LEN(block_columns));
	struct amount *rest = arena_calloc(s->a, 1, sizeof(*rest));
	tally_groups_sort(&groups, weight_of_bytes);
	for (size_t i = 0; i < groups.groups.n; i++) {
		const struct tally_group *g = &groups.groups.p[i];
		if (s->limits->max_rows && i >= s->limits->max_rows)
			amount_merge(rest, g->amounts);
		else
			add_block_row(s->r, t, g->amounts, g->texts);
	}
	if (rest->nr)
		add_block_row(s->r, t, rest, (const char *const[3]){"<other>", "", ""});
	t->nr_rows_total = groups.groups.n;
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
	report_fact(s->r, "read/write", buf_str(&text));
}

static void add_notes(struct iosum *s, const char *input)
{
	uint64_t nr_blind = s->nr_libaio + (s->has_uring_rows ? 0 : s->nr_uring);
	if (nr_blind)
		report_note(s->r,
			    "%" PRIu64 " calls handed requests to io_uring or libaio: their bytes "
			    "and files are not in these tables",
			    nr_blind);
	if (s->nr_messages)
		report_note(s->r,
			    "%" PRIu64 " calls of recvmmsg and sendmmsg: they return numbers of "
			    "messages, their bytes are not known",
			    s->nr_messages);
	if (input)
		report_hint(s->r, "assay flame %s --event io", input);
}

static int add_io(struct iosum *s, const struct select_spec *spec, const char *input,
		  struct err *err)
{
	struct tally_rows rows;
	struct tally_row row;
	int rc = tally_rows_open(&rows, s->a, s->p, TABLE_IO, spec, err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (tally_rows_next(&rows, &row))
		add_row(s, &row);
	add_ratio(s);
	add_calls(s);
	add_sides(s, &s->files,
		  report_add_table(s->r, "io_files", "by file and peer", file_columns,
				   ARRAY_LEN(file_columns)),
		  1);
	add_sides(s, &s->functions,
		  report_add_table(s->r, "io_functions", "by function", function_columns,
				   ARRAY_LEN(function_columns)),
		  2);
	add_syncs(s);
	add_notes(s, input);
	return 0;
}

int iosum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		 const char *input, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(tables_has_rows(p, TABLE_IO) ? TABLE_IO : TABLE_BLOCK);
	TRY(select_run(&scratch, p, &own, &sel, err));
	CLEANUP(iosum_release)
	struct iosum s = {
		.r = r,
		.p = p,
		.limits = limits,
		.a = &scratch,
		.seconds = (double)view_duration_ns(&sel) / 1e9,
		.frames = waitframes_new(&scratch, p),
		.calls.arena = &scratch,
		.files.arena = &scratch,
		.functions.arena = &scratch,
		.syncs.arena = &scratch,
	};
	view_begin(r, &sel, "input and output");
	TRY(add_io(&s, &own, input, err));
	return add_block(&s, &own, err);
}
