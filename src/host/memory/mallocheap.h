/*
 * Walks the heaps of glibc's malloc (2.27 and later) in another process, without stopping it: how
 * much of the memory that malloc keeps is in use by the program, how much is free, and how much of
 * that malloc_trim() could return. This tells fragmentation from a leak.
 *
 * A heap is a sequence of chunks; each begins with the size of the chunk before it (if that is
 * free) and its own size, whose bit 0 says that the chunk before is in use (malloc/malloc.c). The
 * main heap is [heap], those of threads begin at multiples of 64 MiB (malloc/arena.c). The main
 * arena is a variable of libc or of a static program: it is found by its contents, needs no symbol.
 *
 * Chunks in fastbins look like chunks in use: short lists are followed; of a long one those chunks
 * count whose first word is a link into the heap. Chunks in the caches of threads (at most seven of
 * a size and thread) count as in use, as in mallinfo2().
 *
 * The process runs on, so every size is checked: it must fit the heap, and behind a free chunk its
 * size must stand again. Where that fails even after reading again, the walk continues at the next
 * 16 chunks in a row that fit. memheap.walked_bytes says how much was walked, and
 * main_unread_bytes that the main heap was not, because its arena was not found. Only resident pages are
 * read.
 */
#ifndef ASSAY_HOST_MEMORY_MALLOCHEAP_H
#define ASSAY_HOST_MEMORY_MALLOCHEAP_H

#include "base/base.h"
#include "model/memory.h"

/*
 * Reads the heaps of @pid, whose mappings are @m (with resident bytes, after memanon_classify_all).
 * False: no permission, or the process has no heap of glibc's.
 */
bool mallocheap_read(struct memheap *ret_h, const struct memmaps *m, int32_t pid);

#endif
