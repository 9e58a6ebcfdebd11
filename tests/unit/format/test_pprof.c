/* format/exchange/: pprof's profiles, written and read. */
#include "base/base.h"
#include "tap.h"

#include "base/err.h"
#include "base/file/protobuf.h"
#include "format/exchange/pprof.h"
#include "format/format.h"
#include "made.h"
#include "madeheap.h"
#include "madewaits.h"

static struct profile *read_pprof(struct sv bytes, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_input in = {.head = bytes};
	int rc = pprof_read(p, &in, &(struct format_options){0}, err);
	profile_seal(p);
	return rc ? NULL : TAKE(p);
}

static void write_as(const char *format, const struct profile *p, struct format_options *options,
		     struct buf *to)
{
	CLEANUP(err_release) struct err err = {0};
	struct format_output out = {0};
	if (format_find(format)->write(&out, p, options, &err))
		tap_fail(__FILE__, __LINE__, "writing %s: %s", format, err_msg(&err));
	*to = out.buf;
}

static char *folded_of(const struct profile *p, const char *event)
{
	struct buf b;
	struct format_options o = {.event = event, .folded = {.flags = FOLDED_TID}};
	write_as("folded", p, &o, &b);
	return buf_detach(&b);
}

/* Written, read, and as folded stacks the same. */
static void expect_kept(const struct profile *p, const char *event, const char *read_event)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	write_as("pprof", p, &(struct format_options){0}, &b);
	CHECK(pprof_sniff(buf_sv(&b)) > 0);
	CLEANUP(profile_free_p) struct profile *q = read_pprof(buf_sv(&b), &err);
	CHECK(q);
	CLEANUP(free_p) char *before = folded_of(p, event);
	CLEANUP(free_p) char *after = folded_of(q, read_event);
	CHECK(before[0]);
	CHECK_STR(after, before);
}

static struct profile *made(void)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	p->tables.p[t].weight_column = 0;
	made_sample(p, t,
		    &(struct made){.stack = "main;<Vec<T>>::extend libx.so;read [k]",
				   .nr = 3,
				   .weight = 3000000,
				   .tid = 7});
	made_sample(p, t, &(struct made){.stack = "main;inner<outer a.out", .nr = 2, .weight = 5});
	made_sample(p, t, &(struct made){.stack = "main;inner<outer a.out", .nr = 2, .weight = 5});
	made_sample(p, t, &(struct made){.stack = "", .nr = 1, .weight = 1, .comm = "idle"});
	profile_seal(p);
	return p;
}

TEST(pprof_keeps_samples_threads_and_inlined_functions)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	write_as("pprof", p, &(struct format_options){0}, &b);
	CLEANUP(profile_free_p) struct profile *q = read_pprof(buf_sv(&b), &err);
	CHECK(q);
	CLEANUP(free_p) char *folded = folded_of(q, "cpu");
	CHECK_STR(folded, "comm-1/1;main;outer;inner 4\n"
			  "comm-1/7;main;<Vec<T>>::extend;read 3\n"
			  "idle-1/1;[no stack] 1\n");
	CHECK_U64(q->losses.nr[LOSS_SEEN], 8);
	CHECK_U64(q->losses.nr[LOSS_WRITTEN], 8);
	CHECK_U64(q->tables.p[0].n, 3);
}

TEST(pprof_keeps_waits_and_heaps)
{
	CLEANUP(profile_free_p) struct profile *waits = madewaits_service(true);
	vec_foreach(t, &waits->tables)
		t->weight_column = t->id == TABLE_SAMPLES ? 0 : t->weight_column;
	profile_seal(waits);
	expect_kept(waits, "off-cpu", "off-cpu");
	expect_kept(waits, "cpu-clock", "cpu");
	CLEANUP(profile_free_p) struct profile *heap = madeheap_server(0);
	profile_seal(heap);
	expect_kept(heap, "live", "live");
	expect_kept(heap, "allocated", "allocated");
	expect_kept(heap, "freed", "freed");
}

