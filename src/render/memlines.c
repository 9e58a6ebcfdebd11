/* Memory readings as lines; see memlines.h. */
#include "base/base.h"
#include "render/memlines.h"

#include <math.h>

#include "base/text/escape.h"
#include "base/text/json.h"
#include "base/text/num.h"
#include "base/text/wrap.h"

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

/* Which readings have the field. */
enum when {
	ALWAYS,
	SPLIT,
	PSS,
	RATES,
	ALLOCATOR,
	GROUP, /* needs a cgroup; so do all after it */
	GROUP_SWAP,
	GROUP_KERNEL,
	GROUP_PRESSURE,
};

struct field {
	const char *key;   /* CSV and JSON */
	const char *title; /* column title; NULL: not in the table */
	enum field_kind kind;
	unsigned width;
	unsigned rank; /* where a line has no room for all, those with the lowest are shown */
	enum when when;
	size_t at; /* offset in struct memreading: a uint64_t, double or uint32_t (counts) */
	struct field_value (*get)(const struct memlines *l,
				  const struct memreading *t); /* used instead of at */
};

static struct field_value whole(uint64_t u)
{
	return (struct field_value){true, u, (double)u};
}

static struct field_value real(bool is_known, double d)
{
	return (struct field_value){is_known, 0, d};
}

static struct field_value get_time(const struct memlines *l, const struct memreading *t)
{
	return real(true, (double)(t->time_ns - MIN(l->start_ns, t->time_ns)) / 1e9);
}

static struct field_value get_machine_pct(const struct memlines *l, const struct memreading *t)
{
	return real(l->machine_bytes != 0,
		    100.0 * (double)t->m.rss_bytes / (double)MAX(l->machine_bytes, (uint64_t)1));
}

static struct field_value get_limit(const struct memlines *l, const struct memreading *t)
{
	(void)l;
	struct field_value v = whole(memgroup_least_limit(&t->group));
	v.is_known = v.u != MEMGROUP_NO_LIMIT;
	return v;
}

static struct field_value get_huge(const struct memlines *l, const struct memreading *t)
{
	(void)l;
	return whole(memstat_huge(&t->m));
}

#define AT(member) offsetof(struct memreading, member), NULL
static const struct field fields[] = {
	{"time_s", "time s", FIELD_SECONDS, 7, 1, ALWAYS, 0, get_time},
	{"rss_bytes", "RSS MiB", FIELD_BYTES, 9, 2, ALWAYS, AT(m.rss_bytes)},
	{"anon_bytes", "anon MiB", FIELD_BYTES, 9, 4, ALWAYS, AT(m.anon_bytes)},
	{"file_bytes", "file MiB", FIELD_BYTES, 9, 6, ALWAYS, AT(m.file_bytes)},
	{"shmem_bytes", "shmem MiB", FIELD_BYTES, 9, 15, SPLIT, AT(m.shmem_bytes)},
	{"pss_bytes", "PSS MiB", FIELD_BYTES, 9, 7, PSS, AT(m.pss_bytes)},
	{"swap_bytes", "swap MiB", FIELD_BYTES, 9, 10, SPLIT, AT(m.swap_bytes)},
	{"virtual_bytes", "VSZ MiB", FIELD_BYTES, 10, 16, ALWAYS, AT(m.virtual_bytes)},
	{"machine_pct", "%mem", FIELD_PCT, 5, 14, ALWAYS, 0, get_machine_pct},
	{"minor_faults_per_s", "minflt/s", FIELD_PER_S, 8, 12, RATES, AT(minor_per_s)},
	{"major_faults_per_s", "majflt/s", FIELD_PER_S, 8, 11, RATES, AT(major_per_s)},
	{"rss_change_bytes_per_s", "growth KiB/s", FIELD_BYTES_PER_S, 12, 3, RATES, AT(rss_per_s)},
	{"private_clean_bytes", NULL, FIELD_BYTES, 0, 0, PSS, AT(m.private_clean_bytes)},
	{"private_dirty_bytes", NULL, FIELD_BYTES, 0, 0, PSS, AT(m.private_dirty_bytes)},
	{"shared_clean_bytes", NULL, FIELD_BYTES, 0, 0, PSS, AT(m.shared_clean_bytes)},
	{"shared_dirty_bytes", NULL, FIELD_BYTES, 0, 0, PSS, AT(m.shared_dirty_bytes)},
	{"swap_pss_bytes", NULL, FIELD_BYTES, 0, 0, PSS, AT(m.swap_pss_bytes)},
	{"huge_pages_bytes", NULL, FIELD_BYTES, 0, 0, PSS, 0, get_huge},
	{"page_table_bytes", NULL, FIELD_BYTES, 0, 0, SPLIT, AT(m.page_table_bytes)},
	{"locked_bytes", NULL, FIELD_BYTES, 0, 0, SPLIT, AT(m.locked_bytes)},
	{"threads", NULL, FIELD_COUNT, 0, 0, ALWAYS, AT(m.nr_threads)},
	{"processes", NULL, FIELD_COUNT, 0, 0, ALWAYS, AT(m.nr_processes)},
	{"allocator_in_use_bytes", "in use MiB", FIELD_BYTES, 10, 5, ALLOCATOR,
	 AT(allocator.in_use_bytes)},
	{"allocator_active_bytes", NULL, FIELD_BYTES, 0, 0, ALLOCATOR, AT(allocator.active_bytes)},
	{"allocator_resident_bytes", "resident MiB", FIELD_BYTES, 12, 13, ALLOCATOR,
	 AT(allocator.resident_bytes)},
	{"allocator_retained_bytes", NULL, FIELD_BYTES, 0, 0, ALLOCATOR,
	 AT(allocator.retained_bytes)},
	{"cgroup_usage_bytes", "cgroup MiB", FIELD_BYTES, 10, 8, GROUP, AT(group.usage_bytes)},
	{"cgroup_limit_bytes", NULL, FIELD_BYTES, 0, 0, GROUP, 0, get_limit},
	{"cgroup_anon_bytes", NULL, FIELD_BYTES, 0, 0, GROUP, AT(group.anon_bytes)},
	{"cgroup_file_bytes", NULL, FIELD_BYTES, 0, 0, GROUP, AT(group.file_bytes)},
	{"pressure_pct", "psi some%", FIELD_PCT, 9, 9, GROUP_PRESSURE, AT(pressure_pct)},
	{"cgroup_peak_bytes", NULL, FIELD_BYTES, 0, 0, GROUP, AT(group.peak_bytes)},
	{"cgroup_swap_bytes", NULL, FIELD_BYTES, 0, 0, GROUP_SWAP, AT(group.swap_bytes)},
	{"cgroup_kernel_bytes", NULL, FIELD_BYTES, 0, 0, GROUP_KERNEL, AT(group.kernel_bytes)},
};

