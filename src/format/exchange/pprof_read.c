/*
 * Reader of pprof profiles; see pprof.h.
 *
 * The fields of a profile may be in any order, so the file is gone through several times: strings
 * and types, mappings and functions, locations, samples. All ids are looked up; what refers to
 * nothing is unknown.
 */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>
#include <math.h>

#include "base/file/protobuf.h"
#include "base/map.h"
#include "base/text/num.h"
#include "base/text/regex.h"
#include "base/vec.h"
#include "format/exchange/pprof.h"
#include "format/textframes.h"
#include "model/heap.h"

#define TYPES_MAX  256
#define DEPTH_MAX  65536 /* frames; no program has more */
#define LINES_MAX  1024  /* functions inlined at one address */
#define ROOM_EVERY 1024  /* samples between two checks of the memory */
#define LABELS_MAX 16    /* named in the fact about ignored labels */

struct type {
	uint32_t name; /* index of a string */
	uint32_t unit;
	uint32_t table; /* index in p->tables */
	uint32_t column;
	bool is_alone; /* without a count: column 0 is 1 */
};

struct in_mapping {
	uint64_t start;
	uint64_t offset;
	str_id path;
	struct sv build_id;
};

struct in_function {
	str_id name;
	str_id file;
	bool is_dropped;
};

struct in_location {
	loc_id loc;
	bool is_cut; /* has a frame of drop_frames */
	loc_id kept; /* then: its frames outside of that, 0 = none */
};

struct pprof_reader {
	struct profile *p;
	struct rd file;
	uint64_t nr_stored;
	VEC(struct sv) strings;
	VEC(struct type) types;
	VEC(struct in_mapping) mappings;
	VEC(struct in_function) functions;
	VEC(struct in_location) locations;
	struct map mapping_of; /* id -> index + 1; the others alike */
	struct map function_of;
	struct map location_of;
	VEC(struct text_frame) lines;
	VEC(uint64_t) stack; /* ids of one sample */
	VEC(int64_t) values;
	VEC(uint32_t) ignored; /* strings: keys of labels */
	struct map ignored_keys;
	struct regex *drop;
	struct regex *keep;
	uint64_t nr_negative;
	uint64_t interval; /* of heap samples */
};

static void reader_release(struct pprof_reader *r)
{
	vec_release(&r->strings);
	vec_release(&r->types);
	vec_release(&r->mappings);
	vec_release(&r->functions);
	vec_release(&r->locations);
	map_release(&r->mapping_of);
	map_release(&r->function_of);
	map_release(&r->location_of);
	vec_release(&r->lines);
	vec_release(&r->stack);
	vec_release(&r->values);
	vec_release(&r->ignored);
	map_release(&r->ignored_keys);
	regex_free(r->drop);
	regex_free(r->keep);
}

static struct sv string_at(const struct pprof_reader *r, uint64_t idx)
{
	return idx < r->strings.n ? r->strings.p[idx] : sv_from("", 0);
}

static str_id interned(struct pprof_reader *r, uint64_t idx)
{
	struct sv s = string_at(r, idx);
	return profile_str(r->p, s.p, s.n);
}

/* ---- sample types become columns ---------------------------------------------------------- */

static enum unit unit_of(struct sv unit, bool *ret_is_count)
{
	*ret_is_count = sv_eq(unit, SV("count")) || !unit.n;
	return sv_eq(unit, SV("nanoseconds")) ? UNIT_NS
	       : sv_eq(unit, SV("bytes"))     ? UNIT_BYTES
					      : UNIT_COUNT;
}

/* Whether a type counts the samples of the next one: "samples" of "cpu", "x_samples" of "x". */
static bool is_count_of(const struct pprof_reader *r, size_t i)
{
	if (i + 1 >= r->types.n)
		return false;
	bool is_count;
	bool is_next_count;
	struct sv name = string_at(r, r->types.p[i].name);
	struct sv next = string_at(r, r->types.p[i + 1].name);
	unit_of(string_at(r, r->types.p[i].unit), &is_count);
	unit_of(string_at(r, r->types.p[i + 1].unit), &is_next_count);
	struct sv suffix = SV("_samples");
	bool is_named = name.n == next.n + suffix.n && sv_has_prefix(name, next) &&
			sv_has_suffix(name, suffix);
	return is_count && (!is_next_count || is_named);
}

