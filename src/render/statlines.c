/* The counters of assay stat as text, CSV or JSON; see statlines.h. */
#include "base/base.h"
#include "render/statlines.h"

#include <math.h>

#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/json.h"
#include "base/text/num.h"
#include "base/text/wrap.h"
#include "render/csvout.h"

#define VALUE_WIDTH   18
#define NAME_WIDTH    24
#define WAIT_WIDTH    34 /* with the unit */
#define COLUMN_WIDTH  11
#define SUBJECT_WIDTH 24
#define BLOCKED_PCT   5.0
#define LONGEST_WIDTH 34     /* of the longest wait, at the end of a line */
#define TURNS_PCT     99.995 /* counted for less of the time is printed */

/* As perf stat writes them. */
static const char *const state_names[] = {
	[COUNTER_NOT_COUNTED] = "<not counted>",
	[COUNTER_NOT_SUPPORTED] = "<not supported>",
	[COUNTER_NOT_PERMITTED] = "<not permitted>",
};
static const char *const state_keys[] = {
	[COUNTER_COUNTED] = "counted",
	[COUNTER_NOT_COUNTED] = "not counted",
	[COUNTER_NOT_SUPPORTED] = "not supported",
	[COUNTER_NOT_PERMITTED] = "not permitted",
};

static const char *unit_of(const struct counter_row *r)
{
	return r->is_time ? "msec" : "";
}

static int decimals_of(double metric)
{
	return metric < 10 ? 3 : 2;
}

static void pad(struct buf *to, size_t from, size_t width, bool is_left)
{
	size_t n = to->n - from;
	if (n >= width)
		return;
	if (is_left) {
		buf_add_repeat(to, ' ', width - n);
		return;
	}
	CLEANUP(buf_release) struct buf text = {0};
	buf_add_sv(&text, (struct sv){to->p + from, n});
	to->n = from;
	buf_add_repeat(to, ' ', width - n);
	buf_add_sv(to, buf_sv(&text));
}

/* "4,451.32", "2,012". */
static void add_value(struct buf *to, const struct counter_row *r)
{
	if (r->state != COUNTER_COUNTED) {
		buf_add_str(to, state_names[r->state]);
		return;
	}
	if (!r->is_time) {
		num_add_count(to, (uint64_t)llround(MAX(r->value, 0.0)));
		return;
	}
	uint64_t hundredths = (uint64_t)llround(MAX(r->value, 0.0) / 1e4);
	num_add_count(to, hundredths / 100);
	buf_addf(to, ".%02u", (unsigned)(hundredths % 100));
}

/* ---- the summary -------------------------------------------------------------------------------- */

static void add_row(struct buf *to, const struct statlines *l, const struct counter_row *r)
{
	size_t from = to->n;
	add_value(to, r);
	pad(to, from, VALUE_WIDTH, false);
	buf_addf(to, " %-4s ", r->state == COUNTER_COUNTED ? unit_of(r) : "");
	from = to->n;
	escape_term(to, sv_from_str(r->name));
	pad(to, from, NAME_WIDTH, true);
	if (isfinite(r->metric)) {
		buf_add_str(to, " # ");
		from = to->n;
		num_add_double(to, r->metric, decimals_of(r->metric));
		if (!strncmp(r->metric_unit, "of ", 3))
			buf_add_str(to, "%");
		pad(to, from, 8, false);
		buf_addf(to, " %s", r->metric_unit);
	}
	if (l->has_spread && isfinite(r->spread_pct))
		buf_addf(to, "  ( +- %s%% )", num_double(r->spread_pct, 2).s);
	if (r->state == COUNTER_COUNTED && r->running_ns && r->running_pct < TURNS_PCT)
		buf_addf(to, "  (%s%%)", num_double(r->running_pct, 2).s);
	while (to->n && to->p[to->n - 1] == ' ')
		to->n--;
	buf_add_ch(to, '\n');
}

