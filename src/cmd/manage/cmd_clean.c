/* assay clean: removes recordings and the files beside them. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/escape.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "cmd/manage/recordings.h"
#include "host/memory/cgroup.h"
#include "session/store.h"

#define NOT_GIVEN UINT64_MAX
#define MANY      10 /* more recordings are removed only after a question */

struct clean_opts {
	uint64_t older_than_ns;
	struct store_filter filter; /* all conditions but the age */
	bool is_all;
	bool is_dry;
	bool is_sure;
	bool has_groups;
};

static const struct opt clean_opts[] = {
	OPT_DURATION_UNIT(0, "older-than", struct clean_opts, older_than_ns, "TIME",
			  "recordings that started longer ago: 7d, 12h, 30m"),
	OPT_U64_IN(0, "keep", struct clean_opts, filter.keep, 1, UINT64_MAX, "N",
		   "all but the newest N recordings of each target and kind"),
	OPT_SIZE_FROM(0, "max-size", struct clean_opts, filter.max_bytes, 1, "SIZE",
		      "the oldest, until the rest takes at most SIZE: 500M, 2G"),
	OPT_STR('k', "kind", struct clean_opts, filter.kind, "KIND",
		"recordings of this command: cpu, heap, ..."),
	OPT_STR(0, "target", struct clean_opts, filter.target, "NAME", "recordings of this target"),
	OPT_FLAG(0, "all", struct clean_opts, is_all, "all recordings"),
	OPT_FLAG(0, "groups", struct clean_opts, has_groups,
		 "memory cgroups that a killed assay limit left behind"),
	OPT_FLAG(
		'y', "yes", struct clean_opts, is_sure,
		"do not ask before more than 10 recordings are removed (asked on a terminal only)"),
	OPT_FLAG('n', "dry-run", struct clean_opts, is_dry, "remove nothing, list what would be"),
	OPT_END,
};
const struct opt_group clean_group = {"Options", clean_opts};

static void add_line(struct buf *to, const char *verb, const struct store_entry *e, uint64_t bytes)
{
	buf_addf(to, "%s ", verb);
	escape_term(to, sv_from_str(e->path));
	if (e->files.n > 1)
		buf_addf(to, " and %s beside it", num_noun(e->files.n - 1, "files").s);
	buf_addf(to, " (%s)\n", num_bytes(bytes).s);
}

/* Drops the marks of recordings that are being written. Returns the number of marks left. */
static size_t keep_busy(const struct store_list *l, bool *marks)
{
	size_t nr = 0;
	int64_t now_ns = clock_real_ns();
	for (size_t i = 0; i < l->entries.n; i++) {
		const struct store_entry *e = &l->entries.p[i];
		if (marks[i] && store_is_busy(e, now_ns)) {
			log_note("'%s' is being written, not removed", e->path);
			marks[i] = false;
		}
		nr += marks[i];
	}
	return nr;
}

static void add_sum(struct buf *to, size_t nr, uint64_t bytes, const char *done)
{
	buf_addf(to, "%s, %s %s\n", num_noun(nr, "recordings").s, num_bytes(bytes).s, done);
}

/* Lists what would be removed, with the sum. */
static void list(struct buf *to, const struct store_list *l, const bool *marks, size_t nr)
{
	uint64_t total = 0;
	for (size_t i = 0; i < l->entries.n; i++) {
		const struct store_entry *e = &l->entries.p[i];
		if (marks[i])
			add_line(to, "would remove", e, e->bytes);
		total += marks[i] ? e->bytes : 0;
	}
	add_sum(to, nr, total, "would be freed");
}

/*
 * On a terminal, lists the recordings and asks. Elsewhere nothing is asked: whether a job of cron
 * works must not depend on the number of recordings.
 */
