/*
 * A profile for speedscope (https://www.speedscope.app): its JSON file format, "sampled" profiles.
 * First all threads, then one profile per thread that has rows, largest first; samples by time, with
 * the event's weight (ns, bytes or counts); frames have their file where it is known. Only
 * written.
 *
 * What it cannot hold: losses, intervals of uncertainty, marks, tags (reasons of waits).
 * docs/formats/speedscope.md
 */
#include "base/base.h"
#include "format/format.h"

#include <stdlib.h>

#include "base/intern.h"
#include "base/text/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "format/textframes.h"

/* The rows of one thread, or of all (the first one), in the order of the table (by time). */
struct thread {
	task_id task;
	bool is_all;
	uint64_t weight;
	VEC(uint32_t) rows;
};

/*
 * A frame of the file; the same name at several addresses is one frame. Without lines: speedscope
 * would take each line of a function for a function of its own.
 */
struct shared_frame {
	const char *name; /* borrowed from the profile or interned */
	str_id file;
};

struct speedscope_writer {
	const struct profile *p;
	const struct table *t;
	struct format_output *to;
	struct json j;
	struct intern keys; /* "name\1file" -> frame */
	VEC(struct shared_frame) frames;
	uint32_t *first_of_loc;   /* by loc_id: index in loc_frames + 1; 0 = not used yet */
	VEC(uint32_t) loc_frames; /* runs: innermost first, as in the profile */
	VEC(struct thread) threads;
	VEC(uint32_t) path; /* of one row, leaf first */
};

static void writer_release(struct speedscope_writer *w)
{
	vec_foreach(t, &w->threads)
		vec_release(&t->rows);
	intern_release(&w->keys);
	vec_release(&w->frames);
	free_p(&w->first_of_loc);
	vec_release(&w->loc_frames);
	vec_release(&w->threads);
	vec_release(&w->path);
}

static uint64_t weight_of(const struct table *t, size_t row)
{
	int64_t v = t->values[row * t->nr_columns + t->weight_column];
	return v > 0 ? (uint64_t)v : 0;
}

/* ---- frames -------------------------------------------------------------------------------- */

static uint32_t shared_frame(struct speedscope_writer *w, const char *name, str_id file)
{
	CLEANUP(buf_release) struct buf key = {0};
	buf_addf(&key, "%s\1%u", name, file);
	size_t idx = intern_add(&w->keys, key.p, key.n) - 1u;
	if (idx == w->frames.n)
		vec_push(&w->frames, (struct shared_frame){name, file});
	return (uint32_t)idx;
}

static void add_location(struct speedscope_writer *w, loc_id loc)
{
	const struct location *l = &w->p->locations.p[loc];
	w->first_of_loc[loc] = (uint32_t)w->loc_frames.n + 1;
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &w->p->frames.p[l->first_frame + i];
		uint32_t frame = shared_frame(w, profile_frame_name(w->p, f), f->file);
		vec_push(&w->loc_frames, frame);
	}
	if (l->nr_frames)
		return;
	CLEANUP(buf_release) struct buf name = {0};
	text_add_unsymbolized(&name, w->p, loc, 0);
	size_t id = intern_add(&w->keys, name.p, name.n); /* keeps the text */
	uint32_t frame = (uint32_t)id - 1;
	if (frame == w->frames.n)
		vec_push(&w->frames, (struct shared_frame){intern_str(&w->keys, (uint32_t)id), 0});
	vec_push(&w->loc_frames, frame);
}

static uint32_t nr_frames_of(const struct speedscope_writer *w, loc_id loc)
{
	return MAX(w->p->locations.p[loc].nr_frames, 1u);
}

/* The frames of a stack, leaf first; for an empty stack one placeholder frame. */
static void set_path(struct speedscope_writer *w, stack_id stack)
{
	vec_clear(&w->path);
	for (stack_id s = stack; s; s = w->p->stacks.p[s].parent) {
		loc_id loc = w->p->stacks.p[s].loc;
		if (!w->first_of_loc[loc])
			add_location(w, loc);
		uint32_t first = w->first_of_loc[loc] - 1;
		for (uint32_t i = 0; i < nr_frames_of(w, loc); i++)
			vec_push(&w->path, w->loc_frames.p[first + i]);
	}
	if (!stack)
		vec_push(&w->path, shared_frame(w, "[no stack]", 0));
}

/* ---- threads ------------------------------------------------------------------------------- */

static int by_weight(const void *x, const void *y)
{
	const struct thread *a = x;
	const struct thread *b = y;
	return COMPARE(b->is_all, a->is_all)
		       ?: COMPARE(b->weight, a->weight)
		       ?: COMPARE(a->task, b->task);
}

