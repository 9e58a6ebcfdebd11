/*
 * Resolves the targets given on the command line to process and thread ids. A bare word is a
 * container's name, else that of a process. A name must be unambiguous: if several containers or
 * processes match, they are returned as a list for the caller to show. assay itself and the process
 * that started it are never candidates for a name.
 *
 * Containers, cgroups and users are groups that other processes join (target_list_joined). Between the
 * resolution and the capture a process may end and its id be used again: target_drop_ended leaves out
 * those that are not the same any more.
 */
#ifndef ASSAY_HOST_TARGET_H
#define ASSAY_HOST_TARGET_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/container/members.h"
#include "host/proc.h"

struct target_spec {
	VEC(int32_t) pids;            /* -p */
	VEC(int32_t) tids;            /* -t */
	VEC(const char *) words;      /* bare words: containers, else exact process names */
	VEC(const char *) names;      /* -n: exact process names */
	VEC(const char *) containers; /* --container: names, ids or beginnings of ids */
	VEC(const char *) cgroups;    /* --cgroup: paths */
	VEC(const char *) users;      /* --uid: names or numbers */
	const char *match;            /* --match: regular expression over the command line */
	bool is_system;               /* -a */
	bool takes_all;               /* --all-matching */
	bool takes_children;          /* --children: with all running descendants */
};

/* A container as it was found; the texts may be empty. */
struct target_container {
	char *name; /* owned, as are id and image */
	char *id;
	char *image;
	const char *engine;
};

struct target {
	struct pid_list pids; /* processes, ascending; those that join later follow */
	struct pid_list tids; /* single threads (their processes are not in pids) */
	int32_t child;        /* a launched command, which waits before its execve; 0 = none */
	bool is_system;
	bool takes_children;        /* those that are forked later belong to it, too */
	uint32_t nr_children;       /* running descendants that are not in pids */
	uint64_t resolved_ticks;    /* when it was resolved, clock ticks after boot */
	VEC(uint64_t) starts;       /* of each of pids, clock ticks after boot; 0: not known */
	VEC(struct members) groups; /* processes that join them belong to the target, too */
	VEC(struct target_container) containers;
	char *name; /* for directories and titles: "redis-server", "all", "pid-42" */
};

struct target_candidate {
	int32_t pid;   /* 0: a container */
	char *cmdline; /* owned; of a container what is known of it */
};
struct target_candidates {
	VEC(struct target_candidate) list;
};

void target_spec_release(struct target_spec *s);
/* Whether it names anything, the whole system included. */
bool target_spec_has_any(const struct target_spec *s);
void target_release(struct target *t);
void target_candidates_release(struct target_candidates *c);

/*
 * Resolves @spec. A name is that of all processes that have it if one of them started the others (a
 * server and its workers). -ENOTUNIQ: several others match, *ret_c lists them. -ESRCH: none matches (the
 * hint lists similar names). -EINVAL: a bad number or regular expression.
 */
int target_resolve(struct target *ret_t, const struct target_spec *spec,
		   struct target_candidates *ret_c, struct err *err);

/*
 * Removes processes that have ended, also if their ids are used again, and returns their number. To be
 * called before the capture touches them.
 */
size_t target_drop_ended(struct target *t);
/* Whether the process with this id is the one that was resolved (false: another, or none). */
bool target_is_same(const struct target *t, int32_t pid);
/*
 * Adds the processes that have joined a group of the target since the last call: the new ones are
 * those from the returned index on. Groups are listed so rarely that it takes 1/50 of the time.
 */
size_t target_list_joined(struct target *t);

/*
 * Lists the descendants that were started since the target was resolved, without assay: those that were
 * forked before anything followed forks.
 */
void target_list_early_forks(const struct target *t, struct pid_list *ret);

/* Processes with all their descendants, also those that are forked later. */
struct target_family {
	struct pid_list pids; /* the caller adds the first ones; without those that have exited */
	uint64_t
		next_ns; /* /proc is read so rarely that it takes 1/20 of the time, but each second */
};
/* Finds descendants that are not in the list, except assay: from the returned index on. */
size_t target_family_grow(struct target_family *f);

/* Whether @pid is one of the target's processes, or the launched command; not a descendant. */
bool target_has_pid(const struct target *t, int32_t pid);
/*
 * Returns whether a process of the target has a seccomp filter, which assay suspends during its calls
 * in the process: that needs CAP_SYS_ADMIN and a thread of assay without a filter of its own.
 */
bool target_has_filter(const struct target *t);

#endif
