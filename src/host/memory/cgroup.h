/*
 * Memory cgroups, versions 1 and 2: finds and reads the cgroup of a process; creates one with a
 * limit, moves a process into it and removes it.
 *
 * All paths are resolved below one root folder ("/"; a prepared tree in tests):
 * proc/self/mountinfo, proc/PID/cgroup and the folders that they name. The values are read from the
 * kernel and include the cgroup's descendants. Counts are since the cgroup was created;
 * memgroup_since subtracts two readings.
 *
 * A cgroup that assay creates is named "assay-<pid>-<n>", and its creator holds a file lock on its
 * folder. A cleanup process (forked, in its own session) removes the cgroup when the creator exits
 * or is killed. If the cleanup process is killed, too, memgroup_clean of a later run removes every
 * such cgroup whose lock is free. Processes still in the cgroup are moved to the creator's cgroup,
 * not killed. If the memory controller had to be enabled for the parent's children (version 2), it
 * is disabled again afterwards, unless the parent has other children by then.
 *
 * File formats: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel.
 */
#ifndef ASSAY_HOST_MEMORY_CGROUP_H
#define ASSAY_HOST_MEMORY_CGROUP_H

#include "base/base.h"
#include "base/err.h"
#include "base/process/cleanup.h"
#include "base/sv.h"
#include "model/memory.h"

#define MEMGROUP_PREFIX "assay-"

enum memgroup_version {
	MEMGROUP_V1 = 1, /* also hybrid: version 2 is mounted without the memory controller */
	MEMGROUP_V2 = 2,
};

/* The cgroup hierarchy with the memory controller. */
struct memgroup_tree {
	enum memgroup_version version;
	int root_fd; /* root folder for all paths; -1 = not open */
	char *mount; /* mount point relative to root_fd: "sys/fs/cgroup/memory" */
	char *top;   /* cgroup at the mount point: "/", or a container's */
};

#define MEMGROUP_TREE_INIT     \
	{                      \
		.root_fd = -1, \
	}
/* @root: "/". -ENOENT: no hierarchy with memory is mounted. */
int memgroup_tree_open(struct memgroup_tree *ret_t, const char *root, struct err *err);
void memgroup_tree_release(struct memgroup_tree *t);

struct memgroup {
	enum memgroup_version version;
	int fd;            /* its folder, -1 = none */
	char *path;        /* "/sys/fs/cgroup/memory/x"; owned */
	uint64_t max_seen; /* largest usage read, bytes; for kernels without a peak value */
	/* Only of a cgroup that assay created: */
	int parent_fd;  /* or -1 */
	int creator_fd; /* the creator's cgroup: remaining processes are moved there; or -1 */
	char *name;     /* in parent_fd; else NULL */
	struct cleanup cleanup; /* the process that removes the cgroup */
	bool has_enabled; /* version 2: the memory controller was enabled for it in the parent */
};

#define MEMGROUP_INIT                                        \
	{                                                    \
		.fd = -1, .parent_fd = -1, .creator_fd = -1, \
	}
/* Closes all descriptors. If the created cgroup still exists, its cleanup process removes it. */
void memgroup_release(struct memgroup *g);
/* Opens the cgroup of a process; @pid 0: of the caller. -ESRCH: no such process. */
int memgroup_open(struct memgroup *ret_g, const struct memgroup_tree *t, int32_t pid,
		  struct err *err);

/*
 * Creates a cgroup below the caller's own, or, in version 2, below the nearest ancestor whose
 * children can have memory limits. -EACCES, -EROFS, -EBUSY: refused; the hint has the remedy.
 */
int memgroup_make(struct memgroup *ret_g, const struct memgroup_tree *t, struct err *err);
/* Starts the cleanup process. Call before any process is moved in. */
int memgroup_start_cleanup(struct memgroup *g, struct err *err);
/*
 * Sets the limits. MEMGROUP_NO_LIMIT: leaves a limit as it is. @swap_bytes: swap in addition to
 * memory. *ret_has_swap: false if the kernel does not account for swap; only memory is limited
 * then.
 */
int memgroup_limit(struct memgroup *g, uint64_t memory_bytes, uint64_t swap_bytes,
		   bool *ret_has_swap, struct err *err);
/*
 * Moves a process with all its threads into the cgroup. Memory that is already charged to its old
 * cgroup stays charged there.
 */
int memgroup_add(const struct memgroup *g, int32_t pid, struct err *err);
/* False: all its processes have ended. */
bool memgroup_has_processes(const struct memgroup *g);
/* Removes a created cgroup; *ret_nr_moved (may be NULL): processes that were still in it. */
int memgroup_remove(struct memgroup *g, size_t *ret_nr_moved, struct err *err);
/* Removes cgroups of earlier runs (lock free), below the caller's cgroup and its ancestors. */
int memgroup_clean(const struct memgroup_tree *t, size_t *ret_nr_removed, struct err *err);

/* Reads what is available; other values are 0. Fails only if the cgroup was removed. */
int memgroup_read(struct memgroup *g, const struct memgroup_tree *t, struct memgroup_numbers *ret_n,
		  struct err *err);
/* Returns the levels (bytes) of @after, and the counts of @after minus those of @before. */
struct memgroup_numbers memgroup_since(const struct memgroup_numbers *before,
				       const struct memgroup_numbers *after);

/*
 * Opens a descriptor that becomes readable when the cgroup runs out of memory (just before the OOM
 * kill). The caller closes it.
 */
int memgroup_open_oom(const struct memgroup *g, int *ret_fd, struct err *err);

/* Public for tests: */
/* Finds the memory cgroup's path in the text of /proc/PID/cgroup; false: there is none. */
bool memgroup_path_of(struct sv text, enum memgroup_version version, struct sv *ret_path);
/* Returns the number after @key in lines "some_key 12", or 0. */
uint64_t memgroup_value(struct sv text, const char *key);
/* Returns "total=" (us) of the PSI line that starts with @kind ("some", "full"); 0 = none. */
uint64_t memgroup_stall_us(struct sv text, const char *kind);

#endif
