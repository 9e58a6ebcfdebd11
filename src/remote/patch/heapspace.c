/* Mappings and free address space of a target; see heapspace.h. */
#include "base/base.h"
#include "remote/patch/heapspace.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host/proc.h"

#define PAGE             4096ull
#define LOWEST           0x10000ull /* the usual vm.mmap_min_addr */
#define TOP              0x7fffffff0000ull
#define NEAR_MAX         ((1ull << 31) - (1ull << 24))
#define PLACEMENT_OFFSET (320ull << 20)
#define LIMIT_FACTOR     4ull /* the free part of a limit must be this multiple of what is mapped */
#define STACK_GAP        (1ull << 30) /* left free below the main thread's stack, which grows */

void heapspace_release(struct heapspace *s)
{
	vec_release(&s->maps);
}

static enum heapspace_kind kind_of(const char *path)
{
	static const struct {
		const char *path;
		enum heapspace_kind kind;
	} names[] = {
		{"/memfd:" HEAPSPACE_IMAGE " (deleted)", HEAPSPACE_IS_IMAGE},
		{"/memfd:" HEAPSPACE_STUBS " (deleted)", HEAPSPACE_IS_STUBS},
		{"/memfd:" HEAPSPACE_RING " (deleted)", HEAPSPACE_IS_RING},
		{"/memfd:" HEAPSPACE_TABLES " (deleted)", HEAPSPACE_IS_TABLES},
		{"[stack]", HEAPSPACE_IS_STACK},
		{"[heap]", HEAPSPACE_IS_BRK},
		{"[vdso]", HEAPSPACE_IS_KERNEL},
		{"[vvar]", HEAPSPACE_IS_KERNEL},
		{"[vvar_vclock]", HEAPSPACE_IS_KERNEL},
		{"[vsyscall]", HEAPSPACE_IS_KERNEL},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(path, names[i].path))
			return names[i].kind;
	return HEAPSPACE_OTHER;
}

static int add_map(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct heapspace *s = ctx;
	vec_push(&s->maps,
		 (struct heapspace_map){
			 .start = m->start,
			 .end = m->end,
			 .pgoff = m->pgoff,
			 .inode = m->inode,
			 .dev_major = m->dev_major,
			 .dev_minor = m->dev_minor,
			 .is_exec = m->is_exec,
			 .prot = (m->is_read ? PROT_READ : 0) | (m->is_write ? PROT_WRITE : 0) |
				 (m->is_exec ? PROT_EXEC : 0),
			 .kind = kind_of(m->path),
		 });
	return 0;
}

int heapspace_read(struct heapspace *ret_s, int32_t pid, struct err *err)
{
	CLEANUP(heapspace_release) struct heapspace s = {0};
	TRY(proc_maps(pid, add_map, &s, err));
	if (!s.maps.n)
		return err_set(err, -ESRCH, "pid %d has ended", pid);
	*ret_s = s;
	s = (struct heapspace){0};
	return 0;
}

const struct heapspace_map *heapspace_at(const struct heapspace *s, uint64_t addr)
{
	for (size_t i = 0; i < s->maps.n; i++)
		if (addr >= s->maps.p[i].start && addr < s->maps.p[i].end)
			return &s->maps.p[i];
	return NULL;
}

const struct heapspace_map *heapspace_first(const struct heapspace *s, enum heapspace_kind kind)
{
	for (size_t i = 0; i < s->maps.n; i++)
		if (s->maps.p[i].kind == kind)
			return &s->maps.p[i];
	return NULL;
}

uint64_t heapspace_base(const struct heapspace *s, uint64_t addr)
{
	const struct heapspace_map *at = heapspace_at(s, addr);
	if (!at || !at->inode)
		return 0;
	/* The segments of a binary are adjacent: take the nearest first page below. */
	for (const struct heapspace_map *m = at + 1; m-- > s->maps.p;)
		if (m->inode == at->inode && m->dev_major == at->dev_major &&
		    m->dev_minor == at->dev_minor && !m->pgoff)
			return m->start;
	return 0;
}

