/* Samples, markers and allocations of a thread of a Firefox profile; see firefox.h. */
#include "base/base.h"
#include "format/exchange/firefox.h"

#include "model/heap.h"
#include "model/wait.h"

uint64_t firefox_weight(const struct table *t, size_t row)
{
	int64_t v = t->values[row * t->nr_columns + t->weight_column];
	/* the time of a sample of CPU time, so that widths are times */
	if (t->id == TABLE_SAMPLES && t->nr_columns > 1 && t->columns[1].unit == UNIT_NS)
		v = t->values[row * t->nr_columns + 1];
	return v > 0 ? (uint64_t)v : 0;
}

const char *firefox_reason(const struct firefox_writer *w, const struct table *t, size_t row)
{
	const struct format_options *o = w->options;
	if (!t->has_tags)
		return NULL;
	if (o->synth_leaf_of)
		return o->synth_leaf_of(o->synth_leaf_ctx, t, row);
	return wait_frame((enum wait_reason)w->p->tags.p[t->tag[row]].reason);
}

/* "lock" */
static struct sv reason_name(const struct firefox_writer *w, const struct firefox_row *r)
{
	struct sv frame = sv_from_str(firefox_reason(w, r->t, r->row) ?: "");
	return frame.n > 2 ? sv_from(frame.p + 1, frame.n - 2) : SV("wait");
}

static uint32_t stack_of(struct firefox_writer *w, const struct firefox_row *r)
{
	return firefox_stack(&w->tables, r->t->stack[r->row], firefox_reason(w, r->t, r->row));
}

void firefox_collect_stacks(struct firefox_writer *w, const struct firefox_thread *t)
{
	vec_foreach(r, &t->samples)
		(void)stack_of(w, r);
	vec_foreach(r, &t->blocks)
		(void)firefox_stack(&w->tables, r->t->stack[r->row], NULL);
	vec_foreach(r, &t->markers) {
		(void)firefox_stack(&w->tables, r->t->stack[r->row], NULL);
		(void)firefox_string(&w->tables, reason_name(w, r));
	}
}

void firefox_put_time(struct firefox_writer *w, uint64_t time_ns)
{
	json_millis(&w->j, time_ns > w->p->start_ns ? time_ns - w->p->start_ns : 0);
}

/* ---- samples ------------------------------------------------------------------------------ */

static void put_weight(struct firefox_writer *w, uint64_t weight)
{
	if (w->unit == UNIT_NS)
		json_millis(&w->j, weight);
	else
		json_u64(&w->j, weight);
}

/* CPU time of the samples since the one before, in us; waits have none. */
static void put_cpu_deltas(struct firefox_writer *w, const struct firefox_thread *t)
{
	uint64_t rest_ns = 0;
	json_put_arr(&w->j, "threadCPUDelta");
	vec_foreach(r, &t->samples) {
		rest_ns += r->t->id == TABLE_SAMPLES ? firefox_weight(r->t, r->row) : 0;
		json_u64(&w->j, rest_ns / 1000);
		rest_ns %= 1000;
	}
	json_end(&w->j);
}

static int put_samples(struct firefox_writer *w, const struct firefox_thread *t, struct err *err)
{
	struct json *j = &w->j;
	json_put_obj(j, "samples");
	json_put_arr(j, "stack");
	vec_foreach(r, &t->samples)
		json_u64(j, stack_of(w, r));
	json_end(j);
	TRY(format_spill(w->to, err));
	json_put_arr(j, "time");
	for (size_t i = 0; i < t->samples.n; i++) {
		const struct firefox_row *r = &t->samples.p[i];
		if (w->is_timeless)
			json_u64(j, i);
		else
			firefox_put_time(w, r->t->time_ns[r->row]);
	}
	json_end(j);
	TRY(format_spill(w->to, err));
	json_put_arr(j, "weight");
	vec_foreach(r, &t->samples)
		put_weight(w, firefox_weight(r->t, r->row));
	json_end(j);
	json_put_str(j, "weightType",
		     w->unit == UNIT_NS      ? "tracing-ms"
		     : w->unit == UNIT_BYTES ? "bytes"
					     : "samples");
	if (w->unit == UNIT_NS)
		put_cpu_deltas(w, t);
	json_put_u64(j, "length", t->samples.n);
	json_end(j);
	return format_spill(w->to, err);
}

