/*
 * render/text and render/jsonout: exact output of a small report, escaped output of a hostile one.
 */
#include "base/base.h"
#include "tap.h"

#include <jansson.h>
#include <math.h>

#include "base/buf.h"
#include "cmd/hints.h"
#include "render/cells.h"
#include "render/jsonout.h"
#include "render/text.h"
#include "render/text_table.h"

static const struct report_column columns[] = {{"pct", "%", CELL_PERCENT, NULL},
					       {"n", "samples", CELL_COUNT, "how many"},
					       {"time", "time", CELL_NS, NULL},
					       {"name", "function", CELL_TEXT, NULL},
					       {"mod", "module", CELL_TEXT, NULL}};

static void add_row(struct report *r, struct report_table *t, double pct, uint64_t n,
		    const char *name)
{
	union cell cells[] = {
		{.d = pct}, {.u = n}, {.u = n * 1000000}, {.text = name}, {.text = "bin"}};
	report_add_row(r, t, cells);
}

static struct report *make_report(const char *name)
{
	struct report *r = report_new();
	r->title = "assay report";
	r->losses.nr[LOSS_SEEN] = 1010;
	r->losses.nr[LOSS_WRITTEN] = 1000;
	r->losses.nr[LOSS_LOST] = 10;
	r->losses.nr[LOSS_THROTTLED] = 2;
	r->losses.nr[LOSS_TRUNC_COPY] = 5;
	r->losses.nr[LOSS_UNSYM_JIT] = 1;
	r->losses.nr[LOSS_UNSYM_KERNEL] = 2;
	report_fact(r, FACT_EVENT, "cpu-clock");
	report_note(r, "a note");
	report_hint(r, &(struct report_hint){HINT_FLAME, "x", {{0}}});
	struct report_table *t = report_add_table(r, "t", "rows", columns, ARRAY_LEN(columns));
	add_row(r, t, 75.5, 1234, name);
	add_row(r, t, (double)NAN, 7, "<other>");
	return r;
}

TEST(text_of_an_interval_that_begins_at_0_is_its_end)
{
	static const struct report_column c = {"b", "b", CELL_BYTES_ESTIMATE, NULL};
	static const struct {
		uint64_t value;
		uint64_t error;
		const char *text;
	} cells[] = {{1 << 20, 0, "1.00 MiB"},
		     {1 << 20, 1 << 18, "1.00 MiB +-25 %"},
		     {1 << 20, 1 << 20, "1.00 MiB +-100 %"},
		     {1 << 20, 3 << 20, "1.00 MiB, <= 4.00 MiB"}};
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		CLEANUP(buf_release) struct buf b = {0};
		cells_add(&b, &c, &(struct cells_form){0},
			  &(union cell){
				  .estimate = {.value = cells[i].value, .error = cells[i].error}});
		CHECK_STR(buf_str(&b), cells[i].text);
	}
}

TEST(text_is_aligned_and_shows_losses)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){.has_details = true, .add_hint = hint_add_words});
	CHECK_STR(buf_str(&b),
		  "assay report\n"
		  "event: cpu-clock\n"
		  "samples: 1,010 seen, 1,000 written, 10 (0.99 %) lost; throttled 2 times\n"
		  "truncated stacks: 5 (0.50 %): stack copy too short 5\n"
		  "innermost frame unsymbolized: 3 (0.30 %): JIT code without a map 1, "
		  "kernel addresses hidden 2\n"
		  "note: a note\n"
		  "\n"
		  "rows\n"
		  "      %  samples  time ms  function  module\n"
		  "  75.50    1,234  1,234.0  main      bin\n"
		  "      -        7      7.0  <other>   bin\n"
		  "\n"
		  "next:\n"
		  "  assay flame x\n");
}

