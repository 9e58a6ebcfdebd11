/*
 * The binaries behind mappings, each opened once: its identity in the profile, its unwind rules,
 * and an image for naming. Identity is what the file says (build-id), else device and inode, so
 * that a mapping seen in /proc and one announced by the kernel meet in one module.
 */
#ifndef ASSAY_INGEST_MODULES_H
#define ASSAY_INGEST_MODULES_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/file_access.h"
#include "model/event.h"
#include "model/profile.h"
#include "object/elf.h"
#include "unwind/space.h"

enum module_missing {
	MODULE_FOUND = 0,
	MODULE_NOT_FOUND, /* no such file, or no right to read it */
	MODULE_CHANGED,   /* the file there now has another build-id or inode */
};

struct ingest_module {
	struct unwind_module unwind; /* .id is the profile's module */
	enum module_kind kind;
	enum module_missing missing;
	struct elf *elf; /* for naming, taken by the namer; NULL when missing, JIT, kernel */
	struct elf_segment *segments; /* of the image, copied */
	size_t nr_segments;
	char *path;           /* as mapped */
	char *jitdump;        /* JIT: path of the dump that names its code, or NULL */
	int32_t pid;          /* whose root to search for debug files */
	int root_fd;          /* the process's root while it lived, or -1 */
	bool is_whole_offset; /* offsets are absolute addresses (JIT, kernel) */
	bool is_settled;      /* all of the above is final: the namer's thread may read it */
};

struct modules {
	struct profile *p;
	const struct file_access *files;
	const char *cache_dir; /* for unwind tables, may be NULL */
	bool needs_tables;     /* build unwind rules */
	struct map by_event;   /* hash of a mapping's identity -> index + 1 */
	struct map by_id;      /* module_id -> index + 1 */
	VEC(struct ingest_module *) list;
};

void modules_release(struct modules *m);
/* The module behind a mapping; never NULL. Valid until modules_release. */
struct ingest_module *modules_for_map(struct modules *m, int32_t pid, const struct event_map *map);
struct ingest_module *modules_by_id(const struct modules *m, module_id id); /* or NULL */
/*
 * The modules that a profile read from a file has, for naming: opened by path, taken only if the
 * build-id (else the inode) is the recorded one.
 */
void modules_restore(struct modules *m);
/* The kernel, and addresses in no mapping of a process. */
struct ingest_module *modules_kernel(struct modules *m);
struct ingest_module *modules_unknown(struct modules *m, int32_t pid);
/* Runtime minus link-time address of a mapping at @start, file offset @pgoff. */
uint64_t module_bias(const struct ingest_module *m, uint64_t start, uint64_t pgoff);
/* Link-time address of a file offset inside the module (the offset itself where no file is). */
uint64_t module_vaddr(const struct ingest_module *m, uint64_t offset);

#endif
