/* Owners of anonymous memory; see anon.h. */
#include "base/base.h"
#include "host/memory/anon.h"

#include <stdlib.h>

#define ARENA_ALIGN    ((uint64_t)64 << 20)
#define V8_ALIGN       ((uint64_t)256 << 10)
#define V8_HEADER_MAX  ((uint64_t)64 << 10)
#define PAGE           ((uint64_t)PAGEHEAD_PAGE)
#define IS_MMAPPED     2u
#define FLAG_BITS      7u
#define GO_HEAP_LO     ((uint64_t)0xc000000000)
#define GO_HEAP_HI     ((uint64_t)0xe000000000)
#define POOL_HEADER    48u
#define POOL_CLASSES   32u
#define INNODB_FRAME   ((uint64_t)16 << 10)
#define INNODB_INDEX   0x45bfu
#define WINDOW         256u /* pages read at once */
#define DATA_PAGES_MAX 16384u
/* A mapping larger than this many times its RSS, and a GiB, is not read: a sanitizer's has terabytes. */
#define SPARSE_FACTOR 64u
#define SPARSE_BYTES  ((uint64_t)1 << 30)

struct scan {
	uint64_t end; /* of the region */
	struct memanon who;
	struct memanon_run run;
	/* Pages without an owner since the last frame of InnoDB. */
	bool has_frame;
	struct memanon_part since;
	const struct memanon_references *refs;
	size_t next_ref;   /* the first reference behind the page */
	uint32_t referrer; /* of the pages without another owner; 0 = none */
};

bool memanon_is_arena(uint64_t addr, uint64_t rest, const struct pagehead *h)
{
	uint64_t size = h->words[2];
	/* In an arena's first heap the arena follows this header; other heaps point to it. */
	return addr % ARENA_ALIGN == 0 && size && size % PAGE == 0 && size <= h->words[3] &&
	       h->words[3] <= MIN(rest, ARENA_ALIGN) &&
	       (h->words[1] ? h->words[1] % ARENA_ALIGN == 0
			    : h->words[0] > addr && h->words[0] < addr + PAGE);
}

static bool is_v8(uint64_t addr, uint64_t rest, const struct pagehead *h)
{
	return addr % V8_ALIGN == 0 && h->words[0] >= PAGE && h->words[0] % PAGE == 0 &&
	       h->words[0] <= rest && h->words[3] > addr && h->words[3] - addr < V8_HEADER_MAX;
}

/* Returns the length of the mmapped malloc block that begins at @addr, 0 = none. */
static uint64_t mmapped_block(uint64_t rest, const struct pagehead *h)
{
	uint64_t before = h->words[0]; /* bytes before an aligned block */
	uint64_t len = h->words[1] & ~(uint64_t)FLAG_BITS;
	if ((h->words[1] & FLAG_BITS) != IS_MMAPPED || before % 16 || before > rest || len < PAGE ||
	    len > rest || (before + len) % PAGE || before + len > rest)
		return 0;
	return before + len;
}

static bool is_pool(uint64_t addr, uint64_t pool_bytes, const struct pagehead *h,
		    uint64_t *ret_used)
{
	uint64_t nr_used = h->halves[0];
	uint64_t first_free = h->words[1];
	uint64_t class_idx = h->halves[9];
	uint64_t next = h->halves[10];
	uint64_t next_max = h->halves[11];
	uint64_t block_bytes = (class_idx + 1) * 16;
	bool is_inside = !first_free || (first_free > addr && first_free < addr + pool_bytes);
	*ret_used = nr_used * block_bytes;
	return addr % pool_bytes == 0 && class_idx < POOL_CLASSES &&
	       next_max == pool_bytes - block_bytes && next >= POOL_HEADER &&
	       next <= next_max + block_bytes && (next - POOL_HEADER) % block_bytes == 0 &&
	       *ret_used <= pool_bytes - POOL_HEADER && is_inside;
}