/* ---- allocations -------------------------------------------------------------------------- */

static void put_allocations(struct firefox_writer *w, const struct firefox_thread *t)
{
	struct json *j = &w->j;
	if (!t->blocks.n)
		return;
	json_put_obj(j, "nativeAllocations");
	json_put_arr(j, "time");
	vec_foreach(r, &t->blocks)
		firefox_put_time(w, r->t->time_ns[r->row]);
	json_end(j);
	json_put_arr(j, "weight");
	vec_foreach(r, &t->blocks) {
		int64_t bytes = r->t->values[r->row * r->t->nr_columns + HEAP_BYTES];
		json_i64(j, r->t->id == TABLE_FREED ? -bytes : bytes);
	}
	json_end(j);
	json_put_str(j, "weightType", "bytes");
	json_put_arr(j, "stack");
	vec_foreach(r, &t->blocks)
		json_u64(j, firefox_stack(&w->tables, r->t->stack[r->row], NULL));
	json_end(j);
	json_put_u64(j, "length", t->blocks.n);
	json_end(j);
}

/* ---- markers ------------------------------------------------------------------------------ */

/* Single waits are intervals; where they were not kept, sums of a second are instants. */
static bool is_interval(const struct firefox_row *r)
{
	return r->t->id == TABLE_INTERVALS;
}

static const int64_t *values_of(const struct firefox_row *r)
{
	return &r->t->values[r->row * r->t->nr_columns];
}

static uint64_t end_of(const struct firefox_row *r)
{
	return r->t->time_ns[r->row] + (uint64_t)MAX(values_of(r)[INTERVAL_NS], 0);
}

static void put_text(struct json *j, const char *key, struct sv text)
{
	if (text.n)
		json_put_sv(j, key, text);
}

static void put_cause(struct firefox_writer *w, const struct firefox_row *r)
{
	struct json *j = &w->j;
	json_put_obj(j, "cause");
	json_key(j, "time");
	firefox_put_time(w, r->t->time_ns[r->row]);
	json_put_u64(j, "stack", firefox_stack(&w->tables, r->t->stack[r->row], NULL));
	json_end(j);
}

static void put_wait(struct firefox_writer *w, const struct firefox_row *r)
{
	const struct profile *p = w->p;
	const struct tag *tag = &p->tags.p[r->t->tag[r->row]];
	struct json *j = &w->j;
	json_obj(j);
	json_put_str(j, "type", is_interval(r) ? "Wait" : "Waits");
	json_put_sv(j, "reason", reason_name(w, r));
	put_text(j, "object", profile_sv(p, tag->object));
	put_text(j, "waker", profile_sv(p, p->tasks.p[tag->other].comm));
	if (is_interval(r)) {
		json_key(j, "queue");
		json_millis(j, (uint64_t)MAX(values_of(r)[INTERVAL_QUEUE_NS], 0));
	} else {
		json_put_i64(j, "waits", values_of(r)[0]);
		json_key(j, "total");
		json_millis(j, firefox_weight(r->t, r->row));
	}
	put_cause(w, r);
	json_end(j);
}

