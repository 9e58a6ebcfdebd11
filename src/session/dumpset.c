/* Selects and merges jemalloc dumps; see dumpset.h. */
#include "base/base.h"
#include "session/dumpset.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "format/heap/jemallocheap.h"
#include "model/heap.h"
#include "model/tables.h"

#define SUFFIX    ".heap"
#define START_NS  ((uint64_t)1000000000) /* time 0 would mean unknown */
#define FILES_MAX 100000
/* Least time between two dumps: file times have the resolution of the kernel's tick. */
#define SHORTEST_NS ((uint64_t)10000000)

static void file_release(struct dump_file *f)
{
	free(f->path);
	free(f->process);
}

void dumpset_release(struct dumpset *set)
{
	vec_foreach(f, &set->files)
		file_release(f);
	vec_release(&set->files);
	free(set->not_selected);
	set->not_selected = NULL;
}

static bool is_dir(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_pattern(const char *path)
{
	struct stat st;
	return strpbrk(path, "*?[") && stat(path, &st) != 0;
}

bool dumpset_is(const char *operand)
{
	return sv_has_suffix(sv_from_str(operand), SV(SUFFIX)) || is_dir(operand) ||
	       is_pattern(operand);
}

/* ---- files -------------------------------------------------------------------------------- */

/* Returns the part before the number: of "heap-20260102-030405.heap", "prog.0007.heap". */
static struct sv without_number(struct sv path)
{
	struct sv s = path;
	s.n -= sv_has_suffix(s, SV(SUFFIX)) ? strlen(SUFFIX) : 0;
	while (s.n &&
	       ((s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9') || strchr(".-_:TZ", s.p[s.n - 1])))
		s.n--;
	return s;
}

/* Adds a file; skips what is not a regular file. */
static void add_file(struct dumpset *set, const char *path)
{
	struct stat st;
	if (set->files.n >= FILES_MAX || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	struct dump_file f = {.path = xstrdup(path)};
	f.written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	struct jemallocheap_name name;
	if (jemallocheap_parse_name(sv_from_str(f.path), &name)) {
		f.pid = name.pid;
		f.sequence = name.sequence;
		f.process = xasprintf("%.*s.%d", SV_ARGS(name.prefix), name.pid);
	} else {
		f.process = xasprintf("%.*s", SV_ARGS(without_number(sv_from_str(f.path))));
	}
	vec_push(&set->files, f);
}

/* Adds a file that the user named: an error if it does not exist. */
static int add_named(struct dumpset *set, const char *path, struct err *err)
{
	struct stat st;
	if (stat(path, &st)) {
		int rc = err_sys(err, "cannot open '%s'", path);
		if (strchr(path, ','))
			return err_hint(err,
					"separate files by blanks; to select dumps of a folder "
					"use --dumps NAME,NAME");
		return rc;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "'%s' is not a regular file", path);
	add_file(set, path);
	return 0;
}

static int add_dir(struct dumpset *set, const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	if (!dir)
		return err_sys(err, "cannot read folder '%s'", path);
	const struct dirent *e;
	while ((e = readdir(dir))) {
		if (!sv_has_suffix(sv_from_str(e->d_name), SV(SUFFIX)))
			continue;
		CLEANUP(free_p) char *file = xasprintf("%s/%s", path, e->d_name);
		add_file(set, file);
	}
	closedir(dir);
	return 0;
}

static void add_pattern(struct dumpset *set, const char *pattern)
{
	glob_t g = {0};
	if (!glob(pattern, 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_file(set, g.gl_pathv[i]);
	globfree(&g);
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct dump_file *x = a;
	const struct dump_file *y = b;
	return strcmp(x->process, y->process) ?: COMPARE(x->sequence, y->sequence)
	       ?: COMPARE(x->written_ns, y->written_ns) ?: strcmp(x->path, y->path);
}

/* ---- selection ---------------------------------------------------------------------------- */

/* Matches one item of "a,b": a name with or without suffix, a pattern, or a sequence number. */
static bool is_named(const struct dump_file *f, struct sv word)
{
	CLEANUP(free_p) char *pattern = xasprintf("%.*s", SV_ARGS(word));
	CLEANUP(free_p) char *with_suffix = xasprintf("%s" SUFFIX, pattern);
	const char *base = path_base(f->path);
	uint64_t number;
	if (sv_to_u64(word, &number) && f->pid && f->sequence == number)
		return true;
	return !fnmatch(pattern, base, 0) || !fnmatch(with_suffix, base, 0) ||
	       !strcmp(pattern, f->path);
}

struct choice {
	int32_t pid;     /* 0: the process that wrote last */
	bool is_default; /* no selection was given */
	size_t nr_last;  /* number of newest dumps; 0: by names */
	struct sv names;
};

static int parse_choice(const char *text, struct choice *ret_c, struct err *err)
{
	struct choice c = {.is_default = !text, .nr_last = 1};
	struct sv s = sv_from_str(text ? text : "latest");
	struct sv rest = s;
	struct sv head = sv_split(&rest, ':');
	uint64_t v;
	if (head.n < s.n && sv_to_u64(head, &v) && v && v <= INT32_MAX) {
		c.pid = (int32_t)v;
		s = rest;
		rest = s;
		head = sv_split(&rest, ':');
	}
	if (sv_eq(s, SV("all"))) {
		c.nr_last = SIZE_MAX;
	} else if (sv_eq(head, SV("last")) && head.n < s.n) {
		if (!sv_to_u64(rest, &v) || !v)
			return err_set(err, -EINVAL, "'%s' is not a number of dumps: last:3", text);
		c.nr_last = v;
	} else if (!s.n) {
		return err_set(err, -EINVAL,
			       "'%s' does not select dumps: use latest, all, last:N or NAME,NAME",
			       text);
	} else if (!sv_eq(s, SV("latest"))) {
		c.nr_last = 0;
		c.names = s;
	}
	*ret_c = c;
	return 0;
}

/* Returns the selected process, or the one with the newest dump; NULL: none. */
static const char *choose_process(const struct dumpset *set, const struct choice *c)
{
	const struct dump_file *newest = NULL;
	vec_foreach(f, &set->files)
		if ((!c->pid || f->pid == c->pid) &&
		    (!newest || f->written_ns >= newest->written_ns))
			newest = f;
	return newest ? newest->process : NULL;
}

static bool is_chosen(const struct dumpset *set, size_t i, const struct choice *c,
		      const char *process)
{
	const struct dump_file *f = &set->files.p[i];
	if (process && strcmp(f->process, process))
		return false;
	if (c->nr_last) {
		size_t after = 0; /* later dumps of the same process */
		while (i + after + 1 < set->files.n && after < c->nr_last &&
		       !strcmp(set->files.p[i + after + 1].process, f->process))
			after++;
		return after < c->nr_last;
	}
	struct sv names = c->names;
	while (names.n)
		if (is_named(f, sv_split(&names, ',')))
			return true;
	return false;
}

/* Sets set->not_selected to the other processes that have dumps in the folder. */
static void say_others(struct dumpset *set, const char *process)
{
	CLEANUP(buf_release) struct buf b = {0};
	size_t nr = 0;
	for (size_t i = 0; i < set->files.n; i++) {
		const struct dump_file *f = &set->files.p[i];
		bool is_first = !i || strcmp(set->files.p[i - 1].process, f->process) != 0;
		if (!strcmp(f->process, process) || !is_first)
			continue;
		if (nr++ < 5 && f->pid)
			buf_addf(&b, "%s%d", b.n ? ", " : "", f->pid);
	}
	if (nr)
		set->not_selected =
			xasprintf("%s %s dumps there%s%s", num_noun(nr, "other processes").s,
				  nr == 1 ? "has" : "have", b.n ? ", by PID: " : "", buf_str(&b));
}

static void keep_chosen(struct dumpset *set, const struct choice *c, const char *process)
{
	CLEANUP(free_p) bool *keeps = xcalloc(MAX(set->files.n, (size_t)1), sizeof(*keeps));
	for (size_t i = 0; i < set->files.n; i++)
		keeps[i] = is_chosen(set, i, c, process);
	size_t nr = 0;
	for (size_t i = 0; i < set->files.n; i++) {
		if (keeps[i])
			set->files.p[nr++] = set->files.p[i];
		else
			file_release(&set->files.p[i]);
	}
	set->files.n = nr;
}

int dumpset_select(struct dumpset *ret_set, const char *const *operands, size_t nr,
		   const char *selection, struct err *err)
{
	CLEANUP(dumpset_release) struct dumpset set = {0};
	struct choice c = {0};
	bool is_named_singly = true;
	TRY(parse_choice(selection, &c, err));
	for (size_t i = 0; i < nr; i++) {
		if (is_dir(operands[i])) {
			TRY(add_dir(&set, operands[i], err));
			is_named_singly = false;
		} else if (is_pattern(operands[i])) {
			add_pattern(&set, operands[i]);
			is_named_singly = false;
		} else {
			TRY(add_named(&set, operands[i], err));
		}
	}
	if (!set.files.n) {
		err_set(err, -ENOENT, "no dumps (files named *" SUFFIX ") in '%s'%s", operands[0],
			nr > 1 ? " and the others" : "");
		return err_hint(err, "a recording is named by its file; to list them: assay ls");
	}
	qsort(set.files.p, set.files.n, sizeof(*set.files.p), by_process_and_time);
	if (c.is_default && is_named_singly)
		c.nr_last = SIZE_MAX;
	const char *process = NULL;
	/* files named by the user are all selected, whatever their process */
	if ((!is_named_singly && c.nr_last) || c.pid) {
		process = choose_process(&set, &c);
		if (!process)
			return err_set(err, -ENOENT, "no dumps of process %d in '%s'", c.pid,
				       operands[0]);
		say_others(&set, process);
	}
	CLEANUP(free_p) char *chosen = process ? xstrdup(process) : NULL;
	keep_chosen(&set, &c, chosen);
	if (!set.files.n) {
		err_set(err, -ENOENT, "no dump is named '%s' in '%s'", selection, operands[0]);
		return err_hint(err, "use latest, all, last:N, or file names separated by commas");
	}
	*ret_set = set;
	set = (struct dumpset){0};
	return 0;
}

/* ---- merging dumps ------------------------------------------------------------------------ */

/* Makes rows of "snapshots" of table "live"; drops the other tables unless it is the last dump. */
static void to_snapshots(struct profile *p, uint64_t time_ns, bool is_last)
{
	const struct table *live = tables_find(p, TABLE_LIVE);
	bool is_estimate = live && live->columns[HEAP_BYTES].is_estimate;
	uint32_t to = tables_add(p, TABLE_SNAPSHOTS, is_estimate ? TABLES_ESTIMATE : 0);
	live = tables_find(p, TABLE_LIVE);
	for (size_t i = 0; live && i < live->n; i++)
		profile_tagged_sample(p, to, time_ns, live->stack[i], live->task[i], -1,
				      live->tag[i], &live->values[i * live->nr_columns]);
	for (size_t i = 0; i < p->tables.n; i++)
		if (i != to && (!is_last || &p->tables.p[i] == live))
			p->tables.p[i].n = 0;
}

struct mean_row {
	stack_id stack;
	task_id task;
	uint32_t tag;
	int64_t values[HEAP_BLOCK_NR];
};

static int by_place(const void *a, const void *b)
{
	const struct mean_row *x = a;
	const struct mean_row *y = b;
	return COMPARE(x->stack, y->stack) ?: COMPARE(x->task, y->task) ?: COMPARE(x->tag, y->tag);
}

/*
 * Divides by @nr dumps, rounded so that the sum of the rows is the mean of the sums. The same
 * blocks are in several dumps, so their errors are not independent: the variance is the mean
 * variance.
 */
static void add_means(struct profile *p, size_t nr)
{
	const struct table *t = tables_find(p, TABLE_SNAPSHOTS);
	bool is_estimate = t->columns[HEAP_BYTES].is_estimate;
	uint32_t live = tables_add(p, TABLE_LIVE, is_estimate ? TABLES_ESTIMATE : 0);
	t = tables_find(p, TABLE_SNAPSHOTS);
	VEC(struct mean_row) rows = {0};
	for (size_t i = 0; i < t->n; i++) {
		struct mean_row r = {t->stack[i], t->task[i], t->tag[i], {0}};
		memcpy(r.values, &t->values[i * t->nr_columns], sizeof(r.values));
		vec_push(&rows, r);
	}
	if (rows.n)
		qsort(rows.p, rows.n, sizeof(*rows.p), by_place);
	int64_t left[HEAP_BLOCK_NR] = {0};
	for (size_t i = 0; i < rows.n;) {
		size_t first = i;
		int64_t sum[HEAP_BLOCK_NR];
		memcpy(sum, left, sizeof(sum));
		for (; i < rows.n && !by_place(&rows.p[first], &rows.p[i]); i++)
			for (size_t c = 0; c < HEAP_BLOCK_NR; c++)
				if (__builtin_add_overflow(sum[c], rows.p[i].values[c], &sum[c]))
					sum[c] = INT64_MAX;
		for (size_t c = 0; c < HEAP_BLOCK_NR; c++) {
			left[c] = sum[c] % (int64_t)nr;
			sum[c] /= (int64_t)nr;
		}
		profile_lose(p, LOSS_SEEN, (uint64_t)MAX(sum[HEAP_BLOCKS], 0));
		profile_lose(p, LOSS_WRITTEN, (uint64_t)MAX(sum[HEAP_BLOCKS], 0));
		profile_tagged_sample(p, live, 0, rows.p[first].stack, rows.p[first].task, -1,
				      rows.p[first].tag, sum);
	}
	vec_release(&rows);
}

static int64_t bytes_at(const struct profile *p, uint64_t time_ns)
{
	const struct table *t = tables_find(p, TABLE_SNAPSHOTS);
	int64_t sum = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->time_ns[i] == time_ns &&
		    __builtin_add_overflow(sum, t->values[i * t->nr_columns + HEAP_BYTES], &sum))
			sum = INT64_MAX;
	return sum;
}

static void say_series(struct profile *p, const struct dumpset *set, uint64_t last_ns)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (set->files.n > 1) {
		int64_t first = bytes_at(p, START_NS);
		int64_t last = bytes_at(p, last_ns);
		buf_addf(&b, "mean of %zu; first %s, last %s, %s by %s", set->files.n,
			 num_bytes((uint64_t)MAX(first, 0)).s, num_bytes((uint64_t)MAX(last, 0)).s,
			 last < first ? "shrunk" : "grown",
			 num_bytes((uint64_t)(last < first ? first - last : last - first)).s);
		if (last_ns - START_NS >= SHORTEST_NS)
			buf_addf(&b, " in %s", num_ns(last_ns - START_NS).s);
	} else {
		buf_add_str(&b, path_base(set->files.p[0].path));
	}
	if (set->not_selected)
		buf_addf(&b, "; %s", set->not_selected);
	profile_fact(p, FACT_DUMPS, buf_str(&b));
}

/* Reads files [first, end), all of one process; *ret_last_ns: time of the last dump. */
static int read_process(struct profile **ret_p, const struct dumpset *set, size_t first, size_t end,
			dumpset_read read, void *ctx, uint64_t *ret_last_ns, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *all = NULL;
	uint64_t time_ns = START_NS;
	for (size_t i = first; i < end; i++) {
		CLEANUP(profile_free_p) struct profile *p = NULL;
		TRY(read(ctx, &p, set->files.p[i].path, err));
		/* by file time, but strictly ascending */
		int64_t since = set->files.p[i].written_ns - set->files.p[first].written_ns;
		if (i > first)
			time_ns = MAX(time_ns + 1, START_NS + (uint64_t)MAX(since, 0));
		if (end - first > 1)
			to_snapshots(p, time_ns, i + 1 == end);
		if (all)
			profile_merge(all, p);
		else
			all = TAKE(p);
	}
	if (end - first > 1) {
		all->start_ns = START_NS;
		all->end_ns = time_ns;
		add_means(all, end - first);
	}
	*ret_last_ns = time_ns;
	*ret_p = TAKE(all);
	return 0;
}

int dumpset_read_all(struct profile **ret_p, const struct dumpset *set, dumpset_read read,
		     void *ctx, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *all = NULL;
	uint64_t last_ns = START_NS;
	size_t nr_processes = 0;
	for (size_t i = 0; i < set->files.n; nr_processes++) {
		size_t end = i + 1;
		while (end < set->files.n &&
		       !strcmp(set->files.p[end].process, set->files.p[i].process))
			end++;
		CLEANUP(profile_free_p) struct profile *p = NULL;
		TRY(read_process(&p, set, i, end, read, ctx, &last_ns, err));
		if (all)
			profile_merge(all, p);
		else
			all = TAKE(p);
		i = end;
	}
	if (nr_processes == 1)
		say_series(all, set, last_ns);
	*ret_p = TAKE(all);
	return 0;
}
