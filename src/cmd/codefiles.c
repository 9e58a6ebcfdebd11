/* Binaries and source files for reports; see codefiles.h. */
#include "base/base.h"
#include "cmd/codefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"
#include "ingest/codetext.h"

#define SOURCE_BYTES_MAX ((size_t)16 << 20)
#define LINE_BYTES_MAX   400u
#define NS_PER_SEC       1000000000ll

/* ---- binaries ------------------------------------------------------------------------------ */

/* A mapping of the module that lasts to the end of the capture; its process may still run. */
static const struct mapping *last_mapping(const struct profile *p, const struct event_map *map)
{
	vec_foreach(m, &p->mappings) {
		const struct module *of = &p->modules.p[m->module];
		if (m->to_ns == UINT64_MAX && of->kind == MODULE_ELF &&
		    of->nr_build_id == map->nr_build_id &&
		    !memcmp(of->build_id, map->build_id, map->nr_build_id) &&
		    !strcmp(profile_text(p, of->path), map->path))
			return m;
	}
	return NULL;
}

/* Binaries of containers are found through a process only. The caller compares build-ids. */
static int open_binary(void *ctx, struct byte_source *ret_s, int32_t pid,
		       const struct event_map *map)
{
	struct codefiles *c = ctx;
	const struct mapping *m = c->is_live && map->nr_build_id ? last_mapping(c->p, map) : NULL;
	const struct hostfile_mapping mapped = {.pid = m ? m->pid : 0,
						.start = m ? m->start : 0,
						.end = m ? m->start + m->len : 0,
						.path = map->path,
						.dev_major = map->dev_major,
						.dev_minor = map->dev_minor,
						.inode = map->inode};
	bool is_exact;
	if (m && !hostfile_open_mapped(ret_s, &is_exact, &mapped))
		return 0;
	return c->stored.access.open(&c->stored, ret_s, pid, map);
}

static void read_code(void *ctx, struct arena *a, const struct profile *p, struct code_function *f,
		      size_t n)
{
	struct codefiles *c = ctx;
	struct file_access files = c->stored.access;
	files.open = open_binary;
	files.ctx = c;
	c->p = p;
	codetext_read(a, p, &files, f, n);
}

/* ---- source files -------------------------------------------------------------------------- */

/* Appends the path without "." and with ".." resolved. */
static void add_plain(struct buf *to, const char *path)
{
	struct sv rest = sv_from_str(path);
	size_t start = to->n;
	if (*path == '/')
		buf_add_ch(to, '/');
	while (rest.n) {
		struct sv part = sv_split(&rest, '/');
		size_t base = start + (*path == '/');
		if (!part.n || sv_eq_str(part, "."))
			continue;
		if (sv_eq_str(part, "..")) {
			while (to->n > base && to->p[--to->n] != '/')
				;
			continue;
		}
		if (to->n > base)
			buf_add_ch(to, '/');
		buf_add_sv(to, part);
	}
}

/* What follows @prefix, a folder, in @path; NULL: it is elsewhere. */
static const char *below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);
	while (n && prefix[n - 1] == '/')
		n--;
	return !strncmp(path, prefix, n) && path[n] == '/' ? path + n + 1 : NULL;
}

static bool open_at(struct byte_source *ret_s, const struct source_folder *f, const char *rest)
{
	CLEANUP(free_p) char *path = xasprintf("/%s", rest);
	return !hostfile_open_path(ret_s, f->fd, path);
}

static bool open_below(struct byte_source *ret_s, const struct source_folder *f, const char *path)
{
	const char *rest = below(path, f->prefix ? f->prefix : f->path);
	if (rest || f->prefix)
		return rest && open_at(ret_s, f, rest);
	if (path[0] != '/')
		return open_at(ret_s, f, path);
	const char *name = path_base(f->path);
	size_t n = strlen(name);
	for (const char *at = path; n && (at = strchr(at, '/')); at++)
		if (!strncmp(at + 1, name, n) && at[1 + n] == '/' && open_at(ret_s, f, at + 2 + n))
			return true;
	return false;
}