static void add_samples_table(struct pprof_reader *r, size_t i, bool has_count)
{
	struct type *value = &r->types.p[i + has_count];
	bool is_count;
	enum unit unit = unit_of(string_at(r, value->unit), &is_count);
	bool is_single = is_count && !has_count;
	bool is_cpu = has_count && unit == UNIT_NS && sv_eq(string_at(r, value->name), SV("cpu")) &&
		      sv_eq(string_at(r, r->types.p[i].name), SV("samples"));
	struct table t = {.event = interned(r, value->name),
			  .time_kind = TABLE_TIME_TIMELESS,
			  .nr_columns = is_single ? 1 : 2,
			  .weight_column = !is_single && !is_cpu};
	t.columns[0].name = profile_cstr(r->p, "samples");
	t.columns[1].name = profile_cstr(r->p, is_cpu ? "time" : "value");
	t.columns[1].unit = unit;
	value->table = profile_table(r->p, &t);
	value->column = !is_single;
	value->is_alone = !is_single && !has_count;
	if (has_count) {
		r->types.p[i].table = value->table;
		r->types.p[i].column = 0;
	}
}

static void add_tables(struct pprof_reader *r)
{
	for (size_t i = 0; i < r->types.n; i++) {
		struct type *t = &r->types.p[i];
		enum table_id id;
		if (pprof_find_type(string_at(r, t->name), &id, &t->column)) {
			t->table = tables_add(r->p, id, r->interval > 1 ? TABLES_ESTIMATE : 0);
			r->p->tables.p[t->table].time_kind = TABLE_TIME_TIMELESS;
			continue;
		}
		bool has_count = is_count_of(r, i);
		add_samples_table(r, i, has_count);
		i += has_count;
	}
}

static int read_type(struct pprof_reader *r, struct rd in, struct err *err)
{
	struct type t = {0};
	struct pb_field f;
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_TYPE_NAME)
			t.name = (uint32_t)MIN(f.v, UINT32_MAX);
		else if (f.nr == PPROF_TYPE_UNIT)
			t.unit = (uint32_t)MIN(f.v, UINT32_MAX);
	}
	if (r->types.n == TYPES_MAX)
		return err_set(err, -EINVAL, "more than %d sample types", TYPES_MAX);
	vec_push(&r->types, t);
	return 0;
}

/* ---- mappings, functions, locations ------------------------------------------------------- */

static void remember(struct map *m, uint64_t id, size_t nr)
{
	bool is_new;
	uint32_t *at = map_put(m, id, &is_new);
	if (is_new)
		*at = (uint32_t)nr;
}

static void read_mapping(struct pprof_reader *r, struct rd in)
{
	struct in_mapping m = {0};
	uint64_t id = 0;
	struct pb_field f;
	while (pb_next(&in, &f)) {
		switch (f.nr) {
		case PPROF_MAPPING_ID:
			id = f.v;
			break;
		case PPROF_MAPPING_START:
			m.start = f.v;
			break;
		case PPROF_MAPPING_OFFSET:
			m.offset = f.v;
			break;
		case PPROF_MAPPING_FILE:
			m.path = interned(r, f.v);
			break;
		case PPROF_MAPPING_BUILD_ID:
			m.build_id = string_at(r, f.v);
			break;
		}
	}
	vec_push(&r->mappings, m);
	remember(&r->mapping_of, id, r->mappings.n);
}

/* drop_frames is matched with the name up to its arguments. */
static bool is_dropped(struct pprof_reader *r, struct sv name)
{
	ssize_t paren = sv_index(name, '(');
	struct sv cut = paren > 0 ? sv_from(name.p, (size_t)paren) : name;
	return r->drop && cut.n && regex_match(r->drop, cut) &&
	       !(r->keep && regex_match(r->keep, cut));
}