/* A report with more than a page has room for. */
static struct report *make_long_report(void)
{
	struct report *r = make_report("main");
	report_fact(r, FACT_TARGET, "server");
	report_fact(r, FACT_DURATION, "2.00 s");
	report_fact(r, FACT_HOST, "vm");
	for (int i = 0; i < 4; i++)
		report_finding(r, "answer %d", i);
	report_detail(r, "how it was measured");
	for (int i = 0; i < 5; i++) {
		struct report_table *t =
			report_add_table(r, "t", "further rows", columns, ARRAY_LEN(columns));
		for (unsigned n = 0; n < 30; n++)
			add_row(r, t, 10, n + 1, arena_fmt(&r->arena, "function_%u", n));
		t->has_other = true;
		add_row(r, t, 0.001, 1, "<other>");
		t->is_detail = i == 4;
	}
	return r;
}

TEST(a_page_has_the_answer_first_and_at_most_its_lines)
{
	CLEANUP(report_free_p) struct report *r = make_long_report();
	for (size_t lines = 20; lines <= 60; lines += 5) {
		CLEANUP(buf_release) struct buf b = {0};
		text_render(&b, r, &(struct text_style){.width = 80, .max_lines = lines});
		size_t n = 0;
		for (size_t i = 0; i < b.n; i++)
			n += b.p[i] == '\n';
		if (n > lines || n + 6 < lines)
			tap_fail(__FILE__, __LINE__, "%zu lines of %zu: %s", n, lines, buf_str(&b));
		CHECK(sv_has_prefix(buf_sv(&b), SV("assay report: server, 2.00 s of recording\n"
						   "answer 0\nanswer 1\nanswer 2\n"
						   "1 more finding: with --details\n"
						   "event: cpu-clock\nsamples: 0; lost 10 ")));
		CHECK(!strstr(buf_str(&b), "answer 3") && !strstr(buf_str(&b), "host: vm"));
		CHECK(!strstr(buf_str(&b), "how it was") && !strstr(buf_str(&b), "function_29"));
		CHECK(strstr(buf_str(&b), "with --details: 1 more note,"));
	}
}

TEST(details_are_complete)
{
	CLEANUP(report_free_p) struct report *r = make_long_report();
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){.width = 80, .has_details = true});
	CHECK(strstr(buf_str(&b), "answer 3") && strstr(buf_str(&b), "host: vm"));
	CHECK(strstr(buf_str(&b), "how it was") && strstr(buf_str(&b), "function_29"));
	CHECK(strstr(buf_str(&b), "<0.01") && strstr(buf_str(&b), "stack copy too short"));
	CHECK(!strstr(buf_str(&b), "with --details"));
}

TEST(a_number_of_rows_is_shared_between_tables)
{
	CLEANUP(report_free_p) struct report *r = make_long_report();
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){.max_rows = 7});
	size_t n = 0;
	for (const char *at = buf_str(&b); (at = strstr(at, "  function_")); at++)
		n++;
	CHECK(n == 5); /* and the two of the first table */
	CHECK(strstr(buf_str(&b), "further rows: 3 of 31\n"));
}

TEST(times_of_a_column_have_one_unit)
{
	static const struct {
		uint64_t ns[3];
		const char *text;
	} cases[] = {
		{{1500000000, 120000000, 0}, " time s\n    1.50\n    0.12\n       0\n"},
		{{4000000000, 2000000, 35000000}, " time ms\n  4,000.0\n      2.0\n     35.0\n"},
		{{3878213, 32421, 750}, " time us\n  3,878.21\n     32.42\n      0.75\n"},
		{{900, 3, 0}, " time ns\n      900\n        3\n        0\n"},
		{{4000000000, 5, CELL_NS_NONE}, " time ms\n  4,000.00\n     <0.01\n         -\n"},
	};
	static const struct report_column column[] = {{"time", "time", CELL_NS, NULL}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(buf_release) struct buf b = {0};
		CLEANUP(buf_release) struct buf bare = {0};
		struct report_table *t = report_add_table(r, "t", "rows", column, 1);
		for (size_t k = 0; k < 3; k++)
			report_add_row(r, t, &(union cell){.u = cases[i].ns[k]});
		text_add_tables(&b, r, NULL, &(struct text_style){0});
		const char *body = strstr(buf_str(&b), "rows\n") + strlen("rows\n");
		const char *want = strchr(cases[i].text, 't');
		if (!strstr(body, want))
			tap_fail(__FILE__, __LINE__, "no '%s' in '%s'", want, body);
	}
}

