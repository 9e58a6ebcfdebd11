/* format/: a hundred thousand hostile names in every output, read again by strict parsers. */
#include "base/base.h"
#include "tap.h"

#include <ctype.h>
#include <jansson.h>

#include "base/err.h"
#include "base/file/protobuf.h"
#include "base/text/escape.h"
#include "base/text/lines.h"
#include "format/exchange/pprof.h"
#include "format/format.h"
#include "oddnames.h"
#include "made.h"
#include "model/heap.h"

static str_id hostile_str(struct profile *p, uint32_t i)
{
	CLEANUP(buf_release) struct buf b = {0};
	hostile_name(&b, i);
	return profile_str(p, b.p, b.n);
}

/* One sample, one block and one wait of each function; threads, modules and files have such names, too. */
static struct profile *hostile_profile(void)
{
	struct profile *p = profile_new();
	uint32_t cpu = made_table(p, "cpu-clock", 2);
	uint32_t live = tables_add(p, TABLE_LIVE, 0);
	uint32_t off = tables_add(p, TABLE_OFF_CPU, 0);
	stack_id root = made_stack(p, "main");
	for (uint32_t i = 0; i < HOSTILE_NAMES; i++) {
		str_id name = hostile_str(p, i);
		uint32_t group = i % 64;
		struct module m = {.kind = MODULE_NAMED, .path = hostile_str(p, group)};
		module_id module = profile_module(p, &m);
		func_id fn =
			profile_function(p, &(struct function){.name = name, .module = module});
		loc_id loc = profile_location(p, module, fn, 0);
		profile_set_frames(
			p, loc,
			&(struct frame){.func = fn, .file = hostile_str(p, group), .line = group},
			1, 0);
		stack_id stack = profile_stack(p, root, loc);
		task_id task = profile_task(p, 1, (int32_t)group + 1, hostile_str(p, group), 1);
		uint32_t tag = profile_tag(p, &(struct tag){.reason = WAIT_LOCK,
							    .log2_ns = LOG2_NONE,
							    .syscall = -1,
							    .object = hostile_str(p, group),
							    .detail = hostile_str(p, group)});
		profile_sample(p, cpu, i + 1, stack, task, 0, (int64_t[]){1, 1000});
		profile_tagged_sample(p, live, 0, stack, task, -1, tag, (int64_t[]){1, 8, 1, 0});
		profile_tagged_sample(p, off, i + 1, stack, task, -1, tag, (int64_t[]){1, 5, 5});
	}
	for (uint32_t i = 0; i < 64; i++) {
		CLEANUP(buf_release) struct buf b = {0};
		hostile_name(&b, i);
		profile_mark(p, i, buf_str(&b));
		profile_fact_text(p, buf_str(&b), buf_str(&b));
	}
	profile_seal(p);
	return p;
}

static void write_as(const char *format, const struct profile *p, const char *event, struct buf *to)
{
	CLEANUP(err_release) struct err err = {0};
	struct format_output out = {0};
	struct format_options options = {.event = event};
	if (format_find(format)->write(&out, p, &options, &err))
		tap_fail(__FILE__, __LINE__, "writing %s: %s", format, err_msg(&err));
	*to = out.buf;
}

static struct profile *read_as(const char *format, const struct buf *b)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_input in = {.head = buf_sv(b)};
	if (format_find(format)->read(p, &in, &(struct format_options){0}, &err))
		tap_fail(__FILE__, __LINE__, "reading %s: %s", format, err_msg(&err));
	profile_seal(p);
	return TAKE(p);
}

static int64_t sum_of(const struct profile *p, size_t table, uint32_t column)
{
	const struct table *t = &p->tables.p[table];
	int64_t sum = 0;
	for (size_t i = 0; i < t->n; i++)
		sum += t->values[i * t->nr_columns + column];
	return sum;
}

TEST(hostile_names_in_json_are_parsed_by_a_strict_parser)
{
	CLEANUP(profile_free_p) struct profile *p = hostile_profile();
	static const char *const formats[] = {"json", "speedscope", "firefox"};
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		CLEANUP(buf_release) struct buf b = {0};
		write_as(formats[i], p, NULL, &b);
		json_error_t why;
		json_t *j = json_loadb(b.p, b.n, JSON_REJECT_DUPLICATES, &why);
		if (!j)
			tap_fail(__FILE__, __LINE__, "%s: %s at %d", formats[i], why.text,
				 why.position);
		json_t *all = json_object_get(j, "shared");
		json_t *names = i == 0   ? json_object_get(j, "functions")
				: i == 1 ? json_object_get(all, "frames")
					 : json_object_get(all, "stringArray");
		CHECK(json_array_size(names) > HOSTILE_NAMES);
		CHECK(memmem(b.p, b.n, "\x01", 1) == NULL && memchr(b.p, '\n', b.n - 1) == NULL);
		json_decref(j);
	}
}