static bool is_frame(uint64_t addr, const struct pagehead *h)
{
	return addr % INNODB_FRAME == 0 && (h->bytes[24] << 8 | h->bytes[25]) == INNODB_INDEX &&
	       !memcmp(h->bytes + 99, "infimum", 8);
}

static struct memanon_run begin_run(uint64_t addr, uint64_t rest, const struct pagehead *h)
{
	static const uint64_t pools[] = {16 << 10, 4 << 10};
	uint64_t used = 0;
	if (!h->is_read)
		return (struct memanon_run){0};
	if (is_v8(addr, rest, h))
		return (struct memanon_run){MEMANON_V8, addr + h->words[0], 0};
	if (memanon_is_arena(addr, rest, h))
		return (struct memanon_run){MEMANON_GLIBC_ARENA, addr + h->words[3], 0};
	uint64_t block = mmapped_block(rest, h);
	if (block)
		return (struct memanon_run){MEMANON_GLIBC_MMAP, addr + block, block};
	for (size_t i = 0; i < ARRAY_LEN(pools); i++)
		if (pools[i] <= rest && is_pool(addr, pools[i], h, &used))
			return (struct memanon_run){MEMANON_PYMALLOC, addr + pools[i], used};
	if (is_frame(addr, h) && INNODB_FRAME <= rest)
		return (struct memanon_run){MEMANON_INNODB, addr + INNODB_FRAME, 0};
	return (struct memanon_run){0};
}

static void add_part(struct memanon_part *to, const struct memanon_part *part)
{
	to->virtual_bytes += part->virtual_bytes;
	to->resident_bytes += part->resident_bytes;
	to->used_bytes += part->used_bytes;
}

static void enter_run(struct scan *s, struct memanon_run run)
{
	s->run = run;
	s->who.of[run.owner].used_bytes += run.used_bytes;
	if (run.owner != MEMANON_INNODB)
		return;
	if (s->has_frame)
		add_part(&s->who.of[MEMANON_INNODB], &s->since);
	s->has_frame = true;
	s->since = (struct memanon_part){0};
}

static void follow_references(struct scan *s, uint64_t addr)
{
	for (; s->next_ref < s->refs->list.n; s->next_ref++) {
		const struct memanon_reference *ref = &s->refs->list.p[s->next_ref];
		if (ref->to > addr)
			return;
		s->referrer = ref->to == addr ? ref->path : s->referrer;
	}
}

/* A page without an owner in its contents. */
static void add_other_page(struct scan *s, const struct memanon_part *page)
{
	if (!s->referrer) {
		add_part(&s->since, page);
		return;
	}
	s->who.referrer = s->referrer;
	add_part(&s->who.of[MEMANON_REFERENCED], page);
}

static void add_page(struct scan *s, uint64_t addr, const struct pagehead *h)
{
	if (addr >= s->run.end) {
		struct memanon_run run = begin_run(addr, s->end - addr, h);
		if (run.owner)
			enter_run(s, run);
		else
			s->run = (struct memanon_run){MEMANON_UNKNOWN, addr + PAGE, 0};
	}
	const struct memanon_part page = {PAGE, h->is_resident ? PAGE : 0, 0};
	follow_references(s, addr);
	if (s->run.owner && s->run.owner != MEMANON_INNODB)
		s->referrer = 0;
	if (s->run.owner)
		add_part(&s->who.of[s->run.owner], &page);
	else
		add_other_page(s, &page);
}

/* The kernel counts neither the shared page of zeros nor pages that were just unmapped. */
static void limit_to_rss(struct memanon *who, uint64_t rss_bytes)
{
	for (size_t i = 0; i < MEMANON_NR; i++) {
		who->of[i].resident_bytes = MIN(who->of[i].resident_bytes, rss_bytes);
		rss_bytes -= who->of[i].resident_bytes;
	}
	who->of[MEMANON_UNKNOWN] = (struct memanon_part){0};
}

