/* Reads perf.data: passes the reader's events to the builder; see load.h. */
#include "base/base.h"
#include "session/load_perfdata.h"

#include <sys/utsname.h>

#include "base/map.h"
#include "base/mem.h"
#include "format/perf/perfdata.h"
#include "ingest/builder.h"
#include "ingest/symbolworker.h"
#include "ingest/tailframes.h"
#include "session/module_files.h"

#define ROOM_EVENTS  64 /* the size of the profile is checked after so many events */
#define SAMPLE_BYTES 64 /* a sample of perf has at least so many, with a short chain */
#define ROWS_AT_ONCE ((uint64_t)1 << 22)

struct loading {
	struct profile *p;
	struct builder *builder;
	struct perfdata_info info;
	size_t nr_tables;
	uint64_t nr_stored; /* size of the file, for format_check_room */
	uint64_t nr_events;
	struct kernel_identity kernel;
	struct event_sink sink;
};

static void loading_release(struct loading *l)
{
	perfdata_info_release(&l->info);
}

/* In pipe mode an event's attributes may come late, but before its first sample. */
static void add_tables(struct loading *l)
{
	for (; l->nr_tables < l->info.specs.n; l->nr_tables++) {
		const struct perfdata_spec *s = &l->info.specs.p[l->nr_tables];
		struct table shape = builder_table_shape(l->p, s->name, (double)s->freq_hz);
		if (s->is_period_ns)
			shape.columns[1].unit = UNIT_NS;
		uint32_t table = profile_table(l->p, &shape);
		if (!l->nr_tables) /* columns that grow are copied; room that nothing uses costs none */
			table_reserve(&l->p->tables.p[table],
				      MIN(l->nr_stored / SAMPLE_BYTES, ROWS_AT_ONCE));
		builder_set_table(l->builder, (uint32_t)l->nr_tables, table);
	}
}

/* perf names the kernel's map by a symbol, and has its address as the offset. */
static void note_kernel(struct loading *l, const struct event_map *m)
{
	struct sv path = sv_from_str(m->path);
	struct sv kernel = SV("[kernel.kallsyms]");
	struct kernel_identity *k = &l->kernel;
	if (!m->is_kernel || m->is_symbol || !sv_has_prefix(path, kernel))
		return;
	snprintf(k->symbol, sizeof(k->symbol), "%s", m->path + kernel.n);
	k->address = m->pgoff;
	k->nr_build_id = m->nr_build_id;
	memcpy(k->build_id, m->build_id, m->nr_build_id);
}

static bool is_this_kernel(const struct loading *l)
{
	CLEANUP(buf_release) struct buf notes = {0};
	struct utsname here;
	if (uname(&here) || !l->info.os_release || strcmp(here.release, l->info.os_release) != 0)
		return false;
	kernelsyms_notes(&notes);
	return !kernelsyms_is_other_build(buf_sv(&notes), &l->kernel);
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	struct loading *l = ctx;
	if (l->nr_tables < l->info.specs.n)
		add_tables(l);
	if (ev->kind == EVENT_MAP)
		note_kernel(l, &ev->map);
	TRY(++l->nr_events % ROOM_EVENTS ? 0 : format_check_room(l->nr_stored, l->p, 0, err));
	return l->sink.event(l->sink.ctx, ev, err);
}

static void add_fact(struct profile *p, enum fact_id id, const char *value)
{
	if (value && value[0])
		profile_fact(p, id, value);
}

static void add_facts(struct loading *l)
{
	const struct perfdata_info *info = &l->info;
	add_fact(l->p, FACT_COMMAND, info->cmdline);
	add_fact(l->p, FACT_HOST, info->hostname);
	add_fact(l->p, FACT_KERNEL, info->os_release);
	add_fact(l->p, FACT_CPU, info->cpu_desc);
	add_fact(l->p, FACT_RECORDER, "perf");
	if (info->problem)
		add_fact(l->p, FACT_PROBLEM, info->problem);
	l->p->start_ns = info->first_ns;
	l->p->end_ns = info->last_ns;
	if (info->wall_ns && info->clock_ns)
		l->p->wall_start_ns = info->wall_ns + (int64_t)(info->first_ns - info->clock_ns);
	l->p->is_incomplete = info->is_incomplete;
	struct losses *losses = &l->p->losses;
	losses->nr[LOSS_UNPARSED] += info->nr_unparsed;
	if (info->nr_lost_samples) { /* the exact number replaces the count of records */
		losses->nr[LOSS_SEEN] -= MIN(losses->nr[LOSS_SEEN], losses->nr[LOSS_LOST]);
		losses_add(losses, LOSS_SEEN, info->nr_lost_samples);
		losses->nr[LOSS_LOST] = info->nr_lost_samples;
	}
}

