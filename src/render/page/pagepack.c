/* The data block of the HTML page; see pagepack.h. */
#include "base/base.h"
#include "render/page/pagepack.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/numcolumn.h"
#include "base/text/json.h"
#include "model/facts.h"
#include "model/wait.h"
#include "render/flame.h"
#include "render/page/pagetables.h"
#include "render/palette.h"
#include "render/text_table.h"

struct packer {
	const struct page *page;
	const struct intern *names;
	struct json json;
	struct flame flame;
	uint32_t *text_id; /* by str_id: index in the header's texts; 0: none or not used */
	uint32_t nr_texts;
};

/* ---- header ------------------------------------------------------------------------------- */

static void add_losses(struct json *j, const struct report *r)
{
	static const char *const classes[] = {[LOSS_CLASS_OTHER] = "other",
					      [LOSS_CLASS_LOST] = "lost",
					      [LOSS_CLASS_TRUNC] = "truncated",
					      [LOSS_CLASS_UNSYM] = "unsymbolized"};
	CLEANUP(buf_release) struct buf text = {0};
	json_put_arr(j, "losses");
	for (enum loss_kind l = 0; l < LOSS_NR && !r->has_no_samples; l++) {
		if (!r->losses.nr[l] || loss_class(l) == LOSS_CLASS_COUNT)
			continue;
		json_arr(j);
		json_u64(j, r->losses.nr[l]);
		json_str(j, loss_text(l));
		json_str(j, classes[loss_class(l)]);
		json_end(j);
	}
	json_end(j);
	text_add_losses(&text, r);
	json_put_sv(j, "losses_text", buf_sv(&text));
}

static void add_about(struct packer *k)
{
	struct json *j = &k->json;
	const struct report *r = k->page->first;
	json_put_str(j, "title", k->page->title);
	json_put_u64(j, "duration_ms", k->page->duration_ms);
	json_put_i64(j, "wall_start_ms", k->page->wall_start_ns / 1000000);
	json_put_bool(j, "is_incomplete", k->page->is_incomplete);
	json_put_arr(j, "sentences");
	vec_foreach(text, &k->page->sentences)
		json_str(j, *text);
	json_end(j);
	json_put_arr(j, "notes");
	vec_foreach(note, &r->notes)
		json_str(j, *note);
	json_end(j);
	json_put_arr(j, "facts");
	vec_foreach(f, &r->facts) {
		const char *key = intern_str(&r->names, f->key);
		const char *value = intern_str(&r->names, f->value);
		json_arr(j);
		struct num_text scratch;
		bool is_detail = fact_is_detail(key, value);
		key = fact_shown(key, value, &scratch, &value);
		json_str(j, key);
		json_str(j, value);
		json_u64(j, is_detail);
		json_end(j);
	}
	json_end(j);
	add_losses(j, r);
	pagetables_add(j, r);
	pagetables_add_diagnosis(j, k->page->diagnosis);
}

static void add_threads(struct packer *k)
{
	struct json *j = &k->json;
	json_put_arr(j, "threads");
	vec_foreach(t, &k->page->threads) {
		json_arr(j);
		json_i64(j, t->pid);
		json_i64(j, t->tid);
		json_sv(j, intern_get(k->names, t->name));
		json_sv(j, intern_get(k->names, t->group));
		json_end(j);
	}
	json_end(j);
}

static void add_color(struct json *j, struct rgb c)
{
	json_u64(j, (uint64_t)c.r << 16 | (uint64_t)c.g << 8 | c.b);
}

/* States have the colours of their frames. */
static void add_states(struct packer *k)
{
	struct json *j = &k->json;
	json_put_arr(j, "states");
	for (size_t i = 0; i < k->page->states.n; i++) {
		const struct page_state *s = &k->page->states.p[i];
		const char *frame = i && i < WAIT_NR ? wait_frame((enum wait_reason)i) : NULL;
		struct palette_key key = {.name = sv_from_str(frame ? frame : "[on CPU]"),
					  .flags = TREE_PSEUDO};
		unsigned color = palette_color(PALETTE_DEFAULT, &key);
		json_arr(j);
		json_str(j, s->key);
		json_str(j, s->text);
		json_u64(j, s->is_idle);
		add_color(j, palette_rgb(PALETTE_DEFAULT, color, false));
		add_color(j, palette_rgb(PALETTE_DEFAULT, color, true));
		json_u64(j, s->longest_ns);
		json_end(j);
	}
	json_end(j);
}

static void add_colors(struct packer *k)
{
	struct json *j = &k->json;
	json_put_arr(j, "colors");
	for (unsigned c = 0; c < PALETTE_COLORS_MAX; c++) {
		json_arr(j);
		add_color(j, palette_rgb(PALETTE_DEFAULT, c, false));
		add_color(j, palette_rgb(PALETTE_DEFAULT, c, true));
		const char *meaning = palette_meaning(PALETTE_DEFAULT, c);
		if (meaning)
			json_str(j, meaning);
		json_end(j);
	}
	json_end(j);
}

