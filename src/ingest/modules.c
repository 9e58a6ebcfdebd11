/* Opens the modules of mappings; see modules.h. */
#include "base/base.h"
#include "ingest/modules.h"

#include <errno.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sv.h"
#include "heap_wire.h"

#define PT_LOAD      1
#define PAGE_MASK_4K ((uint64_t)4095)

static void ingest_module_free(struct ingest_module *m)
{
	unwind_table_free((struct unwind_table *)(uintptr_t)m->unwind.table);
	elf_free(m->elf);
	free(m->segments);
	free(m->python);
	free(m->path);
	free(m->jitdump);
	free(m);
}

void modules_release(struct modules *m)
{
	vec_foreach(it, &m->list)
		ingest_module_free(*it);
	vec_release(&m->list);
	vec_release(&m->loading);
	vec_foreach(e, &m->events)
		free((char *)(uintptr_t)e->map.path);
	vec_release(&m->events);
	map_release(&m->by_event);
	map_release(&m->by_id);
	kernelcode_release(&m->kernelcode);
}

/* Returns the segment with a file offset. Mappings are page-aligned, segments need not be. */
static const struct elf_segment *segment_at(const struct ingest_module *m, uint64_t offset)
{
	const struct elf_segment *s = m->segments;
	const struct elf_segment *found = NULL;
	for (size_t i = 0; i < m->nr_segments; i++) {
		if (s[i].type != PT_LOAD || offset < (s[i].offset & ~PAGE_MASK_4K) ||
		    offset >= s[i].offset + s[i].nr_file_bytes)
			continue;
		/* Several segments may share a page: the executable one is what runs. */
		if (!found || (s[i].flags & 1))
			found = &s[i];
		if ((s[i].flags & 1) && offset >= s[i].offset)
			break;
	}
	return found;
}

uint64_t module_vaddr(const struct ingest_module *m, uint64_t offset)
{
	const struct elf_segment *s = segment_at(m, offset);
	return s ? s->vaddr - s->offset + offset : offset;
}

uint64_t module_bias(const struct ingest_module *m, uint64_t start, uint64_t pgoff)
{
	return start - module_vaddr(m, pgoff);
}

static bool is_anonymous(const char *path)
{
	struct sv s = sv_from_str(path);
	static const char *const paths[] = {"//anon", "/dev/zero", "/SYSV",  "/anon_hugepage",
					    "/[aio]", "[anon",     "[heap]", "[stack"};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (sv_has_prefix(s, sv_from_str(paths[i])))
			return true;
	return !s.n;
}

/* Pages of the kernel in a process: "[uprobes]" (copies of probed instructions), "[vvar]". */
static bool is_kernel_page(const char *path)
{
	return path[0] != '/';
}

static struct ingest_module *new_module(const struct module *shape, module_id id, const char *path)
{
	struct ingest_module *im = xcalloc(1, sizeof(*im));
	im->kind = shape->kind;
	im->path = xstrdup(path);
	im->root_fd = -1;
	im->pid = shape->pid;
	im->unwind.id = id;
	im->has_absolute_offsets = shape->kind != MODULE_ELF && shape->kind != MODULE_VDSO;
	im->unwind.is_jit = shape->kind == MODULE_JIT;
	return im;
}

static struct ingest_module *add(struct modules *m, const struct module *shape, const char *path)
{
	module_id id = profile_module(m->p, shape);
	uint32_t *slot = map_put(&m->by_id, id, NULL);
	if (*slot)
		return m->list.p[*slot - 1];
	struct ingest_module *im = new_module(shape, id, path);
	vec_push(&m->list, im);
	*slot = (uint32_t)m->list.n;
	return im;
}

static struct ingest_module *add_of_process(struct modules *m, enum module_kind kind, int32_t pid,
					    const char *path)
{
	return add(m, &(struct module){.kind = kind, .path = profile_cstr(m->p, path), .pid = pid},
		   path);
}

