/* jemalloc's map of extents; see jemallocmap.h. */
#include "base/base.h"
#include "host/memory/jemallocmap.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/memory/anon.h"

#define PAGE           ((uint64_t)PAGEHEAD_PAGE)
#define PAGE_WORDS     (PAGEHEAD_PAGE / sizeof(uint64_t))
#define TABLE_WORDS    ((uint64_t)1 << 18) /* of the root and of a leaf */
#define TABLE_BYTES    (TABLE_WORDS * sizeof(uint64_t))
#define LEAF_SHIFT     30 /* a leaf is for a GiB of addresses */
#define PAGE_SHIFT     12
#define ADDRESS_BITS   48
#define ADDRESS_MAX    ((uint64_t)1 << 47)
#define FLAG_BITS      ((uint64_t)63) /* descriptors are aligned to 64 bytes or more */
#define CLASS_MAX      200u /* classes of sizes that exist are below, "none" is 232 or more */
#define CLASS_MASK     0xffu
#define CLASS_BIT_LO   12 /* where a descriptor's flags may have the class */
#define CLASS_BIT_HI   32
#define BLOCK_ALIGN    ((uint64_t)2 << 20)
#define BLOCK_STEPS    16 /* a leaf is in a block of 4 MiB */
#define BLOCKS_MAX     65536u
#define EXTENTS_MAX    ((size_t)1 << 21)
#define PROBE_NR       64     /* entries of which a root is recognized */
#define DATA_PAGES_MAX 16384u /* of one binary, searched for a root */
/*
 * Reservations, such as the 20 TiB of AddressSanitizer, are larger than what jemalloc maps at once; nearly
 * every word of data is an address in them.
 */
#define MAPPING_MAX ((uint64_t)1 << 40)
#define SEARCH_NS   (2 * NS_PER_SEC) /* of all binaries of a process */
#define BATCH       128

/* The first words of a descriptor. */
struct descriptor {
	uint64_t flags;
	uint64_t addr;
	uint64_t size; /* the low bits are a serial number */
};

struct entry {
	uint64_t addr; /* of the page that it stands for */
	uint64_t descriptor;
	unsigned size_class;
};

struct mapper {
	const struct memmaps *m;
	const struct pagehead_reader *r;
	struct jemallocmap *to;
	VEC(struct jemallocmap_range) blocks;
	struct entry entries[BATCH];
	size_t nr_entries;
	size_t nr_right; /* entries that were right, and others */
	size_t nr_wrong;
	uint64_t end_ns;              /* when the search for a root ends without one */
	bool is_probe;                /* counts only */
	size_t nr_same[CLASS_BIT_HI]; /* entries whose class is at this bit of the flags */
	unsigned class_bit;
};

static bool is_anon(const struct mapper *f, uint64_t addr)
{
	const struct memmaps *m = f->m;
	size_t i = upper_bound(m->list.p, m->list.n, end, addr);
	if (i == m->list.n || m->list.p[i].start > addr || !m->list.p[i].is_writable ||
	    m->list.p[i].end - m->list.p[i].start > MAPPING_MAX)
		return false;
	return m->list.p[i].kind == MEMMAP_ANON || m->list.p[i].kind == MEMMAP_NAMED;
}

/* ---- jemalloc's own data ------------------------------------------------------------------- */

static bool is_in_block(const struct mapper *f, uint64_t addr)
{
	vec_foreach(b, &f->blocks)
		if (addr >= b->start && addr < b->end)
			return true;
	return false;
}

/* Adds the block at @at and those behind it, if @inside is in the first. */
static bool add_blocks(struct mapper *f, uint64_t at, uint64_t inside)
{
	struct {
		uint64_t size;
		uint64_t next;
		struct descriptor left;
	} head;
	bool is_added = false;
	while (at && at % BLOCK_ALIGN == 0 && f->blocks.n < BLOCKS_MAX && !is_in_block(f, at)) {
		if (!is_anon(f, at) || !pagehead_copy(f->r, at, &head, sizeof(head)) ||
		    !head.size || head.size % BLOCK_ALIGN || head.size > ADDRESS_MAX ||
		    head.left.addr <= at || head.left.addr + head.left.size != at + head.size ||
		    (!is_added && inside - at >= head.size))
			break;
		vec_push(&f->blocks,
			 (struct jemallocmap_range){at, at + head.size, MEMANON_JEMALLOC_OWN});
		is_added = true;
		at = head.next;
	}
	return is_added;
}