static void add_seconds(struct buf *to, double s, double spread_pct, const char *what)
{
	if (!isfinite(s))
		return;
	size_t from = to->n;
	num_add_double(to, s, 6);
	pad(to, from, VALUE_WIDTH, false);
	buf_addf(to, " seconds %s", what);
	if (isfinite(spread_pct))
		buf_addf(to, "  ( +- %s%% )", num_double(spread_pct, 2).s);
	buf_add_ch(to, '\n');
}

static void add_waits(struct buf *to, const struct stat_waits *s)
{
	size_t from = to->n;
	if (!s->n)
		return;
	num_add_double(to, s->thread_s, 6);
	pad(to, from, VALUE_WIDTH, false);
	buf_add_str(to, " seconds thread time, by reason:\n\n");
	for (size_t i = 0; i < s->n; i++) {
		const struct stat_wait *w = &s->p[i];
		const struct counter_row ms = {.is_time = true, .value = (double)w->ns};
		from = to->n;
		add_value(to, &ms);
		pad(to, from, VALUE_WIDTH, false);
		from = to->n;
		buf_addf(to, " msec %s", w->text);
		pad(to, from, WAIT_WIDTH, true);
		buf_add_str(to, " # ");
		from = to->n;
		buf_addf(to, "%s%%", num_double(w->pct, 2).s);
		pad(to, from, 8, false);
		from = to->n;
		if (w->count) {
			num_add_count(to, w->count);
			pad(to, from, 12, false);
			buf_add_str(to, w->count == 1 ? " time" : " times");
		}
		buf_add_ch(to, '\n');
	}
	buf_add_ch(to, '\n');
}

static void add_text_summary(struct buf *to, const struct statlines *l,
			     const struct stat_summary *s)
{
	buf_add_str(to, "\ncounters of ");
	escape_term(to, sv_from_str(s->title));
	buf_add_str(to, ":\n\n");
	for (size_t i = 0; i < s->reading.nr_rows; i++)
		add_row(to, l, &s->reading.rows[i]);
	buf_add_ch(to, '\n');
	add_waits(to, &s->waits);
	add_seconds(to, s->elapsed_s, s->elapsed_spread_pct, "time elapsed");
	add_seconds(to, s->user_s, NAN, "user");
	add_seconds(to, s->system_s, NAN, "sys");
	if (s->nr_notes)
		buf_add_ch(to, '\n');
	for (size_t i = 0; i < s->nr_notes; i++) {
		wrap_add(to, sv_from_str(s->notes[i]), 0, 0, l->columns);
		buf_add_ch(to, '\n');
	}
}

/* ---- CSV ------------------------------------------------------------------------------------------ */

static void add_csv_row(struct buf *to, const struct statlines *l, const struct counter_reading *r,
			const struct counter_row *row)
{
	const char *sep = l->separator;
	if (l->has_intervals)
		buf_addf(to, "%s%s", num_double(r->at_s, 9).s, sep);
	if (r->subject) {
		csvout_add_text(to, sv_from_str(r->subject));
		buf_add_str(to, sep);
	}
	if (row->state != COUNTER_COUNTED)
		buf_add_str(to, state_names[row->state]);
	else if (row->is_time)
		num_add_double(to, row->value / 1e6, 2);
	else
		num_add_double(to, row->value, 0);
	buf_addf(to, "%s%s%s%s", sep, unit_of(row), sep, row->name);
	if (l->has_spread)
		buf_addf(to, "%s%s%%", sep,
			 isfinite(row->spread_pct) ? num_double(row->spread_pct, 2).s : "0.00");
	buf_addf(to, "%s%" PRIu64 "%s%s%s", sep, row->running_ns, sep,
		 num_double(row->running_pct, 2).s, sep);
	if (isfinite(row->metric))
		num_add_double(to, row->metric, 3);
	buf_addf(to, "%s%s\n", sep, isfinite(row->metric) ? row->metric_unit : "");
}

