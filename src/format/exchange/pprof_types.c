/* Names of sample types; see pprof.h. */
#include "base/base.h"
#include "format/exchange/pprof.h"

#include "model/eventunit.h"
#include "model/heap.h"

/* Names that other tools know. */
static const struct {
	const char *name;
	enum table_id id;
	uint32_t column;
} known[] = {
	{"alloc_objects", TABLE_ALLOCATED, HEAP_ALLOCATED_CALLS},
	{"alloc_space", TABLE_ALLOCATED, HEAP_ALLOCATED_BYTES},
	{"inuse_objects", TABLE_LIVE, HEAP_BLOCKS},
	{"inuse_space", TABLE_LIVE, HEAP_BYTES},
	{"off_cpu", TABLE_OFF_CPU, 1},
};

const char *pprof_unit(enum unit unit)
{
	static const char *const names[] = {
		[UNIT_COUNT] = "count", [UNIT_NS] = "nanoseconds", [UNIT_BYTES] = "bytes"};
	return names[unit];
}

static bool is_time(const struct profile *p, const struct table *t)
{
	return t->id == TABLE_SAMPLES && t->nr_columns > 1 && t->columns[1].unit == UNIT_NS &&
	       !eventunit_is_amount(profile_sv(p, t->event)) &&
	       (!strcmp(profile_text(p, t->columns[1].name), "time") ||
		!strcmp(profile_text(p, t->columns[1].name), "period"));
}

/* The first table with samples of CPU time has the usual names. */
static bool is_cpu(const struct profile *p, const struct table *t)
{
	vec_foreach(other, &p->tables)
		if (is_time(p, other))
			return other == t;
	return false;
}

static bool is_described_sampling(enum table_id id, const char *column)
{
	const struct table_kind *k = table_kind(id);
	return k->columns[HEAP_VARIANCE].name &&
	       !strcmp(k->columns[HEAP_VARIANCE].name, "variance") &&
	       (!strcmp(column, "samples") || !strcmp(column, "variance"));
}

static void add_key(struct buf *to, const char *s)
{
	for (; *s; s++)
		buf_add_ch(to, *s == '-' || *s == ' ' ? '_' : *s);
}

static void add_name(struct buf *to, enum table_id id, uint32_t column, const char *title)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].id == id && known[i].column == column) {
			buf_add_str(to, known[i].name);
			return;
		}
	add_key(to, table_key(id));
	buf_add_ch(to, '_');
	add_key(to, title);
}

static bool add_samples_name(struct buf *to, const struct profile *p, const struct table *t,
			     uint32_t column)
{
	bool is_usual = is_cpu(p, t);
	if (column > 1)
		return false;
	buf_add_str(to, !is_usual ? profile_text(p, t->event) : column ? "cpu" : "samples");
	if (!is_usual && !column && t->nr_columns > 1)
		buf_add_str(to, "_samples");
	return true;
}

bool pprof_add_type(struct buf *to, const struct profile *p, const struct table *t, uint32_t column)
{
	const char *title = profile_text(p, t->columns[column].name);
	if (t->columns[column].is_level)
		return false;
	if (t->id == TABLE_SAMPLES)
		return add_samples_name(to, p, t, column);
	if (is_described_sampling(t->id, title))
		return false;
	if (table_key(t->id)) {
		add_name(to, t->id, column, title);
	} else {
		buf_add_str(to, profile_text(p, t->event)); /* of a named event */
		if (t->nr_columns > 1) {
			buf_add_ch(to, '_');
			add_key(to, title);
		}
	}
	return true;
}

bool pprof_find_type(struct sv name, enum table_id *ret_id, uint32_t *ret_column)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (enum table_id id = 0; id < TABLE_ID_NR; id++) {
		const struct table_kind *k = table_kind(id);
		for (uint32_t c = 0; c < TABLE_KIND_COLUMNS_MAX && k->columns[c].name; c++) {
			if (!k->key)
				break;
			buf_clear(&b);
			add_name(&b, id, c, k->columns[c].name);
			if (!sv_eq(buf_sv(&b), name))
				continue;
			*ret_id = id;
			*ret_column = c;
			return true;
		}
	}
	return false;
}

bool pprof_has_loss(enum loss_kind k)
{
	return k != LOSS_SEEN && k != LOSS_WRITTEN && loss_class(k) != LOSS_CLASS_UNSYM;
}
