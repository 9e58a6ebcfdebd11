/*
 * Inspects the binaries of a process; see heaptargets.h.
 */
#include "base/base.h"
#include "plan/heaptargets.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/dynlinker.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "host/procmem.h"
#include "object/debugfile.h"
#include "plan/alloccode.h"
#include "plan/libcmatch.h"
#include "plan/mainfind.h"

#define LINK_MAPS_MAX 4096

/* A binary that has been read. */
struct cached_binary {
	uint64_t key;
	struct elf *elf;
	struct allocfind found;
	uint64_t dynamic; /* link-time address of PT_DYNAMIC, 0 = none */
	bool has_interp;
};

static void binary_free(struct cached_binary *k)
{
	if (!k)
		return;
	elf_free(k->elf);
	allocfind_release(&k->found);
	free(k);
}
DEFINE_FREE_P(binary, struct cached_binary)

struct heaptargets {
	unsigned flags;
	VEC(struct cached_binary *) binaries;
};

/* State of the inspection of one process. */
struct inspection {
	struct heaptargets *t;
	struct heaptarget *h;
	char *exe; /* path of the program, as in maps */
	int root_fd;
	VEC(struct cached_binary *) images; /* parallel to h->images */
	VEC(uint64_t) seen;
	uint64_t first_map; /* of the dynamic linker's list; 0 = not known */
	uint64_t nr_unreadable;
	uint64_t nr_silent; /* of these: did not answer in time */
	bool has_maps;
};

static void inspection_release(struct inspection *l)
{
	free(l->exe);
	close_p(&l->root_fd);
	vec_release(&l->images);
	vec_release(&l->seen);
}

struct heaptargets *heaptargets_new(unsigned flags)
{
	struct heaptargets *t = xcalloc(1, sizeof(*t));
	t->flags = flags;
	return t;
}

void heaptargets_free(struct heaptargets *t)
{
	if (!t)
		return;
	vec_foreach(k, &t->binaries)
		binary_free(*k);
	vec_release(&t->binaries);
	free(t);
}

void heaptarget_release(struct heaptarget *h)
{
	vec_foreach(i, &h->images)
		free((char *)i->path);
	vec_release(&h->images);
	*h = (struct heaptarget){0};
}

/* ---- a binary ------------------------------------------------------------------------------ */

static void read_segments(struct cached_binary *k)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(k->elf, &nr);
	for (size_t i = 0; i < nr; i++) {
		k->has_interp |= s[i].type == PT_INTERP;
		if (s[i].type == PT_DYNAMIC)
			k->dynamic = s[i].vaddr;
	}
}

/* Reads debug files only for static programs, and where strings indicate a jemalloc. */
static int find_allocators(struct cached_binary *k, const char *path, int root_fd, bool is_program,
			   struct err *err)
{
	int rc = allocfind_image(&k->found, k->elf, NULL, NULL, err);
	if (rc || alloccode_has_symbols(k->elf))
		return rc;
	bool has_jemalloc_strings = k->found.jemalloc.version_text && !k->found.jemalloc.mallctl;
	if (!has_jemalloc_strings && !(is_program && !k->has_interp))
		return 0;
	struct debug_search search = {.open = hostfile_open_path, .root_fd = root_fd};
	struct elf *debug CLEANUP(elf_free_p) = debugfile_find(k->elf, path, &search, NULL);
	struct elf *mini CLEANUP(elf_free_p) = NULL;
	if (!debug) /* missing or invalid: ignored */
		(void)debugfile_mini(&mini, k->elf, NULL);
	bool has_none = !k->found.functions.n && !k->found.jemalloc.version_text && !k->found.is_go;
	if (!debug && !mini && has_none)
		debug = libcmatch_symbols(k->elf);
	if (!debug && !mini)
		return 0;
	allocfind_release(&k->found);
	return allocfind_image(&k->found, k->elf, debug, mini, err);
}

/* Owns @source. */
static int binary_get(struct heaptargets *t, uint64_t key, struct byte_source source,
		      const char *path, int root_fd, bool is_program, struct cached_binary **ret_k,
		      struct err *err)
{
	vec_foreach(k, &t->binaries) {
		if ((*k)->key == key) {
			source_close(&source);
			*ret_k = *k;
			return 0;
		}
	}
	CLEANUP(binary_free_p) struct cached_binary *k = xcalloc(1, sizeof(*k));
	TRY(elf_open_source(&k->elf, source, err));
	read_segments(k);
	TRY(find_allocators(k, path, root_fd, is_program, err));
	k->key = key;
	*ret_k = k;
	vec_push(&t->binaries, TAKE(k));
	return 0;
}

static uint64_t file_key(uint64_t dev, uint64_t inode)
{
	return dev * 0x9e3779b97f4a7c15u ^ inode;
}