static void add_streams(struct packer *k)
{
	static const char *const units[] = {
		[UNIT_COUNT] = "count", [UNIT_NS] = "ns", [UNIT_BYTES] = "bytes"};
	struct json *j = &k->json;
	json_put_arr(j, "streams");
	vec_foreach(s, &k->page->streams) {
		json_obj(j);
		json_put_str(j, "key", s->key);
		json_put_str(j, "title", s->title);
		json_put_str(j, "noun", s->noun);
		json_put_str(j, "count_name", s->count_name);
		json_put_str(j, "report", s->report);
		json_put_str(j, "unit", units[s->unit]);
		json_put_u64(j, "slice_ms", s->slice_ms);
		json_put_u64(j, "rows", s->n);
		json_put_bool(j, "has_times", s->flags & PAGE_HAS_TIMES);
		json_put_bool(j, "has_states", s->flags & PAGE_HAS_STATES);
		json_put_bool(j, "is_level", s->flags & PAGE_IS_LEVEL);
		json_put_bool(j, "has_places", s->flags & PAGE_HAS_PLACES);
		json_end(j);
	}
	json_end(j);
}

static void add_series(struct packer *k)
{
	struct json *j = &k->json;
	json_put_arr(j, "series");
	vec_foreach(s, &k->page->series) {
		json_obj(j);
		json_put_str(j, "key", s->key);
		json_put_str(j, "title", s->title);
		json_put_arr(j, "time_ms");
		for (size_t i = 0; i < s->n; i++)
			json_u64(j, s->time_ms[i]);
		json_end(j);
		json_put_arr(j, "value");
		for (size_t i = 0; i < s->n; i++)
			json_u64(j, s->value[i]);
		json_end(j);
		json_end(j);
	}
	json_end(j);
	json_put_arr(j, "spans");
	vec_foreach(s, &k->page->spans) {
		json_arr(j);
		json_u64(j, s->time_ms);
		json_u64(j, s->len_us);
		json_u64(j, s->thread);
		json_str(j, s->text);
		json_end(j);
	}
	json_end(j);
	json_put_arr(j, "marks");
	vec_foreach(m, &k->page->marks) {
		json_arr(j);
		json_u64(j, m->time_ms);
		json_str(j, m->text);
		json_end(j);
	}
	json_end(j);
}

static void add_text(struct packer *k, str_id text)
{
	if (!text || k->text_id[text])
		return;
	k->text_id[text] = ++k->nr_texts;
	json_sv(&k->json, intern_get(k->names, text));
}

/* Objects and wakers; text 0 is "". */
static void add_texts(struct packer *k)
{
	k->text_id = xcalloc(intern_count(k->names), sizeof(*k->text_id));
	json_put_arr(&k->json, "texts");
	json_str(&k->json, "");
	vec_foreach(s, &k->page->streams) {
		for (size_t i = 0; s->object && i < s->n; i++) {
			add_text(k, s->object[i]);
			add_text(k, s->waker[i]);
		}
	}
	json_end(&k->json);
}

/* ---- rows --------------------------------------------------------------------------------- */

#define ADD_COLUMN(to, c, s, value)                 \
	do {                                        \
		for (size_t i = 0; i < (s)->n; i++) \
			numcolumn_add(c, value);    \
		numcolumn_end(to, c);               \
	} while (0)

/* ---- nodes: a table of those that rows have, and each row's index in it, byte by byte ------------ */

struct leaf {
	uint32_t node;
	uint32_t nr_rows;
};

static int by_rows(const void *x, const void *y)
{
	const struct leaf *a = x;
	const struct leaf *b = y;
	return COMPARE(__builtin_clz(a->nr_rows), __builtin_clz(b->nr_rows))
		       ?: COMPARE(a->node, b->node);
}

static size_t count_leaves(struct leaf *leaves, size_t nr_nodes, const struct page_stream *s)
{
	for (size_t i = 0; i < s->n; i++)
		leaves[s->node[i]] = (struct leaf){s->node[i], leaves[s->node[i]].nr_rows + 1};
	size_t n = 0;
	for (size_t i = 0; i < nr_nodes; i++)
		if (leaves[i].nr_rows)
			leaves[n++] = leaves[i];
	if (n)
		qsort(leaves, n, sizeof(*leaves), by_rows);
	return n;
}

/*
 * The frequent ones first, so that the upper bytes of indexes are mostly small; those that are about as
 * frequent in the order of the tree, so that rows of one thread have neighbours.
 */