static void add_csv_wait(struct buf *to, const struct statlines *l, const struct counter_reading *r,
			 const struct stat_wait *w)
{
	const char *sep = l->separator;
	if (l->has_intervals)
		buf_addf(to, "%s%s", num_double(r->at_s, 9).s, sep);
	num_add_double(to, (double)w->ns / 1e6, 2);
	buf_addf(to, "%smsec%sthread-%s%s%" PRIu64 "%s100.00%s", sep, sep, w->key, sep, w->ns, sep,
		 sep);
	num_add_double(to, w->pct, 3);
	buf_addf(to, "%s%% of thread time\n", sep);
}

static void add_csv_waits(struct buf *to, const struct statlines *l,
			  const struct counter_reading *r, const struct stat_waits *waits)
{
	for (size_t i = 0; waits && i < waits->n; i++)
		add_csv_wait(to, l, r, &waits->p[i]);
}

/* ---- JSON ----------------------------------------------------------------------------------------- */

static void put_rows(struct json *j, const struct counter_reading *r)
{
	json_put_arr(j, "events");
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct counter_row *row = &r->rows[i];
		bool is_counted = row->state == COUNTER_COUNTED;
		json_obj(j);
		json_put_str(j, "event", row->name);
		json_put_str(j, "state", state_keys[row->state]);
		json_put_str(j, "unit", row->is_time ? "ns" : "");
		json_put_double(j, "value", is_counted ? row->value : NAN, 0);
		json_put_u64(j, "running_ns", row->running_ns);
		json_put_double(j, "running_pct", row->running_pct, 2);
		json_put_double(j, "metric", row->metric, 6);
		json_put_str(j, "metric_unit", isfinite(row->metric) ? row->metric_unit : "");
		if (isfinite(row->spread_pct))
			json_put_double(j, "spread_pct", row->spread_pct, 3);
		json_end(j);
	}
	json_end(j);
}

static void put_waits(struct json *j, const struct stat_waits *s)
{
	if (!s || !s->n)
		return;
	json_put_double(j, "thread_time_s", s->thread_s, 9);
	json_put_arr(j, "thread_time");
	for (size_t i = 0; i < s->n; i++) {
		json_obj(j);
		json_put_str(j, "reason", s->p[i].key);
		json_put_u64(j, "ns", s->p[i].ns);
		json_put_u64(j, "count", s->p[i].count);
		json_put_double(j, "pct", s->p[i].pct, 2);
		json_end(j);
	}
	json_end(j);
}

static void add_json_reading(struct buf *to, const struct counter_reading *r,
			     const struct stat_waits *waits)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_double(&j, "time_s", r->at_s, 9);
	if (r->subject)
		json_put_str(&j, "thread", r->subject);
	put_rows(&j, r);
	put_waits(&j, waits);
	json_end(&j);
	buf_add_ch(to, '\n');
}

static void add_json_summary(struct buf *to, const struct stat_summary *s)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_str(&j, "target", s->title);
	json_put_double(&j, "elapsed_s", s->elapsed_s, 9);
	json_put_double(&j, "user_s", s->user_s, 9);
	json_put_double(&j, "system_s", s->system_s, 9);
	put_rows(&j, &s->reading);
	put_waits(&j, &s->waits);
	json_put_arr(&j, "notes");
	for (size_t i = 0; i < s->nr_notes; i++)
		json_str(&j, s->notes[i]);
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}

void statlines_add_summary(struct buf *to, const struct statlines *l, const struct stat_summary *s)
{
	if (l->form == STATLINES_JSON) {
		add_json_summary(to, s);
		return;
	}
	if (l->form == STATLINES_TEXT) {
		add_text_summary(to, l, s);
		return;
	}
	for (size_t i = 0; i < s->reading.nr_rows; i++)
		add_csv_row(to, l, &s->reading, &s->reading.rows[i]);
	add_csv_waits(to, l, &s->reading, &s->waits);
}

/* ---- lines of text ---------------------------------------------------------------------------------- */

