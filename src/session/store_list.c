/* Lists and removes recordings; see store.h. */
#include "base/base.h"
#include "session/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "session/store_fileinfo.h"

#define BUSY_NS (60 * (int64_t)NS_PER_SEC)

struct names {
	char **p;
	size_t n;
	size_t cap;
};

static void names_release(struct names *l)
{
	vec_foreach(s, l)
		free(*s);
	vec_release(l);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the directory's files, sorted, without dot files; none if it cannot be read. */
static void read_names(struct names *to, int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		close_p(&fd);
		return;
	}
	struct dirent *e;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			vec_push(to, xstrdup(e->d_name));
	closedir(d);
	if (to->n)
		qsort(to->p, to->n, sizeof(*to->p), by_name);
}

static void entry_release(struct store_entry *e)
{
	free(e->target);
	free(e->stem);
	free(e->path);
	vec_foreach(f, &e->files)
		free(f->name);
	vec_release(&e->files);
}

void store_list_release(struct store_list *l)
{
	vec_foreach(e, &l->entries)
		entry_release(e);
	vec_release(&l->entries);
}

static void add_file(struct store_entry *e, const char *name, uint64_t bytes)
{
	vec_push(&e->files, (struct store_file){xstrdup(name), bytes});
	e->bytes += bytes;
}

/* Adds the files "<stem>.<anything>"; names are sorted, so they are consecutive. */
static void add_siblings(struct store_entry *e, int dirfd, const struct names *names)
{
	size_t n = strlen(e->stem);
	vec_foreach(name, names) {
		if (strncmp(*name, e->stem, n) || (*name)[n] != '.' ||
		    !strcmp(*name, e->files.p[0].name))
			continue;
		struct store_fileinfo m;
		if (store_fileinfo_read(&m, dirfd, *name) && m.is_ours && !m.is_recording)
			add_file(e, *name, m.bytes);
	}
}

static bool read_info(struct assayfile_info *ret_info, int dirfd, const char *name)
{
	CLEANUP(close_p)
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 && !assayfile_info(ret_info, fd, NULL);
}

/* Returns whether it is a heap dump without a recording: in the manifest, its stem has none. */
static bool is_dump(struct store_fileinfo *ret_m, int dirfd, const char *name)
{
	struct sv stem = sv_from_str(name);
	if (!sv_has_suffix(stem, SV(STORE_DUMP_SUFFIX)) || stem.n == strlen(STORE_DUMP_SUFFIX) ||
	    !store_fileinfo_read(ret_m, dirfd, name) || !ret_m->is_ours || ret_m->is_recording)
		return false;
	CLEANUP(free_p)
	char *recording =
		xasprintf("%.*s" STORE_SUFFIX, (int)(stem.n - strlen(STORE_DUMP_SUFFIX)), name);
	struct store_fileinfo m;
	return !store_fileinfo_read(&m, dirfd, recording) || !m.is_recording;
}

static struct store_entry *add_entry(struct store_list *l, const char *base, const char *target,
				     const char *name, size_t nr_suffix,
				     const struct store_fileinfo *m)
{
	struct store_entry *e = vec_add(&l->entries);
	e->target = xstrdup(target);
	e->stem = xstrndup(name, strlen(name) - nr_suffix);
	e->path = xasprintf("%s/%s/%s", base, target, name);
	e->mtime_ns = m->mtime_ns;
	e->time_ns = m->mtime_ns;
	add_file(e, name, m->bytes);
	return e;
}

