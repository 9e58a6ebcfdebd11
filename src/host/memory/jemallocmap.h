/*
 * Finds the memory of jemalloc 5 in another process, by its own map of extents: it is read, nothing is
 * stopped, called or written. Works for static, prefixed and stripped copies, and for several in one
 * process. Needs no symbol, since every entry of the map can be checked.
 *
 * The map is a radix tree of two levels (rtree.h of jemalloc, for addresses of 48 bits and pages of
 * 4 KiB). The root is an array of 2^18 words in the .bss of the binary: word i is the address of the
 * leaf for the i-th GiB of addresses. Word j of a leaf is for page j of that GiB; it has the address of
 * the extent's descriptor and, in its upper 16 bits, the size class that the extent had when it was
 * allocated. A descriptor (struct extent_s, since 5.3 edata_s) begins with flags, the address and the
 * size. So an entry is right if the descriptor's extent contains the page that the entry's place stands
 * for; a root is one if its first entries are.
 *
 * The flags have the size class, too, and none if the extent is free. At which bit depends on the
 * version: where most first entries have the class of their leaf.
 *
 * jemalloc's own data is in blocks, aligned to 2 MiB, which begin with their size, the next block and a
 * descriptor of what is left, which ends where the block ends (base.c).
 */
#ifndef ASSAY_HOST_MEMORY_JEMALLOCMAP_H
#define ASSAY_HOST_MEMORY_JEMALLOCMAP_H

#include "base/base.h"
#include "base/vec.h"
#include "host/memory/pagehead.h"
#include "model/memory.h"

struct jemallocmap_range {
	uint64_t start;
	uint64_t end;
	enum memanon_owner owner; /* MEMANON_JEMALLOC_... */
};

struct jemallocmap {
	VEC(struct jemallocmap_range) ranges; /* by address, disjoint */
};

/* @m: the mappings of the process, by address. Finds nothing without permission to read it. */
void jemallocmap_read(struct jemallocmap *ret_j, const struct memmaps *m,
		      const struct pagehead_reader *r);
void jemallocmap_release(struct jemallocmap *j);

#endif
