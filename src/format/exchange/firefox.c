/*
 * Writer of profiles for the Firefox Profiler; see firefox.h.
 *
 * CPU samples are samples, waits are interval markers with the stack that waited, as its users expect
 * them (--offcpu samples makes both samples, weighed by their time). The memory of processes is
 * counters, allocations and frees are native allocations, marks are markers.
 */
#include "base/base.h"
#include "format/exchange/firefox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/heap.h"
#include "model/wait.h"

#define SHOWN_MAX 15 /* threads that are visible at first, as in the viewer itself */

static void writer_release(struct firefox_writer *w)
{
	vec_foreach(t, &w->threads) {
		vec_release(&t->samples);
		vec_release(&t->markers);
		vec_release(&t->blocks);
	}
	vec_release(&w->threads);
	firefox_tables_release(&w->tables);
}

/* ---- which rows are what ------------------------------------------------------------------ */

struct chosen {
	const struct table *samples;
	const struct table *waits; /* markers, or samples too */
	bool are_waits_samples;
	bool has_blocks;
};

static int choose(struct chosen *c, const struct firefox_writer *w, struct err *err)
{
	const struct profile *p = w->p;
	if (w->options->event)
		return format_pick_table(p, w->options->event, &c->samples, err);
	c->samples = tables_find_rows(p, TABLE_SAMPLES);
	c->waits = tables_find_rows(p, TABLE_INTERVALS) ?: tables_find_rows(p, TABLE_OFF_CPU);
	c->are_waits_samples = w->options->firefox.are_waits_samples;
	c->has_blocks = tables_has_rows(p, TABLE_ALLOCATED);
	bool has_time =
		c->samples && c->samples->nr_columns > 1 && c->samples->columns[1].unit == UNIT_NS;
	if (c->are_waits_samples && c->samples && !has_time)
		return err_set(err, -EINVAL,
			       "event '%s' counts no time, so it cannot be added to waits",
			       profile_text(p, c->samples->event));
	if (c->samples || c->waits || c->has_blocks)
		return 0;
	vec_foreach(t, &p->tables) /* another event: its weights are samples */
		if (t->n && t->id != TABLE_MEMORY && t->id != TABLE_SNAPSHOTS && !c->samples)
			c->samples = t;
	return 0;
}

static struct firefox_thread *thread_of(struct firefox_writer *w, struct map *index, task_id id)
{
	const struct task *task = &w->p->tasks.p[id];
	bool is_known = task->pid >= 0 && task->tid >= 0;
	uint64_t key = is_known ? (uint64_t)(uint32_t)task->pid << 32 | (uint32_t)task->tid
				: UINT64_MAX - id; /* above all pids */
	bool is_new;
	uint32_t *at = map_put(index, key, &is_new);
	if (is_new) {
		*at = (uint32_t)w->threads.n;
		vec_push(&w->threads, (struct firefox_thread){.task = id, .first_ns = UINT64_MAX});
	}
	struct firefox_thread *t = &w->threads.p[*at];
	t->task = MAX(t->task, id);
	return t;
}

enum part { PART_SAMPLES, PART_MARKERS, PART_BLOCKS };

