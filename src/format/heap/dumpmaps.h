/*
 * Common parts of the allocators' heap dumps (jemalloc's heap_v2, gperftools' heap profiles):
 * stacks as hexadecimal addresses and, at the end, a copy of /proc/PID/maps.
 *
 *	dumpmaps_parse        parses the copy of maps into modules and mappings of the profile
 *	dumpmaps_stack        parses "0x55d0 0x7f11 ..." (leaf first) into a stack
 *	dumpmaps_unbias       scales a sampled row to an estimate
 *
 * Modules have device and inode but no build-id, since dumps contain none. Locations are not
 * symbolized; the code that loads the file does that with the machine's binaries
 * (session/load_symbols.h).
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
	module_id module; /* 0: not code (heap, stack, data) */
};

#define ROOM_LINES 64 /* readers check the room for their data (format.h) after so many lines */

struct dumpmaps {
	struct profile *p;
	int32_t pid;               /* the process, for JIT code; 0 = unknown */
	VEC(struct dump_map) maps; /* sorted, not overlapping */
	str_id comm;               /* the program's base name, 0 = unknown */
	struct map locs;           /* address << 1 | is return address -> loc_id */
	VEC(loc_id) chain;         /* locations of the stack being parsed, leaf first */
	uint64_t nr_bad;           /* lines of the copy that could not be parsed */
	bool is_cut;               /* the copy is missing, or ends within a line */
	bool has_main_stack;       /* it has the line [stack], one of the last */
	uint64_t nr_outside;       /* addresses of stacks that are in no mapping */
	uint64_t first_bad_nr;     /* first stack or row line that could not be parsed, 0 = none */
};

/* Splits a dump at the line "MAPPED_LIBRARIES:" or "--- Memory map:" into stacks and maps. */
void dumpmaps_split(struct sv dump, struct sv *ret_stacks, struct sv *ret_maps);
void dumpmaps_parse(struct dumpmaps *m, struct profile *p, int32_t pid, struct sv maps);
void dumpmaps_release(struct dumpmaps *m);
/*
 * Call after all stacks are read: sets FACT_HEAP_DUMP_BAD_LINE to the first bad line, and
 * FACT_HEAP_DUMP if the copy of maps is truncated. @wanted: live bytes in the dump's header; @got:
 * sum of the live bytes of its stacks. Both are the values in the file, not scaled.
 */
void dumpmaps_add_damage(const struct dumpmaps *m, uint64_t got, uint64_t wanted);

/*
 * Parses the stack after "@": hexadecimal addresses, separated by blanks, leaf first. All but the
 * first are return addresses; @first_flags (enum location_flags) applies to the first. Returns
 * false and leaves *ret_stack untouched if a word is not an address. *ret_depth: number of
 * addresses.
 */
bool dumpmaps_stack(struct dumpmaps *m, struct sv text, uint32_t first_flags, stack_id *ret_stack,
		    size_t *ret_depth);

/* Blocks and bytes of one row of a dump: as in the file, and scaled to an estimate. */
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
 * Scales a row of a Poisson sample with a mean of @interval bytes between samples. A block of s
 * bytes is sampled with probability P = 1 - e^(-s/interval), so the row is divided by P; s is the
 * mean size of the row. The variance is that of the Horvitz-Thompson estimator: each sampled block
 * adds (s / P)^2 (1 - P). Interval 0: not a sample, the row is exact.
 */
struct dump_estimate dumpmaps_unbias(struct dump_sum sum, uint64_t interval);
/*
 * The same for older gperftools profiles (heap/), whose sampling is not Poisson: a block of s bytes
 * is sampled with probability min(s / interval, 1).
 */
struct dump_estimate dumpmaps_unbias_v1(struct dump_sum sum, uint64_t interval);
int64_t dumpmaps_round(double v); /* to the nearest, within int64 */

/* Parses "<nr>: <bytes> [<nr>: <bytes>]" (live, allocated); *ret_rest: the text after "]". */
bool dumpmaps_row(struct sv text, struct dump_sum *ret_live, struct dump_sum *ret_all,
		  struct sv *ret_rest);

#endif
