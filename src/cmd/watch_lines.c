/* Readings as lines; see watch_lines.h. */
#include "base/base.h"
#include "cmd/watch_lines.h"

#include <math.h>

#include "base/num.h"

enum field_kind {
	FIELD_SECONDS,
	FIELD_BYTES,
	FIELD_BYTES_PER_S, /* signed */
	FIELD_PER_S,
	FIELD_PCT,
	FIELD_COUNT,
};

struct field_value {
	bool is_known;
	uint64_t u;
	double d;
};

struct field {
	const char *key;   /* CSV and JSON */
	const char *title; /* of the table; NULL: not in it */
	enum field_kind kind;
	unsigned width;
	struct field_value (*get)(const struct watch_lines *l, const struct watch_tick *t);
	bool is_of_group;
	bool is_of_allocator;
};

static struct field_value whole(bool is_known, uint64_t u)
{
	return (struct field_value){is_known, u, (double)u};
}

static struct field_value real(bool is_known, double d)
{
	return (struct field_value){is_known, 0, d};
}

static struct field_value get_time(const struct watch_lines *l, const struct watch_tick *t)
{
	return real(true, (double)(t->time_ns - MIN(l->start_ns, t->time_ns)) / 1e9);
}

static struct field_value get_machine_pct(const struct watch_lines *l, const struct watch_tick *t)
{
	return real(l->machine_bytes != 0,
		    100.0 * (double)t->m.rss_bytes / (double)MAX(l->machine_bytes, (uint64_t)1));
}

static struct field_value get_pressure(const struct watch_lines *l, const struct watch_tick *t)
{
	(void)l;
	return real(t->has_group && t->has_rates && (t->group.has & MEMGROUP_HAS_PRESSURE),
		    t->pressure_pct);
}

static struct field_value get_limit(const struct watch_lines *l, const struct watch_tick *t)
{
	(void)l;
	uint64_t v = t->group.limit_bytes;
	if (t->group.limit_above_bytes)
		v = MIN(v, t->group.limit_above_bytes);
	return whole(t->has_group && v != MEMGROUP_NO_LIMIT, v);
}

/* Most fields are a number of the reading as it stands there. */
#define SIMPLE(name, is_known, value)                                     \
	static struct field_value get_##name(const struct watch_lines *l, \
					     const struct watch_tick *t)  \
	{                                                                 \
		(void)l;                                                  \
		return whole(is_known, value);                            \
	}
#define RATE(name, value)                                                 \
	static struct field_value get_##name(const struct watch_lines *l, \
					     const struct watch_tick *t)  \
	{                                                                 \
		(void)l;                                                  \
		return real(t->has_rates, value);                         \
	}

SIMPLE(rss, true, t->m.rss_bytes)
SIMPLE(anon, true, t->m.anon_bytes)
SIMPLE(file, true, t->m.file_bytes)
SIMPLE(shmem, t->m.has &MEMSTAT_HAS_SPLIT, t->m.shmem_bytes)
SIMPLE(swap, t->m.has &MEMSTAT_HAS_SPLIT, t->m.swap_bytes)
SIMPLE(virt, true, t->m.virtual_bytes)
SIMPLE(pss, t->has_pss, t->m.pss_bytes)
SIMPLE(swap_pss, t->has_pss, t->m.swap_pss_bytes)
SIMPLE(private_clean, t->has_pss, t->m.private_clean_bytes)
SIMPLE(private_dirty, t->has_pss, t->m.private_dirty_bytes)
SIMPLE(shared_clean, t->has_pss, t->m.shared_clean_bytes)
SIMPLE(shared_dirty, t->has_pss, t->m.shared_dirty_bytes)
SIMPLE(huge, t->has_pss, t->m.anon_huge_bytes + t->m.file_huge_bytes + t->m.shmem_huge_bytes)
SIMPLE(page_tables, t->m.has &MEMSTAT_HAS_SPLIT, t->m.page_table_bytes)
SIMPLE(locked, t->m.has &MEMSTAT_HAS_SPLIT, t->m.locked_bytes)
SIMPLE(threads, true, t->m.nr_threads)
SIMPLE(processes, true, t->m.nr_processes)
RATE(minor, t->minor_per_s)
RATE(major, t->major_per_s)
RATE(change, t->rss_per_s)
SIMPLE(group_usage, t->has_group, t->group.usage_bytes)
SIMPLE(group_file, t->has_group, t->group.file_bytes)
SIMPLE(group_anon, t->has_group, t->group.anon_bytes)
SIMPLE(group_peak, t->has_group, t->group.peak_bytes)
SIMPLE(group_swap, t->has_group && (t->group.has & MEMGROUP_HAS_SWAP), t->group.swap_bytes)
SIMPLE(group_kernel, t->has_group && (t->group.has & MEMGROUP_HAS_KERNEL), t->group.kernel_bytes)
SIMPLE(in_use, t->allocator.is_known, t->allocator.in_use_bytes)
SIMPLE(active, t->allocator.is_known, t->allocator.active_bytes)
SIMPLE(resident, t->allocator.is_known, t->allocator.resident_bytes)
SIMPLE(retained, t->allocator.is_known, t->allocator.retained_bytes)