static struct memanon one_owner(enum memanon_owner owner, const struct memmap *one)
{
	struct memanon who = {0};
	who.of[owner] = (struct memanon_part){one->end - one->start, one->rss_bytes, 0};
	return who;
}

/* Whether the mappings before are a writable one of a binary, and those that it protected later. */
static bool is_bss(const struct memmaps *m, size_t i)
{
	uint64_t end = m->list.p[i].start;
	uint32_t path = 0;
	while (i--) {
		const struct memmap *before = &m->list.p[i];
		bool is_binary = before->kind == MEMMAP_BINARY || before->kind == MEMMAP_CODE;
		if (before->end != end || before->is_shared || !is_binary ||
		    (path && path != before->path))
			return false;
		if (before->is_writable)
			return true;
		end = before->start;
		path = before->path;
	}
	return false;
}

uint64_t memanon_region_end(const struct memmaps *m, size_t i)
{
	const struct memmap *one = &m->list.p[i];
	uint64_t end = one->end;
	for (size_t k = i + 1; k < m->list.n; k++) {
		const struct memmap *next = &m->list.p[k];
		if (next->start != end || next->kind != one->kind ||
		    next->is_writable != one->is_writable || next->is_shared != one->is_shared)
			break;
		end = next->end;
	}
	return end;
}

/*
 * Adds the pages from *at on to their owner if they are in an extent of jemalloc; else sets *end to the
 * next one, if it begins before.
 */
static bool add_extent(struct scan *s, const struct memanon_source *from, uint64_t *at,
		       uint64_t *end, uint64_t *missing)
{
	bool is_resident[WINDOW];
	const struct jemallocmap *j = &from->jemalloc;
	size_t i = upper_bound(j->ranges.p, j->ranges.n, end, *at);
	if (i == j->ranges.n || j->ranges.p[i].start > *at) {
		*end = i < j->ranges.n ? MIN(*end, j->ranges.p[i].start) : *end;
		return false;
	}
	const struct jemallocmap_range *in = &j->ranges.p[i];
	size_t n = MIN((MIN(in->end, *end) - *at) / PAGE, (uint64_t)WINDOW);
	from->resident(from->ctx, *at, n, is_resident);
	for (size_t k = 0; k < n; k++) {
		const struct memanon_part page = {PAGE, is_resident[k] ? PAGE : 0, 0};
		add_part(&s->who.of[in->owner], &page);
		*missing -= MIN(*missing, page.resident_bytes);
	}
	*at += n * PAGE;
	s->run.end = MIN(s->run.end, *at);
	s->referrer = 0;
	return true;
}

struct memanon memanon_classify(const struct memmaps *m, size_t i, struct memanon_source *from)
{
	const struct memmap *one = &m->list.p[i];
	struct scan s = {.end = memanon_region_end(m, i), .run = from->run, .refs = &from->refs};
	struct pagehead heads[WINDOW];
	if (is_bss(m, i))
		return one_owner(MEMANON_BSS, one);
	if (one->start >= GO_HEAP_LO && one->end <= GO_HEAP_HI)
		return one_owner(MEMANON_GO, one);
	if ((one->end - one->start - MIN(one->end - one->start, SPARSE_BYTES)) / SPARSE_FACTOR >
	    one->rss_bytes)
		return (struct memanon){0};
	s.next_ref = lower_bound(from->refs.list.p, from->refs.list.n, to, one->start);
	uint64_t missing = one->rss_bytes; /* nothing is resident behind the last resident page */
	for (uint64_t addr = one->start; one->is_readable && addr < one->end && missing;) {
		uint64_t end = one->end;
		if (add_extent(&s, from, &addr, &end, &missing))
			continue;
		size_t n = MIN((end - addr) / PAGE, (uint64_t)MIN(WINDOW, from->nr_left));
		if (!n && end == one->end)
			break;
		if (!n) { /* what follows needs no reading */
			addr = end;
			continue;
		}
		from->read(from->ctx, addr, n, heads);
		for (size_t k = 0; k < n; k++, addr += PAGE) {
			add_page(&s, addr, &heads[k]);
			from->nr_left -= heads[k].is_read;
			missing -= heads[k].is_resident ? MIN(missing, PAGE) : 0;
		}
	}
	limit_to_rss(&s.who, one->rss_bytes);
	from->run = s.run;
	return s.who;
}

