/* Builds a profile from events: threads, mappings, rows; see builder.h. Stacks: stackbuild.c. */
#include "base/base.h"
#include "ingest/builder.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ingest/invoked.h"
#include "ingest/stackbuild.h"
#include "ingest/stackrefs.h"
#include "model/eventunit.h"
#include "unwind/space.h"

#define NAMES_AGAIN_MAX 16 /* of a thread */

struct thread {
	int32_t pid;
	str_id comm;
	task_id task;      /* 0 = not needed yet */
	task_id last_task; /* the one before, or this one */
	uint32_t nr_again; /* names that it got again */
	uint64_t first_ns; /* first event or fork */
	uint64_t end_ns;   /* 0 = has not exited */
	bool is_alive;
};

/* The table that rows of one of the source's events go to. */
struct spec_table {
	uint32_t table;      /* + 1, 0 = none */
	uint32_t bytes_each; /* bytes per counted event; 0: samples are of time */
};

/* An aggregated row whose stacks have not arrived yet. */
struct pending_row {
	uint32_t spec;
	int16_t cpu;
	bool is_tried;
	uint64_t time_ns;
	task_id task;
	uint64_t user_ref;
	uint64_t kernel_ref;
	uint64_t other_ref;
	uint64_t direct_ref;
	struct tag tag; /* without other_stack and direct_stack */
	int64_t values[TABLE_COLUMNS_MAX];
};

struct builder {
	struct profile *p;
	struct builder_options options;
	struct modules modules;
	struct invoked invoked;
	struct spaces spaces;
	struct stackbuild *stackbuild;
	struct stackrefs refs;
	struct map thread_by_tid; /* tid -> index */
	struct map nr_alive;      /* pid -> known threads that have not exited */
	struct map listed;        /* pids whose mappings are in the profile */
	int32_t last_tid;         /* cache of the last lookup: tid, index; valid if threads.n */
	uint32_t last_thread;
	VEC(struct thread) threads;
	VEC(struct spec_table) table_of_spec;
	VEC(struct pending_row) pending;
	int32_t changed_pid; /* its mapping changes were not reported yet; 0 = none */
	uint64_t last_ns;
	uint64_t now_ns; /* of the current event */
};

struct builder *builder_new(struct profile *p, const struct builder_options *options)
{
	struct builder *b = xcalloc(1, sizeof(*b));
	b->p = p;
	b->options = *options;
	b->modules = (struct modules){.p = p,
				      .files = options->files,
				      .cache_dir = options->cache_dir,
				      .needs_tables = true};
	b->stackbuild = stackbuild_new(
		&(struct stackbuild_options){.p = p,
					     .modules = &b->modules,
					     .spaces = &b->spaces,
					     .wants_more_stack = options->wants_more_stack,
					     .ctx = options->ctx});
	b->refs = (struct stackrefs){
		.p = p, .spaces = &b->spaces, .stackbuild = b->stackbuild, .modules = &b->modules};
	return b;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	stackbuild_free(b->stackbuild);
	stackrefs_release(&b->refs);
	spaces_release(&b->spaces);
	modules_release(&b->modules);
	invoked_release(&b->invoked);
	map_release(&b->thread_by_tid);
	map_release(&b->nr_alive);
	map_release(&b->listed);
	vec_release(&b->threads);
	vec_release(&b->table_of_spec);
	vec_release(&b->pending);
	free(b);
}

void builder_set_table(struct builder *b, uint32_t spec, uint32_t table)
{
	ASSERT(spec < 65536);
	while (b->table_of_spec.n <= spec)
		vec_push(&b->table_of_spec, (struct spec_table){0});
	b->table_of_spec.p[spec] = (struct spec_table){.table = table + 1};
}

void builder_set_bytes_table(struct builder *b, uint32_t spec, uint32_t table, uint32_t bytes_each)
{
	builder_set_table(b, spec, table);
	b->table_of_spec.p[spec].bytes_each = bytes_each;
}

static const struct spec_table *table_of(const struct builder *b, uint32_t spec)
{
	const struct spec_table *t = spec < b->table_of_spec.n ? &b->table_of_spec.p[spec] : NULL;
	return t && t->table ? t : NULL;
}

