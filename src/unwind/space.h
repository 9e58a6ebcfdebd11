/*
 * Address spaces: what is mapped where in each process, by time of the events that are applied
 * in order (map, exec, fork, exit). Addresses resolve against the space as it is when asked, so
 * the caller applies events in time order.
 *
 * A fork shares its parent's mappings until one of the two changes (so thousands of forked
 * workers cost a few bytes each, and share the walker's cache); threads share their process's
 * space.
 */
#ifndef ASSAY_UNWIND_SPACE_H
#define ASSAY_UNWIND_SPACE_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/ids.h"
#include "unwind/table.h"

/* What is known of a module for unwinding; owned by the caller, lives as long as the spaces. */
struct unwind_module {
	module_id id;
	const struct unwind_table *table; /* NULL: no rules (frame pointers are tried) */
	bool is_missing;                  /* the file could not be opened */
	bool is_jit;                      /* anonymous executable memory */
};

struct space_map {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff; /* file offset of start */
	uint64_t bias;  /* runtime address - link-time address, valid if the module has a table */
	const struct unwind_module *module;
};

/* Limits what a hostile process can make us hold: more executable mappings are dropped. */
#define SPACE_MAPS_MAX 65536

struct space {
	VEC(struct space_map) maps; /* sorted, disjoint; shared after a fork: change by space_add */
	uint32_t *nr_sharers;       /* of maps.p, this one included; NULL: not shared */
	uint32_t generation;        /* names the contents of maps; keys the walker's cache */
	uint32_t last_idx;          /* of the last lookup */
	uint64_t nr_dropped;        /* mappings past SPACE_MAPS_MAX */
};

struct spaces {
	struct map by_pid;        /* pid -> index into list */
	VEC(struct space *) list; /* NULL: free slot */
	VEC(uint32_t) free_slots;
	uint32_t next_generation;
};

void spaces_release(struct spaces *s);
/* The process's space, created empty when new. */
struct space *spaces_get(struct spaces *s, int32_t pid);
struct space *spaces_find(struct spaces *s, int32_t pid); /* or NULL */
void spaces_fork(struct spaces *s, int32_t pid, int32_t ppid);
void spaces_exec(struct spaces *s, int32_t pid); /* empties */
void spaces_exit(struct spaces *s, int32_t pid);
/* Maps over what was there: overlapped older mappings are cut or split. */
void space_add(struct spaces *s, struct space *sp, const struct space_map *m);
/* The result is valid until the space changes. */
const struct space_map *space_find(struct space *sp, uint64_t addr);

#endif
