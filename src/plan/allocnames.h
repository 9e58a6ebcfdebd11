/*
 * Names of allocator functions, and the shape of each (enum heap_shape: which arguments are the
 * block and the size). Sources: the manuals of glibc, musl, jemalloc 5, gperftools and mimalloc 1-2, the
 * Itanium C++ ABI for operator new and delete.
 */
#ifndef ASSAY_PLAN_ALLOCNAMES_H
#define ASSAY_PLAN_ALLOCNAMES_H

#include "base/base.h"
#include "base/sv.h"
#include "heap_wire.h"

/* Return the shape of a function by its name; HEAP_SHAPE_NONE: not a name of this family. */
enum heap_shape allocnames_plain(struct sv name);    /* malloc, __libc_memalign */
enum heap_shape allocnames_pages(struct sv name);    /* mmap, sbrk; prctl, syscall */
enum heap_shape allocnames_operator(struct sv name); /* _Znwm, _ZdlPvm */
enum heap_shape allocnames_jemalloc(struct sv name); /* without prefix: malloc, mallocx */
enum heap_shape allocnames_mimalloc(struct sv name); /* mi_heap_malloc */
enum heap_shape allocnames_tcmalloc(struct sv name); /* tc_malloc, TCMallocInternalMalloc */

#endif
