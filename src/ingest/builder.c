/* Events -> profile: threads, mappings, rows; see builder.h. Stacks: builder_stack.c. */
#include "base/base.h"
#include "ingest/builder.h"

#include "base/mem.h"
#include "ingest/builder_priv.h"

struct builder *builder_new(struct profile *p, const struct builder_options *options)
{
	struct builder *b = xcalloc(1, sizeof(*b));
	b->p = p;
	b->options = *options;
	b->modules = (struct modules){.p = p,
				      .files = options->files,
				      .cache_dir = options->cache_dir,
				      .needs_tables = true};
	b->walker = walker_new();
	b->cache = xcalloc(LOC_CACHE_SIZE, sizeof(*b->cache));
	b->chains = xcalloc(CHAIN_SETS * CHAIN_WAYS, sizeof(*b->chains));
	for (size_t i = 0; i < LOC_CACHE_SIZE; i++)
		b->cache[i].key = UINT32_MAX;
	return b;
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	walker_free(b->walker);
	spaces_release(&b->spaces);
	modules_release(&b->modules);
	map_release(&b->thread_by_tid);
	map_release(&b->nr_alive);
	map_release(&b->listed);
	vec_release(&b->threads);
	vec_release(&b->table_of_spec);
	vec_release(&b->scratch);
	refs_release(&b->refs);
	free(b->cache);
	free(b->chains);
	for (size_t i = 0; i < PATHS; i++) {
		vec_release(&b->paths[i].locs);
		vec_release(&b->paths[i].nodes);
		vec_release(&b->paths[i].addrs);
	}
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

const struct spec_table *builder_table_of(const struct builder *b, uint32_t spec)
{
	const struct spec_table *t = spec < b->table_of_spec.n ? &b->table_of_spec.p[spec] : NULL;
	return t && t->table ? t : NULL;
}

struct table builder_table_shape(struct profile *p, const char *event, double freq_hz)
{
	bool is_clock = !strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10);
	return (struct table){.event = profile_cstr(p, event),
			      .time_kind = TABLE_TIME_INSTANT,
			      .nr_columns = 2,
			      .freq_hz = freq_hz,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, is_clock ? "time" : "period"),
					   .unit = is_clock ? UNIT_NS : UNIT_COUNT,
					   .is_estimate = true}}};
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

/* Whether it was the last one that is known of its process. */
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
	if (pid > 0 && t->pid != pid) { /* a recycled number */
		(void)count_dead(b, t);
		*t = (struct thread){.pid = pid, .comm = t->comm, .first_ns = b->now_ns};
	}
	if (!t->is_alive)
		count_alive(b, t);
	return t;
}

/* A number that lives twice under one name is one task, from its first birth to its last end. */
static task_id task_for(struct builder *b, const struct thread *t, int32_t tid, str_id comm)
{
	task_id id = profile_task(b->p, t->pid, tid, comm, t->first_ns);
	b->p->tasks.p[id].end_ns = t->end_ns;
	return id;
}

task_id builder_task(struct builder *b, const struct event *ev)
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

task_id builder_past_task(struct builder *b, int32_t pid, int32_t tid, uint64_t time_ns)
{
	const uint32_t *idx = map_get(&b->thread_by_tid, (uint32_t)tid);
	const struct thread *t = idx ? &b->threads.p[*idx] : NULL;
	if (t && t->pid == pid)
		return t->task ? t->task : task_for(b, t, tid, t->comm);
	return profile_task(b->p, pid, tid, tid ? 0 : profile_cstr(b->p, "swapper"), time_ns);
}

/* ---- what mappings mean now is told ------------------------------------------------------- */

/* A process tells hundreds of mappings at once: its watcher hears of them once. */
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

/* ---- births, names, deaths ---------------------------------------------------------------- */

