/* perf.data writer: the file and its records in order of time; see perfdata.h. */
#include "base/base.h"
#include "format/perf/perfdata_writer.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "format/format.h"
#include "format/perf/perfdata_layout.h"
#include "model/eventunit.h"

#define FLUSH_BYTES    ((size_t)1 << 20)
#define ROUND_RECORDS  4096u /* between FINISHED_ROUNDs: limits the memory of readers */
#define SAMPLES_MAX    (20u * 1000 * 1000) /* limit for writing one record per sample */
#define NAME_ALIGN     64u
#define PROT_READ_EXEC 5u
#define MAP_PRIVATE_   2u
#define PATH_BYTES_MAX 4095u

#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

#if defined(__x86_64__)
#define HERE_ARCH "x86_64"
#else
#define HERE_ARCH "aarch64"
#endif

/* ---- records ------------------------------------------------------------------------------ */

static void add_header(struct pw_writer *w, uint32_t type, uint16_t misc, size_t n)
{
	ASSERT(n <= UINT16_MAX);
	buf_add_u32le(&w->data, type);
	buf_add_u16le(&w->data, misc);
	buf_add_u16le(&w->data, (uint16_t)n);
}

/* Adds a record other than a sample: body, string (NUL, padded to 8 bytes), sample_id_all. */
static void add_record(struct pw_writer *w, uint32_t type, uint16_t misc, struct sv body,
		       struct sv name, int32_t pid, int32_t tid)
{
	struct {
		int32_t pid, tid;
		uint64_t time_ns;
		int32_t cpu;
		uint32_t reserved;
		uint64_t id;
	} trailer = {pid, tid, w->now_ns, 0, 0, 1};
	size_t room = name.p ? (name.n + 8) & ~(size_t)7 : 0;
	add_header(w, type, misc, 8 + body.n + room + sizeof(trailer));
	buf_add_sv(&w->data, body);
	buf_add_sv(&w->data, name);
	buf_add_repeat(&w->data, 0, room - name.n);
	buf_add(&w->data, &trailer, sizeof(trailer));
}

#define BODY(b) sv_from((const char *)&(b), sizeof(b))

void pw_add_mmap(struct pw_writer *w, const struct pw_region *at, const struct module *m)
{
	struct sv path = profile_sv(w->p, m->path);
	if (!path.n)
		path = SV("[unknown]");
	path.n = MIN(path.n, PATH_BYTES_MAX);
	struct {
		int32_t pid, tid;
		uint64_t start, len, pgoff;
		uint32_t dev_major, dev_minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} body = {at->pid,          at->pid,     at->start,
		  at->len,          at->pgoff,   (uint32_t)(m->dev >> 32),
		  (uint32_t)m->dev, m->inode,    0,
		  PROT_READ_EXEC,   MAP_PRIVATE_};
	add_record(w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, BODY(body), path, at->pid, at->pid);
}

static void add_kernel_map(struct pw_writer *w)
{
	uint64_t low = UINT64_MAX;
	uint64_t high = 0;
	vec_foreach(l, &w->p->locations)
		if (w->p->modules.p[l->module].kind == MODULE_KERNEL) {
			low = MIN(low, l->offset);
			high = MAX(high, l->offset);
		}
	if (low > high)
		return;
	low &= ~(((uint64_t)2 << 20) - 1);
	/* Offset 0 instead of the address of _text: perf then uses kernel addresses unchanged. */
	struct {
		int32_t pid, tid;
		uint64_t start, len, pgoff;
	} body = {-1, 0, low, high - low + 1, 0};
	add_record(w, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, BODY(body),
		   SV("[kernel.kallsyms]_text"), -1, 0);
}

void pw_add_ksymbol(struct pw_writer *w, uint64_t start, uint32_t len, struct sv name)
{
	struct {
		uint64_t start;
		uint32_t len;
		uint16_t type, flags;
	} body = {start, len, PERF_RECORD_KSYMBOL_TYPE_OOL, 0};
	name.n = MIN(name.n, PATH_BYTES_MAX);
	add_record(w, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL, BODY(body), name, -1, 0);
}