static void add_rows(struct firefox_writer *w, struct map *index, const struct table *t,
		     enum part part)
{
	for (size_t i = 0; t && i < t->n; i++) {
		struct firefox_thread *to = thread_of(w, index, t->task[i]);
		struct firefox_row row = {t, (uint32_t)i};
		uint64_t weight = firefox_weight(t, i);
		if (!weight && part != PART_BLOCKS)
			continue;
		to->first_ns = MIN(to->first_ns, t->time_ns[i]);
		const char *reason = firefox_reason(w, t, i);
		bool is_idle = reason && wait_is_idle(wait_from_frame(sv_from_str(reason)));
		to->weight_ns += is_idle ? 0 : weight;
		switch (part) {
		case PART_SAMPLES:
			vec_push(&to->samples, row);
			break;
		case PART_MARKERS:
			vec_push(&to->markers, row);
			break;
		case PART_BLOCKS:
			vec_push(&to->blocks, row);
			break;
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct firefox_row *x = a;
	const struct firefox_row *y = b;
	return COMPARE(x->t->time_ns[x->row], y->t->time_ns[y->row])
		       ?: COMPARE(x->t->id, y->t->id)
		       ?: COMPARE(x->row, y->row);
}

static int by_weight(const void *a, const void *b)
{
	const struct firefox_thread *x = a;
	const struct firefox_thread *y = b;
	return COMPARE(y->weight_ns, x->weight_ns) ?: COMPARE(x->task, y->task);
}

static void collect(struct firefox_writer *w, const struct chosen *c)
{
	struct map index = {0};
	add_rows(w, &index, c->samples, PART_SAMPLES);
	add_rows(w, &index, c->waits, c->are_waits_samples ? PART_SAMPLES : PART_MARKERS);
	if (c->has_blocks) {
		add_rows(w, &index, tables_find(w->p, TABLE_ALLOCATED), PART_BLOCKS);
		add_rows(w, &index, tables_find(w->p, TABLE_FREED), PART_BLOCKS);
	}
	map_release(&index);
	if (w->threads.n)
		qsort(w->threads.p, w->threads.n, sizeof(*w->threads.p), by_weight);
	vec_foreach(t, &w->threads) {
		if (t->samples.n)
			qsort(t->samples.p, t->samples.n, sizeof(*t->samples.p), by_time);
		if (t->blocks.n)
			qsort(t->blocks.p, t->blocks.n, sizeof(*t->blocks.p), by_time);
		firefox_collect_stacks(w, t);
	}
	vec_foreach(m, &w->p->marks)
		(void)firefox_string(&w->tables, profile_sv(w->p, m->text));
	const struct table *t = c->samples ? c->samples : c->waits;
	w->unit = !t ? UNIT_COUNT : t->columns[t->weight_column].unit;
	if (t && t->id == TABLE_SAMPLES && t->nr_columns > 1 && t->columns[1].unit == UNIT_NS)
		w->unit = UNIT_NS;
	w->is_timeless = t && t->time_kind == TABLE_TIME_TIMELESS;
}

/* ---- meta --------------------------------------------------------------------------------- */

static void put_categories(struct json *j)
{
	static const struct {
		const char *name;
		const char *color;
	} categories[FIREFOX_CATEGORIES] = {
		[FIREFOX_OTHER] = {"Other", "grey"},
		[FIREFOX_USER] = {"User", "yellow"},
		[FIREFOX_KERNEL] = {"Kernel", "orange"},
		[FIREFOX_JIT] = {"JIT", "green"},
		[FIREFOX_WAITING] = {"Waiting", "transparent"},
	};
	json_put_arr(j, "categories");
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		json_obj(j);
		json_put_str(j, "name", categories[i].name);
		json_put_str(j, "color", categories[i].color);
		json_put_arr(j, "subcategories");
		json_str(j, "Other");
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void put_entry(struct json *j, const char *label, const char *format, struct sv value)
{
	json_obj(j);
	json_put_str(j, "label", label);
	json_put_str(j, "format", format);
	json_put_sv(j, "value", value);
	json_end(j);
}

/* The losses: every file that has samples has these, too. */
static void put_extra(struct firefox_writer *w)
{
	struct json *j = &w->j;
	json_put_arr(j, "extra");
	json_obj(j);
	json_put_str(j, "label", "Samples (assay)");
	json_put_arr(j, "entries");
	if (w->is_timeless)
		put_entry(j, "times", "string",
			  SV("not known: the samples stand one after the other"));
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (!w->p->losses.nr[k])
			continue;
		CLEANUP(buf_release) struct buf b = {0};
		buf_add_u64(&b, w->p->losses.nr[k]);
		put_entry(j, loss_text(k), "string", buf_sv(&b));
	}
	json_end(j);
	json_end(j);
	json_end(j);
}

static void put_visible(struct firefox_writer *w)
{
	struct json *j = &w->j;
	json_put_arr(j, "initialVisibleThreads");
	for (size_t i = 0; i < MIN(w->threads.n, (size_t)SHOWN_MAX); i++)
		json_u64(j, i);
	json_end(j);
	json_put_arr(j, "initialSelectedThreads");
	if (w->threads.n)
		json_u64(j, 0);
	json_end(j);
}

static double interval_ms(const struct chosen *c)
{
	return c->samples && c->samples->freq_hz > 0 ? 1000 / c->samples->freq_hz : 1;
}

static void put_meta(struct firefox_writer *w, const struct chosen *c)
{
	struct json *j = &w->j;
	const char *cpu = profile_get_fact(w->p, FACT_CPU);
	uint64_t nr_cpus = profile_get_fact_nr(w->p, FACT_CPUS);
	const char *name =
		w->threads.n ? profile_text(w->p, w->p->tasks.p[w->threads.p[0].task].comm) : "";
	json_put_obj(j, "meta");
	json_put_double(j, "interval", interval_ms(c), 6);
	json_key(j, "startTime");
	json_millis(j, (uint64_t)MAX(w->p->wall_start_ns, 0));
	json_put_u64(j, "processType", 0);
	json_put_str(j, "product", name[0] ? name : "assay");
	json_put_u64(j, "stackwalk", 1);
	json_put_u64(j, "version", 24);
	json_put_u64(j, "preprocessedProfileVersion", 60);
	json_put_bool(j, "symbolicated", true);
	json_put_bool(j, "usesOnlyOneStackType", true);
	json_put_bool(j, "sourceCodeIsNotOnSearchfox", true);
	json_put_str(j, "importedFrom", "assay");
	if (cpu)
		json_put_str(j, "CPUName", cpu);
	if (nr_cpus)
		json_put_u64(j, "logicalCPUs", nr_cpus);
	json_put_obj(j, "sampleUnits");
	json_put_str(j, "time", "ms");
	json_put_str(j, "eventDelay", "ms");
	json_put_str(j, "threadCPUDelta", "\xc2\xb5s");
	json_end(j);
	put_categories(j);
	firefox_put_schemas(j);
	put_visible(w);
	put_extra(w);
	json_end(j);
}

/* ---- counters ----------------------------------------------------------------------------- */

static size_t main_thread_of(const struct firefox_writer *w, int32_t pid)
{
	size_t best = 0;
	for (size_t i = w->threads.n; i--;) {
		const struct task *t = &w->p->tasks.p[w->threads.p[i].task];
		if (t->pid == pid)
			best = i;
	}
	return best;
}

/* The first value is that above zero, the others are differences. */
static void put_counter(struct firefox_writer *w, const struct table *t, uint32_t column,
			int32_t pid)
{
	struct json *j = &w->j;
	char text[16];
	(void)snprintf(text, sizeof(text), "%d", MAX(pid, 0));
	json_obj(j);
	json_put_sv(j, "name", profile_sv(w->p, t->columns[column].name));
	json_put_str(j, "category", "Memory");
	json_put_str(j, "description", "memory of the process");
	json_put_str(j, "pid", text);
	json_put_u64(j, "mainThreadIndex", main_thread_of(w, pid));
	json_put_obj(j, "samples");
	size_t n = 0;
	json_put_arr(j, "time");
	for (size_t i = 0; i < t->n; i++)
		if (w->p->tasks.p[t->task[i]].pid == pid) {
			firefox_put_time(w, t->time_ns[i]);
			n++;
		}
	json_end(j);
	json_put_arr(j, "count");
	int64_t last = 0;
	for (size_t i = 0; i < t->n; i++)
		if (w->p->tasks.p[t->task[i]].pid == pid) {
			int64_t v = t->values[i * t->nr_columns + column];
			json_i64(j, (int64_t)((uint64_t)v - (uint64_t)last));
			last = v;
		}
	json_end(j);
	json_put_u64(j, "length", n);
	json_end(j);
	json_end(j);
}

static void put_counters(struct firefox_writer *w)
{
	const struct table *t = tables_find_rows(w->p, TABLE_MEMORY);
	struct map done = {0};
	json_put_arr(&w->j, "counters");
	for (size_t i = 0; t && w->threads.n && i < t->n; i++) {
		int32_t pid = w->p->tasks.p[t->task[i]].pid;
		bool is_new;
		(void)map_put(&done, (uint64_t)(uint32_t)pid, &is_new);
		for (uint32_t c = 0; is_new && c < t->nr_columns; c++) {
			bool has_value = false;
			for (size_t k = i; k < t->n && !has_value; k++)
				has_value = t->values[k * t->nr_columns + c] &&
					    w->p->tasks.p[t->task[k]].pid == pid;
			if (has_value && c != HEAP_MEMORY_VIRTUAL)
				put_counter(w, t, c, pid);
		}
	}
	json_end(&w->j);
	map_release(&done);
}

int firefox_write(struct format_output *to, const struct profile *p,
		  const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release)
	struct firefox_writer w = {.p = p, .options = options, .to = to, .j = json_to(&to->buf)};
	struct chosen c = {0};
	firefox_tables_init(&w.tables, p);
	TRY(choose(&c, &w, err));
	collect(&w, &c);
	json_obj(&w.j);
	put_meta(&w, &c);
	firefox_put_tables(&w.j, &w.tables);
	TRY(format_spill(to, err));
	json_put_arr(&w.j, "pages");
	json_end(&w.j);
	put_counters(&w);
	json_put_arr(&w.j, "threads");
	vec_foreach(t, &w.threads)
		TRY(firefox_put_thread(&w, t, t == w.threads.p, err));
	json_end(&w.j);
	json_end(&w.j);
	buf_add_ch(&to->buf, '\n');
	return 0;
}
