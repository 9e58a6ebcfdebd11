/*
 * Writer of an aggregated profile as JSON: facts, losses, modules, functions, and for each event
 * the sums by (thread, stack). For scripts; the schema is in docs/formats/profile-json.md.
 */
#include "base/base.h"
#include "format/format.h"

#include "base/text/json.h"
#include "base/map.h"
#include "base/vec.h"

static const char *kind_name(enum module_kind kind)
{
	static const char *const names[] = {
		[MODULE_NONE] = "none",       [MODULE_ELF] = "elf",
		[MODULE_KERNEL] = "kernel",   [MODULE_KMODULE] = "kernel module",
		[MODULE_VDSO] = "vdso",       [MODULE_JIT] = "jit",
		[MODULE_UNKNOWN] = "unknown", [MODULE_PSEUDO] = "pseudo",
		[MODULE_NAMED] = "named",
	};
	return kind < ARRAY_LEN(names) ? names[kind] : "unknown"; /* of a newer version */
}

static const char *unit_name(enum unit unit)
{
	return unit == UNIT_NS ? "ns" : unit == UNIT_BYTES ? "bytes" : "count";
}

static void add_head(struct json *j, const struct profile *p)
{
	json_put_sv(j, "schema", SV("assay-profile"));
	json_put_u64(j, "version", 1);
	json_put_bool(j, "is_incomplete", p->is_incomplete);
	json_put_u64(j, "start_ns", p->start_ns);
	json_put_u64(j, "end_ns", p->end_ns);
	json_put_i64(j, "wall_start_ns", p->wall_start_ns);
	json_put_obj(j, "facts");
	vec_foreach(f, &p->facts)
		json_put_sv(j, profile_text(p, f->key), profile_sv(p, f->value));
	json_end(j);
	json_put_obj(j, "losses");
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (p->losses.nr[k] || loss_class(k) != LOSS_CLASS_OTHER)
			json_put_u64(j, loss_key(k), p->losses.nr[k]);
	json_end(j);
	json_put_arr(j, "marks");
	vec_foreach(m, &p->marks) {
		json_obj(j);
		json_put_u64(j, "time_ns", m->time_ns);
		json_put_sv(j, "text", profile_sv(p, m->text));
		json_end(j);
	}
	json_end(j);
}