void memanon_source_release(struct memanon_source *s)
{
	jemallocmap_release(&s->jemalloc);
	vec_release(&s->refs.list);
}

/* ---- reading a process -------------------------------------------------------------------- */

static void read_process(void *ctx, uint64_t addr, size_t nr_pages, struct pagehead *to)
{
	pagehead_read(ctx, addr, nr_pages, to);
}

static void resident_of_process(void *ctx, uint64_t addr, size_t nr_pages, bool *ret_is_resident)
{
	pagehead_resident(ctx, addr, nr_pages, ret_is_resident);
}

static bool is_anon_page(const struct memmaps *m, uint64_t addr)
{
	size_t i = upper_bound(m->list.p, m->list.n, end, addr);
	return i < m->list.n && m->list.p[i].start <= addr && m->list.p[i].kind == MEMMAP_ANON;
}

static void add_references(struct memanon_references *refs, const struct memmaps *m,
			   const uint64_t *words, size_t nr, uint32_t path)
{
	for (size_t i = 0; i < nr; i++)
		if (words[i] && words[i] % PAGE == 0 && is_anon_page(m, words[i]))
			vec_push(&refs->list, (struct memanon_reference){words[i], path});
}

static int compare_references(const void *a, const void *b)
{
	const struct memanon_reference *x = a;
	const struct memanon_reference *y = b;
	return COMPARE(x->to, y->to) ?: COMPARE(x->path, y->path);
}

bool memanon_is_data(const struct memmaps *m, size_t i)
{
	const struct memmap *one = &m->list.p[i];
	bool is_binary = one->kind == MEMMAP_BINARY || one->kind == MEMMAP_CODE;
	return one->is_writable && one->is_readable && !one->is_shared &&
	       (is_binary || (one->kind == MEMMAP_ANON && is_bss(m, i)));
}

/* Reads the data of all binaries. */
static void find_references(struct memanon_references *refs, const struct memmaps *m,
			    const struct pagehead_reader *r)
{
	uint64_t words[PAGEHEAD_PAGE / sizeof(uint64_t)];
	uint32_t nr_left = DATA_PAGES_MAX;
	uint32_t path = 0;
	for (size_t i = 0; i < m->list.n; i++) {
		const struct memmap *one = &m->list.p[i];
		if (!memanon_is_data(m, i))
			continue;
		path = one->kind == MEMMAP_ANON ? path : one->path;
		for (uint64_t at = one->start; at < one->end && nr_left; at += PAGE)
			if (pagehead_read_page(r, at, words)) {
				add_references(refs, m, words, ARRAY_LEN(words), path);
				nr_left--;
			}
	}
	if (refs->list.n)
		qsort(refs->list.p, refs->list.n, sizeof(*refs->list.p), compare_references);
}

void memanon_classify_all(struct memmaps *m, int32_t pid)
{
	CLEANUP(pagehead_close) struct pagehead_reader r = PAGEHEAD_READER_INIT;
	CLEANUP(memanon_source_release)
	struct memanon_source from = {.read = read_process,
				      .resident = resident_of_process,
				      .ctx = &r,
				      .nr_left = MEMANON_PAGES_MAX};
	pagehead_open(&r, pid);
	jemallocmap_read(&from.jemalloc, m, &r);
	find_references(&from.refs, m, &r);
	for (size_t i = 0; i < m->list.n; i++)
		if (m->list.p[i].kind == MEMMAP_ANON)
			m->list.p[i].anon = memanon_classify(m, i, &from);
}