/* Finds the block of a descriptor or leaf. */
static void find_block(struct mapper *f, uint64_t addr)
{
	uint64_t at = addr & ~(BLOCK_ALIGN - 1);
	if (is_in_block(f, addr))
		return;
	for (int i = 0; i < BLOCK_STEPS && at; i++, at -= BLOCK_ALIGN)
		if (add_blocks(f, at, addr))
			return;
}

/* ---- extents ------------------------------------------------------------------------------- */

static void add_extent(struct mapper *f, const struct entry *e, const struct descriptor *d)
{
	uint64_t start = d->addr & ~(PAGE - 1);
	uint64_t size = d->size & ~(PAGE - 1);
	if (!size || e->addr < start || e->addr - start >= size || start + size > ADDRESS_MAX) {
		f->nr_wrong++;
		return;
	}
	f->nr_right++;
	if (f->is_probe) {
		for (unsigned bit = CLASS_BIT_LO; bit < CLASS_BIT_HI; bit++)
			f->nr_same[bit] += (d->flags >> bit & CLASS_MASK) == e->size_class;
		return;
	}
	if (f->to->ranges.n >= EXTENTS_MAX)
		return;
	find_block(f, e->descriptor);
	bool is_used = (d->flags >> f->class_bit & CLASS_MASK) < CLASS_MAX;
	vec_push(&f->to->ranges, (struct jemallocmap_range){start, start + size,
							    is_used ? MEMANON_JEMALLOC_USED
								    : MEMANON_JEMALLOC_FREE});
}

static void check_entries(struct mapper *f)
{
	struct descriptor d[BATCH];
	uint64_t addrs[BATCH];
	bool is_read[BATCH];
	for (size_t i = 0; i < f->nr_entries; i++)
		addrs[i] = f->entries[i].descriptor;
	pagehead_gather(f->r, addrs, f->nr_entries, d, sizeof(d[0]), is_read);
	for (size_t i = 0; i < f->nr_entries; i++) {
		if (is_read[i])
			add_extent(f, &f->entries[i], &d[i]);
		else
			f->nr_wrong++;
	}
	f->nr_entries = 0;
}

/* Slabs have an entry for each page, others for the first and the last. */
static void add_entry(struct mapper *f, uint64_t addr, uint64_t word, uint64_t *last)
{
	uint64_t at = word & (((uint64_t)1 << ADDRESS_BITS) - 1) & ~FLAG_BITS;
	if (!at || at == *last)
		return;
	*last = at;
	if (!is_anon(f, at)) {
		f->nr_wrong++;
		return;
	}
	unsigned size_class = word >> ADDRESS_BITS & CLASS_MASK;
	f->entries[f->nr_entries++] = (struct entry){addr, at, size_class};
	if (f->nr_entries == BATCH)
		check_entries(f);
}

typedef bool (*word_fn)(struct mapper *f, uint64_t idx, uint64_t word, void *ctx);

/* Calls @fn for the words of a table that are not 0, in resident pages, until it returns false. */
static void each_word(struct mapper *f, uint64_t table, word_fn fn, void *ctx)
{
	uint64_t words[PAGE_WORDS];
	for (uint64_t page = table & ~(PAGE - 1); page < table + TABLE_BYTES; page += PAGE) {
		if (!pagehead_read_page(f->r, page, words))
			continue;
		for (size_t i = 0; i < PAGE_WORDS; i++) {
			uint64_t at = page + i * sizeof(words[0]);
			if (words[i] && at >= table && at < table + TABLE_BYTES &&
			    !fn(f, (at - table) / sizeof(words[0]), words[i], ctx))
				return;
		}
	}
}

struct leaf {
	uint64_t first; /* the address that it begins with */
	uint64_t last;  /* descriptor of the last entry */
};

static bool on_leaf_word(struct mapper *f, uint64_t idx, uint64_t word, void *ctx)
{
	struct leaf *l = ctx;
	add_entry(f, l->first + (idx << PAGE_SHIFT), word, &l->last);
	return !f->is_probe || f->nr_entries + f->nr_right + f->nr_wrong < PROBE_NR;
}

static void walk_leaf(struct mapper *f, uint64_t idx, uint64_t leaf)
{
	struct leaf l = {.first = idx << LEAF_SHIFT};
	each_word(f, leaf, on_leaf_word, &l);
	check_entries(f);
}

/* ---- the root ------------------------------------------------------------------------------ */

static bool is_leaf(const struct mapper *f, uint64_t addr)
{
	return addr && addr % (FLAG_BITS + 1) == 0 && is_anon(f, addr) &&
	       is_anon(f, addr + TABLE_BYTES - 1);
}

