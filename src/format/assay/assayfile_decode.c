/*
 * Decodes the sections of a recording into a profile; see docs/formats/assay.md.
 *
 * Every id is checked against the elements read so far. In an undamaged file an invalid id is an
 * error. After damage, elements may be missing: placeholders ("[lost]", limited by a budget) are
 * added for them so that later ids stay correct, and ids that are still invalid become "none".
 */
#include "base/base.h"
#include "format/assay/assayfile_sections.h"

#include <errno.h>

#include "base/file/rd.h"
#include "format/format.h"

#define LOST         "[lost]"
#define CHECK_BYTES  ((uint64_t)1 << 20)
#define INTERN_BYTES 48 /* of a string of its own, besides its text */

static int bad(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "%s", what);
}

static uint32_t check_id(struct assayfile_reader *r, uint64_t id, size_t n)
{
	if (LIKELY(id < n))
		return (uint32_t)id;
	r->is_wrong |= !r->has_damage;
	return 0;
}

static str_id get_str(struct assayfile_reader *r, uint64_t id)
{
	return r->str_ids.p[check_id(r, id, r->str_ids.n)];
}

/* Reads a difference; *last is the previous value. */
static uint64_t delta(struct rd *in, uint64_t *last)
{
	return *last += (uint64_t)rd_zigzag(in);
}

/* Called before n bytes are allocated by a number in the file. */
static int reserve(struct assayfile_reader *r, uint64_t n, struct err *err)
{
	r->nr_unchecked += n;
	if (r->nr_unchecked < CHECK_BYTES)
		return 0;
	uint64_t ids = r->str_ids.n * sizeof(*r->str_ids.p);
	r->nr_unchecked = 0;
	return format_check_room(r->nr_stored, r->p, r->nr_held + ids + n, err);
}

static uint64_t element_bytes(enum assayfile_section type)
{
	switch ((unsigned)type) {
	case SECTION_STACKS:
		return PROFILE_STACK_BYTES;
	case SECTION_TASKS:
		return PROFILE_TASK_BYTES;
	case SECTION_FUNCTIONS:
		return PROFILE_FUNCTION_BYTES;
	}
	return assayfile_columns[type].each_bytes;
}

struct range {
	size_t n;   /* elements that follow */
	size_t gap; /* lost elements before them */
};

static int get_range(struct assayfile_reader *r, struct range *ret, struct rd *in,
		     enum assayfile_section type, struct err *err)
{
	uint64_t first = rd_uleb(in);
	uint64_t n = rd_uleb(in);
	size_t held = r->held[type];
	if (in->is_bad || !n || n > rd_left(in) / assayfile_columns[type].least ||
	    first > UINT32_MAX || first + n > UINT32_MAX)
		return bad(err, "a section has an invalid count");
	if (first < held || (first > held && !r->has_damage))
		return bad(err, "a section does not continue its table");
	size_t gap = (size_t)first - held;
	if (gap > r->gap_budget)
		return bad(err, "too much of the file is damaged");
	TRY(reserve(r, (gap + n) * element_bytes(type), err));
	r->gap_budget -= gap;
	r->held[type] = (size_t)(first + n);
	*ret = (struct range){(size_t)n, gap};
	return 0;
}

static int get_strings(struct assayfile_reader *r, struct rd *in, const struct range *range,
		       struct err *err)
{
	for (size_t i = 0; i < range->gap; i++)
		vec_push(&r->str_ids, profile_cstr(r->p, LOST));
	struct rd lens = *in;
	for (size_t i = 0; i < range->n; i++)
		(void)rd_uleb(in); /* skip the lengths: the texts follow them */
	for (size_t i = 0; i < range->n; i++) {
		uint64_t len = rd_uleb(&lens);
		const uint8_t *s = len <= ASSAYFILE_STRING_MAX ? rd_bytes(in, len) : NULL;
		if (!s)
			return bad(err, "a string is longer than its section");
		TRY(reserve(r, len + INTERN_BYTES, err));
		str_id id = profile_str(r->p, (const char *)s, len);
		r->has_remap |= id != r->str_ids.n;
		vec_push(&r->str_ids, id);
	}
	return 0;
}

