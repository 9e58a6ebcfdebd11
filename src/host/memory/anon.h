/*
 * Determines the owners of an anonymous mapping (which allocators or runtimes), page by page, from
 * the first bytes of its resident pages (pagehead.h), its address and the mapping before it. One
 * mapping may have several owners, because the kernel merges adjacent ones. Values that are read
 * are checked against the mapping's bounds.
 *
 *	glibc arena  at a multiple of 64 MiB a heap_info {arena, previous, size, protected size}
 *	             whose sizes fit the mapping (malloc/arena.c of glibc)
 *	glibc mmap   large blocks of malloc: the second word of a block's first page is its size
 *	             with flag 2 (malloc/malloc.c: IS_MMAPPED)
 *	V8           a MemoryChunk at a multiple of 256 KiB: its length in the first word, the
 *	             address of its objects in the fourth (src/heap/basic-memory-chunk.h)
 *	pymalloc     pools of CPython's object allocator, at multiples of 16 KiB (before 3.10:
 *	             4 KiB): blocks in use, first free block, size class, and two offsets that
 *	             follow from the size class (Objects/obmalloc.c: struct pool_header)
 *	InnoDB       frames of the buffer pool, at multiples of 16 KiB: index pages (type 17855)
 *	             with the record "infimum" at byte 99. Pages of other types count if they
 *	             are between two index pages
 *	jemalloc     what is in its map of extents (jemallocmap.h)
 *	Go           addresses 0xc000000000 to 0xe000000000, where its runtime puts its heap
 *	bss          the mapping starts where the writable mapping of a binary ends, or read-only
 *	             ones behind that
 *	referenced   a variable of a binary (.data, .bss) holds the address of the first page; up
 *	             to the next page with an owner
 */
#ifndef ASSAY_HOST_MEMORY_ANON_H
#define ASSAY_HOST_MEMORY_ANON_H

#include "base/base.h"
#include "base/vec.h"
#include "host/memory/jemallocmap.h"
#include "host/memory/maps.h"
#include "host/memory/pagehead.h"

/* A word of a binary's data that holds the address of a page. */
struct memanon_reference {
	uint64_t to;
	uint32_t path; /* the binary, in memmaps.paths */
};
struct memanon_references {
	VEC(struct memanon_reference) list; /* by address */
};

/* Resident pages of a process whose heads are read at most; 4 GiB. Takes about 0.5 s. */
#define MEMANON_PAGES_MAX ((uint32_t)1 << 20)

/*
 * Sets the owners (memmap.anon) of all mappings of kind MEMMAP_ANON. Without permission to read
 * @pid's memory only addresses and the mappings before them are used.
 */
void memanon_classify_all(struct memmaps *m, int32_t pid);

/* Whether mapping @i is the writable data of a binary, its .bss included. */
bool memanon_is_data(const struct memmaps *m, size_t i);
/* The end of the adjacent mappings of this kind: after a fork, new memory is a mapping of its own. */
uint64_t memanon_region_end(const struct memmaps *m, size_t i);
/* Whether a heap of glibc's threads begins at @addr; @rest: bytes to the end of the region. */
bool memanon_is_arena(uint64_t addr, uint64_t rest, const struct pagehead *h);

typedef void (*memanon_read_fn)(void *ctx, uint64_t addr, size_t nr_pages, struct pagehead *to);
typedef void (*memanon_resident_fn)(void *ctx, uint64_t addr, size_t nr_pages,
				    bool *ret_is_resident);
/* Pages up to .end belong to one owner. */
struct memanon_run {
	enum memanon_owner owner;
	uint64_t end;
	uint64_t used_bytes;
};

/* What memanon_classify reads with. Public for tests. */
struct memanon_source {
	memanon_read_fn read;
	void *ctx;
	uint32_t nr_left;       /* pages that may still be read */
	struct memanon_run run; /* of the mapping before: it may extend into the next one */
	struct memanon_references refs;
	struct jemallocmap jemalloc;
	memanon_resident_fn resident; /* for what is in @jemalloc */
};
void memanon_source_release(struct memanon_source *s);
/* Returns the owners of mapping @i. Call in the order of addresses. */
struct memanon memanon_classify(const struct memmaps *m, size_t i, struct memanon_source *from);

#endif
