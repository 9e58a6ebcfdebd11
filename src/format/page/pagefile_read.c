/*
 * Reads an HTML page as a recording; see pagefile.h. Nothing in the page is believed: blocks are
 * found by their tags, sizes are checked against the stored size before memory is taken, ids against
 * the profile's tables.
 */
#include "base/base.h"
#include "format/page/pagefile.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/rd.h"
#include "base/file/zio.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "format/format.h"
#include "format/page/pagerow.h"

#define NS_PER_MS      1000000ull
#define STREAMS_MAX    64
#define UNZIP_MIN      ((size_t)96 << 20) /* as format_check_room */
#define UNZIP_FACTOR   96
#define ROW_BYTES      64 /* of a stream's row here */
#define SHAPE_COLUMNS  4
#define GENERATOR      "<meta name=\"generator\" content=\"assay\">"
#define BLOCK_DATA     "<script type=\"application/x-assay-page\""
#define BLOCK_RECORDED "<script type=\"application/x-assay-recording\""
#define BLOCK_ROWS     "<script type=\"application/x-assay-rows\""

int pagefile_sniff(struct sv head)
{
	return memmem(head.p, head.n, GENERATOR, strlen(GENERATOR)) ? 100 : 0;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Returns the text of a block; empty: the page has none. */
static struct sv find_block(struct sv page, const char *tag)
{
	const char *start = memmem(page.p, page.n, tag, strlen(tag));
	const char *end = page.p + page.n;
	start = start ? memchr(start, '>', (size_t)(end - start)) : NULL;
	const char *stop = start ? memchr(start, '<', (size_t)(end - start)) : NULL;
	return stop ? sv_from(start + 1, (size_t)(stop - start - 1)) : (struct sv){0};
}

static int read_block(struct buf *to, struct sv page, const char *tag, struct err *err)
{
	CLEANUP(buf_release) struct buf raw = {0};
	TRY(base64_decode(&raw, find_block(page, tag), err));
	if (zio_sniff(raw.p, raw.n) != ZKIND_GZIP) {
		buf_add_sv(to, buf_sv(&raw));
		return 0;
	}
	size_t limit = MAX(UNZIP_MIN, page.n * UNZIP_FACTOR);
	return zio_decompress(to, ZKIND_GZIP, raw.p, raw.n, limit, err);
}

/* ---- columns ------------------------------------------------------------------------------ */

/* A column of @n numbers, or a single one for all. */
struct column_in {
	struct rd rd;
	uint64_t all;
	bool is_single;
	bool is_bad;
};

static struct column_in next_column(struct rd *from)
{
	struct column_in c = {.rd = rd_sub(from, (size_t)rd_uleb(from))};
	struct rd probe = c.rd;
	c.all = rd_uleb(&probe);
	c.is_single = !probe.is_bad && !rd_left(&probe);
	return c;
}

static uint64_t next_value(struct column_in *c)
{
	if (c->is_single)
		return c->all;
	uint64_t v = rd_uleb(&c->rd);
	c->is_bad |= c->rd.is_bad;
	return v;
}

static int64_t next_signed(struct column_in *c)
{
	uint64_t v = next_value(c);
	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static void skip_columns(struct rd *from, unsigned nr)
{
	while (nr--)
		rd_skip(from, (size_t)rd_uleb(from));
}

/* ---- streams of the script's data --------------------------------------------------------- */

struct stream_in {
	struct pagefile_stream s;
	uint8_t *table;
	uint32_t *time_ms;
	uint32_t *node;
	uint32_t *thread;
	uint64_t *count;
	uint64_t *weight;
	uint8_t *state;
	uint8_t *log2_ns;
	uint32_t *object;
	uint32_t *waker;
};

static void stream_release(struct stream_in *s)
{
	free(s->table);
	free(s->time_ms);
	free(s->node);
	free(s->thread);
	free(s->count);
	free(s->weight);
	free(s->state);
	free(s->log2_ns);
	free(s->object);
	free(s->waker);
}

#define READ_COLUMN(field)                                                       \
	do {                                                                     \
		struct column_in c_ = next_column(data);                         \
		in->field = xcalloc(n, sizeof(*in->field));                      \
		for (size_t i_ = 0; i_ < n; i_++)                                \
			in->field[i_] = (__typeof__(*in->field))next_value(&c_); \
		data->is_bad |= c_.is_bad;                                       \
	} while (0)

/* The nodes of rows: their table, then the rows' indexes in it, byte by byte. */
static void read_nodes(struct stream_in *in, struct rd *data, size_t n)
{
	uint64_t nr = rd_uleb(data);
	struct rd deltas = rd_sub(data, (size_t)rd_uleb(data));
	in->node = xcalloc(n, sizeof(*in->node));
	if (nr > rd_left(&deltas)) { /* each takes a byte */
		data->is_bad = true;
		return;
	}
	uint32_t *table CLEANUP(free_p) = xcalloc((size_t)nr + 1, sizeof(*table));
	uint32_t last = 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t v = rd_uleb(&deltas);
		table[i] = last += (uint32_t)(v >> 1 ^ (0 - (v & 1)));
	}
	struct rd planes = rd_sub(data, (size_t)rd_uleb(data));
	size_t nr_bytes = n ? rd_left(&planes) / n : 0;
	for (size_t byte = 0; byte < nr_bytes && byte < sizeof(*table); byte++)
		for (size_t i = 0; i < n; i++)
			in->node[i] |= (uint32_t)rd_u8(&planes) << 8 * byte;
	for (size_t i = 0; i < n; i++) {
		data->is_bad |= in->node[i] >= nr;
		in->node[i] = table[in->node[i] < nr ? in->node[i] : 0];
	}
	data->is_bad |= deltas.is_bad || planes.is_bad;
}

/* The columns as pagepack.c writes them. */
static void read_stream(struct stream_in *in, struct rd *data, size_t n, unsigned flags)
{
	if (flags & PAGEROW_TIMES) {
		READ_COLUMN(time_ms);
		for (size_t i = 1; i < n; i++)
			in->time_ms[i] += in->time_ms[i - 1];
		skip_columns(data, 1);
	}
	read_nodes(in, data, n);
	READ_COLUMN(thread);
	READ_COLUMN(count);
	READ_COLUMN(weight);
	if (flags & PAGEROW_STATES) {
		READ_COLUMN(state);
		READ_COLUMN(log2_ns);
		for (size_t i = 0; i < n; i++) /* 0: not known */
			in->log2_ns[i] = (uint8_t)(in->log2_ns[i] - 1);
		READ_COLUMN(object);
		READ_COLUMN(waker);
		skip_columns(data, 1 + SHAPE_COLUMNS);
	}
	in->s = (struct pagefile_stream){.n = n,
					 .table = in->table,
					 .time_ms = in->time_ms,
					 .node = in->node,
					 .thread = in->thread,
					 .count = in->count,
					 .weight = in->weight,
					 .state = in->state,
					 .log2_ns = in->log2_ns,
					 .object = in->object,
					 .waker = in->waker};
}

/* ---- rows --------------------------------------------------------------------------------- */

struct reading {
	struct profile *p;
	struct rd data; /* after the tree */
	struct rd rows;
	uint64_t start_ns;
	uint64_t nr_stored;
	bool is_bad;
};

/* Values by the keys of their rows, each below @limit. */
struct guessed_in {
	struct guess g;
	struct column_in codes;
	struct column_in fresh;
	uint64_t last;
	uint64_t limit;
};

static void guessed_open(struct guessed_in *g, struct reading *r, uint64_t limit)
{
	g->codes = next_column(&r->rows);
	g->fresh = next_column(&r->rows);
	g->limit = limit;
}

static uint32_t guessed_next(struct guessed_in *g, struct reading *r, uint64_t key)
{
	uint32_t value = 0;
	uint64_t code = next_value(&g->codes);
	if (code > UINT32_MAX || !guess_value(&g->g, key, (uint32_t)code, &value)) {
		g->last += (uint64_t)next_signed(&g->fresh);
		value = (uint32_t)g->last;
		r->is_bad |= g->last >= g->limit;
		if (!r->is_bad)
			guess_add(&g->g, key, value);
	}
	r->is_bad |= g->codes.is_bad || g->fresh.is_bad;
	return r->is_bad ? 0 : value;
}

struct values_in {
	struct column_in c;
	uint64_t mode;
	uint64_t last;
};

static int64_t values_next(struct values_in *v, struct reading *r, int64_t predicted)
{
	uint64_t base = v->mode == PAGEROW_PREDICTED ? (uint64_t)predicted : v->last;
	v->last = base + (uint64_t)next_signed(&v->c);
	r->is_bad |= v->c.is_bad;
	return (int64_t)v->last;
}

/* What the part of one table in a stream is read from. */
struct part_in {
	struct guessed_in stack;
	struct guessed_in task;
	struct guessed_in tag;
	struct column_in time;
	struct values_in values[TABLE_COLUMNS_MAX];
	struct pagerow_keys keys;
};

static void part_release(struct part_in *part)
{
	guess_release(&part->stack.g);
	guess_release(&part->task.g);
	guess_release(&part->tag.g);
	pagerow_keys_release(&part->keys);
}

static void part_open(struct part_in *part, struct reading *r, const struct stream_in *in,
		      const struct table *t)
{
	const struct profile *p = r->p;
	guessed_open(&part->stack, r, p->stacks.n);
	guessed_open(&part->task, r, p->tasks.n);
	if (t->has_tags)
		guessed_open(&part->tag, r, p->tags.n);
	if (in->time_ms)
		part->time = next_column(&r->rows);
	for (uint32_t c = 0; c < t->nr_columns; c++) {
		part->values[c].mode = rd_uleb(&r->rows);
		part->values[c].c = next_column(&r->rows);
	}
	r->is_bad |= r->rows.is_bad;
}

static void add_row(struct part_in *part, struct reading *r, const struct stream_in *in,
		    uint32_t table, size_t i)
{
	struct table *t = &r->p->tables.p[table];
	int64_t values[TABLE_COLUMNS_MAX];
	uint64_t time_ns = 0;
	stack_id stack = guessed_next(&part->stack, r, in->node[i]);
	task_id task = guessed_next(&part->task, r, in->thread[i]);
	uint32_t tag =
		t->has_tags ? guessed_next(&part->tag, r, pagerow_tag_key(&part->keys, &in->s, i))
			    : 0;
	if (in->time_ms)
		time_ns = r->start_ns + in->time_ms[i] * NS_PER_MS +
			  (uint64_t)next_signed(&part->time);
	for (uint32_t c = 0; c < t->nr_columns; c++)
		values[c] = values_next(&part->values[c], r, pagerow_predicted(t, c, &in->s, i));
	if (r->is_bad)
		return;
	if (t->has_tags)
		profile_tagged_sample(r->p, table, time_ns, stack, task, -1, tag, values);
	else
		profile_sample(r->p, table, time_ns, stack, task, -1, values);
}

static void read_part(struct reading *r, const struct stream_in *in, uint32_t table)
{
	struct part_in part = {0};
	part_open(&part, r, in, &r->p->tables.p[table]);
	for (size_t i = 0; i < in->s.n && !r->is_bad; i++)
		if (in->table[i] == table + 1)
			add_row(&part, r, in, table, i);
	part_release(&part);
}

static int inconsistent(struct err *err)
{
	return err_set(err, -EBADMSG, "the rows of the page are damaged");
}

static int read_rows_of(struct reading *r, struct stream_in *in, size_t n, struct err *err)
{
	unsigned flags = (unsigned)rd_uleb(&r->rows);
	uint64_t row_bytes = ROW_BYTES;
	vec_foreach(t, &r->p->tables)
		row_bytes = MAX(row_bytes, ROW_BYTES + table_row_bytes(t));
	if (r->rows.is_bad || n > UINT32_MAX)
		return inconsistent(err);
	TRY(format_check_room(r->nr_stored, r->p, n * row_bytes, err));
	struct column_in tables = next_column(&r->rows);
	uint8_t has[UINT8_MAX + 1] = {0};
	in->table = xcalloc(n, 1);
	for (size_t i = 0; i < n; i++) {
		uint64_t t = next_value(&tables);
		r->is_bad |= tables.is_bad || t > r->p->tables.n || t > UINT8_MAX;
		in->table[i] = r->is_bad ? 0 : (uint8_t)t;
		has[in->table[i]] = 1;
	}
	read_stream(in, &r->data, n, flags);
	if (r->is_bad || r->data.is_bad)
		return inconsistent(err);
	for (unsigned t = 1; t <= UINT8_MAX && !r->is_bad; t++)
		if (has[t])
			read_part(r, in, t - 1);
	return r->is_bad ? inconsistent(err) : 0;
}

static int read_rows(struct reading *r, struct err *err)
{
	r->start_ns = rd_uleb(&r->rows);
	uint64_t nr = rd_uleb(&r->rows);
	if (nr > STREAMS_MAX)
		return inconsistent(err);
	while (nr--) {
		CLEANUP(stream_release) struct stream_in in = {0};
		uint64_t n = rd_uleb(&r->rows);
		TRY(read_rows_of(r, &in, n, err));
	}
	return 0;
}

/* ---- the page ----------------------------------------------------------------------------- */

static bool skip_magic(struct rd *rd, const char *magic)
{
	const uint8_t *at = rd_bytes(rd, strlen(magic));
	return at && !memcmp(at, magic, strlen(magic));
}

int pagefile_read(struct profile *p, const struct format_input *in,
		  const struct format_options *options, struct err *err)
{
	CLEANUP(buf_release) struct buf all = {0};
	CLEANUP(buf_release) struct buf recording = {0};
	CLEANUP(buf_release) struct buf data = {0};
	CLEANUP(buf_release) struct buf rows = {0};
	struct sv page;
	TRY(format_input_text(in, &all, &page, err));
	TRY(read_block(&recording, page, BLOCK_RECORDED, err));
	if (!recording.n) {
		err_set(err, -EINVAL, "this page holds no recording, or is cut off");
		return err_hint(err, "open it in a browser, or read its recording (.assay)");
	}
	TRY(assayfile_format_read(p, &(struct format_input){.head = buf_sv(&recording)}, options,
				  err));
	TRY(read_block(&data, page, BLOCK_DATA, err));
	TRY(read_block(&rows, page, BLOCK_ROWS, err));
	struct reading r = {.p = p,
			    .data = rd_from(data.p, data.n),
			    .rows = rd_from(rows.p, rows.n),
			    .nr_stored = format_input_stored(in)};
	if (!skip_magic(&r.data, PAGEFILE_MAGIC) || !skip_magic(&r.rows, PAGEROW_MAGIC))
		return err_set(err, -EBADMSG, "the page's data are damaged, or of another version");
	skip_columns(&r.data, 2); /* header and tree */
	return read_rows(&r, err);
}
