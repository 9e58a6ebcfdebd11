/*
 * Writer of pprof profiles; see pprof.h.
 *
 * One sample per (thread, stack, labels), with one value for each summable column of the tables that
 * are written: so the tables share stacks. Ids are 1 to n in order; every location has a line, since
 * pprof would look for the names of others in local binaries, and so would it for mappings that do
 * not claim to have functions.
 */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file/protobuf.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/vec.h"
#include "format/exchange/pprof.h"
#include "format/textframes.h"
#include "model/heap.h"

/* A column of a table, and its values' place in each sample. */
struct value_type {
	const struct table *t;
	uint32_t column;
	uint32_t name;
};

/* The labels of a row besides its thread; ids of strings of the file. */
struct about {
	uint32_t reason;
	uint32_t object;
	uint32_t detail;
	uint16_t size_class;
};

struct sample {
	stack_id stack;
	task_id task;
	uint32_t about;
};

struct out_mapping {
	module_id module;
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
};

struct pprof_writer {
	const struct profile *p;
	const struct format_options *options;
	struct intern strings; /* the file's; 0 is "" as it must be */
	VEC(struct value_type) types;
	VEC(struct about) abouts;
	struct intern about_keys; /* bytes of a struct about -> index + 1 */
	VEC(struct sample) samples;
	VEC(int64_t) values;    /* samples x types */
	struct map pairs;       /* (task, stack) -> index */
	struct map index;       /* (pair, about) -> sample */
	VEC(uint32_t) by_place; /* mappings of the profile, by (module, pgoff) */
	VEC(struct out_mapping) mappings;
	struct map mapping_of;  /* module << 32 | mapping + 1, or module << 32 -> id */
	uint32_t *first_of_loc; /* by loc_id: id of its first location in the file, 0 = none */
	struct map functions;   /* func << 32 | file, or a string -> id */
	VEC(uint64_t) numbers;
	uint64_t nr_locations;
	struct buf locations;
	struct buf function_bytes;
	struct buf message; /* scratch */
	struct buf inner;
	struct buf text;
};

static void writer_release(struct pprof_writer *w)
{
	intern_release(&w->strings);
	intern_release(&w->about_keys);
	vec_release(&w->types);
	vec_release(&w->abouts);
	vec_release(&w->samples);
	vec_release(&w->values);
	map_release(&w->pairs);
	map_release(&w->index);
	vec_release(&w->by_place);
	vec_release(&w->mappings);
	map_release(&w->mapping_of);
	free_p(&w->first_of_loc);
	map_release(&w->functions);
	vec_release(&w->numbers);
	buf_release(&w->locations);
	buf_release(&w->function_bytes);
	buf_release(&w->message);
	buf_release(&w->inner);
	buf_release(&w->text);
}

/* Strings of a protobuf are UTF-8. */
static uint32_t string_of(struct pprof_writer *w, struct sv s)
{
	buf_clear(&w->text);
	escape_term(&w->text, s);
	return intern_add(&w->strings, w->text.p, w->text.n);
}

static uint32_t string_of_id(struct pprof_writer *w, str_id id)
{
	return string_of(w, profile_sv(w->p, id));
}

/* ---- sample types ------------------------------------------------------------------------- */

/* Whether a table is written unless another one is named. */
static bool is_written(const struct table *t)
{
	const struct table_kind *k = table_kind(t->id);
	return t->n && !k->is_on_request && k->rank != TABLE_RANK_SIDE && t->id != TABLE_SNAPSHOTS;
}

static void add_types(struct pprof_writer *w, const struct table *t)
{
	for (uint32_t c = 0; c < t->nr_columns; c++) {
		CLEANUP(buf_release) struct buf name = {0};
		if (pprof_add_type(&name, w->p, t, c))
			vec_push(&w->types, (struct value_type){t, c, string_of(w, buf_sv(&name))});
	}
}

static int choose_types(struct pprof_writer *w, struct err *err)
{
	const char *event = w->options->event;
	const struct table *t;
	if (event) {
		TRY(format_pick_table(w->p, event, &t, err));
		if (t->id == TABLE_SNAPSHOTS)
			return err_set(err, -EINVAL,
				       "snapshots of a heap cannot be added up to one profile");
		add_types(w, t);
		return 0;
	}
	vec_foreach(it, &w->p->tables)
		if (is_written(it))
			add_types(w, it);
	return 0;
}

