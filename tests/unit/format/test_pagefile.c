/* The HTML page as a recording: what was written into it is read again. */
#include "base/base.h"
#include "format/page/pagefile.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/page/pagedata.h"
#include "analyze/query.h"
#include "analyze/views.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "cmd/read/htmlpage.h"
#include "format/format.h"
#include "made.h"
#include "madeheap.h"
#include "madewaits.h"
#include "render/text.h"

static int read_page(struct profile **ret_p, struct sv page, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	const struct format_input in = {.head = page};
	const struct format_options options = {0};
	TRY(pagefile_read(p, &in, &options, err));
	profile_seal(p);
	*ret_p = TAKE(p);
	return 0;
}

static struct profile *through_a_page(const struct profile *p)
{
	CLEANUP(buf_release) struct buf html = {0};
	CLEANUP(err_release) struct err err = {0};
	struct profile *q = NULL;
	CHECK(!htmlpage_make(&html, p, "dir/x.assay", NULL, &err));
	CHECK(pagefile_sniff(sv_from(html.p, MIN(html.n, FORMAT_SNIFF_BYTES))) > 0);
	if (read_page(&q, buf_sv(&html), &err))
		printf("# %s\n", err_msg(&err));
	CHECK(q != NULL);
	return q;
}

static char *report_text(const struct profile *p, const char *event, unsigned flags)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf text = {0};
	const struct select_spec spec = {.event = event};
	const struct query q = {.spec = &spec,
				.by = QUERY_BY_NONE,
				.flags = flags,
				.limits = {.max_rows = 20},
				.tree_min_pct = 0.1};
	CHECK(!query_run(r, p, &q, NULL));
	text_render(&text, r, &(struct text_style){0});
	return buf_detach(&text);
}

static void check_same_reports(const struct profile *p, const char *event)
{
	CLEANUP(profile_free_p) struct profile *q = through_a_page(p);
	static const unsigned flags[] = {0, QUERY_TREE, QUERY_REVERSE};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		CLEANUP(free_p) char *want = report_text(p, event, flags[i]);
		CLEANUP(free_p) char *got = report_text(q, event, flags[i]);
		CHECK_STR(got, want);
	}
}

TEST(a_page_of_thread_time_gives_the_reports_of_its_recording)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(true);
	check_same_reports(p, NULL);
	check_same_reports(p, "off-cpu");
	check_same_reports(p, "cpu-clock");
}

TEST(a_page_of_waits_gives_the_reports_of_its_recording)
{
	CLEANUP(profile_free_p) struct profile *p = madewaits_service(false);
	check_same_reports(p, NULL);
}

TEST(a_page_of_memory_gives_the_reports_of_its_recording)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_server(0);
	check_same_reports(p, NULL);
}

TEST(a_page_of_samples_keeps_periods_stacks_with_inlines_and_whole_milliseconds)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	p->start_ns = 1000000;
	p->end_ns = 9000000000;
	for (unsigned i = 0; i < 300; i++) {
		char stack[64];
		snprintf(stack, sizeof(stack), "main;f%u a.so;in<out%u b.so", i % 7, i % 90);
		made_sample(p, t,
			    &(struct made){.stack = stack,
					   .comm = i % 3 ? "one" : "two",
					   .tid = (int32_t)(1 + i % 5),
					   .ns = 1000000 + 3333333ull * (i / 2),
					   .weight = 1000 + i * i});
	}
	profile_fact(p, FACT_KIND, "cpu");
	profile_seal(p);
	CLEANUP(profile_free_p) struct profile *q = through_a_page(p);
	CHECK_U64(q->tables.n, 1);
	CHECK_U64(q->tables.p[0].n, 300);
	uint64_t sum = 0;
	for (size_t i = 0; i < 300; i++) {
		CHECK_U64(q->tables.p[0].time_ns[i] % 1000000, 0);
		sum += (uint64_t)q->tables.p[0].values[2 * i + 1];
	}
	uint64_t want = 0;
	for (size_t i = 0; i < 300; i++)
		want += 1000 + i * i;
	CHECK_U64(sum, want);
	CHECK_STR(profile_get_fact(q, FACT_PAGE_OF), "x.assay");
	check_same_reports(p, NULL);
}

/* ---- damage ------------------------------------------------------------------------------- */

static void add_block(struct buf *to, const char *type, struct sv bytes)
{
	buf_addf(to, "<script type=\"application/x-assay-%s\">", type);
	base64_add(to, bytes);
	buf_add_str(to, "</script>");
}

/* The three blocks alone, not compressed: the data has one stream and no texts. */
static void small_page(struct buf *to, const struct buf *recording, const struct buf *data,
		       const struct buf *rows)
{
	add_block(to, "page", buf_sv(data));
	add_block(to, "recording", buf_sv(recording));
	add_block(to, "rows", buf_sv(rows));
}

struct blocks {
	struct buf recording;
	struct buf data;
	struct buf rows;
};

static void blocks_release(struct blocks *b)
{
	buf_release(&b->recording);
	buf_release(&b->data);
	buf_release(&b->rows);
}