TEST(prose_is_wrapped_and_lists_have_one_line_on_pages)
{
	static const struct report_column of[] = {
		{"name", "name", CELL_TEXT, NULL},
		{"flags", "flags", CELL_TEXT, .is_prose = true},
	};
	static const struct report_column lists[] = {
		{"name", "name", CELL_TEXT, NULL},
		{"stack", "called from", CELL_TEXT, .is_list = true},
	};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	struct report_table *t = report_add_table(r, "t", "rows", of, ARRAY_LEN(of));
	report_add_texts(r, t, "a_name_of_26_characters_000",
			 "--cap-drop ALL --cap-add BPF --cap-add PERFMON --pid=host");
	text_add_tables(&b, r, NULL, &(struct text_style){.width = 64});
	CHECK_STR(buf_str(&b), "\nrows\n"
			       "  name                         flags\n"
			       "  a_name_of_26_characters_000  --cap-drop ALL --cap-add BPF\n"
			       "                               --cap-add PERFMON --pid=host\n");
	CLEANUP(buf_release) struct buf page = {0};
	text_add_tables(&page, r, NULL, &(struct text_style){.width = 64, .max_lines = 40});
	CHECK_STR(buf_str(&page), buf_str(&b));
	CLEANUP(report_free_p) struct report *stacks = report_new();
	t = report_add_table(stacks, "t", "rows", lists, ARRAY_LEN(lists));
	report_add_texts(stacks, t, "allocate", "a_caller < a_second_caller < a_third_one < main");
	report_add_texts(stacks, t, "release", "main");
	buf_clear(&b);
	text_add_tables(&b, stacks, NULL, &(struct text_style){.width = 40, .max_lines = 40});
	CHECK_STR(buf_str(&b), "\nrows\n"
			       "  name      called from\n"
			       "  allocate  a_caller < a_second_caller..\n"
			       "  release   main\n");
	buf_clear(&b);
	text_add_tables(&b, stacks, NULL, &(struct text_style){.width = 40});
	CHECK_STR(buf_str(&b), "\nrows\n"
			       "  name\n"
			       "  allocate\n"
			       "      called from: a_caller <\n"
			       "        a_second_caller < a_third_one <\n"
			       "        main\n"
			       "  release\n"
			       "      called from: main\n");
}

TEST(columns_of_bytes_have_one_unit)
{
	static const struct report_column of[] = {
		{"live", "live", CELL_BYTES_ESTIMATE, NULL},
		{"leaked", "leaked", CELL_BYTES, NULL},
		{"mean_bytes", "mean size", CELL_BYTES, NULL},
		{"growth_per_min", "growth/min", CELL_BYTES_CHANGE, NULL},
		{"swap", "swap", CELL_BYTES, NULL},
	};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	struct report_table *t = report_add_table(r, "t", "rows", of, ARRAY_LEN(of));
	const uint64_t mib = 1 << 20;
	report_add_row(r, t,
		       (union cell[]){{.estimate = {.value = 300 * mib, .error = 30 * mib}},
				      {.u = 2 * mib},
				      {.u = 100},
				      {.estimate = {.change = -5 * (int64_t)mib, .error = mib}},
				      {.u = 0}});
	report_add_row(r, t,
		       (union cell[]){{.estimate = {.value = 10, .error = 30}},
				      {.u = 0},
				      {.u = 5000},
				      {.estimate = {.change = CELL_NO_CHANGE}},
				      {.u = CELL_NO_BYTES}});
	text_add_tables(&b, r, NULL, &(struct text_style){0});
	CHECK_STR(buf_str(&b),
		  "\nrows\n"
		  "         live MiB  leaked MiB  mean size B  growth MiB/min  swap MiB\n"
		  "    300.00 +-10 %        2.00          100    -5.00 +-1.00         0\n"
		  "  <0.01, <= <0.01           0        5,000               -         -\n");
}

