/*
 * Whose an anonymous mapping is, by evidence: what stands in its first words, its address, what
 * lies before it. 32 bytes of a page of the target are read (process_vm_readv), of pages that are
 * resident by /proc/PID/pagemap, so nothing changes in the target. Nothing that is read is
 * believed beyond a comparison with the mapping's own bounds.
 *
 *	glibc arena  at a multiple of 64 MiB a heap_info {arena, previous, size, protected size}
 *	             whose sizes fit the mapping (malloc/arena.c of glibc)
 *	glibc mmap   large blocks of malloc: their size with flag 2 in the second word of their
 *	             first page (malloc/malloc.c: IS_MMAPPED), block after block; between blocks
 *	             page by page, up to MEMANON_PROBES pages in all
 *	V8           a MemoryChunk: its own length in the first word, where its objects start in
 *	             the fourth, at a multiple of 256 KiB (src/heap/basic-memory-chunk.h)
 *	Go           addresses 0xc000000000 to 0xe000000000, where its runtime puts its heap
 *	bss          the mapping goes on where the writable part of a binary ends
 */
#ifndef ASSAY_HOST_MEMORY_ANON_H
#define ASSAY_HOST_MEMORY_ANON_H

#include "base/base.h"
#include "host/memory/maps.h"

#define MEMANON_PROBES 16384

/* Marks all mappings of kind MEMMAP_ANON. Without the right to read @pid by address alone. */
void memanon_mark(struct memmaps *m, int32_t pid);

/* For tests: of one, with the reading of memory given. False: is not resident, cannot be read. */
typedef bool (*memanon_read_fn)(void *ctx, uint64_t addr, void *to, size_t nr_bytes);
struct memanon memanon_judge(const struct memmaps *m, size_t i, memanon_read_fn read, void *ctx,
			     uint32_t *nr_left);

#endif
