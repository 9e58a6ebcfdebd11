/*
 * Determines the owner of an anonymous mapping (which allocator or runtime) from its first words,
 * its address and the mapping before it. Reads 32 bytes of a page (process_vm_readv), and only of
 * pages that /proc/PID/pagemap shows as resident, so that no page is faulted in. Values that are
 * read are checked against the mapping's bounds. Nothing outside of the mapping is read.
 *
 *	glibc arena  at a multiple of 64 MiB a heap_info {arena, previous, size, protected size}
 *	             whose sizes fit the mapping (malloc/arena.c of glibc)
 *	glibc mmap   large blocks of malloc: the second word of a block's first page is its size
 *	             with flag 2 (malloc/malloc.c: IS_MMAPPED). The search goes from block to
 *	             block, and by one page where no block begins. It reads at most
 *	             MEMANON_PROBES pages of a process
 *	V8           a MemoryChunk at a multiple of 256 KiB: its length in the first word, the
 *	             address of its objects in the fourth (src/heap/basic-memory-chunk.h)
 *	Go           addresses 0xc000000000 to 0xe000000000, where its runtime puts its heap
 *	bss          the mapping starts where the writable mapping of a binary ends
 */
#ifndef ASSAY_HOST_MEMORY_ANON_H
#define ASSAY_HOST_MEMORY_ANON_H

#include "base/base.h"
#include "host/memory/maps.h"

#define MEMANON_PROBES 16384

/*
 * Sets the owner (memmap.anon) of all mappings of kind MEMMAP_ANON. Without permission to read
 * @pid's memory only addresses and the mappings before them are used.
 */
void memanon_classify_all(struct memmaps *m, int32_t pid);

/* Reads memory of the target; false: the page is not resident or cannot be read. */
typedef bool (*memanon_read_fn)(void *ctx, uint64_t addr, void *to, size_t nr_bytes);
/* Returns the owner of mapping @i. *nr_left: pages that may still be read. Public for tests. */
struct memanon memanon_classify(const struct memmaps *m, size_t i, memanon_read_fn read, void *ctx,
				uint32_t *nr_left);

#endif