/* Arguments, '<' and '(' are parts of a name that may be left out, but not of code. */
TEST(code_is_cut_at_its_end_only)
{
	static const struct report_column of[] = {
		{"instruction", "instruction", CELL_TEXT, .is_code = true},
		{"source", "source", CELL_TEXT, .is_code = true},
	};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	struct report_table *t = report_add_table(r, "t", "rows", of, ARRAY_LEN(of));
	report_add_texts(r, t, "movq 0x2eb7(%rip), %rcx",
			 "sink += (unsigned long)(i * i) ^ (sink << 3); /* slow */");
	text_add_tables(&b, r, NULL, &(struct text_style){.width = 54});
	CHECK_STR(buf_str(&b), "\nrows\n"
			       "  instruction              source\n"
			       "  movq 0x2eb7(%rip), %rcx  sink += (unsigned long)(i..\n");
	buf_clear(&b);
	text_add_tables(&b, r, NULL, &(struct text_style){.width = 40});
	CHECK(strstr(buf_str(&b), "  movq 0x2eb7(%rip..  sink += (unsigne..\n"));
}

TEST(rows_of_nothing_are_not_on_pages)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	CLEANUP(buf_release) struct buf b = {0};
	add_row(r, &r->tables.p[0], 0.004, 1, "rare");
	text_render(&b, r, &(struct text_style){.max_lines = 40});
	CHECK(!strstr(buf_str(&b), "rare") && strstr(buf_str(&b), "rows: 2 of 3\n"));
}

TEST(colors_are_for_headings_answers_hot_rows_and_losses)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	CLEANUP(buf_release) struct buf b = {0};
	report_finding(r, "it is hot");
	text_render(&b, r, &(struct text_style){.has_color = true, .max_lines = 40});
	CHECK(strstr(buf_str(&b), "\x1b[1mit is hot\x1b[0m\n"));
	CHECK(strstr(buf_str(&b), "\x1b[31m75.50\x1b[0m"));
	CHECK(strstr(buf_str(&b), "\x1b[35msamples: 0; lost 10"));
	buf_clear(&b);
	text_render(&b, r, &(struct text_style){.max_lines = 40});
	CHECK(!strchr(buf_str(&b), '\x1b'));
}

TEST(a_long_command_is_continued_between_its_words)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	report_hint(r, &(struct report_hint){HINT_REPORT,
					     "a_recording_with_a_long_name.assay",
					     {{HINT_CALLERS, "a name with spaces in it"}}});
	const struct text_style style = {.width = 50, .add_hint = hint_add_words};
	text_add_hints(&b, r, &style, "  ");
	CHECK_STR(buf_str(&b), "  assay report \\\n"
			       "      a_recording_with_a_long_name.assay \\\n"
			       "      --callers 'a name with spaces in it'\n");
}

static void check_hint(const char *words, struct report_hint h)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(hint_add_words(&b, &h) == (words != NULL));
	if (words)
		CHECK_STR(buf_str(&b), words);
}

TEST(hints_are_formatted_and_quoted)
{
	check_hint("assay heap -p 12 --sample 64K",
		   (struct report_hint){HINT_HEAP, NULL, {{HINT_PID, "12"}, {HINT_SAMPLE, "64K"}}});
	check_hint("assay report 'my file' --callers '^\\Qa*\\E$'",
		   (struct report_hint){HINT_REPORT, "my file", {{HINT_CALLERS, "^\\Qa*\\E$"}}});
	check_hint("assay report 'it'\\''s' --tree",
		   (struct report_hint){HINT_REPORT, "it's", {{HINT_TREE, NULL}}});
	check_hint(NULL, (struct report_hint){HINT_FLAME, "two\nlines", {{0}}});
}