/* What pprof shows first: the weight of the table that our views show first. */
static const struct value_type *default_type(const struct pprof_writer *w)
{
	const struct value_type *best = NULL;
	vec_foreach(t, &w->types)
		if (t->column == t->t->weight_column &&
		    (!best || table_kind(t->t->id)->rank > table_kind(best->t->id)->rank ||
		     (table_kind(t->t->id)->rank == table_kind(best->t->id)->rank &&
		      t->t->id == TABLE_LIVE)))
			best = t;
	return best;
}

/* ---- samples ------------------------------------------------------------------------------ */

static uint32_t about_of(struct pprof_writer *w, const struct table *t, size_t row)
{
	if (!t->has_tags)
		return 0;
	const struct tag *tag = &w->p->tags.p[t->tag[row]];
	struct about a;
	memset(&a, 0, sizeof(a)); /* it is hashed with its padding */
	const char *leaf = w->options->synth_leaf_of
				   ? w->options->synth_leaf_of(w->options->synth_leaf_ctx, t, row)
				   : NULL;
	struct sv reason = sv_from_str(leaf ? leaf : "");
	if (reason.n > 2)
		a.reason = string_of(w, sv_from(reason.p + 1, reason.n - 2)); /* "[lock]" */
	a.object = string_of_id(w, tag->object);
	a.detail = string_of_id(w, tag->detail);
	a.size_class = tag->size_class;
	uint32_t idx = intern_add(&w->about_keys, (const char *)&a, sizeof(a)) - 1;
	if (idx == w->abouts.n)
		vec_push(&w->abouts, a);
	return idx;
}

static size_t sample_of(struct pprof_writer *w, const struct sample *s)
{
	bool is_new;
	uint32_t *pair = map_put(&w->pairs, (uint64_t)s->task << 32 | s->stack, &is_new);
	if (is_new)
		*pair = (uint32_t)w->pairs.n;
	uint32_t *at = map_put(&w->index, (uint64_t)*pair << 32 | s->about, &is_new);
	if (!is_new)
		return *at;
	*at = (uint32_t)w->samples.n;
	vec_push(&w->samples, *s);
	for (size_t i = 0; i < w->types.n; i++)
		vec_push(&w->values, 0);
	return *at;
}

static void collect(struct pprof_writer *w)
{
	vec_push(&w->abouts, (struct about){0});
	struct about none;
	memset(&none, 0, sizeof(none));
	intern_add(&w->about_keys, (const char *)&none, sizeof(none));
	for (size_t first = 0, end; first < w->types.n; first = end) {
		const struct table *t = w->types.p[first].t;
		for (end = first; end < w->types.n && w->types.p[end].t == t; end++)
			;
		for (size_t row = 0; row < t->n; row++) {
			struct sample s = {t->stack[row], t->task[row], about_of(w, t, row)};
			size_t at = sample_of(w, &s); /* moves the values */
			int64_t *v = &w->values.p[at * w->types.n];
			for (size_t i = first; i < end; i++)
				v[i] = (int64_t)((uint64_t)v[i] +
						 (uint64_t)t->values[row * t->nr_columns +
								     w->types.p[i].column]);
		}
	}
}

/* ---- mappings ----------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b, void *profile)
{
	const struct profile *p = profile;
	const struct mapping *x = &p->mappings.p[*(const uint32_t *)a];
	const struct mapping *y = &p->mappings.p[*(const uint32_t *)b];
	return COMPARE(x->module, y->module) ?: COMPARE(x->pgoff, y->pgoff) ?: COMPARE(x, y);
}

static void sort_mappings(struct pprof_writer *w)
{
	for (uint32_t i = 0; i < w->p->mappings.n; i++)
		vec_push(&w->by_place, i);
	if (w->by_place.n)
		qsort_r(w->by_place.p, w->by_place.n, sizeof(*w->by_place.p), by_place,
			(void *)w->p);
}

/*
 * The mapping of a location of an ELF file; processes map it at several addresses, of which one is
 * used for all. NULL: not known.
 */
