/*
 * Memory cgroups, both versions: find that of a process, read it, make one of our own with a limit,
 * put a process in, take it away again.
 *
 * All paths are looked up below one folder ("/" in earnest, a made tree in tests), so that what a
 * machine has can be shown to this code by files: proc/self/mountinfo, proc/PID/cgroup and the
 * folders that they name. Numbers read are the kernel's, of the group with all below it; counts are
 * since the group was made: take them before and after, and subtract (memgroup_since).
 *
 * A group of ours is called "assay-<pid>-<n>" by the process that made it, which holds a lock on
 * its folder. Where a parent (version 2) handed no memory out before, it does so no more when the
 * group has gone and it has no other ones. A keeper, a process of a few pages in a session of its
 * own, removes it when that process ends in whatever way; memgroup_clean removes those whose lock
 * nobody holds, should the keeper have been killed, too. Processes still in it go to the group that
 * the maker was in, never to their death.
 *
 * Files: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst of the kernel.
 */
#ifndef ASSAY_HOST_MEMORY_CGROUP_H
#define ASSAY_HOST_MEMORY_CGROUP_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "model/memory.h"

#define MEMGROUP_PREFIX "assay-"

enum memgroup_version {
	MEMGROUP_V1 = 1, /* also hybrid: unified is mounted, memory is with the old ones */
	MEMGROUP_V2 = 2,
};

/* The hierarchy that memory belongs to. */
struct memgroup_tree {
	enum memgroup_version version;
	int root_fd; /* the folder below which everything is; -1 = not open */
	char *mount; /* where the hierarchy is, relative to root_fd: "sys/fs/cgroup/memory" */
	char *top;   /* the group that is mounted there: "/", or a container's */
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
	int parent_fd;     /* of a group of ours, else -1 */
	int home_fd;       /* of a group of ours: where what is left in it goes, else -1 */
	char *name;        /* of a group of ours: in parent_fd; else NULL */
	char *path;        /* its folder for people: "/sys/fs/cgroup/memory/x"; owned */
	int32_t keeper;    /* the process that removes it, 0 = none */
	int keeper_fd;     /* closing it lets the keeper act; -1 */
	uint64_t max_seen; /* largest usage read, where the kernel keeps no peak */
	bool is_first;     /* version 2: its parent hands memory out because we asked for it */
};

#define MEMGROUP_INIT                                                      \
	{                                                                  \
		.fd = -1, .parent_fd = -1, .home_fd = -1, .keeper_fd = -1, \
	}
/* Closes; a group of ours that was not removed is left to its keeper, who acts at once. */
void memgroup_release(struct memgroup *g);
/* The group that a process is in. -ESRCH: no such process. */
int memgroup_open(struct memgroup *ret_g, const struct memgroup_tree *t, int32_t pid,
		  struct err *err);

/*
 * A new group below the caller's own, or, in version 2, below the nearest one that may have groups
 * with memory limits. -EACCES, -EROFS, -EBUSY: refused; the hint says what would help.
 */
int memgroup_make(struct memgroup *ret_g, const struct memgroup_tree *t, struct err *err);
/* The process that removes it should the caller die. Call before anything is put in. */
int memgroup_keep(struct memgroup *g, struct err *err);
/* MEMGROUP_NO_LIMIT: leave as it is. @swap_bytes beyond the memory. ret_has_swap: false where the
 * kernel does not account for swap (then only memory is limited). */
int memgroup_limit(struct memgroup *g, uint64_t memory_bytes, uint64_t swap_bytes,
		   bool *ret_has_swap, struct err *err);
/* Puts a process in with all its threads. What it used so far stays where it was. */
int memgroup_add(const struct memgroup *g, int32_t pid, struct err *err);
/* Takes a group of ours away; ret_nr_moved (may be NULL): processes that were still in it. */
int memgroup_remove(struct memgroup *g, size_t *ret_nr_moved, struct err *err);
/* Removes groups of ours that nobody holds, below the caller's group and its parents. */
int memgroup_clean(const struct memgroup_tree *t, size_t *ret_nr_removed, struct err *err);

/* What can be read is read; the rest is 0. Fails only if the group has gone. */
int memgroup_read(struct memgroup *g, const struct memgroup_tree *t, struct memgroup_numbers *ret_n,
		  struct err *err);
/* Levels of @after, counts since @before. */
struct memgroup_numbers memgroup_since(const struct memgroup_numbers *before,
				       const struct memgroup_numbers *after);

/* A descriptor that becomes readable when the group runs out of memory (just before the kernel
 * kills), or when pressure rises (version 1 only). The caller closes it. */
int memgroup_open_oom(const struct memgroup *g, int *ret_fd, struct err *err);

/* For tests. The path of the group in text of /proc/PID/cgroup; false: none with memory. */
bool memgroup_path_of(struct sv text, enum memgroup_version version, struct sv *ret_path);
/* "12 some_key" lines: the number after a key, or 0. */
uint64_t memgroup_value(struct sv text, const char *key);
/* Of pressure stall information: "total=" of the line that starts with @kind, "some" or "full". */
uint64_t memgroup_stall_us(struct sv text, const char *kind);

#endif