TEST(losses_other_than_samples_are_on_one_line)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	CLEANUP(buf_release) struct buf b = {0};
	r->losses = (struct losses){0};
	r->losses.nr[LOSS_HEAP_NOT_FOLLOWED] = 3;
	r->losses.nr[LOSS_WAITS_NO_ROW_NS] = 1500000;
	text_add_losses(&b, r);
	CHECK_STR(buf_str(&b), "samples: 0\n"
			       "missing or incomplete: 3 child processes not followed, "
			       "1.50 ms of wait time not recorded (table full)\n");
	buf_clear(&b);
	r->has_no_samples = true;
	r->losses.nr[LOSS_WAITS_NO_ROW_NS] = 0;
	text_add_losses(&b, r);
	CHECK_STR(buf_str(&b), "missing or incomplete: 3 child processes not followed\n");
}

TEST(names_are_shortened_only_with_a_width)
{
	char name[301];
	memset(name, 'n', 300);
	name[300] = 0;
	CLEANUP(report_free_p) struct report *r = make_report(name);
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){0});
	CHECK(strstr(buf_str(&b), name));
	buf_clear(&b);
	text_render(&b, r, &(struct text_style){.width = 80});
	CHECK(!strstr(buf_str(&b), name));
	const char *table = strstr(buf_str(&b), "\nrows\n");
	CHECK(table);
	for (const char *line = table; line && *line;) {
		const char *end = strchr(line, '\n');
		CHECK(end && end - line <= 80);
		line = end ? end + 1 : NULL;
	}
}

TEST(a_narrow_terminal_hides_optional_columns)
{
	static const char *const hide_first[] = {"mod", "n", NULL};
	CLEANUP(report_free_p) struct report *r = make_report("a_function_of_thirty_characters");
	CLEANUP(buf_release) struct buf b = {0};
	r->tables.p[0].hide_first = hide_first;
	text_render(&b, r, &(struct text_style){.width = 200});
	CHECK(strstr(buf_str(&b), "module") && strstr(buf_str(&b), "samples  "));
	buf_clear(&b);
	text_render(&b, r, &(struct text_style){.width = 50});
	CHECK(!strstr(buf_str(&b), "module"));
	CHECK(strstr(buf_str(&b), "samples  ") && strstr(buf_str(&b), "a_functi"));
	buf_clear(&b);
	text_render(&b, r, &(struct text_style){0});
	CHECK(strstr(buf_str(&b), "module"));
}

TEST(hostile_names_are_escaped_for_terminal_and_json)
{
	CLEANUP(report_free_p) struct report *r = make_report("\x1b]0;x\x07\"\\\xff\xc3\xa9\n");
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){.width = 60});
	for (size_t i = 0; i < b.n; i++)
		CHECK((unsigned char)b.p[i] >= ' ' || b.p[i] == '\n');
	buf_clear(&b);
	jsonout_render(&b, r);
	json_error_t e;
	json_t *root = json_loadb(b.p, b.n, 0, &e);
	if (!root)
		tap_fail(__FILE__, __LINE__, "%s at %d", e.text, e.position);
	json_decref(root);
}

TEST(json_holds_every_number_and_every_loss)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	r->total = 99;
	r->losses.nr[LOSS_SPANS_UNFINISHED] = 20;
	r->nr_samples = 1000;
	r->unit = UNIT_NS;
	CLEANUP(buf_release) struct buf b = {0};
	jsonout_render(&b, r);
	json_t *root = json_loadb(b.p, b.n, 0, NULL);
	CHECK(root);
	CHECK_STR(json_string_value(json_object_get(root, "schema")), "assay-report/1");
	CHECK_U64(json_integer_value(json_object_get(root, "total")), 99);
	const json_t *losses = json_object_get(root, "losses");
	/* The samples, and of those beside what is. */
	CHECK_U64(json_object_size(losses), LOSS_HEAP_DROPPED + 3);
	CHECK_U64(json_integer_value(json_object_get(losses, "spans_unfinished")), 20);
	CHECK_U64(json_integer_value(json_object_get(losses, "lost")), 10);
	const json_t *t = json_array_get(json_object_get(root, "tables"), 0);
	const json_t *rows = json_object_get(t, "rows");
	CHECK_U64(json_array_size(rows), 2);
	const json_t *row = json_array_get(rows, 0);
	CHECK_U64(json_integer_value(json_object_get(row, "time")), 1234000000);
	CHECK(json_is_null(json_object_get(json_array_get(rows, 1), "pct")));
	json_decref(root);
}

