/*
 * A snapshot of a target's mappings, to find the recorder's mappings of an earlier attach, the
 * first page of a binary, and free address space. Because the target may map memory after the
 * snapshot, new mappings are made with MAP_FIXED_NOREPLACE.
 */
#ifndef ASSAY_REMOTE_PATCH_HEAPSPACE_H
#define ASSAY_REMOTE_PATCH_HEAPSPACE_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"

#define HEAPSPACE_IMAGE  "assay-heap" /* names of memfds; wire/heap_wire.h */
#define HEAPSPACE_STUBS  "assay-heap-stubs"
#define HEAPSPACE_RING   "assay-heap-ring"
#define HEAPSPACE_TABLES "assay-heap-tables"

enum heapspace_kind {
	HEAPSPACE_OTHER = 0,
	HEAPSPACE_IS_IMAGE,
	HEAPSPACE_IS_STUBS,
	HEAPSPACE_IS_RING,
	HEAPSPACE_IS_TABLES,
	HEAPSPACE_IS_STACK, /* of the main thread */
	HEAPSPACE_IS_BRK,
	HEAPSPACE_IS_KERNEL, /* vdso, vvar, vsyscall */
};

struct heapspace_map {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	bool is_exec;
	int prot; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	enum heapspace_kind kind;
};

struct heapspace {
	VEC(struct heapspace_map) maps; /* by address */
};

void heapspace_release(struct heapspace *s);
/* Reads /proc/PID/maps. -ESRCH: the process has ended. */
int heapspace_read(struct heapspace *ret_s, int32_t pid, struct err *err);
/* The mapping at @addr, or the first one of @kind; NULL: none. Borrowed. */
const struct heapspace_map *heapspace_at(const struct heapspace *s, uint64_t addr);
const struct heapspace_map *heapspace_first(const struct heapspace *s, enum heapspace_kind kind);
/* Address of the first page of the binary mapped at @addr; 0: not mapped, or not a file. */
uint64_t heapspace_base(const struct heapspace *s, uint64_t addr);
/* Marks a range as used in the snapshot. */
void heapspace_reserve(struct heapspace *s, uint64_t start, uint64_t nr_bytes);
/*
 * Finds @nr_bytes of free address space within 2 GiB of everything in [lo, hi), the range of
 * relative jumps and operands; 0: none.
 */
uint64_t heapspace_find_near(const struct heapspace *s, uint64_t lo, uint64_t hi,
			     uint64_t nr_bytes);
/* Finds free address space away from stacks and heaps, which grow; 0: none. */
uint64_t heapspace_find_free(const struct heapspace *s, uint64_t nr_bytes);

/*
 * Checks RLIMIT_AS, because the recorder's mappings reduce the address space that is left for the
 * program. -ENOMEM if less than 4 * @nr_bytes are left.
 */
int heapspace_check_limit(const struct heapspace *s, int32_t pid, uint64_t nr_bytes,
			  struct err *err);

#endif