static void put_markers(struct firefox_writer *w, const struct firefox_thread *t, bool has_marks)
{
	struct json *j = &w->j;
	const struct profile *p = w->p;
	size_t nr_marks = has_marks ? p->marks.n : 0;
	json_put_obj(j, "markers");
	json_put_arr(j, "name");
	for (size_t i = 0; i < nr_marks; i++)
		json_u64(j, firefox_string(&w->tables, profile_sv(p, p->marks.p[i].text)));
	vec_foreach(r, &t->markers)
		json_u64(j, firefox_string(&w->tables, reason_name(w, r)));
	json_end(j);
	json_put_arr(j, "startTime");
	for (size_t i = 0; i < nr_marks; i++)
		firefox_put_time(w, p->marks.p[i].time_ns);
	vec_foreach(r, &t->markers)
		firefox_put_time(w, r->t->time_ns[r->row]);
	json_end(j);
	json_put_arr(j, "endTime");
	for (size_t i = 0; i < nr_marks; i++)
		json_null(j);
	vec_foreach(r, &t->markers) {
		if (is_interval(r))
			firefox_put_time(w, end_of(r));
		else
			json_null(j);
	}
	json_end(j);
	json_put_arr(j, "phase");
	for (size_t i = 0; i < nr_marks; i++)
		json_u64(j, 0);
	vec_foreach(r, &t->markers)
		json_u64(j, is_interval(r));
	json_end(j);
	json_put_arr(j, "category");
	for (size_t i = 0; i < nr_marks; i++)
		json_u64(j, FIREFOX_OTHER);
	for (size_t i = 0; i < t->markers.n; i++)
		json_u64(j, FIREFOX_WAITING);
	json_end(j);
	json_put_arr(j, "data");
	for (size_t i = 0; i < nr_marks; i++) {
		json_obj(j);
		json_put_str(j, "type", "Mark");
		json_end(j);
	}
	vec_foreach(r, &t->markers)
		put_wait(w, r);
	json_end(j);
	json_put_u64(j, "length", nr_marks + t->markers.n);
	json_end(j);
}

static void put_field(struct json *j, const char *key, const char *label, const char *format)
{
	json_obj(j);
	json_put_str(j, "key", key);
	json_put_str(j, "label", label);
	json_put_str(j, "format", format);
	json_end(j);
}

static void put_schema(struct json *j, const char *name, const char *label, bool is_wait,
		       bool is_single)
{
	static const char *const places[] = {"marker-chart", "marker-table", "timeline-overview"};
	json_obj(j);
	json_put_str(j, "name", name);
	json_put_arr(j, "display");
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		json_str(j, places[i]);
	json_end(j);
	json_put_str(j, "chartLabel", label);
	json_put_str(j, "tooltipLabel", "{marker.name}");
	json_put_str(j, "tableLabel", label);
	json_put_arr(j, "fields");
	if (is_wait) {
		put_field(j, "reason", "Reason", "string");
		put_field(j, "object", "Waited for", "string");
		put_field(j, "waker", "Woken by", "string");
		if (is_single) {
			put_field(j, "queue", "Of that in the run queue", "milliseconds");
		} else {
			put_field(j, "waits", "Waits in this second", "integer");
			put_field(j, "total", "Their time", "milliseconds");
		}
	}
	json_end(j);
	json_end(j);
}

void firefox_put_schemas(struct json *j)
{
	json_put_arr(j, "markerSchema");
	put_schema(j, "Wait", "{marker.data.reason} {marker.data.object}", true, true);
	put_schema(j, "Waits", "{marker.data.reason} {marker.data.object}", true, false);
	put_schema(j, "Mark", "{marker.name}", false, false);
	json_end(j);
}

/* ---- the thread --------------------------------------------------------------------------- */

int firefox_put_thread(struct firefox_writer *w, const struct firefox_thread *t, bool has_marks,
		       struct err *err)
{
	const struct task *task = &w->p->tasks.p[t->task];
	struct json *j = &w->j;
	char pid[16];
	(void)snprintf(pid, sizeof(pid), "%d", MAX(task->pid, 0));
	json_obj(j);
	json_put_sv(j, "name", profile_sv(w->p, task->comm));
	json_put_bool(j, "isMainThread", task->pid == task->tid);
	const struct task *main = &w->p->tasks.p[profile_main_task(w->p, t->task)];
	json_put_sv(j, "processName", profile_sv(w->p, main->comm));
	json_put_str(j, "processType", "default");
	json_put_str(j, "pid", pid);
	json_put_i64(j, "tid", MAX(task->tid, 0));
	json_key(j, "registerTime");
	firefox_put_time(w, t->first_ns);
	json_key(j, "unregisterTime");
	json_null(j);
	json_key(j, "processStartupTime");
	firefox_put_time(w, t->first_ns);
	json_key(j, "processShutdownTime");
	json_null(j);
	json_put_bool(j, "showMarkersInTimeline", true);
	json_put_arr(j, "pausedRanges");
	json_end(j);
	TRY(put_samples(w, t, err));
	put_allocations(w, t);
	put_markers(w, t, has_marks);
	json_end(j);
	return format_spill(w->to, err);
}