static void read_function(struct pprof_reader *r, struct rd in)
{
	struct in_function fn = {0};
	uint64_t id = 0;
	uint64_t name = 0;
	uint64_t system_name = 0;
	struct pb_field f;
	while (pb_next(&in, &f)) {
		switch (f.nr) {
		case PPROF_FUNCTION_ID:
			id = f.v;
			break;
		case PPROF_FUNCTION_NAME:
			name = f.v;
			break;
		case PPROF_FUNCTION_SYSTEM_NAME:
			system_name = f.v;
			break;
		case PPROF_FUNCTION_FILE:
			fn.file = interned(r, f.v);
			break;
		}
	}
	name = string_at(r, name).n ? name : system_name;
	fn.name = interned(r, name);
	fn.is_dropped = is_dropped(r, string_at(r, name));
	vec_push(&r->functions, fn);
	remember(&r->function_of, id, r->functions.n);
}

/* Appends a frame; its function or its name may be missing. */
static void read_line(struct pprof_reader *r, struct rd in, bool *ret_is_dropped)
{
	const struct in_function *fn = NULL;
	uint64_t line = 0;
	struct pb_field f;
	*ret_is_dropped = false;
	while (pb_next(&in, &f)) {
		const uint32_t *at =
			f.nr == PPROF_LINE_FUNCTION ? map_get(&r->function_of, f.v) : NULL;
		fn = at ? &r->functions.p[*at - 1] : fn;
		line = f.nr == PPROF_LINE_NR ? f.v : line;
	}
	if (!fn || !fn->name || r->lines.n == LINES_MAX)
		return;
	*ret_is_dropped = fn->is_dropped;
	vec_push(&r->lines, (struct text_frame){.name = fn->name,
						.file = fn->file,
						.line = line <= INT32_MAX ? (uint32_t)line : 0});
}

static module_id elf_module(struct pprof_reader *r, const struct in_mapping *m)
{
	struct module mod = {.kind = MODULE_ELF, .path = m->path};
	const char *digits = "0123456789abcdef";
	for (size_t i = 0; i + 1 < m->build_id.n && i / 2 < MODULE_BUILD_ID_MAX; i += 2) {
		const char *high = strchr(digits, m->build_id.p[i]);
		const char *low = strchr(digits, m->build_id.p[i + 1]);
		if (!high || !low || !*high || !*low) /* not that of an ELF file */
			return profile_module(r->p, &(struct module){.kind = MODULE_ELF,
								     .path = m->path});
		mod.build_id[mod.nr_build_id++] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return profile_module(r->p, &mod);
}

/* An address without a line: symbolized later, if the file is an ELF file of this machine. */
static loc_id address_only(struct pprof_reader *r, const struct in_mapping *m, uint64_t address)
{
	if (!m)
		return text_unsymbolized(r->p, address, 0, 0);
	struct sv path = profile_sv(r->p, m->path);
	if (!sv_has_prefix(path, SV("/")) || sv_has_prefix(path, SV("//")) || address < m->start)
		return text_unsymbolized(r->p, address, m->path, text_func_flags(path));
	return profile_location(r->p, elf_module(r, m), address - m->start + m->offset, 0);
}

/* Whether the name stands for an address, where each location must have one: "[libc.so.6]". */
static bool is_unsymbolized(const struct pprof_reader *r, const struct in_mapping *m,
			    str_id name_id)
{
	struct sv name = profile_sv(r->p, name_id);
	struct sv path = profile_sv(r->p, m->path);
	struct sv base = sv_from_idx(path, (size_t)(sv_rindex(path, '/') + 1));
	bool has_own = base.n > 2 && base.p[0] == '[' && sv_eq(base, name); /* "[vdso]" */
	return has_own || (name.n == base.n + 2 && name.p[0] == '[' && name.p[name.n - 1] == ']' &&
			   !memcmp(name.p + 1, base.p, base.n));
}

static loc_id location_of_lines(struct pprof_reader *r, size_t first, str_id path)
{
	for (size_t i = first; i < r->lines.n; i++) {
		struct text_frame *line = &r->lines.p[i];
		line->path = path;
		line->func_flags = text_func_flags(profile_sv(r->p, path));
		line->is_inlined = i + 1 < r->lines.n;
	}
	return first < r->lines.n ? text_location(r->p, &r->lines.p[first], r->lines.n - first) : 0;
}

static void read_location(struct pprof_reader *r, struct rd in)
{
	struct in_location l = {0};
	const struct in_mapping *m = NULL;
	uint64_t id = 0;
	uint64_t address = 0;
	size_t first_kept = 0; /* lines are innermost first: a dropped one and those before it go */
	struct pb_field f;
	vec_clear(&r->lines);
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_LOCATION_ID) {
			id = f.v;
		} else if (f.nr == PPROF_LOCATION_MAPPING) {
			const uint32_t *at = map_get(&r->mapping_of, f.v);
			m = at ? &r->mappings.p[*at - 1] : NULL;
		} else if (f.nr == PPROF_LOCATION_ADDRESS) {
			address = f.v;
		} else if (f.nr == PPROF_LOCATION_LINE) {
			bool is_dropped_line;
			read_line(r, f.bytes, &is_dropped_line);
			l.is_cut |= is_dropped_line;
			first_kept = is_dropped_line ? r->lines.n : first_kept;
		}
	}
	if (r->lines.n == 1 && m && is_unsymbolized(r, m, r->lines.p[0].name))
		vec_clear(&r->lines);
	str_id path = m ? m->path : 0;
	l.loc = r->lines.n ? location_of_lines(r, 0, path) : address_only(r, m, address);
	l.kept = l.is_cut ? location_of_lines(r, first_kept, path) : 0;
	vec_push(&r->locations, l);
	remember(&r->location_of, id, r->locations.n);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* From the root on. Frames to drop are kept where there is nothing else above them. */