static int get_modules(struct assayfile_reader *r, struct rd *in, const struct range *range,
		       struct err *err)
{
	struct profile *p = r->p;
	for (size_t i = 0; i < range->gap; i++)
		vec_push(&p->modules,
			 (struct module){.kind = MODULE_UNKNOWN, .path = profile_cstr(p, LOST)});
	for (size_t i = 0; i < range->n; i++) {
		struct module m = {0};
		uint64_t kind = rd_uleb(in);
		m.kind = kind <= MODULE_NAMED ? (enum module_kind)kind : MODULE_UNKNOWN;
		m.path = get_str(r, rd_uleb(in));
		uint64_t nr = rd_uleb(in);
		const uint8_t *id = nr <= MODULE_BUILD_ID_MAX ? rd_bytes(in, nr) : NULL;
		if (!id)
			return bad(err, "a build-id is too long");
		memcpy(m.build_id, id, nr);
		m.nr_build_id = (uint8_t)nr;
		m.is_deleted = rd_uleb(in) != 0;
		m.dev = rd_uleb(in);
		m.inode = rd_uleb(in);
		m.pid = (int32_t)rd_zigzag(in);
		vec_push(&p->modules, m);
	}
	return 0;
}

static int get_names(struct assayfile_reader *r, struct rd *in, const struct range *range,
		     struct err *err)
{
	struct profile *p = r->p;
	struct rd nrs = *in;
	for (size_t i = 0; i < range->n; i++)
		(void)rd_uleb(&nrs);
	struct rd unsyms = nrs;
	for (size_t i = 0; i < range->n; i++)
		(void)rd_uleb(&unsyms);
	struct rd frames = unsyms;
	for (size_t i = 0; i < range->n; i++)
		(void)rd_uleb(&frames);

	VEC(struct frame) few = {0};
	uint64_t loc = 0;
	uint64_t func = 0;
	uint64_t file = 0;
	uint64_t line = 0;
	for (size_t i = 0; i < range->n; i++) {
		uint64_t nr = rd_uleb(&nrs);
		uint64_t unsym = rd_uleb(&unsyms);
		int rc = nr > UINT16_MAX || nr > rd_left(&frames) / 4
				 ? bad(err, "a location has too many frames")
				 : reserve(r, nr * sizeof(*few.p), err);
		if (rc) {
			vec_release(&few);
			return rc;
		}
		vec_clear(&few);
		for (size_t k = 0; k < nr; k++) {
			struct frame *f = vec_add(&few);
			f->func = check_id(r, delta(&frames, &func), p->functions.n);
			f->file = get_str(r, delta(&frames, &file));
			f->line = (uint32_t)delta(&frames, &line);
			uint8_t how = rd_u8(&frames);
			f->is_inferred = how == FRAME_BYTE_INFERRED;
			f->is_inlined = how && !f->is_inferred;
		}
		profile_set_frames(p, check_id(r, delta(in, &loc), p->locations.n), few.p, nr,
				   unsym < LOSS_NR ? (enum loss_kind)unsym : 0);
	}
	vec_release(&few);
	in->is_bad |= nrs.is_bad | unsyms.is_bad | frames.is_bad;
	return 0;
}