static void on_thread_comm(struct builder *b, const struct event *ev)
{
	struct thread *t = thread_of(b, ev->pid, ev->tid);
	t->comm = profile_cstr(b->p, ev->comm.name);
	if (t->task) /* the old name had rows; without, all of its life goes to the new one */
		t->first_ns = ev->time_ns;
	t->task = 0;
	if (ev->comm.is_exec) { /* the other threads are gone, whatever was told of them */
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
	/* A first thread may end long before the others: they go on in the same mappings. */
	bool is_last = count_dead(b, t);
	const uint32_t *first = map_get(&b->thread_by_tid, (uint32_t)ev->pid);
	if (is_last && first && !b->threads.p[*first].is_alive) {
		spaces_exit(&b->spaces, ev->pid);
		(void)map_del(&b->listed, (uint32_t)ev->pid);
		note_change(b, ev->pid);
		if (b->changed_pid) /* who watches it must not look at it any more */
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

static void on_map(struct builder *b, const struct event *ev)
{
	const struct event_map *m = &ev->map;
	if (m->is_kernel || !m->is_exec || !m->len || m->start + m->len < m->start)
		return;
	if (!strcmp(m->path, "[vsyscall]"))
		return;
	struct ingest_module *im = modules_for_map(&b->modules, ev->pid, m);
	struct space *sp = spaces_get(&b->spaces, ev->pid);
	struct space_map map = {.start = m->start,
				.end = m->start + m->len,
				.pgoff = m->pgoff,
				.module = &im->unwind};
	if (im->segments)
		map.bias = module_bias(im, m->start, m->pgoff);
	uint32_t before = sp->generation;
	space_add(&b->spaces, sp, &map);
	/* A JIT that changes its pages' rights tells the same mapping again and again. */
	if (sp->generation != before)
		note_change(b, ev->pid);
	if (sp->generation != before && map_get(&b->listed, (uint32_t)ev->pid))
		list_mapping(b, ev, &map);
}

/*
 * The profile gets a process's mappings with its first sample: most children of a build or a
 * shell end, or execute something else, before they have one.
 */
void builder_list_mappings(struct builder *b, const struct event *ev)
{
	bool is_new;
	(void)map_put(&b->listed, (uint32_t)ev->pid, &is_new);
	const struct space *sp = is_new ? spaces_find(&b->spaces, ev->pid) : NULL;
	for (size_t i = 0; sp && i < sp->maps.n; i++)
		list_mapping(b, ev, &sp->maps.p[i]);
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_sample(struct builder *b, const struct event *ev)
{
	const struct event_sample *s = &ev->sample;
	struct losses *losses = &b->p->losses;
	losses->nr[LOSS_SEEN]++;
	const struct spec_table *t = builder_table_of(b, s->spec);
	if (!t) {
		losses->nr[LOSS_FILTERED]++;
		return;
	}
	builder_list_mappings(b, ev);
	enum loss_kind loss;
	stack_id stack = s->user_ref || s->kernel_ref ? builder_ref_stack(b, ev, &loss)
						      : builder_sample_stack(b, ev, &loss);
	if (loss != LOSS_NR)
		losses->nr[loss]++;
	int64_t values[TABLE_COLUMNS_MAX] = {1, (int64_t)s->period};
	if (t->bytes_each) {
		values[0] = (int64_t)s->period;
		values[1] = (int64_t)s->period * t->bytes_each;
		struct tag none = {.log2_ns = LOG2_NONE, .syscall = -1};
		profile_tagged_sample(b->p, t->table - 1, ev->time_ns, stack, builder_task(b, ev),
				      ev->cpu, profile_tag(b->p, &none), values);
	} else {
		profile_sample(b->p, t->table - 1, ev->time_ns, stack, builder_task(b, ev), ev->cpu,
			       values);
	}
	losses->nr[LOSS_WRITTEN]++;
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	(void)err; /* what an event says cannot fail, it is counted */
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
		b->p->losses.nr[LOSS_LOST] += ev->lost.nr;
		b->p->losses.nr[LOSS_SEEN] += ev->lost.nr;
		break;
	case EVENT_THROTTLE:
		b->p->losses.nr[LOSS_THROTTLED]++;
		break;
	case EVENT_MARK:
		profile_mark(b->p, ev->time_ns, ev->mark.text);
		break;
	case EVENT_STACK:
		builder_on_stack(b, ev);
		break;
	case EVENT_AGGREGATE:
		builder_on_aggregate(b, ev);
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