static stack_id stack_of(struct pprof_reader *r)
{
	stack_id at = 0;
	bool has_other = false;
	for (size_t i = r->stack.n; i--;) {
		const uint32_t *idx = map_get(&r->location_of, r->stack.p[i]);
		const struct in_location *l = idx ? &r->locations.p[*idx - 1] : NULL;
		loc_id loc = l ? l->loc : text_unsymbolized(r->p, r->stack.p[i], 0, 0);
		if (l && l->is_cut && has_other)
			return l->kept ? profile_stack(r->p, at, l->kept) : at;
		at = profile_stack(r->p, at, loc);
		has_other |= !l || !l->is_cut;
	}
	return at;
}

struct labels {
	int64_t pid;
	int64_t tid;
	int64_t nr_bytes;
	struct sv thread;
	struct sv reason;
	uint64_t object; /* strings */
	uint64_t detail;
};

static void read_label(struct pprof_reader *r, struct rd in, struct labels *to)
{
	uint64_t key = 0;
	uint64_t text = 0;
	uint64_t nr = 0;
	struct pb_field f;
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_LABEL_KEY)
			key = f.v;
		else if (f.nr == PPROF_LABEL_TEXT)
			text = f.v;
		else if (f.nr == PPROF_LABEL_NR)
			nr = f.v;
	}
	struct sv k = string_at(r, key);
	struct sv s = string_at(r, text);
	uint64_t v = nr;
	if (!nr && s.n && !sv_to_u64(s, &v))
		v = 0;
	if (sv_eq(k, SV(PPROF_PID)) || sv_eq(k, SV("process_id")))
		to->pid = v <= INT32_MAX ? (int64_t)v : -1;
	else if (sv_eq(k, SV(PPROF_TID)) || sv_eq(k, SV("thread_id")) || sv_eq(k, SV("thread id")))
		to->tid = v <= INT32_MAX ? (int64_t)v : -1;
	else if (sv_eq(k, SV(PPROF_THREAD)) || sv_eq(k, SV("comm")) ||
		 sv_eq(k, SV("thread_name")) || sv_eq(k, SV("thread name")))
		to->thread = s;
	else if (sv_eq(k, SV(PPROF_REASON)))
		to->reason = s;
	else if (sv_eq(k, SV(PPROF_OBJECT)))
		to->object = text;
	else if (sv_eq(k, SV(PPROF_DETAIL)))
		to->detail = text;
	else if (sv_eq(k, SV(PPROF_BYTES)))
		to->nr_bytes = v <= INT64_MAX ? (int64_t)v : 0;
	else if (key < r->strings.n) {
		bool is_new;
		(void)map_put(&r->ignored_keys, key, &is_new);
		if (is_new && r->ignored.n < LABELS_MAX)
			vec_push(&r->ignored, (uint32_t)key);
	}
}