static void add_comm(struct pw_writer *w, int32_t pid, int32_t tid, struct sv comm)
{
	int32_t ids[] = {pid, tid};
	comm.n = MIN(comm.n, 15); /* TASK_COMM_LEN; hotspot and perf expect no more */
	add_record(w, PERF_RECORD_COMM, 0, BODY(ids), comm, pid, tid);
}

static void add_task(struct pw_writer *w, uint32_t type, int32_t pid, int32_t tid)
{
	struct {
		int32_t pid, ppid, tid, ptid;
		uint64_t time_ns;
	} body = {pid, pid, tid, pid, w->now_ns};
	add_record(w, type, 0, BODY(body), (struct sv){0}, pid, tid);
}

static void add_sample(struct pw_writer *w, const struct pw_chain *c, int32_t tid, int32_t cpu,
		       uint64_t id, uint64_t period)
{
	struct {
		uint32_t type;
		uint16_t misc, size;
		uint64_t id, ip;
		int32_t pid, tid;
		uint64_t time_ns;
		int32_t cpu;
		uint32_t reserved;
		uint64_t period;
		uint64_t nr;
	} r = {PERF_RECORD_SAMPLE,
	       c->is_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
	       (uint16_t)(sizeof(r) + c->nr * 8),
	       id,
	       c->ip,
	       c->pid,
	       tid,
	       w->now_ns,
	       cpu,
	       0,
	       period,
	       c->nr};
	buf_add(&w->data, &r, sizeof(r));
	buf_add(&w->data, w->chain_text.p + c->first, c->nr * 8);
	w->stats.nr_samples++;
}

/* Adds a FINISHED_ROUND if due, and writes a full buffer to the file. */
static int flush(struct pw_writer *w, bool is_last, struct err *err)
{
	if (++w->nr_in_round >= ROUND_RECORDS || is_last) {
		add_header(w, PD_FINISHED_ROUND, 0, 8);
		w->nr_in_round = 0;
	}
	if (!w->out || (w->data.n < FLUSH_BYTES && !is_last))
		return 0;
	TRY(out_write(w->out, w->data.p, w->data.n, err));
	w->data_bytes += w->data.n;
	buf_clear(&w->data);
	return 0;
}

/* ---- records in order of time -------------------------------------------------------------- */

struct cursor {
	const struct table *table;
	uint64_t id;
	size_t row;
};

/* The start or end of a task or a mapping, sorted by time. */
struct change {
	uint64_t time_ns;
	uint32_t idx; /* of the task or mapping */
};

enum changes_kind { BIRTHS, MAPPINGS, DEATHS, CHANGES_NR };

struct changes {
	struct change *p;
	size_t n;
	size_t cap;
	size_t at; /* the next one to write */
};

struct timeline {
	struct changes lists[CHANGES_NR];
	VEC(struct cursor) cursors;
	uint64_t base_ns; /* base time for rows without one */
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a;
	const struct change *y = b;
	return COMPARE(x->time_ns, y->time_ns) ?: COMPARE(x->idx, y->idx);
}

static void timeline_init(struct timeline *t, const struct pw_writer *w)
{
	const struct profile *p = w->p;
	for (uint32_t i = 1; i < p->tasks.n; i++) {
		const struct task *task = &p->tasks.p[i];
		vec_push(&t->lists[BIRTHS], (struct change){task->start_ns, i});
		if (task->end_ns)
			vec_push(&t->lists[DEATHS], (struct change){task->end_ns, i});
	}
	for (uint32_t i = 0; i < p->mappings.n; i++) {
		enum module_kind kind = p->modules.p[p->mappings.p[i].module].kind;
		if (kind != MODULE_KERNEL && kind != MODULE_KMODULE)
			vec_push(&t->lists[MAPPINGS], (struct change){p->mappings.p[i].from_ns, i});
	}
	for (size_t i = 0; i < CHANGES_NR; i++)
		if (t->lists[i].n)
			qsort(t->lists[i].p, t->lists[i].n, sizeof(*t->lists[i].p), by_time);
	t->base_ns = p->start_ns ? p->start_ns : 1000000000;
	for (size_t i = 0; i < w->tables.n; i++)
		vec_push(&t->cursors,
			 (struct cursor){.table = &p->tables.p[w->tables.p[i]], .id = i + 1});
}

static void timeline_release(struct timeline *t)
{
	for (size_t i = 0; i < CHANGES_NR; i++)
		vec_release(&t->lists[i]);
	vec_release(&t->cursors);
}

