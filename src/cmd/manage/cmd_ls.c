/* assay ls: lists the recordings below ./profiling. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/text/escape.h"
#include "base/text/json.h"
#include "base/text/num.h"
#include "cmd/manage/recordings.h"
#include "cmd/optgroups.h"
#include "session/store.h"

struct ls_opts {
	const char *kind;
	bool is_json;
};

static const struct opt ls_opts[] = {
	OPT_STR('k', "kind", struct ls_opts, kind, "KIND",
		"only recordings of this command: cpu, heap, ..."),
	OPT_FLAG('j', "json", struct ls_opts, is_json, "print JSON instead of a table"),
	OPT_END,
};
static const struct opt_group ls_group = {"Options", ls_opts};

enum { LS_TIME, LS_KIND, LS_TARGET, LS_DURATION, LS_SAMPLES, LS_SIZE, LS_FILE, LS_NR };

static bool is_right_aligned(size_t column)
{
	return column == LS_DURATION || column == LS_SAMPLES || column == LS_SIZE;
}

/* Separates cells by tabs, which escaped names cannot contain. */
static void add_row(struct buf *to, const struct store_entry *e)
{
	clock_add_local(to, e->time_ns);
	buf_addf(to, "\t%s\t", e->info.kind[0] ? e->info.kind : "?");
	escape_term(to, sv_from_str(e->target));
	buf_add_ch(to, '\t');
	num_add_ns(to, e->info.duration_ns);
	buf_add_ch(to, '\t');
	num_add_count(to, e->info.nr_samples);
	buf_add_ch(to, '\t');
	num_add_bytes(to, e->bytes);
	buf_add_ch(to, '\t');
	escape_term(to, sv_from_str(e->path));
	buf_add_str(to, e->info.is_incomplete ? " (incomplete)\n" : "\n");
}

/* Leaves out columns, whose widths become 0, until a line fits. Names of files are always whole. */
static void hide_columns(size_t *widths)
{
	static const size_t order[] = {LS_SAMPLES, LS_SIZE, LS_TARGET, LS_DURATION, LS_KIND};
	size_t columns = output_style(&(struct renderer_choice){0}, STDOUT_FILENO).width;
	size_t sum = 2 * (LS_NR - 1);
	for (size_t c = 0; c < LS_NR; c++)
		sum += widths[c];
	for (size_t i = 0; columns && sum > columns && i < ARRAY_LEN(order); i++) {
		sum -= widths[order[i]] + 2;
		widths[order[i]] = 0;
	}
}

static void add_table(struct buf *to, struct sv rows)
{
	size_t width[LS_NR] = {0};
	for (struct sv left = rows; left.n;) {
		struct sv row = sv_split(&left, '\n');
		for (size_t c = 0; c < LS_NR; c++) {
			size_t n = sv_split(&row, '\t').n;
			width[c] = MAX(width[c], n);
		}
	}
	hide_columns(width);
	while (rows.n) {
		struct sv row = sv_split(&rows, '\n');
		for (size_t c = 0; c < LS_NR; c++) {
			struct sv cell = sv_split(&row, '\t');
			if (!width[c])
				continue;
			size_t pad = width[c] - cell.n;
			if (is_right_aligned(c))
				buf_add_repeat(to, ' ', pad);
			buf_add_sv(to, cell);
			if (c + 1 < LS_NR)
				buf_add_repeat(to, ' ', is_right_aligned(c) ? 2 : pad + 2);
		}
		buf_add_ch(to, '\n');
	}
}

static void add_text(struct buf *to, const struct store_entry *const *entries, size_t nr)
{
	CLEANUP(buf_release) struct buf rows = {0};
	uint64_t bytes = 0;
	buf_add_str(&rows, "TIME\tKIND\tTARGET\tDURATION\tROWS\tSIZE\tFILE\n");
	for (size_t i = 0; i < nr; i++) {
		add_row(&rows, entries[i]);
		bytes += entries[i]->bytes;
	}
	add_table(to, buf_sv(&rows));
	buf_addf(to, "%s, %s\n", num_noun(nr, "recordings").s, num_bytes(bytes).s);
}

struct entries {
	const struct store_entry **p; /* borrowed from a list */
	size_t n;
	size_t cap;
};

static void entries_release(struct entries *e)
{
	vec_release(e);
}

static void add_json_entry(struct json *j, const struct store_entry *e)
{
	CLEANUP(buf_release) struct buf time = {0};
	clock_add_iso_utc(&time, e->time_ns);
	json_obj(j);
	json_put_str(j, "path", e->path);
	json_put_str(j, "target", e->target);
	json_put_str(j, "kind", e->info.kind);
	json_put_str(j, "time", buf_str(&time));
	json_put_u64(j, "duration_ns", e->info.duration_ns);
	json_put_u64(j, "samples", e->info.nr_samples);
	json_put_u64(j, "bytes", e->bytes);
	json_put_bool(j, "incomplete", e->info.is_incomplete);
	json_put_arr(j, "files");
	vec_foreach(f, &e->files) {
		json_obj(j);
		json_put_str(j, "name", f->name);
		json_put_u64(j, "bytes", f->bytes);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void add_json(struct buf *to, const struct store_entry *const *entries, size_t nr)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_str(&j, "schema", "assay-recordings");
	json_put_u64(&j, "version", 1);
	json_put_arr(&j, "recordings");
	for (size_t i = 0; i < nr; i++)
		add_json_entry(&j, entries[i]);
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}

/* Selects the listed recordings. Names that select none are errors: mostly they are misspelt. */
static int choose(struct entries *ret_shown, const struct store_list *l, const struct ls_opts *o,
		  const struct opt_args *args, const char *topic, struct err *err)
{
	TRY(recordings_check_kind(l, o->kind, err));
	vec_foreach(name, &args->operands)
		TRY(recordings_check_target(l, *name, topic, err));
	vec_foreach(e, &l->entries) {
		bool is_named = !args->operands.n;
		vec_foreach(name, &args->operands)
			is_named |= !strcmp(*name, e->target);
		if (is_named && (!o->kind || !strcmp(o->kind, e->info.kind)))
			vec_push(ret_shown, e);
	}
	return 0;
}

int cmd_ls(int argc, char **argv)
{
	struct ls_opts o = {0};
	bool is_list = !strcmp(argv[0], "list"); /* assay list without a topic */
	const struct opt_cmd cmd = {
		.name = is_list ? "list" : "ls",
		.usage = {"[OPTION...] [TARGET...]"},
		.details = "Lists the recordings below ./" STORE_BASE
			   ", oldest first, with the size of each recording and its "
			   "flame graphs.",
		.examples = "assay ls\tall recordings\n"
			    "assay ls --kind cpu redis-server\tCPU recordings of redis-server\n"
			    "assay ls --json\tthe list as JSON\n",
		.groups = {{&ls_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(store_list_release) struct store_list l = {0};
	if (store_list_read(&l, cmd_recordings_dir(), &err))
		return cmd_fail(&err);
	CLEANUP(entries_release) struct entries shown = {0};
	if (choose(&shown, &l, &o, &args, is_list ? "events" : NULL, &err))
		return cmd_refuse(&err);
	CLEANUP(buf_release) struct buf b = {0};
	if (o.is_json)
		add_json(&b, shown.p, shown.n);
	else
		add_text(&b, shown.p, shown.n);
	return cmd_print(&b);
}