static const struct field fields[] = {
	{"time_s", "time", FIELD_SECONDS, 7, get_time, false, false},
	{"rss_bytes", "RSS", FIELD_BYTES, 9, get_rss, false, false},
	{"anon_bytes", "anon", FIELD_BYTES, 9, get_anon, false, false},
	{"file_bytes", "file", FIELD_BYTES, 9, get_file, false, false},
	{"shmem_bytes", "shmem", FIELD_BYTES, 9, get_shmem, false, false},
	{"pss_bytes", "PSS", FIELD_BYTES, 9, get_pss, false, false},
	{"swap_bytes", "swap", FIELD_BYTES, 9, get_swap, false, false},
	{"virtual_bytes", "VSZ", FIELD_BYTES, 9, get_virt, false, false},
	{"machine_pct", "%mem", FIELD_PCT, 6, get_machine_pct, false, false},
	{"minor_faults_per_s", "minflt/s", FIELD_PER_S, 8, get_minor, false, false},
	{"major_faults_per_s", "majflt/s", FIELD_PER_S, 8, get_major, false, false},
	{"rss_change_bytes_per_s", "growth/s", FIELD_BYTES_PER_S, 10, get_change, false, false},
	{"private_clean_bytes", NULL, FIELD_BYTES, 0, get_private_clean, false, false},
	{"private_dirty_bytes", NULL, FIELD_BYTES, 0, get_private_dirty, false, false},
	{"shared_clean_bytes", NULL, FIELD_BYTES, 0, get_shared_clean, false, false},
	{"shared_dirty_bytes", NULL, FIELD_BYTES, 0, get_shared_dirty, false, false},
	{"swap_pss_bytes", NULL, FIELD_BYTES, 0, get_swap_pss, false, false},
	{"huge_pages_bytes", NULL, FIELD_BYTES, 0, get_huge, false, false},
	{"page_table_bytes", NULL, FIELD_BYTES, 0, get_page_tables, false, false},
	{"locked_bytes", NULL, FIELD_BYTES, 0, get_locked, false, false},
	{"threads", NULL, FIELD_COUNT, 0, get_threads, false, false},
	{"processes", NULL, FIELD_COUNT, 0, get_processes, false, false},
	{"allocator_in_use_bytes", "in use", FIELD_BYTES, 9, get_in_use, false, true},
	{"allocator_active_bytes", NULL, FIELD_BYTES, 0, get_active, false, true},
	{"allocator_resident_bytes", "resident", FIELD_BYTES, 9, get_resident, false, true},
	{"allocator_retained_bytes", NULL, FIELD_BYTES, 0, get_retained, false, true},
	{"cgroup_usage_bytes", "cgroup", FIELD_BYTES, 9, get_group_usage, true, false},
	{"cgroup_limit_bytes", NULL, FIELD_BYTES, 0, get_limit, true, false},
	{"cgroup_anon_bytes", NULL, FIELD_BYTES, 0, get_group_anon, true, false},
	{"cgroup_file_bytes", NULL, FIELD_BYTES, 0, get_group_file, true, false},
	{"pressure_pct", "psi %", FIELD_PCT, 6, get_pressure, true, false},
	{"cgroup_peak_bytes", NULL, FIELD_BYTES, 0, get_group_peak, true, false},
	{"cgroup_swap_bytes", NULL, FIELD_BYTES, 0, get_group_swap, true, false},
	{"cgroup_kernel_bytes", NULL, FIELD_BYTES, 0, get_group_kernel, true, false},
};