static bool is_there(const struct memreading *t, enum when when)
{
	switch (when) {
	case ALWAYS:
		return true;
	case SPLIT:
		return t->m.has & MEMSTAT_HAS_SPLIT;
	case PSS:
		return t->has_pss;
	case RATES:
		return t->has_rates;
	case ALLOCATOR:
		return t->allocator.is_known;
	case GROUP:
		return t->has_group;
	case GROUP_SWAP:
		return t->has_group && t->group.has & MEMGROUP_HAS_SWAP;
	case GROUP_KERNEL:
		return t->has_group && t->group.has & MEMGROUP_HAS_KERNEL;
	case GROUP_PRESSURE:
		return t->has_group && t->has_rates && t->group.has & MEMGROUP_HAS_PRESSURE;
	}
	return false;
}

static bool is_whole(const struct field *f)
{
	return f->kind == FIELD_BYTES || f->kind == FIELD_COUNT;
}

static struct field_value value_of(const struct field *f, const struct memlines *l,
				   const struct memreading *t)
{
	if (!is_there(t, f->when))
		return (struct field_value){0};
	if (f->get)
		return f->get(l, t);
	const void *at = (const char *)t + f->at;
	if (f->kind == FIELD_COUNT)
		return whole(*(const uint32_t *)at);
	return is_whole(f) ? whole(*(const uint64_t *)at) : real(true, *(const double *)at);
}

/* ---- table -------------------------------------------------------------------------------- */

static bool is_in_table(const struct memlines *l, const struct field *f)
{
	return f->title && (l->has_group || f->when < GROUP) &&
	       (l->has_allocator || f->when != ALLOCATOR);
}

static void add_padded(struct buf *to, const char *text, size_t width)
{
	size_t n = strlen(text);
	if (n < width)
		buf_add_repeat(to, ' ', width - n);
	buf_add_str(to, text);
}

#define KIB 1024.0
#define MIB (1024 * KIB)

static void add_mib(struct buf *to, double mib)
{
	if (mib < 1000)
		num_add_double(to, mib, 2);
	else
		num_add_count(to, (uint64_t)llround(mib));
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
		add_mib(to, (double)v->u / MIB);
		break;
	case FIELD_BYTES_PER_S:
		buf_add_str(to, llround(v->d / KIB) < 0 ? "-" : llround(v->d / KIB) > 0 ? "+" : "");
		num_add_count(to, (uint64_t)llround(fabs(v->d) / KIB));
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

/* Which fields have room on a line. */
static void choose_fields(const struct memlines *l, bool *ret_is_shown)
{
	size_t used = 0;
	for (unsigned rank = 1; rank <= ARRAY_LEN(fields); rank++) {
		for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
			const struct field *f = &fields[i];
			size_t width = f->width + (used ? 1u : 0u);
			if (f->rank != rank || !is_in_table(l, f) ||
			    (l->columns && used + width > l->columns))
				continue;
			ret_is_shown[i] = true;
			used += width;
		}
	}
}

