/* render/tui/tuirows: rows of trees, tables and texts: order, opening, filters, widths. */
#include "base/base.h"
#include "tap.h"

#include "base/text/escape.h"
#include "render/tui/tuirows.h"

static uint32_t add_node(struct report *r, struct tree_node *nodes, uint32_t at, uint32_t parent,
			 const char *name, uint64_t total, uint64_t self)
{
	nodes[at] = (struct tree_node){.name = intern_add_str(&r->names, name),
				       .parent = parent,
				       .depth = at ? nodes[parent].depth + 1 : 0,
				       .total = total,
				       .self = self};
	uint32_t *link = &nodes[parent].first_child;
	while (*link)
		link = &nodes[*link].next;
	if (at)
		*link = at;
	return at;
}

/* all 100 = main 90 (parse 60 (scan 60), write 30) + start 10 */
static struct report *make_tree(struct tree_node *nodes)
{
	struct report *r = report_new();
	add_node(r, nodes, 0, 0, "all", 100, 0);
	add_node(r, nodes, 1, 0, "main", 90, 0);
	add_node(r, nodes, 2, 1, "parse", 60, 0);
	add_node(r, nodes, 3, 2, "scan", 60, 60);
	add_node(r, nodes, 4, 1, "write", 30, 30);
	add_node(r, nodes, 5, 0, "start", 10, 10);
	vec_push(&r->trees, (struct report_tree){.key = "tree",
						 .nodes = nodes,
						 .nr_nodes = 6,
						 .count_name = "samples",
						 .unit = UNIT_COUNT});
	return r;
}

/* The names shown, in order, separated by spaces. */
static const char *names_of(const struct tuirows *rows, struct buf *b)
{
	buf_clear(b);
	for (size_t i = 0; i < rows->shown.n; i++)
		buf_addf(b, "%s%s", i ? " " : "", tuirows_name(rows, i));
	return buf_str(b);
}

TEST(tuirows_opens_the_path_with_more_than_half)
{
	struct tree_node nodes[6];
	struct tuirows rows;
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(report_free_p) struct report *r = make_tree(nodes);
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	CHECK_STR(names_of(&rows, &b), "main parse scan write start");
	CHECK(tuirows_is_open(&rows, 0));
	CHECK(!tuirows_can_open(&rows, 2));
	CHECK_U64(tuirows_parent(&rows, 3), 0);
	CHECK_U64(tuirows_parent(&rows, 2), 1);
	CHECK_U64(tuirows_parent(&rows, 4), 4);
	CHECK(tuirows_pct(&rows, 3) == 30.0);
	tuirows_release(&rows);
}

TEST(tuirows_opens_and_closes_rows)
{
	struct tree_node nodes[6];
	struct tuirows rows;
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(report_free_p) struct report *r = make_tree(nodes);
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	tuirows_open(&rows, 1, false, false);
	CHECK_STR(names_of(&rows, &b), "main parse write start");
	tuirows_open_all(&rows, false);
	CHECK_STR(names_of(&rows, &b), "main start");
	tuirows_open(&rows, 0, true, true);
	CHECK_STR(names_of(&rows, &b), "main parse scan write start");
	tuirows_open(&rows, 4, true, true); /* a leaf */
	CHECK_U64(rows.shown.n, 5);
	tuirows_release(&rows);
}

TEST(tuirows_filter_keeps_the_path_to_a_match)
{
	struct tree_node nodes[6];
	struct tuirows rows;
	struct regex *re = NULL;
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(report_free_p) struct report *r = make_tree(nodes);
	CHECK(!regex_new(&re, "^scan$", 0, NULL));
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	tuirows_open_all(&rows, false);
	tuirows_filter(&rows, re);
	CHECK_STR(names_of(&rows, &b), "main parse scan");
	CHECK_U64(rows.nr_matching, 1);
	tuirows_filter(&rows, NULL);
	CHECK_STR(names_of(&rows, &b), "main parse scan write start");
	tuirows_release(&rows);
	regex_free(re);
}

static const struct report_column columns[] = {{"pct", "%", CELL_PERCENT, NULL},
					       {"function", "function", CELL_TEXT, NULL},
					       {"module", "module", CELL_TEXT, NULL},
					       {"tid", "tid", CELL_ID, NULL}};

static struct report *make_table(void)
{
	static const char long_name[] =
		"std::vector<int, std::allocator<int>>::push_back(int const&)";
	struct report *r = report_new();
	struct report_table *t =
		report_add_table(r, "functions", "hottest", columns, ARRAY_LEN(columns));
	report_add_row(r, t,
		       (union cell[]){{.d = 75}, {.text = long_name}, {.text = "a"}, {.u = 7}});
	report_add_row(
		r, t,
		(union cell[]){{.d = 25}, {.text = "main"}, {.text = "b"}, {.u = CELL_NO_ID}});
	return r;
}