static const struct mapping *mapping_of_code(const struct pprof_writer *w, const struct location *l)
{
	size_t low = 0;
	size_t high = w->by_place.n;
	while (low < high) { /* the first mapping after (module, offset) */
		size_t mid = low + (high - low) / 2;
		const struct mapping *m = &w->p->mappings.p[w->by_place.p[mid]];
		if (m->module != l->module ? m->module < l->module : m->pgoff <= l->offset)
			low = mid + 1;
		else
			high = mid;
	}
	const struct mapping *m = low ? &w->p->mappings.p[w->by_place.p[low - 1]] : NULL;
	return m && m->module == l->module && l->offset - m->pgoff < m->len ? m : NULL;
}

static uint32_t mapping_id(struct pprof_writer *w, uint32_t key, const struct out_mapping *m)
{
	bool is_new;
	uint32_t *id = map_put(&w->mapping_of, (uint64_t)m->module << 32 | key, &is_new);
	if (is_new) {
		vec_push(&w->mappings, *m);
		*id = (uint32_t)w->mappings.n;
	}
	return *id;
}

/* Returns the id of a location's mapping, and sets its address; both 0: none. */
static uint32_t place(struct pprof_writer *w, const struct location *l, uint64_t *ret_address)
{
	const struct module *mod = &w->p->modules.p[l->module];
	/* pprof's addresses are within the instruction, also that of a call */
	uint64_t offset = l->offset - (l->flags & LOCATION_CALL && l->offset);
	*ret_address = 0;
	if (mod->kind == MODULE_NONE || mod->kind == MODULE_PSEUDO ||
	    (mod->kind == MODULE_NAMED && !mod->path))
		return 0;
	const struct mapping *m = mod->kind == MODULE_ELF ? mapping_of_code(w, l) : NULL;
	if (m) {
		*ret_address = m->start + (offset - m->pgoff);
		struct out_mapping out = {l->module, m->start, m->start + m->len, m->pgoff};
		return mapping_id(w, (uint32_t)(m - w->p->mappings.p) + 1, &out);
	}
	struct out_mapping out = {.module = l->module};
	uint32_t id = mapping_id(w, 0, &out);
	if (mod->kind == MODULE_NAMED && l->nr_frames)
		return id; /* its offset is no address */
	*ret_address = offset;
	struct out_mapping *all = &w->mappings.p[id - 1];
	uint64_t page = offset & ~(uint64_t)4095;
	all->start = all->limit ? MIN(all->start, page) : page;
	all->limit = MAX(all->limit, page > UINT64_MAX - 4096 ? UINT64_MAX : page + 4096);
	return id;
}

static bool is_program_file(const struct profile *p, module_id id)
{
	const struct module *m = &p->modules.p[id];
	return (m->kind == MODULE_ELF || m->kind == MODULE_NAMED) &&
	       sv_has_prefix(profile_sv(p, m->path), SV("/")) &&
	       !strstr(profile_module_name(p, id), ".so");
}

/* pprof takes the first mapping for the program: that below most of the samples' stacks. */
static void place_program(struct pprof_writer *w)
{
	CLEANUP(free_p) uint64_t *nr = xcalloc(w->p->modules.n, sizeof(*nr));
	module_id best = 0;
	loc_id best_loc = 0;
	vec_foreach(s, &w->samples) {
		loc_id outermost = 0;
		for (stack_id at = s->stack; at; at = w->p->stacks.p[at].parent) {
			loc_id loc = w->p->stacks.p[at].loc;
			module_id id = w->p->locations.p[loc].module;
			bool is_program = is_program_file(w->p, id);
			outermost = is_program ? loc : outermost;
		}
		module_id id = w->p->locations.p[outermost].module;
		if (outermost && ++nr[id] > nr[best]) {
			best = id;
			best_loc = outermost;
		}
	}
	uint64_t address;
	if (best)
		(void)place(w, &w->p->locations.p[best_loc], &address); /* the first one placed */
}

/* ---- locations and functions -------------------------------------------------------------- */