/* Rows without a time are written one microsecond apart. */
static uint64_t row_time(const struct timeline *t, const struct cursor *c)
{
	uint64_t time_ns = c->table->time_ns ? c->table->time_ns[c->row] : 0;
	return time_ns ? time_ns : t->base_ns + c->row * 1000;
}

/* The pid of a task in the file. Not 0 or negative, which perf takes for idle or the kernel. */
static int32_t pid_of(struct pw_writer *w, const struct task *t)
{
	if (t->pid > 0)
		return t->pid;
	struct sv comm = profile_sv(w->p, t->comm);
	if (t->pid == 0 && sv_has_prefix(comm, SV("swapper")))
		return 0;
	bool is_new;
	uint32_t *pid = map_put(&w->pids, t->comm, &is_new);
	if (is_new) {
		uint32_t highest = 0;
		vec_foreach(other, &w->p->tasks)
			if (other->pid > (int32_t)highest)
				highest = (uint32_t)other->pid;
		*pid = (uint32_t)MIN((uint64_t)highest + w->pids.n, INT32_MAX);
	}
	return (int32_t)*pid;
}

static int32_t tid_of(const struct task *t, int32_t pid)
{
	return t->pid > 0 && t->tid ? t->tid : pid; /* -1: the thread had already exited */
}

static void write_birth(struct pw_writer *w, uint32_t task)
{
	const struct task *t = &w->p->tasks.p[task];
	int32_t pid = pid_of(w, t);
	int32_t tid = tid_of(t, pid);
	w->now_ns = t->start_ns;
	if (tid != pid && t->start_ns)
		add_task(w, PERF_RECORD_FORK, pid, tid);
	struct sv comm = profile_sv(w->p, t->comm);
	if (comm.n)
		add_comm(w, pid, tid, comm);
}

static void write_death(struct pw_writer *w, uint32_t task)
{
	const struct task *t = &w->p->tasks.p[task];
	int32_t pid = pid_of(w, t);
	w->now_ns = t->end_ns;
	add_task(w, PERF_RECORD_EXIT, pid, tid_of(t, pid));
}

static void write_mapping(struct pw_writer *w, uint32_t mapping)
{
	const struct mapping *m = &w->p->mappings.p[mapping];
	w->now_ns = m->from_ns;
	struct pw_region at = {m->pid, m->start, m->len, m->pgoff};
	pw_add_mmap(w, &at, &w->p->modules.p[m->module]);
	(*map_put(&w->epochs, (uint32_t)m->pid, NULL))++;
}

/* The column for the period. If the weight is column 0 (count), column 1 has the period. */
static uint32_t period_column(const struct table *t)
{
	if (t->has_tags)
		return t->weight_column;
	return t->weight_column || t->nr_columns < 2 ? t->weight_column : 1;
}

static int write_row(struct pw_writer *w, struct timeline *tl, struct cursor *c, struct err *err)
{
	const struct table *t = c->table;
	size_t i = c->row;
	const int64_t *values = &t->values[i * t->nr_columns];
	w->now_ns = row_time(tl, c);
	const struct task *task = &w->p->tasks.p[t->task[i]];
	int32_t pid = pid_of(w, task);
	uint64_t count = (uint64_t)MAX(values[0], 0);
	uint64_t weight = (uint64_t)MAX(values[period_column(t)], 0);
	if (w->stats.is_folded || t->has_tags) /* one record per row */
		count = MIN(count, (uint64_t)1);
	if (weight) /* time of a wait that had not ended, of a call's part */
		count = MAX(count, (uint64_t)1);
	for (uint64_t k = 0; k < count; k++) {
		const struct pw_chain *chain = pw_chain_of(w, pid, task->comm, t->stack[i]);
		uint64_t period = weight / count + (k < weight % count);
		add_sample(w, chain, tid_of(task, pid), t->cpu[i], c->id, period);
		TRY(flush(w, false, err));
	}
	c->row++;
	return 0;
}

/* Returns the list with the next change due before a sample of this time; NULL: none. */
static struct changes *due_list(struct timeline *t, uint64_t time_ns)
{
	for (size_t i = 0; i < CHANGES_NR; i++) {
		struct changes *l = &t->lists[i];
		uint64_t last_ns = i == DEATHS && time_ns != UINT64_MAX ? time_ns - 1 : time_ns;
		if (l->at < l->n && l->p[l->at].time_ns <= last_ns)
			return l;
	}
	return NULL;
}