static bool on_root_word(struct mapper *f, uint64_t idx, uint64_t word, void *ctx UNUSED)
{
	if (!is_leaf(f, word))
		return true;
	find_block(f, word);
	walk_leaf(f, idx, word);
	return true;
}

/* Whether @leaf has right entries, taken for that of the @idx-th GiB. */
static bool probe(struct mapper *f, uint64_t idx, uint64_t leaf)
{
	f->nr_right = f->nr_wrong = 0;
	memset(f->nr_same, 0, sizeof(f->nr_same));
	f->is_probe = true;
	walk_leaf(f, idx, leaf);
	f->is_probe = false;
	f->class_bit = CLASS_BIT_LO;
	for (unsigned bit = CLASS_BIT_LO; bit < CLASS_BIT_HI; bit++)
		if (f->nr_same[bit] > f->nr_same[f->class_bit])
			f->class_bit = bit;
	return f->nr_right >= 2 && f->nr_right > 8 * f->nr_wrong;
}

/* Whether the word @leaf at @at is in a root within [@start, @end); walks that. */
static bool try_word(struct mapper *f, uint64_t at, uint64_t leaf, uint64_t start, uint64_t end)
{
	uint64_t tried = UINT64_MAX;
	if (!is_leaf(f, leaf))
		return false;
	vec_foreach(one, &f->m->list) {
		if (one->kind != MEMMAP_ANON || one->end > ADDRESS_MAX ||
		    one->end - one->start > MAPPING_MAX)
			continue;
		for (uint64_t idx = one->start >> LEAF_SHIFT; idx <= (one->end - 1) >> LEAF_SHIFT;
		     idx++) {
			uint64_t root = at - idx * sizeof(uint64_t);
			if (idx == tried || root < start || root > at || root + TABLE_BYTES > end)
				continue;
			tried = idx;
			if (clock_mono_ns() > f->end_ns)
				return false;
			if (!probe(f, idx, leaf))
				continue;
			each_word(f, root, on_root_word, NULL);
			return true;
		}
	}
	return false;
}

/* Searches the data of a binary for a root. */
static void search(struct mapper *f, uint64_t start, uint64_t end)
{
	uint64_t words[PAGE_WORDS];
	uint32_t nr_left = DATA_PAGES_MAX;
	for (uint64_t page = start; page < end && nr_left; page += PAGE) {
		if (!pagehead_read_page(f->r, page, words))
			continue;
		nr_left--;
		for (size_t i = 0; i < PAGE_WORDS; i++)
			if (words[i] &&
			    try_word(f, page + i * sizeof(words[0]), words[i], start, end))
				return; /* one binary has one jemalloc */
	}
}

static int by_start(const void *a, const void *b)
{
	const struct jemallocmap_range *x = a;
	const struct jemallocmap_range *y = b;
	return COMPARE(x->start, y->start) ?: COMPARE(x->end, y->end);
}

/* Sorts, joins neighbours of one owner; of what overlaps (the process runs) the first counts. */
static void tidy(struct jemallocmap *j)
{
	size_t n = 0;
	if (!j->ranges.n)
		return;
	qsort(j->ranges.p, j->ranges.n, sizeof(*j->ranges.p), by_start);
	vec_foreach(x, &j->ranges) {
		struct jemallocmap_range *last = n ? &j->ranges.p[n - 1] : NULL;
		uint64_t start = last ? MAX(x->start, last->end) : x->start;
		if (start >= x->end)
			continue;
		if (last && last->end == start && last->owner == x->owner)
			last->end = x->end;
		else
			j->ranges.p[n++] = (struct jemallocmap_range){start, x->end, x->owner};
	}
	j->ranges.n = n;
}

void jemallocmap_read(struct jemallocmap *ret_j, const struct memmaps *m,
		      const struct pagehead_reader *r)
{
	struct mapper f = {.m = m, .r = r, .to = ret_j, .end_ns = clock_mono_ns() + SEARCH_NS};
	for (size_t i = 0; i < m->list.n; i++) {
		uint64_t start = m->list.p[i].start;
		uint64_t end = start;
		for (; i < m->list.n && m->list.p[i].start == end && memanon_is_data(m, i); i++)
			end = m->list.p[i].end;
		if (end - start >= TABLE_BYTES)
			search(&f, start, end);
		i -= end != start;
	}
	vec_foreach(b, &f.blocks)
		vec_push(&ret_j->ranges, *b);
	vec_release(&f.blocks);
	tidy(ret_j);
}

void jemallocmap_release(struct jemallocmap *j)
{
	vec_release(&j->ranges);
}