/*
 * The number of blocks that were sampled and the variance of the estimate, which the file lacks:
 * blocks of a size are sampled with a probability that the mean distance of samples gives.
 */
static void estimate(const struct pprof_reader *r, const struct table *t, int64_t *values)
{
	const char *described = table_kind(t->id)->columns[HEAP_VARIANCE].name;
	if (r->interval <= 1 || values[HEAP_BLOCKS] <= 0 || !described ||
	    strcmp(described, "variance") != 0)
		return;
	double size = (double)values[HEAP_BYTES] / (double)values[HEAP_BLOCKS];
	double taken = -expm1(-size / (double)r->interval);
	if (!(taken > 0))
		return;
	double sampled = MAX((double)values[HEAP_BLOCKS] * taken, 1.0);
	double each = size / taken;
	double variance = sampled * each * each * (1 - taken);
	values[HEAP_SAMPLES] = (int64_t)MIN(sampled + 0.5, 9e18);
	values[HEAP_VARIANCE] = (int64_t)MIN(variance, 9e18);
}

static void add_row(struct pprof_reader *r, uint32_t table, const int64_t *values, stack_id stack,
		    task_id task, const struct labels *labels)
{
	const struct table *t = &r->p->tables.p[table];
	if (t->has_tags) {
		struct tag tag = {.reason = (uint8_t)wait_from_frame(labels->reason),
				  .log2_ns = LOG2_NONE,
				  .syscall = -1,
				  .object = interned(r, labels->object),
				  .detail = interned(r, labels->detail)};
		if (labels->nr_bytes)
			tag.size_class = heap_size_class((uint64_t)labels->nr_bytes);
		profile_tagged_sample(r->p, table, 0, stack, task, -1, profile_tag(r->p, &tag),
				      values);
	} else {
		profile_sample(r->p, table, 0, stack, task, -1, values);
	}
	profile_lose(r->p, LOSS_SEEN, (uint64_t)values[0]);
	profile_lose(r->p, LOSS_WRITTEN, (uint64_t)values[0]);
}

/* One row for each table of which a value is not 0. */
static void add_rows(struct pprof_reader *r, const struct labels *labels)
{
	stack_id stack = stack_of(r);
	task_id task = profile_task(r->p, (int32_t)labels->pid, (int32_t)labels->tid,
				    profile_str(r->p, labels->thread.p, labels->thread.n), 0);
	for (uint32_t table = 0; table < r->p->tables.n; table++) {
		int64_t values[TABLE_COLUMNS_MAX] = {0};
		bool has_value = false;
		for (size_t i = 0; i < r->types.n; i++) {
			const struct type *t = &r->types.p[i];
			if (t->table != table || !r->values.p[i])
				continue;
			values[t->column] = r->values.p[i];
			values[0] = t->is_alone ? 1 : values[0];
			has_value = true;
		}
		if (!has_value)
			continue;
		estimate(r, &r->p->tables.p[table], values);
		add_row(r, table, values, stack, task, labels);
	}
}

static bool has_negative(const struct pprof_reader *r)
{
	vec_foreach(v, &r->values)
		if (*v < 0)
			return true;
	return false;
}

static void read_sample(struct pprof_reader *r, struct rd in)
{
	struct labels labels = {.pid = -1, .tid = -1, .thread = SV("")};
	struct pb_field f;
	uint64_t v;
	bool is_bad = false;
	vec_clear(&r->stack);
	vec_clear(&r->values);
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_SAMPLE_LOCATIONS) {
			while (r->stack.n <= DEPTH_MAX && pb_next_number(&f, &v))
				vec_push(&r->stack, v);
		} else if (f.nr == PPROF_SAMPLE_VALUES) {
			while (r->values.n <= TYPES_MAX && pb_next_number(&f, &v))
				vec_push(&r->values, (int64_t)v);
		} else if (f.nr == PPROF_SAMPLE_LABEL) {
			read_label(r, f.bytes, &labels);
		}
		is_bad |= f.bytes.is_bad;
	}
	bool is_negative = has_negative(r);
	r->nr_negative += is_negative;
	if (is_bad || in.is_bad || is_negative || r->stack.n > DEPTH_MAX ||
	    r->values.n != r->types.n) {
		profile_lose(r->p, LOSS_SEEN, 1);
		profile_lose(r->p, LOSS_UNPARSED, 1);
		return;
	}
	labels.pid = labels.pid < 0 ? labels.tid : labels.pid;
	add_rows(r, &labels);
}