int heaptargets_file(struct heaptargets *t, struct byte_source source, const char *path,
		     const struct allocfind **ret_f, struct err *err)
{
	struct cached_binary *k;
	TRY(binary_get(t, file_key(UINT32_MAX, t->binaries.n), source, path, -1, true, &k, err));
	*ret_f = &k->found;
	return 0;
}

/* ---- a process ----------------------------------------------------------------------------- */

static bool is_seen(struct inspection *l, uint64_t key)
{
	vec_foreach(s, &l->seen)
		if (*s == key)
			return true;
	vec_push(&l->seen, key);
	return false;
}

static bool is_of_interest(const struct allocfind *f)
{
	return f->functions.n || f->jemalloc.version_text || f->is_jvm || f->is_go;
}

static void add_image(struct inspection *l, struct cached_binary *k, const struct proc_map *m)
{
	uint64_t vaddr;
	bool is_executable = l->exe && !strcmp(l->exe, m->path);
	if (is_executable) {
		l->h->is_go |= k->found.is_go;
		l->h->is_static = !k->has_interp;
		uint64_t main = l->h->is_held ? mainfind_vaddr(k->elf) : 0;
		if (main && elf_vaddr_from_offset(k->elf, m->pgoff, &vaddr))
			l->h->main = main + m->start - vaddr;
	}
	l->h->is_jvm |= k->found.is_jvm;
	if (!elf_vaddr_from_offset(k->elf, m->pgoff, &vaddr))
		return;
	if (!is_executable && !is_of_interest(&k->found))
		return;
	vec_push(&l->h->images, (struct heaptarget_image){.path = xstrdup(m->path),
							  .bias = m->start - vaddr,
							  .elf = k->elf,
							  .found = &k->found,
							  .is_executable = is_executable});
	vec_push(&l->images, k);
}

static bool is_file_32bit(struct byte_source *s)
{
	unsigned char ident[EI_NIDENT];
	return !s->ops->read(s->ctx, ident, sizeof(ident), 0, NULL) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}

static int inspect_map(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct inspection *l = ctx;
	l->has_maps = true;
	if (!m->is_exec || m->path[0] != '/' || proc_is_recorder(m->path))
		return 0;
	uint64_t key = file_key((uint64_t)m->dev_major << 32 | m->dev_minor, m->inode);
	if (is_seen(l, key))
		return 0;
	struct byte_source source;
	int rc = proc_open_mapped(&source, l->h->pid, m);
	if (rc) {
		l->nr_unreadable++;
		l->nr_silent += rc == -ETIMEDOUT;
		return 0;
	}
	struct cached_binary *k;
	CLEANUP(err_release)
	struct err bad = {0}; /* a mapping that is not an ELF file is ignored */
	bool is_program = l->exe && !strcmp(l->exe, m->path);
	bool is_32bit = is_program && is_file_32bit(&source);
	if (!binary_get(l->t, key, source, m->path, l->root_fd, is_program, &k, &bad))
		add_image(l, k, m);
	else if (is_program)
		l->h->is_32bit = is_32bit;
	return 0;
}

/* ---- the binary that malloc is bound to ------------------------------------------------------ */

/*
 * Reads the dynamic linker's state before the mappings are read: if it is consistent now, the
 * mappings include all libraries of its list.
 */
static void read_linker_state(struct inspection *l)
{
	struct dynlinker d;
	int mem CLEANUP(close_p) = host_open_mem(l->h->pid, O_RDONLY);
	if (mem < 0)
		return;
	int rc = dynlinker_find(&d, l->h->pid, mem);
	l->h->is_loading = rc == -EAGAIN ||
			   (!rc && dynlinker_state(&d, mem, &l->first_map) == DYNLINKER_LOADING);
}

/* The first binary with malloc, in the dynamic linker's search order. */
static bool first_by_linker(struct inspection *l, size_t *ret_idx)
{
	uint64_t next = l->first_map;
	int mem CLEANUP(close_p) = next ? host_open_mem(l->h->pid, O_RDONLY) : -1;
	if (mem < 0)
		return false;
	for (size_t nr = 0; next && nr < LINK_MAPS_MAX; nr++) {
		struct link_map map;
		if (host_read_mem(mem, next, &map, sizeof(map)))
			return false;
		next = (uint64_t)(uintptr_t)map.l_next;
		for (size_t i = 0; i < l->images.n; i++) {
			const struct heaptarget_image *m = &l->h->images.p[i];
			bool is_it =
				l->images.p[i]->dynamic &&
				l->images.p[i]->dynamic + m->bias == (uint64_t)(uintptr_t)map.l_ld;
			if (is_it && m->found->exports_malloc) {
				*ret_idx = i;
				return true;
			}
		}
	}
	return false;
}