/* Titles that are shorter than the names. */
static const char *title_of(const struct counter_row *r)
{
	static const char *const titles[][2] = {
		{"task-clock", "CPU ms"},         {"cpu-clock", "CPU ms"},
		{"context-switches", "switches"}, {"cpu-migrations", "migrations"},
		{"page-faults", "faults"},        {"run-queue", "queue ms"},
		{"stolen", "stolen ms"},
	};
	for (size_t i = 0; i < ARRAY_LEN(titles); i++)
		if (!strcmp(r->name, titles[i][0]))
			return titles[i][1];
	return r->name;
}

/* A heading, or a value in three digits and a unit; times in milliseconds. */
static void add_cell(struct buf *to, const struct counter_row *r, bool is_title)
{
	size_t from = to->n;
	if (is_title)
		buf_add_str(to, title_of(r));
	else if (r->state != COUNTER_COUNTED)
		buf_add_str(to, "-");
	else if (r->is_time)
		num_add_double(to, r->value / 1e6, 2);
	else
		num_add_short(to, (uint64_t)llround(MAX(r->value, 0.0)));
	pad(to, from, COLUMN_WIDTH, false);
}

/* The longest wait that is not idle, if it has some share, or the longest. */
static void add_longest(struct buf *to, const struct stat_waits *waits)
{
	const struct stat_wait *longest = NULL;
	for (size_t i = 0; waits && i < waits->n; i++) {
		const struct stat_wait *w = &waits->p[i];
		bool is_better =
			longest && longest->is_idle && !w->is_idle && w->pct >= BLOCKED_PCT;
		if (w->is_wait && (!longest || is_better))
			longest = w;
	}
	if (longest)
		buf_addf(to, "  %s %s %%%s", longest->text, num_pct(longest->pct).s,
			 longest->is_idle ? " (idle)" : "");
	else
		buf_add_str(to, "  -");
}

static void add_line(struct buf *to, const struct statlines *l, const struct counter_reading *r,
		     const struct stat_waits *waits, bool is_title)
{
	size_t start = to->n;
	size_t reserved = l->has_waits ? LONGEST_WIDTH : 0;
	if (r->subject && is_title)
		buf_add_str(to, "thread");
	else if (r->subject)
		escape_term(to, sv_from_str(r->subject));
	if (r->subject)
		pad(to, start, SUBJECT_WIDTH, true);
	if (l->has_intervals) {
		size_t from = to->n;
		buf_add_str(to, is_title ? "time s" : num_double(r->at_s, 3).s);
		pad(to, from, COLUMN_WIDTH, false);
	}
	for (size_t i = 0; i < r->nr_rows; i++) {
		const struct counter_row *row = &r->rows[i];
		bool has_ipc = row->role == COUNTER_INSTRUCTIONS;
		if (row->state == COUNTER_NOT_SUPPORTED || row->state == COUNTER_NOT_PERMITTED)
			continue;
		if (l->columns &&
		    to->n - start + COLUMN_WIDTH * (1u + has_ipc) + reserved > l->columns)
			break;
		add_cell(to, row, is_title);
		if (!has_ipc)
			continue;
		size_t from = to->n;
		buf_add_str(to, is_title                ? "IPC"
				: isfinite(row->metric) ? num_double(row->metric, 2).s
							: "-");
		pad(to, from, COLUMN_WIDTH, false);
	}
	if (l->has_waits && is_title)
		buf_add_str(to, "  longest wait");
	else if (l->has_waits)
		add_longest(to, waits);
	buf_add_ch(to, '\n');
}

void statlines_add_reading(struct buf *to, const struct statlines *l,
			   const struct counter_reading *r, const struct stat_waits *waits,
			   bool is_first)
{
	if (l->form == STATLINES_JSON) {
		add_json_reading(to, r, waits);
	} else if (l->form == STATLINES_CSV) {
		for (size_t i = 0; i < r->nr_rows; i++)
			add_csv_row(to, l, r, &r->rows[i]);
		add_csv_waits(to, l, r, waits);
	} else {
		if (is_first)
			add_line(to, l, r, waits, true);
		add_line(to, l, r, waits, false);
	}
}
