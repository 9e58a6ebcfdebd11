/* host/memory/jemallocmap: a map of extents made in this process is found, and what it says. */
#include "base/base.h"
#include "tap.h"

#include <sys/mman.h>
#include <unistd.h>

#include "host/memory/anon.h"
#include "host/memory/maps.h"

#define PAGE       4096u
#define NR_PAGES   64u
#define BLOCK      ((size_t)2 << 20)
#define NONE       232u /* the size class of free extents */
#define LEAF_WORDS ((uint64_t)1 << 18)

/* As in jemalloc 5.3: the class is at bit 20 of the flags, in 5.2.1 at bit 18. */
struct extent {
	uint64_t flags;
	uint64_t addr;
	uint64_t size;
	uint64_t rest[13];
};

struct block {
	uint64_t size;
	uint64_t next;
	struct extent left;
	uint64_t pad[6];
	uint64_t leaf[LEAF_WORDS];
	struct extent extents[3];
};

static uint64_t root[LEAF_WORDS];

static char *map(size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static void add(struct block *b, size_t i, char *at, size_t nr_pages, unsigned class_bit,
		unsigned class_now, bool is_slab)
{
	uint64_t addr = (uint64_t)(uintptr_t)at;
	uint64_t first = addr >> 12 & (LEAF_WORDS - 1);
	uint64_t was = class_now == NONE ? 20 : class_now;
	b->extents[i] = (struct extent){.flags = (uint64_t)class_now << class_bit,
					.addr = addr + (is_slab ? 0 : 64),
					.size = nr_pages * PAGE + 3};
	for (size_t k = 0; k < nr_pages; k++)
		if (is_slab || !k || k == nr_pages - 1)
			b->leaf[first + k] =
				(uint64_t)(uintptr_t)&b->extents[i] | was << 48 | is_slab;
}

struct found {
	uint64_t used;
	uint64_t free;
	uint64_t own;
	uint64_t resident;
};

static struct found find(void)
{
	struct found f = {0};
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CHECK(!memmaps_read(&m, getpid(), NULL, NULL));
	memanon_classify_all(&m, getpid());
	vec_foreach(one, &m.list) {
		f.used += one->anon.of[MEMANON_JEMALLOC_USED].virtual_bytes;
		f.resident += one->anon.of[MEMANON_JEMALLOC_USED].resident_bytes;
		f.free += one->anon.of[MEMANON_JEMALLOC_FREE].virtual_bytes;
		f.own += one->anon.of[MEMANON_JEMALLOC_OWN].virtual_bytes;
	}
	return f;
}

/* Fills a map whose extents lie within one GiB. */
static struct block *make(unsigned class_bit, char **ret_extents)
{
	char *space = map(4 * BLOCK);
	struct block *b = (struct block *)(((uintptr_t)space + BLOCK - 1) & ~(BLOCK - 1));
	char *extents = (char *)b + 2 * BLOCK; /* at most 8 MiB behind the first page of a GiB */
	if (((uintptr_t)extents ^ ((uintptr_t)extents + BLOCK)) >> 30)
		extents = map(NR_PAGES * PAGE);
	b->size = 2 * BLOCK;
	b->left.addr = (uint64_t)(uintptr_t)(b + 1);
	b->left.size = b->size - sizeof(*b);
	root[(uintptr_t)extents >> 30] = (uint64_t)(uintptr_t)b->leaf;
	add(b, 0, extents, 16, class_bit, 5, true);
	add(b, 1, extents + 16 * PAGE, 32, class_bit, 60, false);
	add(b, 2, extents + 48 * PAGE, 16, class_bit, NONE, false);
	memset(extents, 1, 20 * PAGE);
	extents[(NR_PAGES - 1) * PAGE] = 1; /* nothing is read behind the last resident page */
	*ret_extents = extents;
	return b;
}

/* In its own memory of terabytes the search ends before it comes to the root. */
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

TEST(jemallocmap_finds_extents_in_use_and_free_and_its_own_data)
{
	if (IS_SANITIZED)
		return;
	static const unsigned bits[] = {18, 20};
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		char *extents;
		memset(root, 0, sizeof(root));
		(void)make(bits[i], &extents);
		struct found f = find();
		CHECK_U64(f.used, 48 * PAGE);
		CHECK_U64(f.resident, 20 * PAGE);
		CHECK_U64(f.free, 16 * PAGE);
		CHECK_U64(f.own, 2 * BLOCK);
	}
}

TEST(jemallocmap_takes_no_table_whose_entries_do_not_fit)
{
	char *extents;
	struct block *b = make(20, &extents);
	for (size_t i = 0; i < ARRAY_LEN(b->extents); i++)
		b->extents[i].addr += (uint64_t)1 << 20;
	struct found f = find();
	CHECK_U64(f.used + f.free + f.own, 0);
}
