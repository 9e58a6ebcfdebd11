/* Reads and classifies mappings; see maps.h. */
#include "base/base.h"
#include "host/memory/maps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text/lines.h"
#include "base/mem.h"
#include "host/memory/memstat.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"

#define SMAPS_BYTES_MAX ((size_t)512 << 20)
#define UNGUARDED_BYTES ((uint64_t)16 << 20)
/* Default stack size of a thread in glibc. */
#define DEFAULT_BYTES ((uint64_t)8 << 20)
/* Address range of Go's heap, which also holds the stacks of goroutines. */
#define GO_HEAP_LO ((uint64_t)0xc000000000)
#define GO_HEAP_HI ((uint64_t)0xe000000000)

void memstacks_release(struct memstacks *s)
{
	vec_release(&s->starts);
}

void memmaps_release(struct memmaps *m)
{
	intern_release(&m->paths);
	vec_release(&m->list);
}

uint64_t memmaps_rss(const struct memmaps *m, enum memmap_kind kind)
{
	uint64_t sum = 0;
	vec_foreach(one, &m->list)
		if (one->kind == kind)
			sum += one->rss_bytes;
	return sum;
}

/* ---- text --------------------------------------------------------------------------------- */

static uint32_t add_path(struct memmaps *m, struct sv path)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!memmem(path.p, path.n, "\\012", 4))
		return intern_add(&m->paths, path.p, path.n);
	proc_add_map_path(&b, path);
	return intern_add(&m->paths, b.p, b.n);
}

static bool parse_head(struct memmaps *m, struct sv line, struct memmap *ret_one)
{
	struct proc_map map;
	struct sv path;
	if (!proc_parse_map(line, &map, &path))
		return false;
	*ret_one = (struct memmap){.start = map.start,
				   .end = map.end,
				   .is_readable = map.is_read,
				   .is_writable = map.is_write,
				   .is_exec = map.is_exec,
				   .is_shared = map.is_shared,
				   .path = path.n ? add_path(m, path) : 0};
	return true;
}

static void add_number(struct memmap *m, struct sv key, uint64_t v)
{
	static const struct memstat_field fields[] = {
		{"Rss", offsetof(struct memmap, rss_bytes)},
		{"Pss", offsetof(struct memmap, pss_bytes)},
		{"Shared_Clean", offsetof(struct memmap, shared_clean_bytes)},
		{"Shared_Dirty", offsetof(struct memmap, shared_dirty_bytes)},
		{"Private_Clean", offsetof(struct memmap, private_clean_bytes)},
		{"Private_Dirty", offsetof(struct memmap, private_dirty_bytes)},
		{"Anonymous", offsetof(struct memmap, anon_bytes)},
		{"AnonHugePages", offsetof(struct memmap, huge_bytes)},
		{"ShmemPmdMapped", offsetof(struct memmap, huge_bytes)},
		{"FilePmdMapped", offsetof(struct memmap, huge_bytes)},
		{"Swap", offsetof(struct memmap, swap_bytes)},
		{"SwapPss", offsetof(struct memmap, swap_pss_bytes)},
		{"Locked", offsetof(struct memmap, locked_bytes)},
	};
	(void)memstat_add_field(m, fields, ARRAY_LEN(fields), key, v); /* other keys are ignored */
}

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static enum memmap_kind kind_of(const struct memmaps *m, const struct memmap *one,
				const bool *is_binary)
{
	const char *path = memmaps_path(m, one);
	if (!*path)
		return one->is_exec ? MEMMAP_JIT : MEMMAP_ANON;
	if (proc_is_recorder(path))
		return MEMMAP_RECORDER;
	if (path[0] == '[') {
		if (!strcmp(path, "[heap]"))
			return MEMMAP_HEAP;
		if (has_prefix(path, "[stack"))
			return MEMMAP_STACK;
		if (has_prefix(path, "[anon_shmem"))
			return MEMMAP_SHMEM;
		return has_prefix(path, "[anon") ? MEMMAP_NAMED : MEMMAP_SPECIAL;
	}
	if (has_prefix(path, "/anon_hugepage"))
		return MEMMAP_HUGETLB;
	/* Code in a memfd or in shared memory comes from a JIT compiler. */
	if (one->is_exec)
		return has_prefix(path, "/memfd:") || has_prefix(path, "/dev/zero") ? MEMMAP_JIT
										    : MEMMAP_CODE;
	if (has_prefix(path, "/memfd:") || has_prefix(path, "/dev/shm/") ||
	    has_prefix(path, "/SYSV") || has_prefix(path, "/dev/zero"))
		return one->is_shared || one->rss_bytes > one->anon_bytes ? MEMMAP_SHMEM
									  : MEMMAP_ANON;
	return is_binary[one->path] ? MEMMAP_BINARY : MEMMAP_FILE;
}

static void set_kinds(struct memmaps *m)
{
	bool *is_binary = xcalloc(MAX(intern_count(&m->paths), (size_t)1), sizeof(*is_binary));
	vec_foreach(one, &m->list)
		if (one->is_exec)
			is_binary[one->path] = true;
	vec_foreach(one, &m->list)
		one->kind = kind_of(m, one, is_binary);
	free_p(&is_binary);
}