TEST(a_report_without_recorded_losses_says_so)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	r->nr_samples = 12;
	text_render(&b, r, &(struct text_style){0});
	CHECK_STR(buf_str(&b), "\nsamples: 12; losses: not recorded by this input\n");
}

TEST(trees_indent_branches_but_not_only_children)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	static const struct {
		const char *name;
		uint32_t parent, first, next;
		uint64_t total, self;
	} rows[] = {{"all", 0, 1, 0, 10, 0},
		    {"main", 0, 2, 0, 10, 0},
		    {"a", 1, 3, 4, 6, 0},
		    {"leaf", 2, 0, 0, 6, 6},
		    {"b", 1, 0, 0, 4, 4}};
	struct report_tree *t = vec_add(&r->trees);
	t->key = t->title = "call tree";
	t->nr_nodes = ARRAY_LEN(rows);
	t->nodes = arena_calloc(&r->arena, t->nr_nodes, sizeof(*t->nodes));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		t->nodes[i] = (struct tree_node){.name = intern_add_str(&r->names, rows[i].name),
						 .parent = rows[i].parent,
						 .first_child = rows[i].first,
						 .next = rows[i].next,
						 .total = rows[i].total,
						 .self = rows[i].self};
	CLEANUP(buf_release) struct buf b = {0};
	text_render(&b, r, &(struct text_style){0});
	CHECK_STR(strstr(buf_str(&b), "call tree\n"), "call tree\n"
						      "  total %   self %\n"
						      "   100.00     0.00  - all\n"
						      "   100.00     0.00    main\n"
						      "    60.00     0.00    - a\n"
						      "    60.00    60.00      leaf\n"
						      "    40.00    40.00    - b\n");
}

/* A note that limits what the answers say is worth more than rows, however long the answers are. */
#define WORDS "of many words, of many lines, of many words, of many lines, "
TEST(a_page_full_of_answers_has_the_first_note)
{
	CLEANUP(report_free_p) struct report *r = make_report("main");
	CLEANUP(buf_release) struct buf b = {0};
	for (int i = 0; i < 3; i++)
		report_finding(r, "answer %d " WORDS WORDS WORDS, i);
	report_note(r, "a further note");
	text_render(&b, r, &(struct text_style){.width = 30, .max_lines = 40});
	CHECK(strstr(buf_str(&b), "note: a note\n") && !strstr(buf_str(&b), "a further note"));
}

TEST(text_names_empty_tables_and_says_how_to_see_more_rows)
{
	static const struct report_column ns_column[] = {{"ns", "time", CELL_NS, NULL}};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	r->title = "t";
	report_note(r, "said by two parts of a page");
	report_note(r, "said by two parts of a page");
	struct report_table *t = report_add_table(r, "a", "full (a)", ns_column, 1);
	for (uint64_t i = 0; i < 60; i++)
		report_add_row(r, t, (union cell[]){{.u = i + 1}});
	(void)report_add_table(r, "b", "empty one", ns_column, 1);
	(void)report_add_table(r, "c", "empty two", ns_column, 1);
	text_render(&b, r, &(struct text_style){.max_lines = 40});
	CHECK(strstr(buf_str(&b), "\nnothing to show: empty one, empty two\n"));
	CHECK(strstr(buf_str(&b), "\nwith --details: more rows\n"));
	const char *note = strstr(buf_str(&b), "said by two parts");
	CHECK(note && !strstr(note + 1, "said by two parts"));
}