static enum module_missing missing_from_error(int rc)
{
	return rc == -ESTALE        ? MODULE_CHANGED
	       : rc == -EINPROGRESS ? MODULE_LOADING
	       : rc == -ETIMEDOUT   ? MODULE_SILENT
				    : MODULE_NOT_FOUND;
}

/* Forgets a file that did not answer while it was read. */
static void drop_silent(struct ingest_module *im)
{
	int rc = im->elf ? elf_silence(im->elf) : 0;
	if (!rc)
		return;
	elf_free(TAKE(im->elf));
	im->missing = missing_from_error(rc);
}

static void load_python(struct ingest_module *im)
{
	struct pyruntime r;
	pyruntime_find(&r, im->elf);
	if (r.kind == PYRUNTIME_NONE)
		return;
	im->python = xmemdup(&r, sizeof(r));
	if (r.kind == PYRUNTIME_KNOWN)
		im->unwind.python = &im->python->layout;
}

static void load_image(struct modules *m, struct ingest_module *im)
{
	if (im->elf && !im->segments) {
		const struct elf_segment *s = elf_segments(im->elf, &im->nr_segments);
		im->segments = xmemdup(s, im->nr_segments * sizeof(*s));
	}
	if (!m->needs_tables || im->unwind.table || !im->elf)
		return;
	load_python(im);
	struct unwind_table *t = NULL;
	if (unwind_table_build(&t, im->elf, m->cache_dir, NULL) == 0)
		im->unwind.table = t;
	else
		drop_silent(im);
}

static void load_vdso(struct modules *m, struct ingest_module *im)
{
	CLEANUP(buf_release) struct buf image = {0};
	if (!m->files->read_vdso || m->files->read_vdso(m->files->ctx, &image) ||
	    elf_open_bytes(&im->elf, image.p, image.n, NULL))
		im->missing = MODULE_NOT_FOUND;
	load_image(m, im);
}

static struct ingest_module *add_vdso(struct modules *m)
{
	struct module shape = {.kind = MODULE_VDSO, .path = profile_cstr(m->p, "[vdso]")};
	struct ingest_module *im = add(m, &shape, "[vdso]");
	if (im->is_complete)
		return im;
	im->is_complete = true;
	load_vdso(m, im);
	im->unwind.is_missing = im->missing != MODULE_FOUND;
	return im;
}

/*
 * Opens a file and checks that it is the mapped one: by the event's build-id, else by device and
 * inode; if the event has neither (old recordings), by path alone.
 */
static struct elf *open_file(struct modules *m, int32_t pid, const struct event_map *map,
			     struct module *shape, enum module_missing *ret_missing)
{
	struct byte_source source;
	struct elf *elf = NULL;
	struct stat st = {0};
	int rc = m->files->open(m->files->ctx, &source, pid, map);
	if (!rc) {
		st = source.st;
		rc = elf_open_source(&elf, source, NULL);
	}
	if (rc) {
		*ret_missing = missing_from_error(rc);
		return NULL;
	}
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t n = elf_build_id(elf, id);
	if (map->nr_build_id && n &&
	    (n < map->nr_build_id || memcmp(id, map->build_id, map->nr_build_id))) {
		*ret_missing = MODULE_CHANGED;
		elf_free(elf);
		return NULL;
	}
	if (n) {
		memcpy(shape->build_id, id, n);
		shape->nr_build_id = (uint8_t)n;
	} else {
		shape->dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
		shape->inode = st.st_ino;
	}
	*ret_missing = MODULE_FOUND;
	return elf;
}

#define DELETED " (deleted)"

bool modules_is_recorder(const char *path)
{
	return sv_has_prefix(sv_from_str(path), SV("/" HEAP_WIRE_FILES));
}