struct table builder_table_shape(struct profile *p, const char *event, double freq_hz)
{
	enum unit unit = eventunit_of(sv_from_str(event));
	struct table shape = {
		.event = profile_cstr(p, event),
		.time_kind = TABLE_TIME_INSTANT,
		.nr_columns = 2,
		.freq_hz = freq_hz,
		.columns = {{.name = profile_cstr(p, "samples")},
			    {.name = profile_cstr(p, unit == UNIT_NS ? "time" : "period"),
			     .unit = unit,
			     .is_estimate = true}}};
	eventunit_set_amount(p, &shape);
	return shape;
}

struct modules *builder_modules(struct builder *b)
{
	return &b->modules;
}

uint64_t builder_last_ns(const struct builder *b)
{
	return b->last_ns;
}

/* ---- threads ----------------------------------------------------------------------------- */

static void count_alive(struct builder *b, struct thread *t)
{
	t->is_alive = true;
	++*map_put(&b->nr_alive, (uint32_t)t->pid, NULL);
}

/* Returns whether it was the last known thread of its process. */
static bool count_dead(struct builder *b, struct thread *t)
{
	uint32_t *nr = t->is_alive ? map_get(&b->nr_alive, (uint32_t)t->pid) : NULL;
	t->is_alive = false;
	if (nr && *nr > 1) {
		--*nr;
		return false;
	}
	(void)map_del(&b->nr_alive, (uint32_t)t->pid);
	return true;
}

static struct thread *thread_of(struct builder *b, int32_t pid, int32_t tid)
{
	if (tid != b->last_tid || !b->threads.n) {
		bool is_new;
		uint32_t *idx = map_put(&b->thread_by_tid, (uint32_t)tid, &is_new);
		if (is_new) {
			*idx = (uint32_t)b->threads.n;
			vec_push(&b->threads, (struct thread){.pid = pid, .first_ns = b->now_ns});
		}
		b->last_tid = tid;
		b->last_thread = *idx;
	}
	struct thread *t = &b->threads.p[b->last_thread];
	if (pid > 0 && t->pid != pid) { /* the tid was reused */
		(void)count_dead(b, t);
		*t = (struct thread){.pid = pid, .comm = t->comm, .first_ns = b->now_ns};
	}
	if (!t->is_alive)
		count_alive(b, t);
	return t;
}

/*
 * A tid that is reused under the same name is one task, from the first start to the last exit. So is a name
 * that a thread gets for the hundredth time: programs rename their threads with each job.
 */
static task_id task_for(struct builder *b, struct thread *t, int32_t tid, str_id comm)
{
	task_id id = profile_task(b->p, t->pid, tid, comm, t->first_ns);
	if (id < t->last_task && t->nr_again++ < NAMES_AGAIN_MAX)
		id = profile_task_again(b->p, id, t->first_ns);
	b->p->tasks.p[id].end_ns = t->end_ns;
	return t->last_task = id;
}

static task_id task_of(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	if (!t->task) {
		str_id comm = t->comm;
		if (!comm && ev->tid == 0)
			comm = profile_cstr(b->p, "swapper");
		t->task = task_for(b, t, ev->tid, comm);
	}
	return t->task;
}

bool builder_knows_thread(const struct builder *b, int32_t pid, int32_t tid)
{
	const uint32_t *idx = map_get(&b->thread_by_tid, (uint32_t)tid);
	return idx && b->threads.p[*idx].pid == pid;
}

/* The task of a thread that may have exited since; does not change the known threads. */
static task_id past_task(struct builder *b, int32_t pid, int32_t tid, uint64_t time_ns)
{
	const uint32_t *idx = map_get(&b->thread_by_tid, (uint32_t)tid);
	struct thread *t = idx ? &b->threads.p[*idx] : NULL;
	if (t && t->pid == pid)
		return t->task ? t->task : task_for(b, t, tid, t->comm);
	return profile_task(b->p, pid, tid, tid ? 0 : profile_cstr(b->p, "swapper"), time_ns);
}

/* ---- reporting changed mappings ----------------------------------------------------------- */

/* Mappings come in runs of hundreds: space_changed is called once per run. */
void builder_emit_spaces(struct builder *b)
{
	int32_t pid = b->changed_pid;
	b->changed_pid = 0;
	if (pid)
		b->options.space_changed(b->options.ctx, pid, spaces_find(&b->spaces, pid));
}