void memmaps_parse(struct memmaps *m, struct sv text)
{
	struct lines in = lines_from(text.p, text.n);
	struct sv line, key;
	uint64_t v;
	while (lines_next(&in, &line)) {
		struct memmap one;
		/* Keys begin with a capital letter, addresses with a lower-case hexadecimal digit. */
		if (line.n && line.p[0] >= 'A' && line.p[0] <= 'Z') {
			if (m->list.n && memstat_line(line, &key, &v))
				add_number(vec_last(&m->list), key, v);
		} else if (parse_head(m, line, &one)) {
			vec_push(&m->list, one);
		}
	}
	set_kinds(m);
}

/* ---- stacks ------------------------------------------------------------------------------- */

static bool has_guard(const struct memmaps *m, size_t i)
{
	const struct memmap *below = i ? &m->list.p[i - 1] : NULL;
	return below && below->end == m->list.p[i].start && !below->is_readable &&
	       !below->is_writable && !below->is_exec;
}

/* A stack pointer may also be in a heap: the stack of a coroutine. */
static bool may_be_stack(const struct memmaps *m, size_t i)
{
	const struct memmap *one = &m->list.p[i];
	if (one->kind == MEMMAP_STACK)
		return true;
	if ((one->kind != MEMMAP_ANON && one->kind != MEMMAP_NAMED) || !one->is_writable ||
	    one->is_shared)
		return false;
	if (one->start >= GO_HEAP_LO && one->start < GO_HEAP_HI)
		return false;
	return has_guard(m, i) || one->end - one->start <= UNGUARDED_BYTES;
}

static ssize_t find_map(const struct memmaps *m, uint64_t addr)
{
	size_t i = upper_bound(m->list.p, m->list.n, end, addr);
	return i < m->list.n && m->list.p[i].start <= addr ? (ssize_t)i : -1;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void store_stacks(const struct memmaps *m, struct memstacks *stacks)
{
	vec_clear(&stacks->starts);
	vec_foreach(one, &m->list)
		if (one->kind == MEMMAP_STACK)
			vec_push(&stacks->starts, one->start);
	if (stacks->starts.n)
		qsort(stacks->starts.p, stacks->starts.n, sizeof(uint64_t), compare_u64);
}

void memmaps_mark_stacks(struct memmaps *m, struct memstacks *stacks, const uint64_t *sps,
			 size_t nr)
{
	for (size_t i = 0; i < nr + stacks->starts.n; i++) {
		uint64_t addr = i < nr ? sps[i] : stacks->starts.p[i - nr];
		ssize_t at = find_map(m, addr);
		if (at >= 0 && may_be_stack(m, (size_t)at))
			m->list.p[at].kind = MEMMAP_STACK;
	}
	store_stacks(m, stacks);
}

static bool is_size_of_stack(const struct memmaps *m, uint64_t nr_bytes)
{
	for (size_t i = 0; i < m->list.n; i++) {
		const struct memmap *one = &m->list.p[i];
		if (one->kind == MEMMAP_STACK && !one->path && has_guard(m, i) &&
		    one->end - one->start == nr_bytes)
			return true;
	}
	return nr_bytes == DEFAULT_BYTES;
}

size_t memmaps_guess_stacks(struct memmaps *m, struct memstacks *stacks, size_t nr)
{
	size_t nr_found = 0;
	for (size_t i = 0; i < m->list.n && nr_found < nr; i++) {
		struct memmap *one = &m->list.p[i];
		if (one->kind != MEMMAP_ANON || !has_guard(m, i) || !may_be_stack(m, i) ||
		    !is_size_of_stack(m, one->end - one->start))
			continue;
		one->kind = MEMMAP_STACK;
		nr_found++;
	}
	store_stacks(m, stacks);
	return nr_found;
}

static void find_stacks(struct memmaps *m, int32_t pid, struct memstacks *stacks)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	VEC(uint64_t) sps = {0};
	if (proc_threads(&tids, pid, NULL))
		return;
	stacks->nr_unseen = 0;
	vec_foreach(tid, &tids.pids) {
		struct proc_wait w;
		if (!proc_wait(pid, *tid, &w) && w.sp)
			vec_push(&sps, w.sp);
	}
	memmaps_mark_stacks(m, stacks, sps.p, sps.n);
	if (tids.pids.n > stacks->starts.n) {
		size_t nr = tids.pids.n - stacks->starts.n;
		stacks->nr_unseen = (uint32_t)(nr - memmaps_guess_stacks(m, stacks, nr));
	}
	vec_release(&sps);
}

/* ---- reading ------------------------------------------------------------------------------ */

int memmaps_read(struct memmaps *ret_m, int32_t pid, struct memstacks *stacks, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *smaps = xasprintf("/proc/%d/smaps", pid);
	CLEANUP(free_p) char *maps = xasprintf("/proc/%d/maps", pid);
	CLEANUP(memmaps_release) struct memmaps m = {0};
	uint64_t start_ns = clock_mono_ns();
	int rc = hostfile_read_text(&text, smaps, SMAPS_BYTES_MAX, NULL);
	m.has_rss = !rc;
	if (rc) {
		buf_clear(&text);
		rc = hostfile_read_text(&text, maps, SMAPS_BYTES_MAX, err);
	}
	if (rc)
		return rc;
	memmaps_parse(&m, buf_sv(&text));
	m.read_ns = clock_mono_ns() - start_ns;
	if (!m.list.n)
		return err_set(err, -ESRCH,
			       "process %d has no mappings: it has exited, or is a "
			       "kernel thread",
			       pid);
	if (stacks)
		find_stacks(&m, pid, stacks);
	*ret_m = m;
	m = (struct memmaps){0};
	return 0;
}