static uint64_t function_id(struct pprof_writer *w, uint64_t key, uint32_t name,
			    uint32_t system_name, uint32_t file)
{
	bool is_new;
	uint32_t *id = map_put(&w->functions, key, &is_new);
	if (!is_new)
		return *id;
	*id = (uint32_t)w->functions.n;
	buf_clear(&w->message);
	pb_put_number(&w->message, PPROF_FUNCTION_ID, *id);
	pb_put_number(&w->message, PPROF_FUNCTION_NAME, name);
	/* equal names would be demangled again, which cuts "<A as B>::c" to "::c" */
	pb_put_number(&w->message, PPROF_FUNCTION_SYSTEM_NAME,
		      system_name == name ? 0 : system_name);
	pb_put_number(&w->message, PPROF_FUNCTION_FILE, file);
	pb_put_bytes(&w->function_bytes, PPROF_FUNCTION, w->message.p, w->message.n);
	return *id;
}

static uint64_t function_of_frame(struct pprof_writer *w, const struct frame *f)
{
	const struct function *fn = &w->p->functions.p[f->func];
	return function_id(w, (uint64_t)f->func << 32 | f->file,
			   string_of(w, sv_from_str(profile_frame_name(w->p, f))),
			   string_of_id(w, fn->linkage), string_of_id(w, f->file));
}

/* A function for what has no symbol; function 0 of a profile is none, so its keys are free. */
static uint64_t function_of_text(struct pprof_writer *w, struct sv text)
{
	uint32_t name = string_of(w, text);
	return function_id(w, name, name, 0, 0);
}

static void add_line(struct buf *to, uint64_t function, uint32_t line)
{
	CLEANUP(buf_release) struct buf b = {0};
	pb_put_number(&b, PPROF_LINE_FUNCTION, function);
	pb_put_number(&b, PPROF_LINE_NR, line);
	pb_put_bytes(to, PPROF_LOCATION_LINE, b.p, b.n);
}

/* Ends a location, whose lines are in w->inner. */
static void end_location(struct pprof_writer *w, uint32_t mapping, uint64_t address)
{
	buf_clear(&w->message);
	pb_put_number(&w->message, PPROF_LOCATION_ID, ++w->nr_locations);
	pb_put_number(&w->message, PPROF_LOCATION_MAPPING, mapping);
	pb_put_number(&w->message, PPROF_LOCATION_ADDRESS, address);
	buf_add_sv(&w->message, buf_sv(&w->inner));
	pb_put_bytes(&w->locations, PPROF_LOCATION, w->message.p, w->message.n);
	buf_clear(&w->inner);
}

static bool has_line_each(const struct pprof_writer *w)
{
	return w->options->pprof.has_inline_locations;
}

static void add_location(struct pprof_writer *w, loc_id loc)
{
	const struct location *l = &w->p->locations.p[loc];
	uint64_t address;
	uint32_t mapping = place(w, l, &address);
	w->first_of_loc[loc] = (uint32_t)w->nr_locations + 1;
	buf_clear(&w->inner);
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &w->p->frames.p[l->first_frame + i];
		uint64_t function = function_of_frame(w, f);
		add_line(&w->inner, function, f->line);
		if (has_line_each(w) || i + 1u == l->nr_frames)
			end_location(w, mapping, address);
	}
	if (l->nr_frames)
		return;
	CLEANUP(buf_release) struct buf name = {0};
	text_add_unsymbolized(&name, w->p, loc, 0);
	add_line(&w->inner, function_of_text(w, buf_sv(&name)), 0);
	end_location(w, mapping, address);
}

/* The file's locations of a stack, leaf first. */
static void set_stack(struct pprof_writer *w, stack_id stack)
{
	vec_clear(&w->numbers);
	for (stack_id s = stack; s; s = w->p->stacks.p[s].parent) {
		loc_id loc = w->p->stacks.p[s].loc;
		if (!w->first_of_loc[loc])
			add_location(w, loc);
		uint32_t nr = has_line_each(w) ? MAX(w->p->locations.p[loc].nr_frames, 1u) : 1;
		for (uint32_t i = 0; i < nr; i++)
			vec_push(&w->numbers, w->first_of_loc[loc] + i);
	}
	if (stack)
		return;
	if (!w->first_of_loc[0]) { /* location 0 is none */
		add_line(&w->inner, function_of_text(w, SV("[no stack]")), 0);
		end_location(w, 0, 0);
		w->first_of_loc[0] = (uint32_t)w->nr_locations;
	}
	vec_push(&w->numbers, w->first_of_loc[0]);
}

