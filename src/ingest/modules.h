/*
 * The modules of mappings: opens each binary once, registers it in the profile, builds its unwind
 * rules and keeps its ELF image for symbolization. A module is identified by the build-id in the
 * file, else by device and inode, so that a mapping read from /proc and an mmap event of the same
 * file give one module.
 */
#ifndef ASSAY_INGEST_MODULES_H
#define ASSAY_INGEST_MODULES_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/file_access.h"
#include "ingest/kernelcode.h"
#include "model/event.h"
#include "model/profile.h"
#include "object/elf.h"
#include "symbol/pyruntime.h"
#include "unwind/space.h"

enum module_missing {
	MODULE_FOUND = 0,
	MODULE_NOT_FOUND, /* no such file, or no permission to read it */
	MODULE_CHANGED,   /* the file has another build-id or inode now */
	MODULE_LOADING,   /* the file did not answer yet: it is asked again (modules_retry) */
	MODULE_SILENT,    /* the file did not answer in time */
};

struct ingest_module {
	struct unwind_module unwind; /* .id is the profile's module */
	enum module_kind kind;
	enum module_missing missing;
	struct elf *elf; /* until the symbol worker takes it; NULL if missing, JIT, kernel */
	struct pyruntime *python;     /* its Python interpreter, or NULL */
	struct elf_segment *segments; /* copied from the ELF file */
	size_t nr_segments;
	char *path;                /* as mapped */
	char *jitdump;             /* JIT: path of the jitdump with its symbols, or NULL */
	int32_t pid;               /* process in whose root debug files are searched */
	int root_fd;               /* the process's root directory, borrowed, or -1 */
	bool has_absolute_offsets; /* offsets are absolute addresses (JIT, kernel) */
	bool is_complete;          /* the fields above are final, unless it is still loading: the
				      symbol worker may read them */
};

/* A module whose file did not answer yet. */
struct loading_module {
	struct ingest_module *module;
	struct event_map map; /* as announced; the path is the module's */
};

/* What identifies the file of a mapping. */
struct module_event {
	struct event_map map; /* the path is owned */
	struct ingest_module *module;
	uint32_t next; /* with the same hash: index + 1, 0 = none */
};

struct modules {
	struct profile *p;
	const struct file_access *files;
	const char *cache_dir;           /* for unwind tables, may be NULL */
	bool needs_tables;               /* build unwind rules */
	struct map by_event;             /* hash of a mapping's identity -> index in `events` + 1 */
	struct map by_id;                /* module_id -> index + 1 */
	VEC(struct module_event) events; /* mappings of files seen so far */
	VEC(struct ingest_module *) list;
	VEC(struct loading_module) loading;
	struct kernelcode kernelcode;
};

void modules_release(struct modules *m);
/* Returns the module of a mapping; never NULL. Valid until modules_release. */
struct ingest_module *modules_for_map(struct modules *m, int32_t pid, const struct event_map *map);
struct ingest_module *modules_by_id(const struct modules *m, module_id id); /* or NULL */
/*
 * Opens the modules of a profile that was read from a file, for symbolization: by path, and used
 * only if the build-id (else the inode) is the recorded one.
 */
void modules_restore(struct modules *m);
/* The same for one module, which is returned; NULL: it has no code. The profile is not changed. */
struct ingest_module *modules_restore_one(struct modules *m, module_id id);
/*
 * Asks the files of loading modules again. Calls @loaded for each that answered, or never will; its
 * fields are final then.
 */
void modules_retry(struct modules *m, void (*loaded)(void *ctx, struct ingest_module *im),
		   void *ctx);
/* Returns the kernel's module. */
struct ingest_module *modules_kernel(struct modules *m);
#define MODULES_UNKNOWN "[unknown]"
/* Whether a mapping is of the recorder that assay heap injects (wire/heap_wire.h). */
bool modules_is_recorder(const char *path);
/* Returns the module for addresses of a process that are in no mapping: its path is the above. */
struct ingest_module *modules_unknown(struct modules *m, int32_t pid);
/* Returns runtime minus link-time address for a mapping at @start with file offset @pgoff. */
uint64_t module_bias(const struct ingest_module *m, uint64_t start, uint64_t pgoff);
/* Returns the link-time address of a file offset (the offset itself if there is no file). */
uint64_t module_vaddr(const struct ingest_module *m, uint64_t offset);

#endif