static void note_change(struct builder *b, int32_t pid)
{
	if (!b->options.space_changed)
		return;
	if (b->changed_pid != pid)
		builder_emit_spaces(b);
	b->changed_pid = pid;
}

/* ---- thread events ------------------------------------------------------------------------ */

static void on_thread_comm(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->comm = profile_cstr(b->p, ev->comm.name);
	if (t->task) /* rows so far keep the old name; a thread without rows gets the new one */
		t->first_ns = ev->time_ns;
	t->task = 0;
	if (ev->comm.is_exec) { /* execve ends all other threads */
		*map_put(&b->nr_alive, (uint32_t)ev->pid, NULL) = 1;
		spaces_exec(&b->spaces, ev->pid);
		(void)map_del(&b->listed, (uint32_t)ev->pid);
		note_change(b, ev->pid);
	}
}

static void on_thread_fork(struct builder *b, const struct event *ev)
{
	struct thread parent = *thread_of(b, ev->fork.ppid, ev->fork.ptid);
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->comm = parent.comm;
	t->task = 0;
	t->first_ns = ev->time_ns;
	t->end_ns = 0;
	if (ev->pid == ev->fork.ppid)
		return;
	(void)map_del(&b->listed, (uint32_t)ev->pid);
	if (ev->fork.is_synthesized)
		spaces_exec(&b->spaces, ev->pid);
	else
		spaces_fork(&b->spaces, ev->pid, ev->fork.ppid);
	note_change(b, ev->pid);
}

static void on_thread_exit(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->end_ns = ev->time_ns;
	if (t->task)
		b->p->tasks.p[t->task].end_ns = ev->time_ns;
	t->task = 0;
	/* The main thread may exit long before the others, which keep the mappings. */
	bool is_last = count_dead(b, t);
	const uint32_t *first = map_get(&b->thread_by_tid, (uint32_t)ev->pid);
	if (is_last && first && !b->threads.p[*first].is_alive) {
		spaces_exit(&b->spaces, ev->pid);
		(void)map_del(&b->listed, (uint32_t)ev->pid);
		note_change(b, ev->pid);
		if (b->changed_pid) /* at once: the space is freed */
			builder_emit_spaces(b);
	}
}

/* ---- mappings ---------------------------------------------------------------------------- */

static void list_mapping(struct builder *b, const struct event *ev, const struct space_map *m)
{
	vec_push(&b->p->mappings, (struct mapping){.module = m->module->id,
						   .pid = ev->pid,
						   .start = m->start,
						   .len = m->end - m->start,
						   .pgoff = m->pgoff,
						   .from_ns = ev->time_ns,
						   .to_ns = UINT64_MAX});
}

/* The mapping of a program is called by the name by which the program was started. */
static const char *path_of_map(struct builder *b, const struct event *ev)
{
	const uint32_t *main_thread = map_get(&b->thread_by_tid, (uint32_t)ev->pid);
	const struct thread *t = main_thread ? &b->threads.p[*main_thread] : NULL;
	if (!t || t->pid != ev->pid || !b->options.files)
		return ev->map.path;
	return invoked_path(&b->invoked, b->options.files, ev->pid, profile_text(b->p, t->comm),
			    ev->map.path);
}

static void on_map(struct builder *b, const struct event *ev)
{
	const struct event_map *m = &ev->map;
	if (m->is_kernel && m->is_symbol)
		kernelcode_add(&b->modules.kernelcode, m->start, m->len, m->path);
	if (m->is_kernel || !m->is_exec || !m->len || m->start + m->len < m->start)
		return;
	if (!strcmp(m->path, "[vsyscall]"))
		return;
	struct event_map named = *m;
	named.path = path_of_map(b, ev);
	struct ingest_module *im = modules_for_map(&b->modules, ev->pid, &named);
	struct space *sp = spaces_get(&b->spaces, ev->pid);
	struct space_map map = {.start = m->start,
				.end = m->start + m->len,
				.pgoff = m->pgoff,
				.module = &im->unwind};
	if (im->segments)
		map.bias = module_bias(im, m->start, m->pgoff);
	uint32_t before = sp->generation;
	space_add(&b->spaces, sp, &map);
	/* A JIT that changes its pages' protection causes many events for the same mapping. */
	if (sp->generation != before)
		note_change(b, ev->pid);
	if (sp->generation != before && map_get(&b->listed, (uint32_t)ev->pid))
		list_mapping(b, ev, &map);
}