/* ---- the file ----------------------------------------------------------------------------- */

static uint64_t held(const struct pprof_reader *r)
{
	return (uint64_t)(r->file.end - r->file.p) + r->strings.n * sizeof(*r->strings.p) +
	       r->mappings.n * (sizeof(*r->mappings.p) + sizeof(struct map_slot) * 2) +
	       r->functions.n * (sizeof(*r->functions.p) + sizeof(struct map_slot) * 2) +
	       r->locations.n * (sizeof(*r->locations.p) + sizeof(struct map_slot) * 2);
}

/* Comments of ours are the losses of the capture; others are shown. */
static void read_comment(struct pprof_reader *r, struct sv comment)
{
	if (!sv_has_prefix(comment, SV(PPROF_LOSS))) {
		if (!profile_get_fact_text(r->p, "comment")) {
			CLEANUP(buf_release) struct buf b = {0};
			buf_add_sv(&b, comment);
			profile_fact_text(r->p, "comment", buf_str(&b));
		}
		return;
	}
	struct sv rest = sv_from_idx(comment, SV(PPROF_LOSS).n);
	struct sv key = sv_split(&rest, ' ');
	uint64_t nr;
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (!sv_eq(key, sv_from_str(loss_key(k))) || !sv_to_u64(rest, &nr))
			continue;
		if (!pprof_has_loss(k))
			return;
		profile_lose(r->p, k, nr);
		if (loss_class(k) == LOSS_CLASS_LOST || k == LOSS_FILTERED)
			profile_lose(r->p, LOSS_SEEN, nr);
	}
}

static void set_pattern(struct pprof_reader *r, struct regex **ret_re, uint64_t string)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	buf_add_sv(&b, string_at(r, string));
	if (b.n && !*ret_re && regex_new(ret_re, buf_str(&b), REGEX_WHOLE, &err))
		profile_factf(r->p, FACT_PROBLEM, "frames that pprof drops are shown: %s",
			      err_msg(&err));
}

/* Strings, types, and the numbers about the profile. */
static int read_head(struct pprof_reader *r, struct err *err)
{
	struct rd in = r->file;
	struct pb_field f;
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_STRING) {
			vec_push(&r->strings, pb_text(&f));
			TRY(r->strings.n % ROOM_EVERY
				    ? 0
				    : format_check_room(r->nr_stored, r->p, held(r), err));
		} else if (f.nr == PPROF_SAMPLE_TYPE) {
			TRY(read_type(r, f.bytes, err));
		} else if (f.nr == PPROF_TIME_NS) {
			r->p->wall_start_ns = (int64_t)f.v;
		} else if (f.nr == PPROF_DURATION_NS && f.v < INT64_MAX) {
			r->p->start_ns = 1; /* 0 is unknown; samples have no times */
			r->p->end_ns = 1 + f.v;
		} else if (f.nr == PPROF_PERIOD) {
			r->interval = f.v;
		}
	}
	return in.is_bad ? err_set(err, -EINVAL, "byte %zu: damaged field of a pprof profile",
				   (size_t)(in.p - r->file.p))
			 : 0;
}

/* What needs the strings. */
static void read_settings(struct pprof_reader *r)
{
	struct rd in = r->file;
	struct pb_field f;
	bool is_of_heap = false;
	while (pb_next(&in, &f)) {
		if (f.nr == PPROF_DROP_FRAMES)
			set_pattern(r, &r->drop, f.v);
		else if (f.nr == PPROF_KEEP_FRAMES)
			set_pattern(r, &r->keep, f.v);
		else if (f.nr == PPROF_COMMENT)
			for (uint64_t v; pb_next_number(&f, &v);)
				read_comment(r, string_at(r, v));
		else if (f.nr == PPROF_PERIOD_TYPE)
			for (struct pb_field t; pb_next(&f.bytes, &t);)
				is_of_heap |= t.nr == PPROF_TYPE_UNIT &&
					      sv_eq(string_at(r, t.v), SV("bytes"));
	}
	r->interval = is_of_heap ? r->interval : 0;
	if (r->interval > 1)
		profile_fact_nr(r->p, FACT_HEAP_SAMPLING, r->interval);
}