/* ---- for people --------------------------------------------------------------------------- */

static bool is_in_table(const struct watch_lines *l, const struct field *f)
{
	return f->title && (l->has_group || !f->is_of_group) &&
	       (l->has_allocator || !f->is_of_allocator);
}

static void add_padded(struct buf *to, const char *text, size_t width)
{
	size_t n = strlen(text);
	if (n < width)
		buf_add_repeat(to, ' ', width - n);
	buf_add_str(to, text);
}

static void add_text(struct buf *to, const struct field *f, const struct field_value *v)
{
	if (!v->is_known) {
		buf_add_ch(to, '-');
		return;
	}
	switch (f->kind) {
	case FIELD_SECONDS:
		num_add_double(to, v->d, 1);
		break;
	case FIELD_BYTES:
		num_add_bytes(to, v->u);
		break;
	case FIELD_BYTES_PER_S:
		buf_add_str(to, v->d < 0 ? "-" : v->d > 0 ? "+" : "");
		num_add_bytes(to, (uint64_t)llround(fabs(v->d)));
		break;
	case FIELD_PER_S:
		num_add_short(to, (uint64_t)llround(v->d));
		break;
	case FIELD_PCT:
		num_add_double(to, v->d, 1);
		break;
	case FIELD_COUNT:
		num_add_count(to, v->u);
		break;
	}
}

static void add_row(struct buf *to, const struct watch_lines *l, const struct watch_tick *t)
{
	size_t used = 0;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		CLEANUP(buf_release) struct buf one = {0};
		if (!is_in_table(l, f))
			continue;
		if (l->columns && used + f->width + 1 > l->columns)
			break;
		used += f->width + 1;
		if (t) {
			struct field_value v = f->get(l, t);
			add_text(&one, f, &v);
		} else {
			buf_add_str(&one, f->title);
		}
		if (i)
			buf_add_ch(to, ' ');
		add_padded(to, buf_str(&one), f->width);
	}
}

void watch_lines_heading(struct buf *to, const struct watch_lines *l)
{
	add_row(to, l, NULL);
}

void watch_lines_add(struct buf *to, const struct watch_lines *l, const struct watch_tick *t)
{
	add_row(to, l, t);
}

/* ---- for scripts -------------------------------------------------------------------------- */

void watch_lines_csv_heading(struct buf *to)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		buf_addf(to, "%s%s", i ? "," : "", fields[i].key);
	buf_add_ch(to, '\n');
}

static bool is_whole(const struct field *f)
{
	return f->kind == FIELD_BYTES || f->kind == FIELD_COUNT;
}

void watch_lines_csv(struct buf *to, const struct watch_lines *l, const struct watch_tick *t)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct field_value v = fields[i].get(l, t);
		if (i)
			buf_add_ch(to, ',');
		if (!v.is_known)
			continue;
		if (is_whole(&fields[i]))
			buf_add_u64(to, v.u);
		else
			num_add_double(to, v.d, 3);
	}
	buf_add_ch(to, '\n');
}

void watch_lines_json(struct json *j, const struct watch_lines *l, const struct watch_tick *t)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct field_value v = fields[i].get(l, t);
		json_key(j, fields[i].key);
		if (!v.is_known)
			json_null(j);
		else if (is_whole(&fields[i]))
			json_u64(j, v.u);
		else
			json_double(j, v.d, 3);
	}
}