/*
 * Adds a process's mappings to the profile at its first sample: most children of a build or a shell
 * exit or call execve before they have one.
 */
static void list_mappings(struct builder *b, const struct event *ev)
{
	bool is_new;
	(void)map_put(&b->listed, (uint32_t)ev->pid, &is_new);
	const struct space *sp = is_new ? spaces_find(&b->spaces, ev->pid) : NULL;
	for (size_t i = 0; sp && i < sp->maps.n; i++)
		list_mapping(b, ev, &sp->maps.p[i]);
}

static uint64_t bias_of(const void *ctx, const struct space_map *m)
{
	const struct ingest_module *im = ctx;
	return im->segments ? module_bias(im, m->start, m->pgoff) : 0;
}

/* Its mappings were used without rules until now. */
static void on_loaded(void *ctx, struct ingest_module *im)
{
	struct builder *b = ctx;
	size_t it = 0;
	uint64_t pid;
	uint32_t idx;
	while (map_next(&b->spaces.by_pid, &it, &pid, &idx)) {
		struct space *sp = b->spaces.list.p[idx];
		if (space_set_bias(&b->spaces, sp, &im->unwind, bias_of, im) &&
		    b->options.space_changed)
			b->options.space_changed(b->options.ctx, (int32_t)pid, sp);
	}
}

void builder_retry_modules(struct builder *b)
{
	if (b->modules.loading.n)
		modules_retry(&b->modules, on_loaded, b);
}

/* ---- aggregated rows ---------------------------------------------------------------------- */

static bool has_stacks(const struct builder *b, const struct pending_row *row)
{
	return stackrefs_has_user(&b->refs, row->user_ref) &&
	       stackrefs_has_user(&b->refs, row->other_ref) &&
	       stackrefs_has_user(&b->refs, row->direct_ref) &&
	       stackrefs_has_kernel(&b->refs, row->kernel_ref);
}

static void write_row(struct builder *b, const struct pending_row *row)
{
	const struct spec_table *t = table_of(b, row->spec);
	struct losses *losses = &b->p->losses;
	uint64_t nr = (uint64_t)MAX(row->values[0], (int64_t)0);
	enum loss_kind loss;
	enum loss_kind other_loss;
	stack_id stack = stackrefs_stack(&b->refs, row->user_ref, row->kernel_ref, &loss);
	struct tag tag = row->tag;
	tag.other_stack = stackrefs_user(&b->refs, row->other_ref, &other_loss);
	tag.direct_stack = stackrefs_user(&b->refs, row->direct_ref, &other_loss);
	if (b->p->tables.p[t->table - 1].has_tags)
		profile_tagged_sample(b->p, t->table - 1, row->time_ns, stack, row->task, row->cpu,
				      profile_tag(b->p, &tag), row->values);
	else
		profile_sample(b->p, t->table - 1, row->time_ns, stack, row->task, row->cpu,
			       row->values);
	if (table_kind(b->p->tables.p[t->table - 1].id)->is_derived)
		return;
	losses->nr[LOSS_SEEN] += nr;
	losses->nr[LOSS_WRITTEN] += nr;
	if (loss != LOSS_NR)
		losses->nr[loss] += nr;
}

static str_id text_of(struct builder *b, const char *text)
{
	return text ? profile_cstr(b->p, text) : 0;
}

static void on_aggregate(struct builder *b, const struct event *ev)
{
	const struct event_aggregate *y = &ev->aggregate;
	const struct spec_table *t = table_of(b, y->spec);
	if (!t)
		return;
	struct pending_row row = {
		.spec = y->spec,
		.cpu = (int16_t)ev->cpu,
		.time_ns = ev->time_ns,
		.task = past_task(b, ev->pid, ev->tid, ev->time_ns),
		.user_ref = y->user_ref,
		.kernel_ref = y->kernel_ref,
		.other_ref = y->other_ref,
		.direct_ref = y->direct_ref,
		.tag = {.reason = y->reason,
			.evidence = y->evidence,
			.log2_ns = y->log2_ns,
			.size_class = y->size_class,
			.syscall = y->syscall,
			.object = text_of(b, y->object),
			.detail = text_of(b, y->detail),
			.other = y->other_tid
					 ? past_task(b, y->other_pid, y->other_tid, ev->time_ns)
					 : 0,
			.direct = y->direct_tid
					  ? past_task(b, y->direct_pid, y->direct_tid, ev->time_ns)
					  : 0},
	};
	memcpy(row.values, y->values,
	       b->p->tables.p[t->table - 1].nr_columns * sizeof(*row.values));
	if (has_stacks(b, &row))
		write_row(b, &row);
	else
		vec_push(&b->pending, row);
}