static void read_file(struct codefiles *c, struct source_file *f, const char *path)
{
	CLEANUP(buf_release) struct buf plain = {0};
	add_plain(&plain, path);
	vec_foreach(folder, &c->folders) {
		struct byte_source source = {0};
		if (!open_below(&source, folder, buf_str(&plain)))
			continue;
		int64_t changed_ns = (int64_t)source.st.st_mtim.tv_sec * NS_PER_SEC;
		f->is_newer = c->recorded_ns && changed_ns > c->recorded_ns;
		bool is_read = !source_read_all(&f->text, &source, SOURCE_BYTES_MAX, NULL);
		source_close(&source);
		if (is_read)
			break;
		buf_clear(&f->text);
	}
	for (size_t at = 0; at < f->text.n;) {
		vec_push(&f->lines, at);
		const char *end = memchr(f->text.p + at, '\n', f->text.n - at);
		at = end ? (size_t)(end - f->text.p) + 1 : f->text.n;
	}
}

static struct source_file *file_of(struct codefiles *c, const char *path)
{
	uint64_t key = hash_bytes(path, strlen(path));
	bool is_new;
	uint32_t *at = map_put(&c->file_index, key, &is_new);
	if (!is_new)
		return strcmp(c->files.p[*at - 1].path, path) ? NULL : &c->files.p[*at - 1];
	struct source_file *f = vec_add(&c->files);
	f->path = xstrdup(path);
	read_file(c, f, path);
	*at = (uint32_t)c->files.n;
	return f;
}

static const char *read_line(void *ctx, struct arena *a, const char *path, uint32_t line)
{
	struct source_file *f = file_of(ctx, path);
	if (!f || !line || line > f->lines.n)
		return NULL;
	const char *start = f->text.p + f->lines.p[line - 1];
	const char *end = memchr(start, '\n', (size_t)(f->text.p + f->text.n - start));
	end = end ? end : f->text.p + f->text.n;
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	while (start < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return arena_strndup(a, start, MIN((size_t)(end - start), (size_t)LINE_BYTES_MAX));
}

void codefiles_init(struct codefiles *c)
{
	stored_files_init(&c->stored, NULL, NULL);
	c->access = (struct code_access){.read = read_code, .ctx = c};
}

void codefiles_release(struct codefiles *c)
{
	vec_foreach(f, &c->folders) {
		free(f->prefix);
		free(f->path);
		close_p(&f->fd);
	}
	vec_foreach(f, &c->files) {
		free(f->path);
		buf_release(&f->text);
		vec_release(&f->lines);
	}
	vec_release(&c->folders);
	vec_release(&c->files);
	map_release(&c->file_index);
}

int codefiles_add_source(struct codefiles *c, const char *folder, struct err *err)
{
	const char *eq = strchr(folder, '=');
	const char *dir = eq ? eq + 1 : folder;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "--source: cannot open folder '%s'", dir);
	char *path = realpath(dir, NULL);
	vec_push(&c->folders, (struct source_folder){
				      .prefix = eq ? xstrndup(folder, (size_t)(eq - folder)) : NULL,
				      .path = path ? path : xstrdup(dir),
				      .fd = fd});
	c->access.line = read_line;
	return 0;
}

void codefiles_of(struct codefiles *c, const struct profile *p)
{
	c->recorded_ns = p->wall_start_ns && p->end_ns > p->start_ns
				 ? p->wall_start_ns + (int64_t)(p->end_ns - p->start_ns)
				 : 0;
}

void codefiles_add_note(struct buf *to, const struct codefiles *c)
{
	size_t nr_missing = 0;
	size_t nr_newer = 0;
	const struct source_file *missing = NULL;
	const struct source_file *newer = NULL;
	vec_foreach(f, &c->files) {
		nr_newer += f->is_newer;
		newer = f->is_newer ? f : newer;
		if (f->lines.n)
			continue;
		nr_missing++;
		missing = missing ? missing : f;
	}
	if (newer)
		buf_addf(to,
			 "%zu source file%s changed after the recording, their lines may be others "
			 "now ('%s')",
			 nr_newer, nr_newer == 1 ? "" : "s", path_base(newer->path));
	if (missing && nr_missing == c->files.n)
		buf_addf(
			to,
			"%snone of the %zu source files is below the folder of --source, the first is "
			"'%s'; --source PREFIX=DIR reads PREFIX/x.c from DIR/x.c",
			to->n ? "; " : "", c->files.n, missing->path);
}
