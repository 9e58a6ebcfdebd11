/*
 * What a target maps, as far as the recorder cares: what an earlier attach left, where binaries
 * begin, where there is room. A picture of one moment: what is mapped by it is mapped with
 * MAP_FIXED_NOREPLACE.
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
	HEAPSPACE_IS_STACK, /* of the first thread */
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
int heapspace_read(struct heapspace *ret_s, int32_t pid, struct err *err);
/* Borrowed; NULL: not mapped, none of this kind. */
const struct heapspace_map *heapspace_at(const struct heapspace *s, uint64_t addr);
const struct heapspace_map *heapspace_first(const struct heapspace *s, enum heapspace_kind kind);
/* Where the first page of the binary that is mapped at @addr is; 0: not mapped, or no file. */
uint64_t heapspace_base(const struct heapspace *s, uint64_t addr);
/* Marks a range as used. */
void heapspace_take(struct heapspace *s, uint64_t start, uint64_t nr_bytes);
/*
 * A free place of @nr_bytes from which everything in [lo, hi) is within 2 GiB, so that relative
 * jumps and operands reach; 0: none.
 */
uint64_t heapspace_near(const struct heapspace *s, uint64_t lo, uint64_t hi, uint64_t nr_bytes);
/* A free place far from what grows; 0: none. */
uint64_t heapspace_anywhere(const struct heapspace *s, uint64_t nr_bytes);

/*
 * What is taken of a limited address space (RLIMIT_AS) the program cannot have: -ENOMEM if
 * @nr_bytes more were too much of what is left.
 */
int heapspace_check_limit(const struct heapspace *s, int32_t pid, uint64_t nr_bytes,
			  struct err *err);

#endif