/* What pprof, Parca and speedscope need. */
TEST(pprof_files_have_sequential_ids_and_a_line_at_each_location)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	for (int has_inline_locations = 0; has_inline_locations < 2; has_inline_locations++) {
		CLEANUP(buf_release) struct buf b = {0};
		struct format_options o = {.pprof = {has_inline_locations}};
		write_as("pprof", p, &o, &b);
		struct rd in = rd_from(b.p, b.n);
		struct pb_field f;
		uint64_t nr_strings = 0;
		uint64_t nr_types = 0;
		uint64_t ids[PPROF_DOC_URL + 1] = {0};
		while (pb_next(&in, &f)) {
			uint64_t nr_lines = 0;
			uint64_t nr_values = 0;
			uint64_t v;
			if (f.nr == PPROF_STRING && !nr_strings++)
				CHECK_U64(rd_left(&f.bytes), 0); /* the first is "" */
			nr_types += f.nr == PPROF_SAMPLE_TYPE;
			bool has_id = f.nr >= PPROF_MAPPING && f.nr <= PPROF_FUNCTION;
			for (struct pb_field g;
			     f.type == PB_BYTES && f.nr != PPROF_STRING && pb_next(&f.bytes, &g);) {
				if (has_id && g.nr == 1)
					CHECK_U64(g.v, ++ids[f.nr]);
				nr_lines += g.nr == PPROF_LOCATION_LINE;
				while (f.nr == PPROF_SAMPLE && g.nr == PPROF_SAMPLE_VALUES &&
				       pb_next_number(&g, &v))
					nr_values++;
				if (f.nr == PPROF_MAPPING && g.nr >= PPROF_MAPPING_HAS_FUNCTIONS)
					CHECK_U64(g.v, 1);
				if (f.nr == PPROF_FUNCTION && g.nr == PPROF_FUNCTION_SYSTEM_NAME)
					CHECK_U64(g.v, 0);
			}
			if (f.nr == PPROF_SAMPLE)
				CHECK_U64(nr_values, nr_types);
			if (f.nr == PPROF_LOCATION)
				CHECK(has_inline_locations ? nr_lines == 1 : nr_lines >= 1);
		}
		CHECK(!in.is_bad);
		CHECK_U64(ids[PPROF_LOCATION], has_inline_locations ? 6 : 5);
		CHECK(nr_types == 2 && ids[PPROF_MAPPING] && ids[PPROF_FUNCTION]);
	}
}

TEST(a_truncated_pprof_file_is_an_error_or_a_profile)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	CLEANUP(buf_release) struct buf b = {0};
	write_as("pprof", p, &(struct format_options){0}, &b);
	size_t nr_read = 0;
	for (size_t n = 0; n < b.n; n++) {
		CLEANUP(free_p) char *copy = malloc(n + 1); /* reads past the end are found */
		CLEANUP(err_release) struct err err = {0};
		memcpy(copy, b.p, n);
		CLEANUP(profile_free_p) struct profile *q = read_pprof(sv_from(copy, n), &err);
		CHECK(q || *err_msg(&err));
		nr_read += q != NULL;
	}
	CHECK(nr_read > 10 && nr_read < b.n / 4); /* it can be cut between fields only */
}

/* ---- files of others, made by hand -------------------------------------------------------- */

static void put(struct buf *to, uint32_t nr, const struct buf *message)
{
	pb_put_bytes(to, nr, message->p, message->n);
}

static void put_pair(struct buf *to, uint32_t nr, uint64_t one, uint64_t two)
{
	CLEANUP(buf_release) struct buf m = {0};
	pb_put_number(&m, 1, one);
	pb_put_number(&m, 2, two);
	put(to, nr, &m);
}

static void put_location(struct buf *to, uint64_t id, uint64_t function)
{
	CLEANUP(buf_release) struct buf m = {0};
	pb_put_number(&m, PPROF_LOCATION_ID, id);
	put_pair(&m, PPROF_LOCATION_LINE, function, 0);
	put(to, PPROF_LOCATION, &m);
}

/* Numbers one by one, as writers without packing have them. */
static void put_sample(struct buf *to, const uint64_t *stack, size_t n, uint64_t value)
{
	CLEANUP(buf_release) struct buf m = {0};
	for (size_t i = 0; i < n; i++)
		pb_put_number(&m, PPROF_SAMPLE_LOCATIONS, stack[i]);
	pb_put_number(&m, PPROF_SAMPLE_VALUES, value);
	put(to, PPROF_SAMPLE, &m);
}