static void add_nodes(struct packer *k, struct buf *to, const struct page_stream *s)
{
	size_t nr_nodes = k->page->tree->nr_nodes;
	struct leaf *leaves CLEANUP(free_p) = xcalloc(nr_nodes + 1, sizeof(*leaves));
	uint32_t *index CLEANUP(free_p) = xcalloc(nr_nodes + 1, sizeof(*index));
	size_t n = count_leaves(leaves, nr_nodes, s);
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < n; i++) {
		buf_add_zigzag(&b, (int64_t)leaves[i].node - (i ? leaves[i - 1].node : 0));
		index[leaves[i].node] = (uint32_t)i;
	}
	buf_add_uleb(to, n);
	buf_add_uleb(to, b.n);
	buf_add_sv(to, buf_sv(&b));
	unsigned nr_bytes = 0;
	while (n > 1 && (uint64_t)(n - 1) >> 8 * nr_bytes)
		nr_bytes++;
	buf_add_uleb(to, (uint64_t)nr_bytes * s->n);
	for (unsigned byte = 0; byte < nr_bytes; byte++) {
		char *at = buf_reserve(to, s->n);
		for (size_t i = 0; i < s->n; i++)
			at[i] = (char)(index[s->node[i]] >> 8 * byte);
		to->n += s->n;
	}
}

#define SHAPE_LEVELS 63 /* of the weights of bins */

/* The shape of rows whose weights have a sum of @sum. */
static void add_shape(struct numcolumn columns[4], const struct waitbin *bins, size_t n,
		      uint64_t sum)
{
	uint64_t kept = 0;
	uint64_t most = 1;
	for (size_t i = 0; i < n; i++) {
		kept += bins[i].ns;
		most = MAX(most, (uint64_t)bins[i].ns);
	}
	numcolumn_add(&columns[0], sum > kept ? (sum - kept) * SHAPE_LEVELS / most : 0);
	numcolumn_add(&columns[1], n);
	for (size_t i = 0; i < n; i++) {
		uint64_t level = (bins[i].ns * (uint64_t)SHAPE_LEVELS + most / 2) / most;
		numcolumn_add(&columns[2], bins[i].bin - (i ? bins[i - 1].bin : 0u));
		numcolumn_add(&columns[3], MAX(level, (uint64_t)1));
	}
}

/* In the order in which rows use them; all rows of a shape are neighbours. */
static void add_shapes(struct buf *to, const struct waitbins *bins, const struct page_stream *s)
{
	struct numcolumn columns[4] = {0};
	for (size_t i = 0; i < s->n;) {
		size_t end = i;
		uint64_t sum = 0;
		while (end < s->n && s->shape[end] == s->shape[i])
			sum += s->weight[end++];
		size_t n = 0;
		if (s->shape[i]) {
			const struct waitbin *of = waitbins_of(bins, s->shape[i], &n);
			add_shape(columns, of, n, sum);
		}
		i = end;
	}
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		numcolumn_end(to, &columns[i]);
		numcolumn_release(&columns[i]);
	}
}

static void add_rows(struct packer *k, struct buf *to, const struct page_stream *s)
{
	CLEANUP(numcolumn_release) struct numcolumn c = {0};
	if (s->time_ms) {
		ADD_COLUMN(to, &c, s, s->time_ms[i] - (i ? s->time_ms[i - 1] : 0));
		ADD_COLUMN(to, &c, s, s->len_ms[i]);
	}
	add_nodes(k, to, s);
	ADD_COLUMN(to, &c, s, s->thread[i]);
	ADD_COLUMN(to, &c, s, s->count[i]);
	ADD_COLUMN(to, &c, s, s->weight[i]);
	if (s->state) {
		ADD_COLUMN(to, &c, s, s->state[i]);
		ADD_COLUMN(to, &c, s, s->log2_ns[i] == LOG2_NONE ? 0 : s->log2_ns[i] + 1u);
		ADD_COLUMN(to, &c, s, k->text_id[s->object[i]]);
		ADD_COLUMN(to, &c, s, k->text_id[s->waker[i]]);
		ADD_COLUMN(to, &c, s,
			   !s->shape[i]                          ? 0u
			   : i && s->shape[i] == s->shape[i - 1] ? 1u
								 : 2u);
	}
	if (s->state)
		add_shapes(to, k->page->bins, s);
}

static void add_places(struct buf *to, const struct page_stream *s)
{
	CLEANUP(numcolumn_release) struct numcolumn c = {0};
	if (!s->place)
		return;
	ADD_COLUMN(to, &c, s, s->place[i]);
}

static void add_block(struct buf *to, const struct buf *block)
{
	buf_add_uleb(to, block->n);
	buf_add_sv(to, buf_sv(block));
}

void pagepack_write(struct buf *to, const struct page *page)
{
	CLEANUP(buf_release) struct buf header = {0};
	CLEANUP(buf_release) struct buf tree = {0};
	struct packer k = {
		.page = page, .names = &page->tree_report->names, .json = json_to(&header)};
	flame_init(&k.flame, page->tree_report, page->tree, PALETTE_DEFAULT);
	json_obj(&k.json);
	add_about(&k);
	add_threads(&k);
	add_states(&k);
	add_colors(&k);
	add_streams(&k);
	add_series(&k);
	add_texts(&k);
	json_end(&k.json);
	flame_pack(&tree, &k.flame);
	buf_add_str(to, PAGE_MAGIC);
	add_block(to, &header);
	add_block(to, &tree);
	vec_foreach(s, &page->streams)
		add_rows(&k, to, s);
	vec_foreach(s, &page->streams)
		add_places(to, s);
	flame_release(&k.flame);
	free(k.text_id);
}