/* Without the list: the program, then libraries other than the C library, then that. */
static bool first_by_kind(const struct inspection *l, size_t *ret_idx)
{
	for (int pass = 0; pass < 3; pass++) {
		for (size_t i = 0; i < l->images.n; i++) {
			const struct heaptarget_image *m = &l->h->images.p[i];
			bool fits = pass == 0   ? m->is_executable
				    : pass == 1 ? !m->found->is_libc
						: true;
			if (fits && m->found->exports_malloc) {
				*ret_idx = i;
				return true;
			}
		}
	}
	return false;
}

static void mark_used(struct inspection *l)
{
	size_t idx;
	if (l->h->is_static) {
		for (size_t i = 0; i < l->images.n; i++)
			l->h->images.p[i].is_used |= l->h->images.p[i].is_executable;
		return;
	}
	if (first_by_linker(l, &idx) || first_by_kind(l, &idx))
		l->h->images.p[idx].is_used = true;
}

/* Stopped by assay; it may also be traced by assay and run. */
static bool is_held(int32_t pid)
{
	int32_t tracer_pid = 0;
	struct proc_task t;
	return !proc_task(pid, pid, &t) && t.state == 't' && t.tracer &&
	       !proc_tgid(t.tracer, &tracer_pid, NULL) && tracer_pid == getpid();
}

#define KTHREADD 2 /* parent of kernel threads */

/* Nothing is mapped: a zombie or a kernel thread. */
static int has_no_memory(int32_t pid, struct err *err)
{
	int32_t parent = 0;
	bool has_parent = !proc_parent(pid, &parent, NULL);
	if (has_parent && (parent == KTHREADD || (pid == KTHREADD && !parent)))
		return err_set(err, -ENOTSUP,
			       "process %d is a thread of the kernel: it has no memory of its own",
			       pid);
	return err_set(err, -ESRCH, "process %d has ended: its memory is gone", pid);
}

int heaptargets_inspect(struct heaptargets *t, int32_t pid, struct heaptarget *ret_h,
			struct err *err)
{
	CLEANUP(heaptarget_release)
	struct heaptarget h = {.pid = pid,
			       .image = proc_exec_id(pid),
			       .is_held = is_held(pid),
			       .has_recorder = t->flags & HEAPTARGETS_RECORDER};
	CLEANUP(inspection_release)
	struct inspection l = {.t = t, .h = &h, .root_fd = hostfile_open_root(pid)};
	l.exe = proc_exe(pid);
	read_linker_state(&l);
	int rc = proc_maps(pid, inspect_map, &l, err);
	if (!rc && !l.has_maps && !l.exe)
		rc = has_no_memory(pid, err);
	if (!rc && l.nr_silent && !h.images.n)
		rc = err_set(err, -ETIMEDOUT,
			     "the binaries of process %d did not answer within %u s", pid,
			     HOSTFILE_DEADLINE_MS / 1000);
	if (!rc && l.nr_unreadable && !h.images.n)
		rc = err_set(err, -EPERM, "cannot read the binaries of process %d", pid);
	if (rc == -EPERM || rc == -EACCES)
		(void)err_hint(err, "run as root, or give assay CAP_SYS_PTRACE (in a container "
				    "--cap-add SYS_PTRACE)");
	TRY(rc);
	h.is_loading |= l.exe && !l.seen.n; /* nothing is mapped yet */
	h.is_loading |= l.exe &&
			(!h.image || proc_exec_id(pid) != h.image); /* exec during the inspection */
	mark_used(&l);
	struct proc_wait at = {0};
	h.has_started = h.main && !proc_wait(pid, pid, &at) && at.pc == h.main;
	*ret_h = h;
	h = (struct heaptarget){0};
	return 0;
}

const struct heaptarget_image *heaptarget_jemalloc(const struct heaptarget *h)
{
	const struct heaptarget_image *found = NULL;
	vec_foreach(i, &h->images) {
		if (!i->found->jemalloc.prefix && !i->found->jemalloc.version_text)
			continue;
		bool is_plain = i->found->jemalloc.prefix && !*i->found->jemalloc.prefix &&
				!i->found->jemalloc.is_stripped;
		if (is_plain && !i->is_used) /* loaded, but malloc is bound elsewhere */
			continue;
		if (!found || (i->found->jemalloc.mallctl && !found->found->jemalloc.mallctl))
			found = i;
	}
	return found;
}

char *heaptargets_variable(struct heaptargets *t, int32_t pid)
{
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	if (heaptargets_inspect(t, pid, &h, NULL))
		return NULL;
	const struct heaptarget_image *m = heaptarget_jemalloc(&h);
	return m && m->found->jemalloc.variable ? xstrdup(m->found->jemalloc.variable) : NULL;
}