TEST(tuirows_of_a_table_fit_the_width_and_have_values)
{
	struct tuirows rows;
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(report_free_p) struct report *r = make_table();
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	for (unsigned columns_left = 45; columns_left < 120; columns_left++)
		for (size_t i = 0; i < rows.shown.n; i++) {
			buf_clear(&b);
			tuirows_add(&rows, i, columns_left, &b);
			CHECK(utf8_columns(buf_sv(&b)) <= columns_left);
			buf_clear(&b);
			tuirows_add_head(&rows, columns_left, &b);
			CHECK(utf8_columns(buf_sv(&b)) <= columns_left);
		}
	buf_clear(&b);
	CHECK(tuirows_add_value(&rows, 0, "tid", &b));
	CHECK_STR(buf_str(&b), "7");
	buf_clear(&b);
	CHECK(!tuirows_add_value(&rows, 1, "tid", &b));
	CHECK(tuirows_add_value(&rows, 1, "module", &b));
	CHECK_STR(buf_str(&b), "b");
	buf_clear(&b);
	CHECK(!tuirows_add_value(&rows, 0, "none", &b));
	tuirows_release(&rows);
}

TEST(tuirows_of_code_are_cut_at_their_ends)
{
	static const struct report_column of[] = {{"pct", "%", CELL_PERCENT, NULL},
						  {"source", "source", CELL_TEXT, .is_code = true}};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf line = {0};
	struct tuirows rows;
	struct report_table *t = report_add_table(r, "t", "t", of, ARRAY_LEN(of));
	report_add_row(r, t,
		       (union cell[]){{.d = 50}, {.text = "while (cpu(ms) < 3) sink <<= 1;"}});
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	tuirows_add(&rows, 0, 30, &line);
	CHECK_STR(buf_str(&line), "  50.00  while (cpu(ms) < 3)..");
	tuirows_release(&rows);
}

TEST(tuirows_of_an_empty_report_are_its_text)
{
	struct tuirows rows;
	CLEANUP(report_free_p) struct report *r = report_new();
	r->title = "nothing";
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	CHECK(!rows.tree && !rows.table);
	CHECK(rows.shown.n > 0);
	CHECK(!tuirows_name(&rows, 0));
	tuirows_open(&rows, 0, true, true);
	tuirows_release(&rows);
}

TEST(tuirows_of_a_narrow_table_keep_the_name_and_scroll_the_columns)
{
	static const char *const hide_first[] = {"p50_ns", NULL};
	static const struct report_column wait_columns[] = {
		{"time_ns", "time", CELL_NS, NULL},        {"p50_ns", "p50", CELL_NS, NULL},
		{"waits", "waits", CELL_COUNT, NULL},      {"longest_ns", "longest", CELL_NS, NULL},
		{"function", "function", CELL_TEXT, NULL},
	};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct report_table *t =
		report_add_table(r, "t", "t", wait_columns, ARRAY_LEN(wait_columns));
	t->hide_first = hide_first;
	report_add_row(r, t,
		       (union cell[]){{.u = 5000000},
				      {.u = 2000000},
				      {.u = 1234567},
				      {.u = 3000000},
				      {.text = "a_function_with_a_long_name"}});
	struct tuirows rows;
	tuirows_make(&rows, r, TUIROWS_OF_REPORT, &(struct text_style){0});
	CLEANUP(buf_release) struct buf head = {0};
	CLEANUP(buf_release) struct buf line = {0};
	tuirows_add_head(&rows, 50, &head);
	tuirows_add(&rows, 0, 50, &line);
	CHECK(utf8_columns(buf_sv(&line)) <= 50 && strstr(buf_str(&line), "1,234,567"));
	CHECK(strstr(buf_str(&line), "a_func") && !strstr(buf_str(&head), "p50"));
	CHECK(head.p[head.n - 1] == '>' && head.p[0] == ' ');
	CHECK(tuirows_scroll(&rows, 1) && tuirows_scroll(&rows, 1) && tuirows_scroll(&rows, 1));
	CHECK(!tuirows_scroll(&rows, 1));
	buf_clear(&head);
	buf_clear(&line);
	tuirows_add_head(&rows, 50, &head);
	tuirows_add(&rows, 0, 50, &line);
	CHECK(head.p[0] == '<' && strstr(buf_str(&head), "longest"));
	CHECK(strstr(buf_str(&line), "a_function_with_a_long_name"));
	CHECK(tuirows_scroll(&rows, -1) && tuirows_scroll(&rows, -1) && tuirows_scroll(&rows, -1));
	CHECK(!tuirows_scroll(&rows, -1));
	tuirows_release(&rows);
}