/* ---- the file ----------------------------------------------------------------------------- */

static void put_label(struct buf *to, uint32_t key, uint32_t text, uint64_t nr, uint32_t unit)
{
	CLEANUP(buf_release) struct buf b = {0};
	pb_put_number(&b, PPROF_LABEL_KEY, key);
	pb_put_number(&b, PPROF_LABEL_TEXT, text);
	pb_put_number(&b, PPROF_LABEL_NR, nr);
	pb_put_number(&b, PPROF_LABEL_UNIT, unit);
	pb_put_bytes(to, PPROF_SAMPLE_LABEL, b.p, b.n);
}

static void put_text_label(struct pprof_writer *w, const char *key, uint32_t text)
{
	if (text)
		put_label(&w->message, string_of(w, sv_from_str(key)), text, 0, 0);
}

static void put_number_label(struct pprof_writer *w, const char *key, int64_t nr, const char *unit)
{
	if (nr > 0)
		put_label(&w->message, string_of(w, sv_from_str(key)), 0, (uint64_t)nr,
			  string_of(w, sv_from_str(unit)));
}

static void put_sample(struct pprof_writer *w, struct buf *to, size_t i)
{
	const struct sample *s = &w->samples.p[i];
	const struct task *task = &w->p->tasks.p[s->task];
	const struct about *a = &w->abouts.p[s->about];
	set_stack(w, s->stack); /* before the message: it uses that */
	buf_clear(&w->message);
	pb_put_numbers(&w->message, PPROF_SAMPLE_LOCATIONS, w->numbers.p, w->numbers.n, &w->inner);
	pb_put_numbers(&w->message, PPROF_SAMPLE_VALUES,
		       (const uint64_t *)&w->values.p[i * w->types.n], w->types.n, &w->inner);
	buf_clear(&w->inner);
	put_text_label(w, PPROF_THREAD, string_of_id(w, task->comm));
	put_number_label(w, PPROF_PID, task->pid, "");
	put_number_label(w, PPROF_TID, task->tid, "");
	put_text_label(w, PPROF_REASON, a->reason);
	put_text_label(w, PPROF_OBJECT, a->object);
	put_text_label(w, PPROF_DETAIL, a->detail);
	if (a->size_class)
		put_number_label(w, PPROF_BYTES, (int64_t)heap_class_min(a->size_class), "bytes");
	pb_put_bytes(to, PPROF_SAMPLE, w->message.p, w->message.n);
}

static void put_type(struct pprof_writer *w, struct buf *to, uint32_t field, uint32_t name,
		     const char *unit)
{
	uint32_t unit_id = string_of(w, sv_from_str(unit));
	buf_clear(&w->message);
	pb_put_number(&w->message, PPROF_TYPE_NAME, name);
	pb_put_number(&w->message, PPROF_TYPE_UNIT, unit_id);
	pb_put_bytes(to, field, w->message.p, w->message.n);
}

static void put_mapping(struct pprof_writer *w, struct buf *to, size_t i)
{
	const struct out_mapping *m = &w->mappings.p[i];
	const struct module *mod = &w->p->modules.p[m->module];
	char hex[2 * MODULE_BUILD_ID_MAX + 1] = "";
	for (size_t k = 0; k < mod->nr_build_id; k++)
		(void)snprintf(hex + 2 * k, 3, "%02x", mod->build_id[k]);
	uint32_t build_id = string_of(w, sv_from_str(hex));
	uint32_t file = mod->path ? string_of_id(w, mod->path)
				  : string_of(w, sv_from_str(profile_module_name(w->p, m->module)));
	buf_clear(&w->message);
	pb_put_number(&w->message, PPROF_MAPPING_ID, i + 1);
	pb_put_number(&w->message, PPROF_MAPPING_START, m->start);
	pb_put_number(&w->message, PPROF_MAPPING_LIMIT, m->limit);
	pb_put_number(&w->message, PPROF_MAPPING_OFFSET, m->offset);
	pb_put_number(&w->message, PPROF_MAPPING_FILE, file);
	pb_put_number(&w->message, PPROF_MAPPING_BUILD_ID, build_id);
	for (uint32_t has = 0; has < 4; has++)
		pb_put_number(&w->message, PPROF_MAPPING_HAS_FUNCTIONS + has, 1);
	pb_put_bytes(to, PPROF_MAPPING, w->message.p, w->message.n);
}