static void add_build_id(struct json *j, const struct module *m)
{
	char hex[2 * MODULE_BUILD_ID_MAX + 1] = "";
	for (size_t i = 0; i < m->nr_build_id; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	json_put_str(j, "build_id", hex);
}

static void add_modules(struct json *j, const struct profile *p)
{
	json_put_arr(j, "modules");
	vec_foreach(m, &p->modules) {
		json_obj(j);
		json_put_str(j, "kind", kind_name(m->kind));
		json_put_sv(j, "path", profile_sv(p, m->path));
		if (m->nr_build_id)
			add_build_id(j, m);
		json_end(j);
	}
	json_end(j);
}

static void add_functions(struct json *j, const struct profile *p)
{
	json_put_arr(j, "functions");
	vec_foreach(f, &p->functions) {
		json_obj(j);
		json_put_sv(j, "name", profile_sv(p, f->name));
		if (f->linkage)
			json_put_sv(j, "linkage", profile_sv(p, f->linkage));
		json_put_u64(j, "module", f->module);
		if (f->flags & FUNC_GUESSED)
			json_put_bool(j, "is_guessed", true);
		json_end(j);
	}
	json_end(j);
}

static void add_locations(struct json *j, const struct profile *p)
{
	json_put_arr(j, "locations");
	vec_foreach(l, &p->locations) {
		json_obj(j);
		json_put_u64(j, "module", l->module);
		if (p->modules.p[l->module].kind != MODULE_NAMED || !l->nr_frames) {
			/* text, since JSON readers with double numbers lose bits above 2^53 */
			char hex[24];
			int n = snprintf(hex, sizeof(hex), "0x%" PRIx64, l->offset);
			json_put_sv(j, "offset", sv_from(hex, (size_t)n));
		}
		if (l->flags & LOCATION_KERNEL)
			json_put_bool(j, "is_kernel", true);
		json_put_arr(j, "frames");
		for (size_t i = 0; i < l->nr_frames; i++) {
			const struct frame *f = &p->frames.p[l->first_frame + i];
			json_obj(j);
			json_put_u64(j, "function", f->func);
			if (f->file)
				json_put_sv(j, "file", profile_sv(p, f->file));
			if (f->line)
				json_put_u64(j, "line", f->line);
			if (f->is_inlined)
				json_put_bool(j, "is_inlined", true);
			if (f->is_inferred)
				json_put_bool(j, "is_inferred", true);
			json_end(j);
		}
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void add_stacks(struct json *j, const struct profile *p)
{
	json_put_arr(j, "stacks");
	vec_foreach(s, &p->stacks) {
		json_arr(j);
		json_u64(j, s->parent);
		json_u64(j, s->loc);
		json_end(j);
	}
	json_end(j);
}

static void add_tasks(struct json *j, const struct profile *p)
{
	json_put_arr(j, "tasks");
	vec_foreach(t, &p->tasks) {
		json_obj(j);
		json_put_i64(j, "pid", t->pid);
		json_put_i64(j, "tid", t->tid);
		json_put_sv(j, "comm", profile_sv(p, t->comm));
		json_end(j);
	}
	json_end(j);
}

static void key_text(struct json *j, const struct profile *p, const char *key, str_id id)
{
	if (id)
		json_put_sv(j, key, profile_sv(p, id));
}

static void add_tag(struct json *j, const struct profile *p, const struct tag *t)
{
	json_obj(j);
	if (t->reason)
		json_put_str(j, "reason", wait_key((enum wait_reason)t->reason));
	if (t->evidence)
		json_put_u64(j, "evidence", t->evidence);
	if (t->log2_ns != LOG2_NONE)
		json_put_u64(j, "log2_ns", t->log2_ns);
	if (t->syscall >= 0)
		json_put_i64(j, "syscall", t->syscall);
	key_text(j, p, "object", t->object);
	key_text(j, p, "detail", t->detail);
	if (t->other)
		json_put_u64(j, "other_task", t->other);
	if (t->other_stack)
		json_put_u64(j, "other_stack", t->other_stack);
	if (t->direct)
		json_put_u64(j, "direct_task", t->direct);
	if (t->direct_stack)
		json_put_u64(j, "direct_stack", t->direct_stack);
	json_end(j);
}

static void add_tags(struct json *j, const struct profile *p)
{
	if (p->tags.n <= 1)
		return;
	json_put_arr(j, "tags");
	vec_foreach(t, &p->tags)
		add_tag(j, p, t);
	json_end(j);
}

struct sum {
	task_id task;
	stack_id stack;
	uint32_t tag;
	int64_t values[TABLE_COLUMNS_MAX];
};

/* Adds a row; levels are combined by maximum. */
static void add_values(struct sum *to, const struct table *t, size_t row)
{
	const int64_t *values = &t->values[row * t->nr_columns];
	for (uint32_t c = 0; c < t->nr_columns; c++)
		to->values[c] = t->columns[c].is_level
					? MAX(to->values[c], values[c])
					: (int64_t)((uint64_t)to->values[c] + (uint64_t)values[c]);
}

/* Sums in the order of their first row, that is by time. */
static void add_sums(struct json *j, const struct table *t)
{
	struct map index = {0};
	struct map groups = {0}; /* (task, stack) -> index; with the tag: key of a sum */
	VEC(struct sum) sums = {0};
	for (size_t i = 0; i < t->n; i++) {
		bool is_new;
		uint64_t key = (uint64_t)t->task[i] << 32 | t->stack[i];
		uint32_t tag = t->has_tags ? t->tag[i] : 0;
		if (t->has_tags) {
			uint32_t *group = map_put(&groups, key, &is_new);
			*group = is_new ? (uint32_t)groups.n : *group;
			key = (uint64_t)*group << 32 | tag;
		}
		uint32_t *at = map_put(&index, key, &is_new);
		if (is_new) {
			*at = (uint32_t)sums.n;
			vec_push(&sums, (struct sum){.task = t->task[i],
						     .stack = t->stack[i],
						     .tag = tag});
		}
		add_values(&sums.p[*at], t, i);
	}
	json_put_arr(j, "sums");
	vec_foreach(s, &sums) {
		json_arr(j);
		json_u64(j, s->task);
		json_u64(j, s->stack);
		if (t->has_tags)
			json_u64(j, s->tag);
		for (uint32_t c = 0; c < t->nr_columns; c++)
			json_i64(j, s->values[c]);
		json_end(j);
	}
	json_end(j);
	vec_release(&sums);
	map_release(&index);
	map_release(&groups);
}

static int add_tables(struct json *j, const struct profile *p, struct format_output *to,
		      struct err *err)
{
	json_put_arr(j, "tables");
	vec_foreach(t, &p->tables) {
		json_obj(j);
		json_put_sv(j, "event", profile_sv(p, t->event));
		json_put_u64(j, "nr_rows", t->n);
		json_put_u64(j, "weight_column", t->weight_column);
		if (t->has_tags)
			json_put_bool(j, "has_tags", true);
		json_put_arr(j, "columns");
		for (uint32_t c = 0; c < t->nr_columns; c++) {
			json_obj(j);
			json_put_sv(j, "name", profile_sv(p, t->columns[c].name));
			json_put_str(j, "unit", unit_name(t->columns[c].unit));
			if (t->columns[c].is_level)
				json_put_bool(j, "is_level", true);
			json_end(j);
		}
		json_end(j);
		add_sums(j, t);
		json_end(j);
		TRY(format_spill(to, err));
	}
	json_end(j);
	return 0;
}

int profilejson_write(struct format_output *to, const struct profile *p,
		      const struct format_options *options, struct err *err)
{
	(void)options;
	struct json j = json_to(&to->buf);
	json_obj(&j);
	add_head(&j, p);
	add_modules(&j, p);
	add_functions(&j, p);
	add_locations(&j, p);
	add_stacks(&j, p);
	add_tasks(&j, p);
	add_tags(&j, p);
	TRY(add_tables(&j, p, to, err));
	json_end(&j);
	buf_add_ch(&to->buf, '\n');
	return 0;
}
