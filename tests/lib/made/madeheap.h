/*
 * Synthetic heap recordings, for tests in which every number is known. Stacks as in made.h.
 *
 *	CLEANUP(profile_free_p) struct profile *p = madeheap_new(10, MADEHEAP_ATTACHED);
 *	madeheap(p, &(struct madeheap){.table = TABLE_ALLOCATED, .second = 1, .size = 64, .nr = 10,
 *				       .stack = "main;f;malloc libc.so.6"});
 *	profile_seal(p);
 */
#ifndef ASSAY_TESTS_LIB_MADEHEAP_H
#define ASSAY_TESTS_LIB_MADEHEAP_H

#include "model/profile.h"

#define MADEHEAP_START_NS 7000000000000ull

enum madeheap_flags {
	MADEHEAP_ATTACHED = 1 << 0, /* else launched */
	MADEHEAP_ENDED = 1 << 1,    /* the process ended during the capture */
	MADEHEAP_SAMPLED = 1 << 2,  /* every 512 KiB */
};

struct madeheap {
	enum table_id table;
	unsigned second; /* of the capture */
	const char *comm;
	int32_t tid; /* pid when 0 */
	int32_t pid; /* 1 when 0 */
	const char *stack;
	uint64_t size; /* of a block; class 0 when 0 */
	int64_t nr;
	int64_t bytes;    /* nr x size when 0 */
	int64_t samples;  /* nr when 0 */
	int64_t variance; /* of bytes */
	int64_t nr_temporary;
	const char *detail;
};

struct profile *madeheap_new(unsigned seconds, unsigned flags);
void madeheap(struct profile *p, const struct madeheap *m);
/* Adds blocks that are freed in @freed_second; MADEHEAP_NEVER: they are live at the end. */
#define MADEHEAP_NEVER UINT32_MAX
void madeheap_block(struct profile *p, const struct madeheap *m, unsigned freed_second);

/*
 * A small server, attached for ten seconds: a cache that leaks 1 MiB/s, a table that is filled once
 * and stays, request buffers that are freed immediately, and a worker thread.
 */
struct profile *madeheap_server(unsigned flags);

#endif
