/* Reports as CSV, read by a strict parser. */
#include "base/base.h"
#include "render/csvout.h"
#include "tap.h"

#include <jansson.h>

#include "base/sv.h"
#include "oddnames.h"
#include "render/jsonout.h"

static const struct report_column columns[] = {
	{"name", "name", CELL_TEXT, NULL},
	{"bytes", "bytes", CELL_BYTES_ESTIMATE, NULL},
	{"pid", "pid", CELL_ID, NULL},
	{"pct", "pct", CELL_PERCENT, NULL},
};

/* Reads one record by RFC 4180; returns its fields, 0 for an empty line; fails on anything else. */
static size_t read_record(struct sv *in, struct buf *first, struct buf *second)
{
	size_t nr = 0;
	buf_clear(first);
	buf_clear(second);
	if (sv_has_prefix(*in, SV("\r\n"))) {
		*in = sv_from_idx(*in, 2);
		return 0;
	}
	for (;;) {
		CLEANUP(buf_release) struct buf field = {0};
		bool is_quoted = in->n && in->p[0] == '"';
		size_t i = is_quoted;
		for (;; i++) {
			if (i >= in->n)
				tap_fail(__FILE__, __LINE__, "ends within a field");
			bool is_end = is_quoted ? in->p[i] == '"' : strchr(",\r", in->p[i]) != NULL;
			if (is_end && is_quoted && i + 1 < in->n && in->p[i + 1] == '"')
				i++; /* a quote */
			else if (is_end)
				break;
			else if (!is_quoted && in->p[i] == '"')
				tap_fail(__FILE__, __LINE__, "a quote within a field");
			if ((unsigned char)in->p[i] < ' ')
				tap_fail(__FILE__, __LINE__, "a control byte");
			buf_add_ch(&field, in->p[i]);
		}
		if (field.n > 1 && strchr("=+-@", field.p[0]))
			tap_fail(__FILE__, __LINE__, "a formula: %s", buf_str(&field));
		if (nr < 2)
			buf_add_sv(nr ? second : first, buf_sv(&field));
		nr++;
		*in = sv_from_idx(*in, i + is_quoted);
		bool has_more = in->n && in->p[0] == ',';
		if (!has_more && !sv_has_prefix(*in, SV("\r\n")))
			tap_fail(__FILE__, __LINE__, "no end of a record");
		*in = sv_from_idx(*in, has_more ? 1 : 2);
		if (!has_more)
			return nr;
	}
}

TEST(csv_has_the_same_fields_in_each_row_whatever_the_names)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf name = {0};
	CLEANUP(buf_release) struct buf first = {0};
	CLEANUP(buf_release) struct buf second = {0};
	CLEANUP(buf_release) struct buf b = {0};
	r->title = "t";
	struct report_table *t = report_add_table(r, "t", "t", columns, ARRAY_LEN(columns));
	for (uint32_t i = 0; i < HOSTILE_NAMES; i++) {
		hostile_name(&name, i);
		report_add_row(r, t,
			       (union cell[]){{.text = buf_str(&name)},
					      {.estimate = {.value = i, .error = 3}},
					      {.u = i % 2 ? CELL_NO_ID : i},
					      {.d = 0.5}});
	}
	csvout_render(&b, r);
	struct sv in = buf_sv(&b);
	CHECK_U64(read_record(&in, &first, &second), 6);
	size_t nr = 0;
	while (read_record(&in, &first, &second) == 6) {
		CHECK_STR(buf_str(&first), "t");
		nr += second.n > 0;
	}
	CHECK_U64(nr, HOSTILE_NAMES);
	CHECK_U64(read_record(&in, &first, &second), 3); /* the losses */
	CHECK_STR(buf_str(&first), "table");

	buf_clear(&b);
	jsonout_render(&b, r);
	json_error_t why;
	json_t *j = json_loadb(b.p, b.n, JSON_REJECT_DUPLICATES, &why);
	CHECK(j);
	json_decref(j);
}

TEST(csv_leaves_unknown_values_empty)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	r->title = "t";
	struct report_table *t = report_add_table(r, "t", "t", columns, ARRAY_LEN(columns));
	report_add_row(r, t,
		       (union cell[]){{.text = "=a,\"b\""},
				      {.estimate = {.value = CELL_NO_ESTIMATE}},
				      {.u = CELL_NO_ID},
				      {.d = 12.34567}});
	report_add_row(
		r, t,
		(union cell[]){
			{.text = "-"}, {.estimate = {.value = 7, .error = 1}}, {.u = 4}, {.d = 0}});
	csvout_render(&b, r);
	CHECK(strstr(buf_str(&b), "table,name,bytes,bytes_error,pid,pct\r\n"
				  "t,\"'=a,\"\"b\"\"\",,,,12.3457\r\n"
				  "t,-,7,1,4,0.0000\r\n\r\ntable,kind,count\r\n"));
}

TEST(csv_has_no_marker_of_an_unknown_value_of_any_kind)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf json = {0};
	static const enum cell_kind kinds[] = {CELL_COUNT, CELL_NS, CELL_BYTES, CELL_ID};
	r->title = "t";
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct report_column column = {"v", "v", kinds[i], NULL};
		struct report_table *t = report_add_table(r, "t", "t", &column, 1);
		report_add_row(r, t, &(union cell){.u = UINT64_MAX});
	}
	csvout_render(&b, r);
	jsonout_render(&json, r);
	CHECK(strstr(buf_str(&b), "table,v\r\nt,\r\n"));
	CHECK(!strstr(buf_str(&b), "18446744073709551615"));
	CHECK(!strstr(buf_str(&json), "18446744073709551615"));
}