/* Calls take() with each field of a number. */
static int read_each(struct pprof_reader *r, uint32_t nr,
		     void (*take)(struct pprof_reader *r, struct rd in), struct err *err)
{
	struct rd in = r->file;
	struct pb_field f;
	for (uint64_t i = 0; pb_next(&in, &f);) {
		if (f.nr != nr)
			continue;
		take(r, f.bytes);
		if (++i % ROOM_EVERY == 0 || r->stack.n > ROOM_EVERY)
			TRY(format_check_room(r->nr_stored, r->p, held(r), err));
	}
	return 0;
}

static void note_ignored(struct pprof_reader *r)
{
	CLEANUP(buf_release) struct buf b = {0};
	vec_foreach(key, &r->ignored) {
		buf_add_str(&b, b.n ? ", " : "");
		buf_add_sv(&b, string_at(r, *key));
	}
	if (r->ignored_keys.n > r->ignored.n)
		buf_addf(&b, " and %zu more", r->ignored_keys.n - r->ignored.n);
	if (b.n)
		profile_fact_text(r->p, "labels not shown", buf_str(&b));
	if (r->nr_negative)
		profile_factf(r->p, FACT_PROBLEM,
			      "a difference: %" PRIu64
			      " samples with negative values are counted as unparsed",
			      r->nr_negative);
}

int pprof_read(struct profile *p, const struct format_input *in,
	       const struct format_options *options, struct err *err)
{
	(void)options;
	CLEANUP(buf_release) struct buf all = {0};
	struct sv bytes;
	TRY(format_input_text(in, &all, &bytes, err));
	CLEANUP(reader_release)
	struct pprof_reader r = {
		.p = p, .file = rd_from(bytes.p, bytes.n), .nr_stored = format_input_stored(in)};
	TRY(read_head(&r, err));
	if (!r.types.n)
		return err_set(err, -EINVAL, "a pprof profile without sample types");
	profile_fact(p, FACT_SOURCE, "pprof");
	read_settings(&r);
	add_tables(&r);
	TRY(read_each(&r, PPROF_MAPPING, read_mapping, err));
	TRY(read_each(&r, PPROF_FUNCTION, read_function, err));
	TRY(read_each(&r, PPROF_LOCATION, read_location, err));
	TRY(read_each(&r, PPROF_SAMPLE, read_sample, err));
	note_ignored(&r);
	return 0;
}

/* ---- recognition -------------------------------------------------------------------------- */

/* Whether a field has its type. */
static bool is_field(const struct pb_field *f)
{
	switch (f->nr) {
	case PPROF_SAMPLE_TYPE:
	case PPROF_SAMPLE:
	case PPROF_MAPPING:
	case PPROF_LOCATION:
	case PPROF_FUNCTION:
	case PPROF_STRING:
	case PPROF_PERIOD_TYPE:
		return f->type == PB_BYTES;
	case PPROF_COMMENT:
		return f->type == PB_BYTES || f->type == PB_VARINT;
	default:
		return f->nr <= PPROF_DOC_URL && f->type == PB_VARINT;
	}
}

static bool is_value_type(struct rd in)
{
	struct pb_field f;
	while (pb_next(&in, &f))
		if (f.nr > PPROF_TYPE_UNIT || f.type != PB_VARINT)
			return false;
	return !in.is_bad;
}

/* There is no mark: all whole fields of the head must be those of a profile, and one a type. */
int pprof_sniff(struct sv head)
{
	struct rd in = rd_from(head.p, head.n);
	struct pb_field f;
	bool has_type = false;
	while (pb_next(&in, &f)) {
		if (!is_field(&f))
			return 0;
		if (f.nr == PPROF_SAMPLE_TYPE && !is_value_type(f.bytes))
			return 0;
		has_type |= f.nr == PPROF_SAMPLE_TYPE;
	}
	bool is_cut_off = in.is_bad && head.n < FORMAT_SNIFF_BYTES;
	return has_type && !is_cut_off ? 90 : 0;
}