void heapspace_reserve(struct heapspace *s, uint64_t start, uint64_t nr_bytes)
{
	size_t i = 0;
	while (i < s->maps.n && s->maps.p[i].start < start)
		i++;
	vec_push(&s->maps, (struct heapspace_map){0});
	memmove(&s->maps.p[i + 1], &s->maps.p[i], (s->maps.n - 1 - i) * sizeof(*s->maps.p));
	s->maps.p[i] = (struct heapspace_map){.start = start, .end = start + nr_bytes};
}

/* The hole below map @i (i == n: above all), without the space into which stack and brk grow. */
static bool hole_below(const struct heapspace *s, size_t i, uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint64_t lo = i ? s->maps.p[i - 1].end : LOWEST;
	uint64_t hi = i < s->maps.n ? s->maps.p[i].start : TOP;
	if (hi > TOP)
		hi = TOP;
	if (i < s->maps.n && s->maps.p[i].kind == HEAPSPACE_IS_STACK)
		hi = hi > STACK_GAP ? hi - STACK_GAP : 0;
	if (i && s->maps.p[i - 1].kind == HEAPSPACE_IS_BRK)
		lo += STACK_GAP;
	lo = MAX(lo, LOWEST);
	*ret_lo = lo;
	*ret_hi = hi;
	return lo < hi;
}

/*
 * An address in [a, b), away from its top: the kernel places the next mapping there, possibly
 * before ours.
 */
static uint64_t place_in(uint64_t a, uint64_t b, uint64_t nr_bytes)
{
	if (b < a || b - a < nr_bytes)
		return 0;
	if (b - a > nr_bytes + 2 * PLACEMENT_OFFSET)
		return (b - PLACEMENT_OFFSET - nr_bytes) & ~(PAGE - 1);
	return (a + PAGE - 1) & ~(PAGE - 1);
}

uint64_t heapspace_find_near(const struct heapspace *s, uint64_t lo, uint64_t hi, uint64_t nr_bytes)
{
	uint64_t first = hi > NEAR_MAX ? hi - NEAR_MAX : LOWEST;
	uint64_t last = lo + NEAR_MAX;
	nr_bytes = (nr_bytes + PAGE - 1) & ~(PAGE - 1);
	/* First below the binary, as nothing grows towards its first page; then above. */
	for (size_t i = s->maps.n + 1; i--;) {
		uint64_t a;
		uint64_t b;
		if ((i < s->maps.n && s->maps.p[i].start > lo) || i == s->maps.n ||
		    !hole_below(s, i, &a, &b))
			continue;
		uint64_t at = place_in(MAX(a, first), b, nr_bytes);
		if (at)
			return at;
	}
	for (size_t i = 0; i <= s->maps.n; i++) {
		uint64_t a;
		uint64_t b;
		if (!hole_below(s, i, &a, &b) || b <= hi)
			continue;
		uint64_t at = place_in(MAX(a, hi), MIN(b, last), nr_bytes);
		if (at)
			return at;
	}
	return 0;
}

uint64_t heapspace_find_free(const struct heapspace *s, uint64_t nr_bytes)
{
	uint64_t best = 0;
	uint64_t size = 0;
	for (size_t i = 0; i <= s->maps.n; i++) {
		uint64_t a;
		uint64_t b;
		if (!hole_below(s, i, &a, &b) || b - a <= size || b - a < nr_bytes)
			continue;
		size = b - a;
		best = (a + (b - a - nr_bytes) / 2) & ~(PAGE - 1);
		if (best < a)
			best = (a + PAGE - 1) & ~(PAGE - 1);
	}
	return best;
}

int heapspace_check_limit(const struct heapspace *s, int32_t pid, uint64_t nr_bytes,
			  struct err *err)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	uint64_t used = 0;
	(void)prlimit(pid, RLIMIT_AS, NULL, &limit); /* not permitted: assume no limit */
	if (limit.rlim_cur == RLIM_INFINITY)
		return 0;
	for (size_t i = 0; i < s->maps.n; i++)
		used += s->maps.p[i].prot ? s->maps.p[i].end - s->maps.p[i].start : 0;
	if (used + LIMIT_FACTOR * nr_bytes <= limit.rlim_cur)
		return 0;
	return err_set(err, -ENOMEM,
		       "its address space is limited (ulimit -v), with no room for a recorder");
}