/* Appends zeroed elements; placeholders for lost elements come first. */
static struct assayfile_vec extend(struct profile *p, enum assayfile_section type,
				   const struct range *range)
{
	const struct assayfile_columns *columns = &assayfile_columns[type];
	struct assayfile_vec v = assayfile_vec(p, type);
	size_t gap = type == SECTION_MARKS ? 0 : range->gap; /* nothing refers to marks */
	size_t n = gap + range->n;
	if (v.cap - v.n < n) {
		v.cap = MAX(v.n + n, v.cap * 2);
		v.p = xreallocarray(v.p, v.cap, columns->each_bytes);
	}
	memset(v.p + v.n * columns->each_bytes, 0, n * columns->each_bytes);
	v.n += n;
	memcpy((uint8_t *)p + columns->vec, &v, sizeof(v));
	for (size_t i = v.n - n; i < v.n - range->n; i++)
		if (type == SECTION_FUNCTIONS)
			p->functions.p[i].name = profile_cstr(p, LOST);
		else if (type == SECTION_TASKS)
			p->tasks.p[i].comm = profile_cstr(p, LOST);
		else if (type == SECTION_TAGS)
			p->tags.p[i] = (struct tag){
				.reason = WAIT_UNKNOWN, .log2_ns = LOG2_NONE, .syscall = -1};
	return v;
}

/* Separate from the other sections for speed: this one is the largest. */
static int get_stacks(struct assayfile_reader *r, struct rd *in, const struct range *range,
		      struct err *err)
{
	struct profile *p = r->p;
	for (size_t i = 0; i < range->gap; i++)
		(void)vec_add(&p->stacks);
	size_t from = p->stacks.n;
	for (size_t self = from; self < from + range->n; self++) {
		uint64_t up = rd_uleb(in);
		if (!up || up > self) /* a parent comes before its children: no cycles */
			return bad(err, "a stack is its own ancestor");
		vec_push(&p->stacks, (struct stack_node){(stack_id)(self - up), 0});
	}
	uint64_t last = 0;
	for (size_t i = from; i < from + range->n; i++)
		p->stacks.p[i].loc = check_id(r, delta(in, &last), p->locations.n);
	return 0;
}

/* Converts a stored value to the field's; @nr: number of elements that an id may refer to. */
static uint64_t field_from(struct assayfile_reader *r, const struct assayfile_field *f, uint64_t v,
			   size_t nr)
{
	if (f->max && v > f->max)
		v = f->instead;
	if (f->ref == SECTION_STRINGS)
		return get_str(r, v);
	return f->ref ? check_id(r, v, nr) : (v & ~(uint64_t)f->dropped) - f->bias;
}

static int get_columns(struct assayfile_reader *r, struct rd *in, enum assayfile_section type,
		       const struct range *range)
{
	const struct assayfile_columns *columns = &assayfile_columns[type];
	struct assayfile_vec elements = extend(r->p, type, range);
	size_t from = elements.n - range->n;
	for (size_t c = 0; c < columns->nr; c++) {
		const struct assayfile_field *f = &columns->fields[c];
		size_t nr = f->ref ? assayfile_vec(r->p, f->ref).n : 0;
		uint8_t *at = elements.p + from * columns->each_bytes + f->offset;
		uint64_t last = 0;
		for (size_t i = from; i < elements.n; i++, at += columns->each_bytes) {
			if (f->is_optional && !rd_left(in))
				break;
			uint64_t v = f->is_delta ? delta(in, &last) : rd_uleb(in);
			v = field_from(r, f, v, nr);
			memcpy(at, &v, f->nr_bytes);
		}
	}
	struct location *l = r->p->locations.p;
	for (size_t i = from; type == SECTION_LOCATIONS && i < elements.n; i++)
		if (r->p->modules.p[l[i].module].kind ==
		    MODULE_PSEUDO) /* the offset is a function id */
			l[i].offset = check_id(r, l[i].offset, r->p->functions.n);
	return 0;
}

/* Reads a section of elements, which are numbered consecutively through the file. */
static int get_elements(struct assayfile_reader *r, struct rd *in, enum assayfile_section type,
			struct err *err)
{
	struct range range = {0};
	TRY(get_range(r, &range, in, type, err));
	if (type == SECTION_STRINGS)
		return get_strings(r, in, &range, err);
	if (type == SECTION_MODULES)
		return get_modules(r, in, &range, err);
	if (type == SECTION_NAMES)
		return get_names(r, in, &range, err);
	if (type == SECTION_STACKS)
		return get_stacks(r, in, &range, err);
	return get_columns(r, in, type, &range);
}

