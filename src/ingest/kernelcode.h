/*
 * Code of the kernel that an input names itself: BPF programs, trampolines (PERF_RECORD_KSYMBOL). Of the owner
 * thread only.
 *
 * Code is unloaded, and other code comes to its place. Where ranges with other bounds or names overlap, no name
 * is given, since a location has no time.
 */
#ifndef ASSAY_INGEST_KERNELCODE_H
#define ASSAY_INGEST_KERNELCODE_H

#include "base/base.h"
#include "base/vec.h"

struct kernel_code {
	uint64_t start;
	uint64_t end;
	char *name; /* owned */
	bool is_ambiguous;
};

struct kernelcode {
	VEC(struct kernel_code) list;
	bool is_sorted;
};

void kernelcode_release(struct kernelcode *k);
void kernelcode_add(struct kernelcode *k, uint64_t start, uint64_t len, const char *name);
/* Returns the code at an address, or NULL. */
const struct kernel_code *kernelcode_find(struct kernelcode *k, uint64_t addr);

#endif