static struct ingest_module *add_file(struct modules *m, int32_t pid, const struct event_map *map)
{
	struct sv path = sv_from_str(map->path);
	struct module shape = {.kind = MODULE_ELF};
	if (sv_has_suffix(path, SV(DELETED))) {
		path.n -= strlen(DELETED);
		shape.is_deleted = true;
	}
	shape.path = profile_str(m->p, path.p, path.n);
	enum module_missing missing;
	struct elf *elf = open_file(m, pid, map, &shape, &missing);
	if (!elf) {
		memcpy(shape.build_id, map->build_id, map->nr_build_id);
		shape.nr_build_id = map->nr_build_id;
		shape.dev = (uint64_t)map->dev_major << 32 | map->dev_minor;
		shape.inode = map->inode;
	}
	struct ingest_module *im = add(m, &shape, profile_text(m->p, shape.path));
	/*
	 * One binary may be announced under several identities (/proc by inode, the kernel by
	 * build-id); the first one that was opened stays, since the symbol worker may use it.
	 */
	if (im->is_complete) {
		elf_free(elf);
		return im;
	}
	/* An executable memfd that is not an ELF file is JIT code, if it is not the heap recorder's. */
	if (!elf && sv_has_prefix(path, SV("/memfd:")))
		return add_of_process(m,
				      modules_is_recorder(map->path) ? MODULE_UNKNOWN : MODULE_JIT,
				      pid, map->path);
	im->is_complete = true;
	im->elf = elf;
	im->missing = missing;
	im->pid = pid;
	im->root_fd = m->files->root ? m->files->root(m->files->ctx, pid) : -1;
	load_image(m, im);
	im->unwind.is_missing = im->missing != MODULE_FOUND;
	if (im->missing == MODULE_LOADING) {
		vec_push(&m->loading, ((struct loading_module){im, *map}));
		vec_last(&m->loading)->map.path = im->path;
	}
	return im;
}

static uint64_t identity_hash(const struct event_map *map)
{
	uint64_t h = hash_bytes(map->path, strlen(map->path));
	if (map->nr_build_id)
		return hash_mix(h, hash_bytes(map->build_id, map->nr_build_id));
	return hash_mix(h, hash_mix((uint64_t)map->dev_major << 32 | map->dev_minor, map->inode));
}

static bool is_same_file(const struct event_map *a, const struct event_map *b)
{
	return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->inode == b->inode && a->nr_build_id == b->nr_build_id &&
	       !memcmp(a->build_id, b->build_id, a->nr_build_id) && !strcmp(a->path, b->path);
}

/* Targets choose paths and build-ids, so that hashes may be equal: whole identities are compared. */
static struct ingest_module *find_file(const struct modules *m, const struct event_map *map,
				       uint64_t hash)
{
	const uint32_t *slot = map_get(&m->by_event, hash);
	for (uint32_t i = slot ? *slot : 0; i; i = m->events.p[i - 1].next)
		if (is_same_file(&m->events.p[i - 1].map, map))
			return m->events.p[i - 1].module;
	return NULL;
}

static void note_file(struct modules *m, const struct event_map *map, uint64_t hash,
		      struct ingest_module *im)
{
	uint32_t *slot = map_put(&m->by_event, hash, NULL);
	struct module_event e = {.map = *map, .module = im, .next = *slot};
	e.map.path = xstrdup(map->path);
	vec_push(&m->events, e);
	*slot = (uint32_t)m->events.n;
}

/* Makes file_access open the root while the process runs: its perf map is read at the end. */
static struct ingest_module *add_jit(struct modules *m, int32_t pid, const char *path)
{
	if (m->files->root)
		(void)m->files->root(m->files->ctx, pid); /* only opens and keeps it */
	return add_of_process(m, MODULE_JIT, pid, path);
}

/*
 * A JIT that writes a jitdump maps its file (jit-PID.dump) executable once, only to tell profilers
 * where it is (tools/perf/Documentation/jitdump-specification.txt).
 */
static bool is_jitdump(const char *path)
{
	struct sv name = sv_from_str(path_base(path));
	uint64_t pid;
	if (!sv_has_prefix(name, SV("jit-")) || !sv_has_suffix(name, SV(".dump")))
		return false;
	return sv_to_u64(sv_from(name.p + 4, name.n - 9), &pid);
}

static struct ingest_module *note_jitdump(struct modules *m, int32_t pid, const char *path)
{
	struct ingest_module *im = add_jit(m, pid, "//anon");
	free(im->jitdump);
	im->jitdump = xstrdup(path);
	return im;
}