static int get_table(struct assayfile_reader *r, struct rd *in, struct err *err)
{
	uint64_t idx = rd_uleb(in);
	if (idx != r->p->tables.n) {
		if (!r->has_damage || idx < r->p->tables.n)
			return bad(err, "a table is out of order");
		return 0; /* an earlier table was lost: this one's samples count as damaged */
	}
	struct table t = {.event = get_str(r, rd_uleb(in))};
	uint64_t time_kind = rd_uleb(in);
	t.time_kind =
		time_kind <= TABLE_TIME_TIMELESS ? (enum table_time)time_kind : TABLE_TIME_TIMELESS;
	uint64_t nr = rd_uleb(in);
	uint64_t weight = rd_uleb(in);
	if (!nr || nr > TABLE_COLUMNS_MAX || weight >= nr)
		return bad(err, "a table has invalid columns");
	t.nr_columns = (uint32_t)nr;
	t.weight_column = (uint32_t)weight;
	for (uint32_t c = 0; c < nr; c++) {
		t.columns[c].name = get_str(r, rd_uleb(in));
		uint64_t unit = rd_uleb(in);
		t.columns[c].unit = unit <= UNIT_BYTES ? (enum unit)unit : UNIT_COUNT;
		uint64_t flags = rd_uleb(in);
		t.columns[c].is_level = flags & 1;
		t.columns[c].is_estimate = flags & 2;
	}
	uint64_t bits = rd_u64(in);
	memcpy(&t.freq_hz, &bits, sizeof(t.freq_hz));
	if (!(t.freq_hz >= 0 && t.freq_hz < 1e12))
		t.freq_hz = 0;
	if (rd_left(in)) /* not in version 1.0 */
		t.has_tags = rd_uleb(in) & ASSAYFILE_HAS_TAGS;
	t.id = tables_identify(r->p, &t);
	TRY(reserve(r, sizeof(t), err));
	vec_push(&r->p->tables, t);
	vec_push(&r->table_rows, 0);
	r->held[SECTION_TABLE] = r->p->tables.n;
	return 0;
}

static int get_samples(struct assayfile_reader *r, struct rd *in, struct err *err)
{
	struct profile *p = r->p;
	uint64_t idx = rd_uleb(in);
	if (idx >= p->tables.n)
		return r->has_damage ? 0 : bad(err, "samples of an unknown table");
	struct table *t = &p->tables.p[idx];
	uint64_t *rows = &r->table_rows.p[idx];
	uint64_t first = rd_uleb(in);
	uint64_t n = rd_uleb(in);
	uint32_t nr = t->nr_columns;
	if (in->is_bad || n > rd_left(in) / (4 + nr + t->has_tags) || first > UINT64_MAX / 2)
		return bad(err, "a section has an invalid count");
	if (first < *rows || (first > *rows && !r->has_damage))
		return bad(err, "a section does not continue its table");
	TRY(reserve(r, n * table_row_bytes(t), err));
	*rows = first + n;
	table_reserve(t, n);
	uint64_t last = 0;
	for (size_t i = t->n; i < t->n + n; i++)
		t->time_ns[i] = delta(in, &last);
	for (size_t i = t->n; i < t->n + n; i++)
		t->stack[i] = check_id(r, rd_uleb(in), p->stacks.n);
	last = 0;
	for (size_t i = t->n; i < t->n + n; i++)
		t->task[i] = check_id(r, delta(in, &last), p->tasks.n);
	last = 0;
	for (size_t i = t->n; i < t->n + n; i++)
		t->cpu[i] = (int16_t)delta(in, &last);
	for (uint32_t c = 0; c < nr; c++) {
		last = 0;
		for (size_t i = t->n; i < t->n + n; i++)
			t->values[i * nr + c] = (int64_t)delta(in, &last);
	}
	last = 0;
	for (size_t i = t->n; t->has_tags && i < t->n + n; i++)
		t->tag[i] = check_id(r, delta(in, &last), p->tags.n);
	t->n += n;
	r->nr_samples += n;
	return 0;
}