static void collect_threads(struct speedscope_writer *w)
{
	CLEANUP(free_p) uint32_t *thread_of = xcalloc(w->p->tasks.n, sizeof(*thread_of));
	vec_push(&w->threads, (struct thread){.is_all = true});
	for (uint32_t i = 0; i < w->t->n; i++) {
		task_id task = w->t->task[i];
		uint64_t weight = weight_of(w->t, i);
		if (!weight)
			continue;
		if (!thread_of[task]) {
			vec_push(&w->threads, (struct thread){.task = task});
			thread_of[task] = (uint32_t)w->threads.n;
		}
		struct thread *t = &w->threads.p[thread_of[task] - 1];
		t->weight += weight;
		vec_push(&t->rows, i);
		w->threads.p[0].weight += weight;
		vec_push(&w->threads.p[0].rows, i);
		set_path(w, w->t->stack[i]); /* collects all frames, which come first in the file */
	}
	if (w->threads.n == 2) { /* one thread is all of them */
		vec_release(&w->threads.p[0].rows);
		w->threads.p[0] = w->threads.p[1];
		w->threads.n = 1;
	}
	qsort(w->threads.p, w->threads.n, sizeof(*w->threads.p), by_weight);
}

/* ---- the file ------------------------------------------------------------------------------ */

static void add_frames(struct speedscope_writer *w)
{
	struct json *j = &w->j;
	json_put_obj(j, "shared");
	json_put_arr(j, "frames");
	vec_foreach(f, &w->frames) {
		json_obj(j);
		json_put_str(j, "name", f->name);
		if (f->file)
			json_put_sv(j, "file", profile_sv(w->p, f->file));
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static const char *unit_of(const struct table *t)
{
	switch (t->columns[t->weight_column].unit) {
	case UNIT_NS:
		return "nanoseconds";
	case UNIT_BYTES:
		return "bytes";
	case UNIT_COUNT:
		return "none";
	}
	return "none";
}

/* "redis 12/13: cpu-clock", without what is not known; "redis 12/12 (main): cpu-clock". */
static void add_thread_name(struct buf *to, const struct speedscope_writer *w,
			    const struct thread *t)
{
	task_id id = t->task;
	const struct task *task = &w->p->tasks.p[id];
	if (t->is_all) {
		buf_addf(to, "all threads: %s", profile_text(w->p, w->t->event));
		return;
	}
	buf_add_str(to, profile_text(w->p, task->comm));
	if (id && (task->pid >= 0 || task->tid >= 0))
		buf_addf(to, " %d/%d%s", task->pid, task->tid,
			 task->pid == task->tid ? " (main)" : "");
	buf_addf(to, "%s%s", to->n ? ": " : "", profile_text(w->p, w->t->event));
}

static int add_thread(struct speedscope_writer *w, const struct thread *t, struct err *err)
{
	struct json *j = &w->j;
	CLEANUP(buf_release) struct buf name = {0};
	add_thread_name(&name, w, t);
	json_obj(j);
	json_put_str(j, "type", "sampled");
	json_put_str(j, "name", buf_str(&name));
	json_put_str(j, "unit", unit_of(w->t));
	json_put_u64(j, "startValue", 0);
	json_put_u64(j, "endValue", t->weight);
	json_put_arr(j, "samples");
	vec_foreach(row, &t->rows) {
		set_path(w, w->t->stack[*row]);
		json_arr(j);
		for (size_t i = w->path.n; i--;)
			json_u64(j, w->path.p[i]);
		json_end(j);
		TRY(format_spill(w->to, err));
	}
	json_end(j);
	json_put_arr(j, "weights");
	vec_foreach(row, &t->rows) {
		json_u64(j, weight_of(w->t, *row));
		TRY(format_spill(w->to, err));
	}
	json_end(j);
	json_end(j);
	return 0;
}

int speedscope_write(struct format_output *to, const struct profile *p,
		     const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release)
	struct speedscope_writer w = {.p = p, .to = to, .j = json_to(&to->buf)};
	TRY(format_pick_table(p, options->event, &w.t, err));
	w.first_of_loc = xcalloc(p->locations.n, sizeof(*w.first_of_loc));
	if (w.t)
		collect_threads(&w);
	struct json *j = &w.j;
	json_obj(j);
	json_put_str(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_put_str(j, "exporter", "assay");
	json_put_u64(j, "activeProfileIndex", 0);
	add_frames(&w);
	json_put_arr(j, "profiles");
	vec_foreach(t, &w.threads)
		TRY(add_thread(&w, t, err));
	json_end(j);
	json_end(j);
	buf_add_ch(&to->buf, '\n');
	return 0;
}