/* Order at equal times: task starts, mappings, samples, task ends. */
static int write_timeline(struct pw_writer *w, struct timeline *t, struct err *err)
{
	static void (*const writers[])(struct pw_writer * w, uint32_t idx) = {
		[BIRTHS] = write_birth, [MAPPINGS] = write_mapping, [DEATHS] = write_death};
	for (;;) {
		uint64_t best_ns = UINT64_MAX;
		struct cursor *next = NULL;
		vec_foreach(c, &t->cursors) {
			if (c->row < c->table->n && (!next || row_time(t, c) < best_ns)) {
				next = c;
				best_ns = row_time(t, c);
			}
		}
		struct changes *due = due_list(t, best_ns);
		if (due) {
			writers[due - t->lists](w, due->p[due->at++].idx);
			TRY(flush(w, false, err));
		} else if (next) {
			TRY(write_row(w, t, next, err));
		} else {
			return 0;
		}
	}
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* Sets type and config by the event's name; perf shows the name of the event description. */
static void event_from_name(struct perf_event_attr *a, struct sv name, bool is_time)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} known[] = {
		{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
		{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
		{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
		{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
		{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
		{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
		{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
		{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
		{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	};
	struct sv rest = name;
	struct sv base = sv_split(&rest, ':');
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (sv_eq_str(base, known[i].name)) {
			a->type = known[i].type;
			a->config = known[i].config;
			return;
		}
	/* A tracepoint would need its format, which a profile lacks: write a software event. */
	a->type = PERF_TYPE_SOFTWARE;
	a->config = is_time ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_DUMMY;
}

static bool has_wall_clock(const struct profile *p)
{
	return p->wall_start_ns > 0 && p->start_ns;
}

static struct perf_event_attr attr_of(const struct pw_writer *w, size_t i)
{
	const struct table *t = &w->p->tables.p[w->tables.p[i]];
	struct perf_event_attr a = {.size = sizeof(a),
				    .sample_type = SAMPLE_TYPE,
				    .read_format = PERF_FORMAT_ID,
				    .inherit = 1,
				    .sample_id_all = 1,
				    .exclude_guest = 1};
	bool is_time = t->columns[period_column(t)].unit == UNIT_NS;
	event_from_name(&a, profile_sv(w->p, t->event), is_time);
	if (t->freq_hz >= 1) {
		a.freq = 1;
		a.sample_freq = (uint64_t)t->freq_hz;
	} else {
		a.sample_period = 1;
	}
	if (i == 0)
		a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.ksymbol = 1;
	if (has_wall_clock(w->p)) {
		a.use_clockid = 1;
		a.clockid = 1; /* CLOCK_MONOTONIC */
	}
	return a;
}

/* ---- features ------------------------------------------------------------------------------ */

struct features {
	uint64_t bits;
	struct buf bytes;
	size_t starts[64];
};

static struct buf *feature(struct features *f, unsigned bit)
{
	f->bits |= (uint64_t)1 << bit;
	f->starts[bit] = f->bytes.n;
	return &f->bytes;
}

static void add_string(struct buf *b, const char *s)
{
	size_t n = strlen(s);
	size_t room = (n + NAME_ALIGN) & ~(size_t)(NAME_ALIGN - 1);
	buf_add_u32le(b, (uint32_t)room);
	buf_add(b, s, n);
	buf_add_repeat(b, 0, room - n);
}

static void add_build_ids(struct buf *b, const struct profile *p)
{
	vec_foreach(m, &p->modules) {
		struct sv path = profile_sv(p, m->path);
		if (!m->nr_build_id || !path.n || path.n > PATH_BYTES_MAX)
			continue;
		bool is_kernel = m->kind == MODULE_KERNEL || m->kind == MODULE_KMODULE;
		size_t room = (path.n + NAME_ALIGN) & ~(size_t)(NAME_ALIGN - 1);
		buf_add_u32le(b, PD_HEADER_BUILD_ID);
		buf_add_u16le(b, (uint16_t)((1u << 15) | (is_kernel ? PERF_RECORD_MISC_KERNEL
								    : PERF_RECORD_MISC_USER)));
		buf_add_u16le(b, (uint16_t)(36 + room));
		buf_add_u32le(b, UINT32_MAX); /* pid -1: the host's */
		buf_add(b, m->build_id, m->nr_build_id);
		buf_add_repeat(b, 0, 20 - m->nr_build_id);
		buf_add_u32le(b, m->nr_build_id);
		buf_add_sv(b, path);
		buf_add_repeat(b, 0, room - path.n);
	}
}

static void add_event_desc(struct buf *b, const struct pw_writer *w)
{
	buf_add_u32le(b, (uint32_t)w->tables.n);
	buf_add_u32le(b, sizeof(struct perf_event_attr));
	for (size_t i = 0; i < w->tables.n; i++) {
		struct perf_event_attr a = attr_of(w, i);
		buf_add(b, &a, sizeof(a));
		buf_add_u32le(b, 1);
		const struct table *t = &w->p->tables.p[w->tables.p[i]];
		const char *name = profile_text(w->p, t->event);
		CLEANUP(buf_release) struct buf with_unit = {0};
		buf_addf(&with_unit, "%s%s", *name ? name : "samples",
			 eventunit_suffix(w->p, t, period_column(t)));
		add_string(b, buf_str(&with_unit));
		buf_add_u64le(b, i + 1);
	}
}

static void add_fact(struct features *f, unsigned bit, const struct profile *p, enum fact_id id)
{
	const char *value = profile_get_fact(p, id);
	if (value && *value)
		add_string(feature(f, bit), value);
}

/* Adds the features in the order of their bits. */
static void add_features(struct features *f, const struct pw_writer *w)
{
	const struct profile *p = w->p;
	bool has_build_ids = false;
	vec_foreach(m, &p->modules)
		has_build_ids |= m->nr_build_id && m->path;
	if (has_build_ids)
		add_build_ids(feature(f, 2), p);
	add_fact(f, 3, p, FACT_HOST);
	add_fact(f, 4, p, FACT_KERNEL);
	add_string(feature(f, 5), "assay");
	const char *arch = profile_get_fact(p, FACT_ARCH); /* required by readers */
	add_string(feature(f, 6), arch && *arch ? arch : HERE_ARCH);
	uint64_t nr_cpus;
	const char *cpus = profile_get_fact(p, FACT_CPUS);
	if (cpus && sv_to_u64(sv_from_str(cpus), &nr_cpus)) {
		struct buf *b = feature(f, 7);
		buf_add_u32le(b, (uint32_t)nr_cpus);
		buf_add_u32le(b, (uint32_t)nr_cpus);
	}
	add_fact(f, 8, p, FACT_CPU);
	const char *cmdline = profile_get_fact(p, FACT_COMMAND);
	if (cmdline && *cmdline) {
		struct buf *b = feature(f, 11);
		buf_add_u32le(b, 1);
		add_string(b, cmdline);
	}
	add_event_desc(feature(f, 12), w);
	if (!has_wall_clock(p))
		return;
	buf_add_u64le(feature(f, 23), 1); /* resolution in ns */
	struct buf *b = feature(f, 29);
	buf_add_u32le(b, 1);
	buf_add_u32le(b, 1); /* CLOCK_MONOTONIC */
	buf_add_u64le(b, (uint64_t)p->wall_start_ns);
	buf_add_u64le(b, p->start_ns);
}

/* ---- the file ------------------------------------------------------------------------------ */

static void add_front(struct buf *b, const struct pw_writer *w, uint64_t data_bytes,
		      uint64_t feature_bits)
{
	size_t each = sizeof(struct perf_event_attr) + sizeof(struct pd_section);
	uint64_t ids_off = sizeof(struct pd_file_header);
	uint64_t attrs_off = ids_off + w->tables.n * 8;
	struct pd_file_header h = {
		.magic = PD_MAGIC,
		.header_size = sizeof(h),
		.attr_size = each,
		.attrs = {attrs_off, w->tables.n * each},
		.data = {attrs_off + w->tables.n * each, data_bytes},
		.features = {feature_bits},
	};
	buf_add(b, &h, sizeof(h));
	for (size_t i = 0; i < w->tables.n; i++)
		buf_add_u64le(b, i + 1);
	for (size_t i = 0; i < w->tables.n; i++) {
		struct perf_event_attr a = attr_of(w, i);
		struct pd_section ids = {ids_off + i * 8, 8};
		buf_add(b, &a, sizeof(a));
		buf_add(b, &ids, sizeof(ids));
	}
}

static void add_back(struct buf *b, const struct features *f, uint64_t off)
{
	unsigned nr = (unsigned)__builtin_popcountll(f->bits);
	uint64_t at = off + nr * sizeof(struct pd_section);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(f->bits >> bit & 1))
			continue;
		size_t end = f->bytes.n;
		for (unsigned next = 63; next > bit; next--)
			if (f->bits >> next & 1)
				end = f->starts[next];
		struct pd_section s = {at + f->starts[bit], end - f->starts[bit]};
		buf_add(b, &s, sizeof(s));
	}
	buf_add(b, f->bytes.p, f->bytes.n);
}

static int write_data(struct pw_writer *w, struct err *err)
{
	w->now_ns = 0;
	add_kernel_map(w);
	pw_write_names(w);
	CLEANUP(timeline_release) struct timeline t = {0};
	timeline_init(&t, w);
	TRY(write_timeline(w, &t, err));
	return flush(w, true, err);
}

/* New file: the header is completed at the end. Else everything goes to @to in order. */
static int write_file(struct pw_writer *w, struct buf *to, struct err *err)
{
	CLEANUP(buf_release) struct buf front = {0};
	CLEANUP(buf_release) struct buf back = {0};
	add_front(&front, w, 0, 0);
	size_t front_bytes = front.n;
	TRY(w->out ? out_write(w->out, front.p, front.n, err) : 0);
	TRY(write_data(w, err));
	if (!w->out)
		w->data_bytes = w->data.n;

	struct features f = {0};
	add_features(&f, w);
	add_back(&back, &f, front_bytes + w->data_bytes);
	buf_clear(&front);
	add_front(&front, w, w->data_bytes, f.bits);
	buf_release(&f.bytes);
	w->stats.nr_bytes = front.n + w->data_bytes + back.n;
	if (w->out) {
		TRY(out_patch(w->out, front.p, front.n, 0, err));
		return out_write(w->out, back.p, back.n, err);
	}
	buf_add(to, front.p, front.n);
	buf_add(to, w->data.p, w->data.n);
	buf_add(to, back.p, back.n);
	return 0;
}

static uint64_t count_samples(const struct pw_writer *w)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < w->tables.n; i++) {
		const struct table *t = &w->p->tables.p[w->tables.p[i]];
		for (size_t row = 0; row < t->n; row++)
			if (t->has_tags)
				sum++;
			else if (__builtin_add_overflow(
					 sum, (uint64_t)MAX(t->values[row * t->nr_columns], 0),
					 &sum))
				return UINT64_MAX;
	}
	return sum;
}

static int pick_tables(struct pw_writer *w, const char *event, struct err *err)
{
	const struct profile *p = w->p;
	const struct table *only = NULL;
	TRY(event ? format_pick_table(p, event, &only, err) : 0);
	for (uint32_t i = 0; i < p->tables.n; i++)
		if (only ? only == &p->tables.p[i] : !table_kind(p->tables.p[i].id)->is_on_request)
			vec_push(&w->tables, i);
	return w->tables.n ? 0 : err_set(err, -ENODATA, "there are no samples to write");
}

static void writer_release(struct pw_writer *w)
{
	pw_place_release(w);
	map_release(&w->epochs);
	map_release(&w->pids);
	vec_release(&w->tables);
	buf_release(&w->data);
}

int perfdata_write(struct format_output *to, const struct profile *p,
		   const struct format_options *options, struct err *err)
{
	/* The header can be patched only if it is at the start of a new file. */
	bool is_direct = to->file && !to->buf.n && to->file->tmp_name;
	CLEANUP(writer_release)
	struct pw_writer w = {.p = p, .out = is_direct ? to->file : NULL};
	TRY(pick_tables(&w, options->event, err));
	w.stats.is_folded = count_samples(&w) > SAMPLES_MAX;
	pw_place_init(&w);
	TRY(write_file(&w, &to->buf, err));
	if (options->perfdata.ret_written)
		*options->perfdata.ret_written = w.stats;
	return 0;
}