static void expect_folded_of(const struct buf *file, const char *want, uint64_t nr_unparsed)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = read_pprof(buf_sv(file), &err);
	if (!p) {
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
		return;
	}
	struct buf b;
	struct format_options o = {.folded = {.flags = FOLDED_NO_COMM}};
	write_as("folded", p, &o, &b);
	CHECK_STR(buf_str(&b), want);
	CHECK_U64(p->losses.nr[LOSS_UNPARSED], nr_unparsed);
	CHECK_U64(p->losses.nr[LOSS_SEEN],
		  p->losses.nr[LOSS_WRITTEN] + p->losses.nr[LOSS_UNPARSED]);
	buf_release(&b);
}

static void put_strings(struct buf *to, const char *const *strings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pb_put_bytes(to, PPROF_STRING, strings[i], strlen(strings[i]));
}

TEST(pprof_files_are_read_in_any_order_with_what_they_hide)
{
	static const char *const strings[] = {"",          "events",   "count",    "main",
					      "f",         "rt.alloc", "rt.inner", "rt\\..*",
					      "rt\\.keep", "rt.keep"};
	static const uint64_t functions[] = {3, 4, 5, 6, 9};
	CLEANUP(buf_release) struct buf b = {0};
	put_sample(&b, (uint64_t[]){4, 3, 2, 1}, 4, 10);  /* main f rt.alloc rt.inner */
	put_sample(&b, (uint64_t[]){5, 2, 1}, 3, 5);      /* main f rt.keep */
	put_sample(&b, (uint64_t[]){2, 3}, 2, 2);         /* rt.alloc f: nothing else above it */
	put_sample(&b, (uint64_t[]){1}, 1, (uint64_t)-3); /* a difference */
	for (uint64_t i = 0; i < ARRAY_LEN(functions); i++)
		put_location(&b, i + 1, 100 + i);
	for (uint64_t i = 0; i < ARRAY_LEN(functions); i++)
		put_pair(&b, PPROF_FUNCTION, 100 + i, functions[i]);
	put_strings(&b, strings, ARRAY_LEN(strings));
	size_t nr_plain = b.n;
	put_pair(&b, PPROF_SAMPLE_TYPE, 1, 2);
	expect_folded_of(&b, "main;f;rt.alloc;rt.inner 10\nmain;f;rt.keep 5\nrt.alloc;f 2\n", 1);
	pb_put_number(&b, PPROF_DROP_FRAMES, 7);
	expect_folded_of(&b, "main;f 15\nrt.alloc;f 2\n", 1);
	pb_put_number(&b, PPROF_KEEP_FRAMES, 8);
	expect_folded_of(&b, "main;f 10\nmain;f;rt.keep 5\nrt.alloc;f 2\n", 1);
	/* two types, one value */
	b.n = nr_plain;
	put_pair(&b, PPROF_SAMPLE_TYPE, 1, 2);
	put_pair(&b, PPROF_SAMPLE_TYPE, 2, 2);
	expect_folded_of(&b, "", 4);
}

TEST(pprof_files_with_wrong_references_are_read)
{
	static const char *const strings[] = {"", "events", "count"};
	CLEANUP(buf_release) struct buf b = {0};
	put_pair(&b, PPROF_SAMPLE_TYPE, 1, 2);
	put_sample(&b, (uint64_t[]){77, 1}, 2, 1); /* 77: no such location */
	put_location(&b, 1, 55);                   /* 55: no such function */
	put_strings(&b, strings, ARRAY_LEN(strings));
	expect_folded_of(&b, "[unknown];[unknown] 1\n", 0);
	put_pair(&b, PPROF_FUNCTION, 55, 999); /* no such string */
	expect_folded_of(&b, "[unknown];[unknown] 1\n", 0);
}

TEST(texts_are_not_taken_for_pprof)
{
	static const char *const texts[] = {"\n\x02"
					    "a;b 3\n",
					    "\n \nmain;f 3\nmain;g 4\n", "", "\n",
					    "\x0a\x04\x08\x01\x10"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		CHECK_U64((uint64_t)pprof_sniff(sv_from_str(texts[i])), 0);
}