struct ingest_module *modules_for_map(struct modules *m, int32_t pid, const struct event_map *map)
{
	if (map->is_kernel)
		return modules_kernel(m);
	if (!strcmp(map->path, "[vdso]"))
		return add_vdso(m);
	if (is_jitdump(map->path))
		return note_jitdump(m, pid, map->path);
	if (is_anonymous(map->path))
		return add_jit(m, pid, "//anon");
	if (is_kernel_page(map->path))
		return add_of_process(m, MODULE_UNKNOWN, pid, map->path);
	uint64_t h = identity_hash(map);
	struct ingest_module *im = find_file(m, map, h);
	if (im)
		return im;
	im = add_file(m, pid, map);
	if (im->kind == MODULE_ELF)
		note_file(m, map, h, im);
	return im;
}

struct ingest_module *modules_by_id(const struct modules *m, module_id id)
{
	uint32_t *slot = map_get(&m->by_id, id);
	return slot && *slot ? m->list.p[*slot - 1] : NULL;
}

struct ingest_module *modules_kernel(struct modules *m)
{
	return add_of_process(m, MODULE_KERNEL, 0, "[kernel.kallsyms]");
}

struct ingest_module *modules_unknown(struct modules *m, int32_t pid)
{
	return add_of_process(m, MODULE_UNKNOWN, pid, MODULES_UNKNOWN);
}

static void restore_file(struct modules *m, struct ingest_module *im, const struct module *shape)
{
	struct event_map map = {.path = im->path,
				.is_exec = true,
				.nr_build_id = MIN(shape->nr_build_id, (uint8_t)EVENT_BUILD_ID_MAX),
				.dev_major = (uint32_t)(shape->dev >> 32),
				.dev_minor = (uint32_t)shape->dev,
				.inode = shape->inode};
	memcpy(map.build_id, shape->build_id, map.nr_build_id);
	struct module found = {0};
	im->elf = open_file(m, 0, &map, &found, &im->missing);
	if (im->elf && !shape->nr_build_id && (found.nr_build_id || !shape->inode)) {
		elf_free(TAKE(im->elf)); /* cannot be verified to be the same file */
		im->missing = MODULE_CHANGED;
	}
	load_image(m, im);
}

void modules_retry(struct modules *m, void (*loaded)(void *ctx, struct ingest_module *im),
		   void *ctx)
{
	size_t nr_kept = 0;
	for (size_t i = 0; i < m->loading.n; i++) {
		struct loading_module l = m->loading.p[i];
		struct ingest_module *im = l.module;
		struct module shape = {0};
		im->elf = open_file(m, im->pid, &l.map, &shape, &im->missing);
		load_image(m, im);
		if (im->missing == MODULE_LOADING) {
			m->loading.p[nr_kept++] = l;
			continue;
		}
		im->unwind.is_missing = im->missing != MODULE_FOUND;
		loaded(ctx, im);
	}
	m->loading.n = nr_kept;
}

struct ingest_module *modules_restore_one(struct modules *m, module_id id)
{
	const struct module shape = m->p->modules.p[id];
	bool is_code = shape.kind == MODULE_ELF || shape.kind == MODULE_VDSO ||
		       shape.kind == MODULE_KERNEL || shape.kind == MODULE_JIT ||
		       shape.kind == MODULE_UNKNOWN;
	uint32_t *slot = is_code ? map_put(&m->by_id, id, NULL) : NULL;
	if (!slot)
		return NULL;
	if (*slot)
		return m->list.p[*slot - 1];
	*slot = (uint32_t)m->list.n + 1;
	struct ingest_module *im = new_module(&shape, id, profile_text(m->p, shape.path));
	vec_push(&m->list, im);
	if (shape.kind == MODULE_ELF)
		restore_file(m, im, &shape);
	else if (shape.kind == MODULE_VDSO)
		load_vdso(m, im);
	return im;
}

void modules_restore(struct modules *m)
{
	for (size_t id = 1; id < m->p->modules.n; id++)
		(void)modules_restore_one(m, (module_id)id);
}
