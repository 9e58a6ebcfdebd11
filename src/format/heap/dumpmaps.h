/*
 * What the dumps of allocators (jemalloc's heap_v2, gperftools' heap profiles) have in common:
 * stacks as text addresses and, at the end, a copy of /proc/PID/maps to make sense of them.
 *
 *	dumpmaps_parse        the copy -> modules and mappings of the profile
 *	dumpmaps_stack        "0x55d0 0x7f11 ..." -> a stack, leaf first in the text
 *	dumpmaps_unbias       what a sampled row stands for
 *
 * Modules have device and inode, no build-id: the text has none. Locations are unnamed; whoever
 * loads the file names them by the files of the machine (session/load_symbols.h).
 */
#ifndef ASSAY_FORMAT_HEAP_DUMPMAPS_H
#define ASSAY_FORMAT_HEAP_DUMPMAPS_H

#include "base/base.h"
#include "base/map.h"
#include "base/sv.h"
#include "base/vec.h"
#include "model/profile.h"

struct dump_map {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff;
	module_id module; /* 0: no code that can be named: heap, stack, data */
};

struct dumpmaps {
	struct profile *p;
	int32_t pid;               /* whose JIT code, 0 = unknown */
	VEC(struct dump_map) maps; /* sorted, not overlapping */
	str_id comm;               /* the program's base name, 0 = unknown */
	struct map locs;           /* address << 1 | is call -> loc_id */
	VEC(loc_id) chain;         /* leaf first; scratch */
	uint64_t nr_bad;           /* lines that made no sense */
	bool is_cut;               /* the copy is not there, or ends within a line */
	bool has_main_stack;       /* of the process: one of its last lines */
	uint64_t nr_outside;       /* addresses of stacks that are in no mapping */
	uint64_t first_bad_nr;     /* line of a stack or row that made no sense, 0 = none */
};

/* "MAPPED_LIBRARIES:" or "--- Memory map:" on a line of its own cuts a dump in two. */
void dumpmaps_cut(struct sv dump, struct sv *ret_stacks, struct sv *ret_maps);
void dumpmaps_parse(struct dumpmaps *m, struct profile *p, int32_t pid, struct sv maps);
void dumpmaps_release(struct dumpmaps *m);
/*
 * When all stacks are read: says where the first bad line is, and sets FACT_HEAP_DUMP if the copy
 * is cut off. @got of @wanted bytes, which
 * the dump's head counts, are in its stacks (as they stand in the file).
 */
void dumpmaps_say_damage(const struct dumpmaps *m, uint64_t got, uint64_t wanted);

/*
 * The stack behind "@": addresses in hex, separated by blanks, leaf first. All but the first are
 * return addresses; the first is what @first_flags says (enum location_flags). False, and
 * *ret_stack untouched, when a word is no address. *ret_depth: addresses that there are.
 */
bool dumpmaps_stack(struct dumpmaps *m, struct sv text, uint32_t first_flags, stack_id *ret_stack,
		    size_t *ret_depth);

/* Blocks and bytes of one row of a sampled dump, before and after. */
struct dump_sum {
	uint64_t nr;
	uint64_t nr_bytes;
};
struct dump_estimate {
	double nr;
	double nr_bytes;
	double variance; /* of nr_bytes */
};
/*
 * Sampling by a Poisson process with @interval bytes between samples takes a block of s bytes with
 * probability 1 - e^(-s/interval), so a row of blocks of s bytes each stands for that many times
 * more; s is the row's mean. The variance is that of the Horvitz-Thompson estimator: each seen
 * block adds (s / P)^2 (1 - P). Interval 0: nothing was sampled.
 */
struct dump_estimate dumpmaps_unbias(struct dump_sum sum, uint64_t interval);
/* The older rule: a block of s bytes is seen with probability s / interval, at most 1. */
struct dump_estimate dumpmaps_unbias_v1(struct dump_sum sum, uint64_t interval);
int64_t dumpmaps_round(double v); /* to the nearest, within int64 */

/* A dump's numbers: "<nr>: <bytes> [<nr>: <bytes>]", blanks anywhere; *rest what follows "]". */
bool dumpmaps_row(struct sv text, struct dump_sum *ret_live, struct dump_sum *ret_all,
		  struct sv *ret_rest);

#endif