/* The sampling period: of CPU time, else of a heap. */
static void put_period(struct pprof_writer *w, struct buf *to)
{
	const char *interval = profile_get_fact(w->p, FACT_HEAP_SAMPLING);
	vec_foreach(t, &w->types) {
		if (t->t->id == TABLE_SAMPLES &&
		    sv_eq(intern_get(&w->strings, t->name), SV("cpu"))) {
			double hz = t->t->freq_hz;
			const int64_t *row = t->t->values;
			double ns = hz > 0              ? 1e9 / hz
				    : t->t->n && row[0] ? (double)row[t->column] / (double)row[0]
							: 0;
			put_type(w, to, PPROF_PERIOD_TYPE, t->name, pprof_unit(UNIT_NS));
			pb_put_number(to, PPROF_PERIOD, (uint64_t)(ns + 0.5));
			return;
		}
	}
	vec_foreach(t, &w->types) {
		if (table_kind(t->t->id)->columns[0].flags & COLUMN_IS_ESTIMATED) {
			uint64_t bytes = 0;
			if (!interval || !sv_to_u64(sv_from_str(interval), &bytes))
				bytes = 1; /* every allocation */
			put_type(w, to, PPROF_PERIOD_TYPE, string_of(w, SV("space")),
				 pprof_unit(UNIT_BYTES));
			pb_put_number(to, PPROF_PERIOD, bytes);
			return;
		}
	}
}

static void put_comments(struct pprof_writer *w, struct buf *to)
{
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (!w->p->losses.nr[k] || !pprof_has_loss(k))
			continue;
		CLEANUP(buf_release) struct buf b = {0};
		buf_addf(&b, PPROF_LOSS "%s %" PRIu64, loss_key(k), w->p->losses.nr[k]);
		pb_put_number(to, PPROF_COMMENT, string_of(w, buf_sv(&b)));
	}
}

/*
 * Samples come before what they refer to, so that is collected while they are written, and the
 * strings last.
 */
static int put_profile(struct pprof_writer *w, struct format_output *out, struct err *err)
{
	struct buf *to = &out->buf;
	vec_foreach(t, &w->types)
		put_type(w, to, PPROF_SAMPLE_TYPE, t->name,
			 pprof_unit(t->t->columns[t->column].unit));
	for (size_t i = 0; i < w->samples.n; i++) {
		put_sample(w, to, i);
		TRY(format_spill(out, err));
	}
	for (size_t i = 0; i < w->mappings.n; i++)
		put_mapping(w, to, i);
	buf_add_sv(to, buf_sv(&w->locations));
	buf_add_sv(to, buf_sv(&w->function_bytes));
	pb_put_number(to, PPROF_TIME_NS, (uint64_t)MAX(w->p->wall_start_ns, 0));
	pb_put_number(to, PPROF_DURATION_NS,
		      w->p->end_ns > w->p->start_ns ? w->p->end_ns - w->p->start_ns : 0);
	put_period(w, to);
	put_comments(w, to);
	const struct value_type *shown = default_type(w);
	pb_put_number(to, PPROF_DEFAULT_TYPE, shown ? shown->name : 0);
	for (uint32_t i = 0; i < intern_count(&w->strings); i++) {
		struct sv s = intern_get(&w->strings, i);
		pb_put_bytes(to, PPROF_STRING, s.p, s.n);
	}
	return 0;
}

int pprof_write(struct format_output *to, const struct profile *p,
		const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release) struct pprof_writer w = {.p = p, .options = options};
	TRY(choose_types(&w, err));
	w.first_of_loc = xcalloc(p->locations.n, sizeof(*w.first_of_loc));
	sort_mappings(&w);
	collect(&w);
	place_program(&w);
	return put_profile(&w, to, err);
}