static bool is_confirmed(const struct clean_opts *o, const struct store_list *l, const bool *marks,
			 size_t nr)
{
	CLEANUP(buf_release) struct buf question = {0};
	char answer[16] = "";
	if (nr <= MANY || o->is_sure || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	list(&question, l, marks, nr);
	buf_addf(&question, "remove these %zu recordings? [y/N] ", nr);
	(void)file_write_all(STDERR_FILENO, question.p, question.n,
			     NULL); /* then no answer comes */
	ssize_t n = file_read_some(STDIN_FILENO, answer, sizeof(answer) - 1, NULL);
	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

static int clean(struct buf *to, const struct store_list *l, const bool *marks)
{
	int status = EXIT_OK;
	uint64_t total = 0;
	size_t nr = 0;
	for (size_t i = 0; i < l->entries.n; i++) {
		const struct store_entry *e = &l->entries.p[i];
		CLEANUP(err_release) struct err err = {0};
		uint64_t bytes = 0;
		if (!marks[i])
			continue;
		if (store_remove(cmd_recordings_dir(), e, &bytes, &err)) {
			err_wrap(&err, "'%s'", e->path);
			status = cmd_fail(&err);
			continue;
		}
		add_line(to, "removed", e, bytes);
		total += bytes;
		nr++;
	}
	add_sum(to, nr, total, "freed");
	return status;
}

/* Lists, asks and removes what the conditions select. Returns an exit status. */
static int clean_matching(struct clean_opts *o)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(store_list_release) struct store_list l = {0};
	CLEANUP(buf_release) struct buf b = {0};
	if (store_list_read(&l, cmd_recordings_dir(), &err))
		return cmd_fail(&err);
	if (recordings_check_kind(&l, o->filter.kind, &err))
		return cmd_refuse(&err);
	if (recordings_check_target(&l, o->filter.target, NULL, &err)) {
		log_note("%s", err_msg(&err)); /* a success: nothing is left to remove */
		log_hint("%s", err.hint);
	}
	if (o->older_than_ns != NOT_GIVEN)
		o->filter.older_than_ns = clock_real_ns() - (int64_t)o->older_than_ns;
	CLEANUP(free_p) bool *marks = xcalloc(l.entries.n + 1, sizeof(*marks));
	store_match(&l, &o->filter, marks);
	size_t nr = keep_busy(&l, marks);
	int status = EXIT_OK;
	if (o->is_dry) {
		list(&b, &l, marks, nr);
	} else if (!is_confirmed(o, &l, marks, nr)) {
		log_error("not confirmed, nothing was removed");
		log_hint("to remove them without a question: --yes");
		return EXIT_FAILED;
	} else {
		status = clean(&b, &l, marks);
	}
	int printed = cmd_is_quiet() && !o->is_dry ? EXIT_OK : cmd_print(&b);
	return status ? status : printed;
}

static int clean_groups(const struct clean_opts *o)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(memgroup_tree_release) struct memgroup_tree tree = MEMGROUP_TREE_INIT;
	CLEANUP(buf_release) struct buf b = {0};
	size_t nr = 0;
	if (o->is_dry)
		return cmd_usage("clean", "--groups excludes --dry-run");
	if (memgroup_tree_open(&tree, "/", &err) || memgroup_clean(&tree, &nr, &err))
		return cmd_fail(&err);
	buf_addf(&b, "%s removed\n", num_noun(nr, "memory cgroups").s);
	return cmd_is_quiet() ? EXIT_OK : cmd_print(&b);
}

static int refuse(const char *what, const char *which)
{
	log_error("%s: %s", what, which);
	log_hint("for example: assay clean --older-than 7d --dry-run");
	return EXIT_USAGE;
}

int cmd_clean(int argc, char **argv)
{
	struct clean_opts o = {.older_than_ns = NOT_GIVEN};
	const struct opt_cmd cmd = {
		.name = "clean",
		.usage = {"[OPTION...]"},
		.details =
			"Removes recordings below ./" STORE_BASE
			" for which all given conditions hold, with the flame "
			"graphs and texts of the same name. Only files that carry assay's mark are removed, and "
			"no recording that is being written. What is removed is listed; on a terminal, more than "
			"10 recordings are removed only after a question (--yes: without).",
		.examples =
			"assay clean --older-than 7d --kind cpu\tCPU recordings older than a week\n"
			"assay clean --keep 5 --dry-run\tlist what --keep 5 would remove\n"
			"assay clean --max-size 2G\tthe oldest ones above 2 GiB\n",
		.groups = {{&clean_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.operands.n)
		return refuse("recordings are selected by options, unexpected", args.operands.p[0]);
	bool has_condition = o.older_than_ns != NOT_GIVEN || o.filter.kind || o.filter.target ||
			     o.filter.keep || o.filter.max_bytes;
	if (o.has_groups) {
		status = clean_groups(&o);
		if (status || (!has_condition && !o.is_all))
			return status;
	}
	if (!has_condition && !o.is_all)
		return refuse("missing condition",
			      "--older-than, --keep, --max-size, --kind, --target or --all");
	if (has_condition && o.is_all)
		return cmd_usage("clean", "--all excludes other conditions");
	return clean_matching(&o);
}