/* Adds pending rows whose stacks have arrived, and those that were pending at the last call. */
static void resolve_rows(struct builder *b, bool is_last)
{
	size_t kept = 0;
	for (size_t i = 0; i < b->pending.n; i++) {
		struct pending_row row = b->pending.p[i];
		if (is_last || row.is_tried || has_stacks(b, &row)) {
			write_row(b, &row);
			continue;
		}
		row.is_tried = true;
		b->pending.p[kept++] = row;
	}
	b->pending.n = kept;
}

void builder_resolve_pending(struct builder *b)
{
	resolve_rows(b, false);
}

void builder_resolve_all(struct builder *b)
{
	resolve_rows(b, true);
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_sample(struct builder *b, const struct event *ev)
{
	const struct event_sample *s = &ev->sample;
	struct losses *losses = &b->p->losses;
	losses->nr[LOSS_SEEN]++;
	const struct spec_table *t = table_of(b, s->spec);
	if (!t) {
		losses->nr[LOSS_FILTERED]++;
		return;
	}
	list_mappings(b, ev);
	enum loss_kind loss;
	stack_id stack = s->user_ref || s->kernel_ref ? stackrefs_sample(&b->refs, ev, &loss)
						      : stackbuild_sample(b->stackbuild, ev, &loss);
	if (loss != LOSS_NR)
		losses->nr[loss]++;
	int64_t values[TABLE_COLUMNS_MAX] = {1, (int64_t)s->period};
	if (t->bytes_each) {
		values[0] = (int64_t)s->period;
		values[1] = (int64_t)s->period * t->bytes_each;
		struct tag none = {.log2_ns = LOG2_NONE, .syscall = -1};
		profile_tagged_sample(b->p, t->table - 1, ev->time_ns, stack, task_of(b, ev),
				      ev->cpu, profile_tag(b->p, &none), values);
	} else {
		profile_sample(b->p, t->table - 1, ev->time_ns, stack, task_of(b, ev), ev->cpu,
			       values);
	}
	losses->nr[LOSS_WRITTEN]++;
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	(void)err; /* malformed events are counted, not errors */
	struct builder *b = ctx;
	b->now_ns = ev->time_ns;
	if (ev->time_ns > b->last_ns)
		b->last_ns = ev->time_ns;
	if (UNLIKELY(b->changed_pid) && ev->kind != EVENT_MAP)
		builder_emit_spaces(b);
	switch (ev->kind) {
	case EVENT_SAMPLE:
		on_sample(b, ev);
		break;
	case EVENT_MAP:
		on_map(b, ev);
		break;
	case EVENT_COMM:
		on_thread_comm(b, ev);
		break;
	case EVENT_FORK:
		on_thread_fork(b, ev);
		break;
	case EVENT_EXIT:
		on_thread_exit(b, ev);
		break;
	case EVENT_LOST:
		losses_add(&b->p->losses, LOSS_LOST, ev->lost.nr);
		losses_add(&b->p->losses, LOSS_SEEN, ev->lost.nr);
		break;
	case EVENT_THROTTLE:
		b->p->losses.nr[LOSS_THROTTLED]++;
		break;
	case EVENT_MARK:
		profile_mark(b->p, ev->time_ns, ev->mark.text);
		break;
	case EVENT_STACK:
		if (!ev->stack.is_kernel && stackrefs_needs(&b->refs, &ev->stack))
			list_mappings(b, ev);
		stackrefs_add(&b->refs, ev);
		break;
	case EVENT_PYCODE:
		stackrefs_add_pycode(&b->refs, ev);
		break;
	case EVENT_PYSTACK:
		stackrefs_add_pystack(&b->refs, ev);
		break;
	case EVENT_AGGREGATE:
		on_aggregate(b, ev);
		break;
	case EVENT_SWITCH:
		break;
	}
	return 0;
}

struct event_sink builder_sink(struct builder *b)
{
	return (struct event_sink){on_event, b};
}
