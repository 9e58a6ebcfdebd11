/*
 * Address spaces: the executable mappings of each process, kept current by applying events (mmap,
 * exec, fork, exit). Addresses are resolved against the current state, so the caller must apply
 * events in time order.
 *
 * After a fork, parent and child share the list of mappings until one of them changes. So thousands
 * of forked workers cost a few bytes each, and share the walker's cache. Threads share the space of
 * their process.
 */
#ifndef ASSAY_UNWIND_SPACE_H
#define ASSAY_UNWIND_SPACE_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/ids.h"
#include "unwind/table.h"

/* A module as the unwinder needs it; owned by the caller, must outlive the spaces. */
struct unwind_module {
	module_id id;
	const struct unwind_table *table;   /* NULL: no rules (frame pointers are tried) */
	const struct python_layout *python; /* of its Python interpreter; NULL: it has none */
	bool is_missing;                    /* the file could not be opened */
	bool is_jit;                        /* anonymous executable memory */
};

struct space_map {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff; /* file offset of start */
	uint64_t bias;  /* run-time minus link-time address, valid if the module has a table */
	const struct unwind_module *module;
};

/* Limit of mappings per process, further ones are dropped: bounds assay's memory. */
#define SPACE_MAPS_MAX 65536

struct space {
	VEC(struct space_map) maps; /* sorted, disjoint; may be shared: change only by space_add */
	uint32_t *nr_sharers;       /* number of spaces that share maps.p; NULL: not shared */
	uint32_t generation;        /* changes with maps; part of the key of the walker's cache */
	uint32_t last_idx;          /* result of the last lookup */
	uint64_t nr_dropped;        /* mappings past SPACE_MAPS_MAX */
};

struct spaces {
	struct map by_pid;        /* pid -> index into list */
	VEC(struct space *) list; /* NULL: free slot */
	VEC(uint32_t) free_slots;
	uint32_t next_generation;
};

void spaces_release(struct spaces *s);
/* Returns the process's space; creates an empty one if it has none. */
struct space *spaces_get(struct spaces *s, int32_t pid);
struct space *spaces_find(struct spaces *s, int32_t pid); /* or NULL */
void spaces_fork(struct spaces *s, int32_t pid, int32_t ppid);
void spaces_exec(struct spaces *s, int32_t pid); /* removes all mappings */
void spaces_exit(struct spaces *s, int32_t pid);
/* Adds a mapping like mmap(MAP_FIXED): older mappings that it overlaps are trimmed or split. */
void space_add(struct spaces *s, struct space *sp, const struct space_map *m);
/*
 * Sets the bias of all mappings of a module, which was loaded after they were added. Returns whether
 * there are any.
 */
bool space_set_bias(struct spaces *s, struct space *sp, const struct unwind_module *module,
		    uint64_t (*bias)(const void *ctx, const struct space_map *m), const void *ctx);
/* Returns the mapping that contains @addr, or NULL; valid until the space changes. */
const struct space_map *space_find(struct space *sp, uint64_t addr);

#endif