static void read_target(struct store_list *l, const char *base, int base_fd, const char *target)
{
	CLEANUP(close_p)
	int fd = openat(base_fd, target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	CLEANUP(names_release) struct names names = {0};
	read_names(&names, fd);
	vec_foreach(name, &names) {
		struct sv stem = sv_from_str(*name);
		struct store_fileinfo m;
		struct assayfile_info info;
		if (is_dump(&m, fd, *name)) {
			struct store_entry *d =
				add_entry(l, base, target, *name, strlen(STORE_DUMP_SUFFIX), &m);
			(void)snprintf(d->info.kind, sizeof(d->info.kind), STORE_DUMP_KIND);
			add_siblings(d, fd, &names);
			continue;
		}
		if (!sv_has_suffix(stem, SV(STORE_SUFFIX)) || stem.n == strlen(STORE_SUFFIX) ||
		    !store_fileinfo_read(&m, fd, *name) || !m.is_recording ||
		    !read_info(&info, fd, *name))
			continue;
		struct store_entry *e = add_entry(l, base, target, *name, strlen(STORE_SUFFIX), &m);
		e->info = info;
		e->time_ns = info.wall_start_ns ? info.wall_start_ns : m.mtime_ns;
		add_siblings(e, fd, &names);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct store_entry *x = a;
	const struct store_entry *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

int store_list_read(struct store_list *ret_l, const char *base, struct err *err)
{
	if (!base)
		base = STORE_BASE;
	struct store_list l = {0};
	CLEANUP(close_p) int base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0 && errno != ENOENT)
		return err_sys(err, "cannot open directory '%s'", base);
	CLEANUP(names_release) struct names targets = {0};
	if (base_fd >= 0)
		read_names(&targets, base_fd);
	vec_foreach(t, &targets)
		read_target(&l, base, base_fd, *t);
	if (l.entries.n)
		qsort(l.entries.p, l.entries.n, sizeof(*l.entries.p), by_time);
	*ret_l = l;
	return 0;
}

const struct store_entry *store_newest(const struct store_list *l, const char *kind)
{
	for (size_t i = l->entries.n; i > 0; i--) {
		const struct store_entry *e = &l->entries.p[i - 1];
		/* dumps are not recordings: returned only if @kind asks for them */
		if (kind ? !strcmp(e->info.kind, kind) : strcmp(e->info.kind, STORE_DUMP_KIND) != 0)
			return e;
	}
	return NULL;
}

int store_newest_path(char **ret_path, const char *base, const char *kind, struct err *err)
{
	CLEANUP(store_list_release) struct store_list l = {0};
	TRY(store_list_read(&l, base, err));
	const struct store_entry *e = store_newest(&l, kind);
	if (!e) {
		err_set(err, -ENOENT, "no recording below '%s'", base ? base : STORE_BASE);
		err_hint(err, "record one with `assay cpu TARGET`, or name a file");
		return -ENOENT;
	}
	*ret_path = xstrdup(e->path);
	return 0;
}

void store_match(const struct store_list *l, const struct store_filter *f, bool *ret_marks)
{
	uint64_t bytes = 0; /* of those of the kind and target, from the newest on */
	for (size_t i = l->entries.n; i > 0; i--) {
		const struct store_entry *e = &l->entries.p[i - 1];
		uint64_t nr_newer = 0;
		for (size_t k = i; f->keep && k < l->entries.n; k++)
			nr_newer += !strcmp(l->entries.p[k].target, e->target) &&
				    !strcmp(l->entries.p[k].info.kind, e->info.kind);
		bool is_named = (!f->kind || !strcmp(e->info.kind, f->kind)) &&
				(!f->target || !strcmp(e->target, f->target));
		bytes += is_named ? e->bytes : 0;
		ret_marks[i - 1] = is_named && (!f->max_bytes || bytes > f->max_bytes) &&
				   (!f->older_than_ns || e->time_ns < f->older_than_ns) &&
				   (!f->keep || nr_newer >= f->keep);
	}
}

bool store_is_busy(const struct store_entry *e, int64_t now_ns)
{
	return e->info.is_incomplete && now_ns - e->mtime_ns < BUSY_NS;
}

void store_remove_empty_dir(int base_fd, int fd, const char *target)
{
	CLEANUP(names_release) struct names left = {0};
	read_names(&left, fd);
	if (left.n)
		return;
	struct stat st;
	if (!fstatat(fd, STORE_MANIFEST, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		(void)unlinkat(fd, STORE_MANIFEST, 0);
	(void)unlinkat(base_fd, target, AT_REMOVEDIR); /* fails if it is not empty, as intended */
}

int store_remove(const char *base, const struct store_entry *e, uint64_t *ret_bytes,
		 struct err *err)
{
	CLEANUP(close_p)
	int base_fd = open(base ? base : STORE_BASE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0)
		return err_sys(err, "cannot open directory '%s'", base ? base : STORE_BASE);
	CLEANUP(close_p)
	int fd = openat(base_fd, e->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "cannot open directory '%s'", e->target);
	*ret_bytes = 0;
	/* The recording last: as long as it exists, its other files can be listed. */
	for (size_t i = e->files.n; i > 0; i--) {
		const struct store_file *f = &e->files.p[i - 1];
		struct store_fileinfo m;
		if (!store_fileinfo_read(&m, fd, f->name) || !m.is_ours)
			continue; /* removed or changed since */
		if (unlinkat(fd, f->name, 0))
			return err_sys(err, "cannot remove '%s'", f->name);
		*ret_bytes += m.bytes;
	}
	store_remove_empty_dir(base_fd, fd, e->target);
	return 0;
}