static const char *process_name(const struct profile *p, int32_t pid)
{
	const char *name = "";
	vec_foreach(t, &p->tasks)
		if (t->pid == pid && (t->tid == pid || !name[0]))
			name = profile_text(p, t->comm);
	return name;
}

/* perf stores its own command line, which names a process only by its number, or none. */
static void add_target(struct profile *p)
{
	CLEANUP(map_release) struct map nr_of = {0}; /* by pid */
	CLEANUP(free_p) uint32_t *nr_of_task = xcalloc(p->tasks.n, sizeof(*nr_of_task));
	uint32_t nr_all = 0;
	uint32_t nr_most = 0;
	int32_t most = 0;
	vec_foreach(t, &p->tables)
		for (size_t i = 0; i < t->n; i++)
			nr_of_task[t->task[i]]++;
	for (task_id t = 0; t < p->tasks.n; t++) {
		int32_t pid = p->tasks.p[t].pid;
		if (pid <= 0 || !nr_of_task[t])
			continue;
		uint32_t *nr = map_put(&nr_of, (uint32_t)pid, NULL);
		*nr += nr_of_task[t];
		nr_all += nr_of_task[t];
		if (*nr > nr_most) {
			nr_most = *nr;
			most = pid;
		}
	}
	const char *name = process_name(p, most);
	if (name[0] && nr_most > nr_all / 2)
		profile_factf(p, FACT_TARGET, "%s%s", name, nr_most < nr_all ? " and others" : "");
}

typedef int (*read_fn)(const void *from, const struct event_sink *sink, struct perfdata_info *info,
		       struct err *err);

static int load(struct profile **ret_p, read_fn read_events, const void *from, uint64_t nr_stored,
		const struct load_options *options, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct stored_files files;
	stored_files_init(&files, options->symfs, options->cache_dir);
	CLEANUP(builder_free_p)
	struct builder *builder =
		builder_new(p, &(struct builder_options){.files = &files.access,
							 .cache_dir = options->cache_dir});
	CLEANUP(symbolworker_free_p)
	struct symbolworker *worker = symbolworker_new(
		p, builder_modules(builder), &files.access,
		&(struct symbolworker_options){.debug_dirs = options->debug_dirs,
					       .cache_dir = options->cache_dir,
					       .nr_debug_dirs = options->nr_debug_dirs,
					       .symbolizer_flags = options->symbolizer_flags,
					       .demangle_flags = options->demangle_flags});
	CLEANUP(loading_release)
	struct loading l = {
		.p = p, .builder = builder, .nr_stored = nr_stored, .sink = builder_sink(builder)};
	struct event_sink sink = {on_event, &l};
	TRY(read_events(from, &sink, &l.info, err));
	files.is_this_kernel = is_this_kernel(&l);
	files.kernel = l.kernel;
	add_tables(&l);
	add_facts(&l);
	add_target(p);
	symbolworker_submit(worker);
	symbolworker_submit_jit(worker);
	tailframes_add(p, builder_modules(builder), worker);
	*ret_p = TAKE(p);
	return 0;
}

static int read_fd(const void *from, const struct event_sink *sink, struct perfdata_info *info,
		   struct err *err)
{
	return perfdata_read_fd(*(const int *)from, sink, info, err);
}

static int read_bytes(const void *from, const struct event_sink *sink, struct perfdata_info *info,
		      struct err *err)
{
	const struct sv *bytes = from;
	return perfdata_read(bytes->p, bytes->n, sink, info, err);
}

int load_perfdata_fd(struct profile **ret_p, int fd, const struct load_options *options,
		     struct err *err)
{
	struct file_info info;
	TRY(file_info_fd(&info, fd, err));
	return load(ret_p, read_fd, &fd, info.nr_bytes, options, err);
}

int load_perfdata(struct profile **ret_p, const struct format_input *in,
		  const struct load_options *options, struct err *err)
{
	CLEANUP(buf_release) struct buf all = {0};
	struct sv bytes;
	TRY(format_input_text(in, &all, &bytes, err));
	return load(ret_p, read_bytes, &bytes, format_input_stored(in), options, err);
}