static void add_column(struct buf *to, const uint32_t *v, size_t n)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < n; i++)
		buf_add_uleb(&b, v[i]);
	buf_add_uleb(to, b.n);
	buf_add_sv(to, buf_sv(&b));
}

static void small_blocks(struct blocks *b)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	static const char *const stacks[] = {"main;a", "main;b", "main;a;c"};
	for (unsigned i = 0; i < 3; i++)
		made_sample(p, t, &(struct made){.stack = stacks[i], .ns = 1000000 * (i + 1)});
	profile_seal(p);
	static const uint32_t node[] = {2, 3, 4};
	static const uint32_t ones[] = {1, 1, 1};
	static const uint64_t counts[] = {1, 1, 1};
	static const uint8_t table[] = {1, 1, 1};
	static const uint32_t source[] = {0, 1, 2};
	static const uint32_t time_ms[] = {0, 1, 2};
	const struct pagefile_stream s = {.n = 3,
					  .table = table,
					  .source = source,
					  .time_ms = time_ms,
					  .node = node,
					  .thread = ones,
					  .count = counts,
					  .weight = counts};
	CHECK(!pagefile_make(&b->recording, &b->rows, p, &s, 1, 1000000, NULL, NULL));
	buf_add_str(&b->data, PAGEFILE_MAGIC);
	buf_add_uleb(&b->data, 0); /* header */
	buf_add_uleb(&b->data, 0); /* tree */
	static const uint32_t deltas[] = {0, 1, 1};
	add_column(&b->data, deltas, 3);
	add_column(&b->data, (const uint32_t[]){0}, 1); /* lengths */
	buf_add_uleb(&b->data, 3); /* nodes 2, 3, 4 as zigzag differences, then an index a row */
	add_column(&b->data, (const uint32_t[]){4, 2, 2}, 3);
	add_column(&b->data, (const uint32_t[]){0, 1, 2}, 3);
	for (unsigned i = 0; i < 3; i++) /* threads, counts, weights */
		add_column(&b->data, ones, 1);
}

TEST(a_page_cut_at_any_byte_is_refused_or_whole)
{
	CLEANUP(blocks_release) struct blocks b = {0};
	CLEANUP(buf_release) struct buf page = {0};
	small_blocks(&b);
	small_page(&page, &b.recording, &b.data, &b.rows);
	for (size_t n = 0; n <= page.n; n++) {
		CLEANUP(free_p) char *copy = xmemdup(page.p, n);
		CLEANUP(profile_free_p) struct profile *p = NULL;
		CLEANUP(err_release) struct err err = {0};
		int rc = read_page(&p, sv_from(copy, n), &err);
		bool is_whole = n + strlen("/script>") >= page.n;
		CHECK(is_whole == !rc);
		if (!rc)
			CHECK_U64(p->tables.p[0].n, 3);
	}
}

TEST(a_page_with_any_byte_of_its_rows_or_data_changed_gives_valid_ids)
{
	CLEANUP(blocks_release) struct blocks b = {0};
	small_blocks(&b);
	struct buf *changed[] = {&b.data, &b.rows};
	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < 8 * changed[k]->n; i++) {
			CLEANUP(buf_release) struct buf page = {0};
			CLEANUP(profile_free_p) struct profile *p = NULL;
			changed[k]->p[i / 8] ^= (char)(1 << i % 8);
			small_page(&page, &b.recording, &b.data, &b.rows);
			changed[k]->p[i / 8] ^= (char)(1 << i % 8);
			if (read_page(&p, buf_sv(&page), NULL))
				continue;
			for (size_t r = 0; r < p->tables.p[0].n; r++) {
				CHECK(p->tables.p[0].stack[r] < p->stacks.n);
				CHECK(p->tables.p[0].task[r] < p->tasks.n);
			}
		}
	}
}

TEST(a_page_without_a_recording_is_refused_with_a_hint)
{
	CLEANUP(err_release) struct err err = {0};
	struct profile *p = NULL;
	CHECK(read_page(&p, SV("<html><meta name=\"generator\" content=\"assay\">"), &err) ==
	      -EINVAL);
	CHECK(err.hint != NULL);
}

TEST(base64_gives_the_bytes_back_and_refuses_other_text)
{
	for (size_t n = 0; n < 70; n++) {
		CLEANUP(buf_release) struct buf text = {0};
		CLEANUP(buf_release) struct buf back = {0};
		char bytes[70];
		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)(i * 37 + n);
		base64_add(&text, sv_from(bytes, n));
		CHECK(!base64_decode(&back, buf_sv(&text), NULL));
		CHECK(back.n == n && !memcmp(buf_str(&back), bytes, n));
	}
	CLEANUP(buf_release) struct buf out = {0};
	CHECK(base64_decode(&out, SV("abc"), NULL) == -EBADMSG);
	CHECK(base64_decode(&out, SV("ab c"), NULL) == -EBADMSG);
	CHECK(base64_decode(&out, SV("a=bc"), NULL) == -EBADMSG);
}