TEST(hostile_names_in_pprof_are_utf8_and_all_samples_come_back)
{
	CLEANUP(profile_free_p) struct profile *p = hostile_profile();
	CLEANUP(buf_release) struct buf b = {0};
	write_as("pprof", p, NULL, &b);
	struct rd in = rd_from(b.p, b.n);
	struct pb_field f;
	while (pb_next(&in, &f)) {
		struct sv s = f.nr == PPROF_STRING ? pb_text(&f) : SV("");
		for (size_t n; s.n; s = sv_from_idx(s, n)) {
			n = utf8_len(s);
			if (!n || (unsigned char)s.p[0] < ' ')
				tap_fail(__FILE__, __LINE__, "not clean UTF-8: '%.*s'", SV_ARGS(s));
			n = MAX(n, (size_t)1);
		}
	}
	CHECK(!in.is_bad);
	CLEANUP(profile_free_p) struct profile *q = read_as("pprof", &b);
	CHECK_U64(q->tables.n, 3);
	CHECK_U64(q->tables.p[0].n, HOSTILE_NAMES); /* no two names became one */
	CHECK_U64((uint64_t)sum_of(q, 0, 1), HOSTILE_NAMES * 1000ull);
	CHECK_U64((uint64_t)sum_of(q, 1, 1), HOSTILE_NAMES * 8ull);
	CHECK_U64((uint64_t)sum_of(q, 2, 1), HOSTILE_NAMES * 5ull);
}

TEST(hostile_names_in_texts_lose_no_sample)
{
	CLEANUP(profile_free_p) struct profile *p = hostile_profile();
	CLEANUP(buf_release) struct buf folded = {0};
	write_as("folded", p, "cpu-clock", &folded);
	CLEANUP(profile_free_p) struct profile *q = read_as("folded", &folded);
	CHECK_U64((uint64_t)sum_of(q, 0, 0), HOSTILE_NAMES * 1000ull);
	CHECK_U64(q->losses.nr[LOSS_UNPARSED], 0);
	struct lines lines = lines_from(folded.p, folded.n);
	struct sv line;
	while (lines_next(&lines, &line))
		CHECK(line.n > 5 && sv_has_suffix(line, SV(" 1000")));
	CHECK_U64(lines.nr, HOSTILE_NAMES);

	CLEANUP(buf_release) struct buf script = {0};
	write_as("perfscript", p, "cpu-clock", &script);
	CLEANUP(profile_free_p) struct profile *r = read_as("perfscript", &script);
	CHECK_U64(r->losses.nr[LOSS_SEEN], HOSTILE_NAMES);
	CHECK_U64(r->tables.n, 1);
	CHECK_U64((uint64_t)sum_of(r, 0, 0), HOSTILE_NAMES);
	CHECK_U64((uint64_t)sum_of(r, 0, 1), HOSTILE_NAMES * 1000ull);
}

TEST(hostile_names_in_heap_files_lose_no_byte)
{
	CLEANUP(profile_free_p) struct profile *p = hostile_profile();
	CLEANUP(buf_release) struct buf b = {0};
	write_as("heaptrack", p, NULL, &b);
	CLEANUP(profile_free_p) struct profile *q = read_as("heaptrack", &b);
	const struct table *live = tables_find(q, TABLE_LIVE);
	CHECK(live);
	CHECK_U64((uint64_t)sum_of(q, (size_t)(live - q->tables.p), HEAP_BYTES),
		  HOSTILE_NAMES * 8ull);
	CHECK_U64(q->losses.nr[LOSS_UNPARSED], 0);
	CLEANUP(buf_release) struct buf massif = {0};
	write_as("massif", p, NULL, &massif);
	CLEANUP(profile_free_p) struct profile *r = read_as("massif", &massif);
	CHECK_U64(r->losses.nr[LOSS_UNPARSED], 0);
}

/* Outside of quotes a graph has only its own words; inside, a backslash escapes one character. */
TEST(hostile_names_in_graphs_stay_in_their_quotes)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "x", 1);
	CLEANUP(buf_release) struct buf b = {0};
	for (uint32_t i = 0; i < HOSTILE_NAMES / 50; i++) {
		CLEANUP(profile_free_p) struct profile *q = profile_new();
		t = made_table(q, "x", 1);
		for (uint32_t k = 0; k < 50; k++) {
			str_id name = hostile_str(q, i * 50 + k);
			module_id m = profile_module(q, &(struct module){.kind = MODULE_NAMED});
			func_id fn =
				profile_function(q, &(struct function){.name = name, .module = m});
			loc_id loc = profile_location(q, m, fn, 0);
			profile_set_frames(q, loc, &(struct frame){.func = fn}, 1, 0);
			profile_sample(q, t, 0, profile_stack(q, 0, loc), 0, -1, (int64_t[]){1});
		}
		profile_seal(q);
		buf_release(&b);
		write_as("dot", q, NULL, &b);
		bool is_quoted = false;
		size_t nr_nodes = 0;
		for (size_t at = 0; at < b.n; at++) {
			char c = b.p[at];
			if (is_quoted && c == '\\')
				at++;
			else if (c == '"')
				is_quoted = !is_quoted;
			else if (!is_quoted && !strchr("\n\t []{}(),;=.->_", c) &&
				 !isalnum((unsigned char)c))
				tap_fail(__FILE__, __LINE__, "'%c' outside of quotes", c);
			else if (is_quoted && (unsigned char)c < ' ')
				tap_fail(__FILE__, __LINE__, "a control byte in quotes");
			nr_nodes += !is_quoted && c == '\t' && b.p[at + 1] == 'n' &&
				    isdigit((unsigned char)b.p[at + 2]);
		}
		CHECK(!is_quoted && nr_nodes == 50);
	}
}