static void add_row(struct buf *to, const struct memlines *l, const struct memreading *t)
{
	bool is_shown[ARRAY_LEN(fields)] = {0};
	choose_fields(l, is_shown);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		CLEANUP(buf_release) struct buf one = {0};
		if (!is_shown[i])
			continue;
		if (t) {
			struct field_value v = value_of(f, l, t);
			add_text(&one, f, &v);
		} else {
			buf_add_str(&one, f->title);
		}
		if (i)
			buf_add_ch(to, ' ');
		add_padded(to, buf_str(&one), f->width);
	}
	buf_add_ch(to, '\n');
}

/* ---- CSV and JSON ------------------------------------------------------------------------- */

static void add_csv(struct buf *to, const struct memlines *l, const struct memreading *t)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (i)
			buf_add_ch(to, ',');
		if (!t) {
			buf_add_str(to, fields[i].key);
			continue;
		}
		struct field_value v = value_of(&fields[i], l, t);
		if (v.is_known && is_whole(&fields[i]))
			buf_add_u64(to, v.u);
		else if (v.is_known)
			num_add_double(to, v.d, 3);
	}
	buf_add_ch(to, '\n');
}

static void add_json(struct buf *to, const struct memlines *l, const struct memreading *t)
{
	struct json j = json_to(to);
	if (!t)
		return;
	json_obj(&j);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		struct field_value v = value_of(&fields[i], l, t);
		json_key(&j, fields[i].key);
		if (!v.is_known)
			json_null(&j);
		else if (is_whole(&fields[i]))
			json_u64(&j, v.u);
		else
			json_double(&j, v.d, 3);
	}
	json_end(&j);
	buf_add_ch(to, '\n');
}

void memlines_add(struct buf *to, const struct memlines *l, const struct memreading *t)
{
	switch (l->form) {
	case MEMLINES_TABLE:
		add_row(to, l, t);
		break;
	case MEMLINES_CSV:
		add_csv(to, l, t);
		break;
	case MEMLINES_JSON:
		add_json(to, l, t);
		break;
	}
}

/* ---- page header -------------------------------------------------------------------------- */

static void add_line(struct buf *to, const struct buf *line, unsigned columns)
{
	wrap_add(to, buf_sv(line), 0, 2, columns);
	buf_add_ch(to, '\n');
}

static void add_what(struct buf *to, const struct memlines *l, const struct memreading *t,
		     const char *name, int32_t pid)
{
	buf_add_str(to, "assay watch ");
	escape_term(to, sv_from_str(name));
	if (t->m.nr_processes == 1)
		buf_addf(to, ": process %d, ", pid);
	else
		buf_addf(to, ": %u processes, ", t->m.nr_processes);
	buf_addf(to, "%s; %s; q: quit, m: mappings, space: read now",
		 num_noun(t->m.nr_threads, "threads").s, num_ns(t->time_ns - l->start_ns).s);
}

static void add_more(struct buf *to, const struct memlines *l, const struct memreading *t)
{
	buf_addf(to, "page tables %s", num_bytes(t->m.page_table_bytes).s);
	if (t->has_pss)
		buf_addf(to, "; private %s, huge pages %s",
			 num_bytes(t->m.private_clean_bytes + t->m.private_dirty_bytes).s,
			 num_bytes(memstat_huge(&t->m)).s);
	else if (l->refused) /* else it is read less often than the other values */
		buf_addf(to, "; no PSS and mappings: %s (needs root or CAP_SYS_PTRACE)",
			 strerror(-l->refused));
	if (t->has_group) {
		buf_addf(to, "; cgroup %s", num_bytes(t->group.usage_bytes).s);
		if (t->group.limit_bytes != MEMGROUP_NO_LIMIT)
			buf_addf(to, " of %s", num_bytes(t->group.limit_bytes).s);
		buf_add_str(to, " (");
		escape_term(to, sv_from_str(l->group));
		buf_add_ch(to, ')');
	}
}

void memlines_head(struct buf *to, const struct memlines *l, const struct memreading *t,
		   const char *name, int32_t pid)
{
	CLEANUP(buf_release) struct buf what = {0};
	CLEANUP(buf_release) struct buf more = {0};
	add_what(&what, l, t, name, pid);
	add_line(to, &what, l->columns);
	add_more(&more, l, t);
	add_line(to, &more, l->columns);
}