static int get_updates(struct assayfile_reader *r, struct rd *in, struct err *err)
{
	struct profile *p = r->p;
	while (rd_left(in)) {
		uint64_t what = rd_uleb(in);
		uint64_t idx = rd_uleb(in);
		uint64_t v = rd_uleb(in);
		bool is_there = what == UPDATE_MAPPING_END      ? idx < p->mappings.n
				: what == UPDATE_TASK_END       ? idx < p->tasks.n
				: what == UPDATE_MODULE_DELETED ? idx < p->modules.n
				: what == UPDATE_STACK_LOCATION ? idx && idx < p->stacks.n
								: false;
		if (!is_there && what < UPDATE_NR && !r->has_damage)
			return bad(err, "an update of an unknown element");
		if (!is_there)
			continue; /* lost, or of a newer version */
		if (what == UPDATE_MAPPING_END)
			p->mappings.p[idx].to_ns = v - 1;
		else if (what == UPDATE_TASK_END)
			p->tasks.p[idx].end_ns = v;
		else if (what == UPDATE_STACK_LOCATION)
			p->stacks.p[idx].loc = check_id(r, v, p->locations.n);
		else
			p->modules.p[idx].is_deleted = v != 0;
	}
	return 0;
}

static int get_state(struct assayfile_reader *r, struct rd *in, struct err *err)
{
	struct profile *p = r->p;
	r->state_samples = r->chunk_samples;
	p->start_ns = rd_uleb(in);
	p->end_ns = rd_uleb(in);
	p->wall_start_ns = rd_zigzag(in);
	p->is_incomplete = rd_uleb(in) != 0;
	uint64_t nr_losses = rd_uleb(in);
	if (nr_losses > rd_left(in))
		return bad(err, "too many kinds of losses");
	for (size_t i = 0; i < nr_losses; i++) {
		uint64_t v = rd_uleb(in);
		if (i < LOSS_NR)
			p->losses.nr[i] = v;
	}
	uint64_t nr_facts = rd_uleb(in);
	if (nr_facts > rd_left(in) / 2)
		return bad(err, "too many facts");
	vec_clear(&p->facts);
	for (size_t i = 0; i < nr_facts; i++) {
		str_id key = get_str(r, rd_uleb(in));
		str_id value = get_str(r, rd_uleb(in));
		vec_push(&p->facts, (struct fact){key, value});
	}
	return 0;
}

static int decode_section(struct assayfile_reader *r, uint8_t type, struct rd *in, struct err *err)
{
	if (type < ASSAYFILE_SECTIONS && assayfile_columns[type].least)
		return get_elements(r, in, (enum assayfile_section)type, err);
	if (type == SECTION_TABLE)
		return get_table(r, in, err);
	if (type == SECTION_SAMPLES)
		return get_samples(r, in, err);
	if (type == SECTION_STATE)
		return get_state(r, in, err);
	if (type == SECTION_UPDATES)
		return get_updates(r, in, err);
	if (type & SECTION_CRITICAL)
		return err_set(err, -ENOTSUP, "section %u needs a newer assay", type);
	r->nr_skipped++;
	return 0;
}

int decode_sections(struct assayfile_reader *r, const void *p, size_t n, struct err *err)
{
	struct rd in = rd_from(p, n);
	while (rd_left(&in)) {
		uint8_t type = rd_u8(&in);
		uint64_t len = rd_uleb(&in);
		if (in.is_bad || len > rd_left(&in))
			return bad(err, "a section is longer than its chunk");
		struct rd section = rd_sub(&in, len);
		int rc = decode_section(r, type, &section, err);
		if (!rc && section.is_bad)
			rc = bad(err, "it ends too early");
		if (!rc && r->is_wrong)
			rc = bad(err, "an id refers to no element");
		if (rc) {
			err_wrap(err, "section %u", type);
			return rc;
		}
	}
	return 0;
}
