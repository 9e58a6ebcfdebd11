/*
 * Containers, cgroups and users as targets (target.h): resolves them to their processes, and lists
 * containers for messages. For target.c.
 */
#ifndef ASSAY_HOST_TARGETGROUPS_H
#define ASSAY_HOST_TARGETGROUPS_H

#include "base/base.h"
#include "base/err.h"
#include "host/container/container.h"
#include "host/target.h"

/* The containers of the machine, found when they are first needed. */
struct known_containers {
	struct containers list;
	bool is_found;
	bool is_asked;        /* the engines' sockets */
	struct err no_answer; /* why a socket could not be asked; code 0: none failed */
};
void known_containers_release(struct known_containers *k);

/*
 * Adds the processes of the container that the word means. -ENOENT without a message: the word means
 * none. -ENOTUNIQ: several, *ret_c lists them. @flags: enum container_match_flags.
 */
int targetgroups_add_container(struct target *t, struct known_containers *k, const char *word,
			       unsigned flags, bool takes_all, struct target_candidates *ret_c,
			       struct err *err);
/* Sets the error that no container has this name, with those that run. Returns -ESRCH. */
int targetgroups_no_container(struct known_containers *k, const char *word, struct err *err);
int targetgroups_add_cgroup(struct target *t, const char *path, struct err *err);
int targetgroups_add_user(struct target *t, const char *user, struct err *err);
/* Appends the names of containers similar to @name, at most 5: "web-1 (container)". */
void targetgroups_add_similar(struct buf *to, struct known_containers *k, const char *name);
/* Appends " (container NAME)" of the container that the process is in, if any. */
void targetgroups_add_place(struct buf *to, struct known_containers *k, int32_t pid);

/* Of target.c. */
void target_add_pid(struct target *t, int32_t pid);
bool target_is_similar(const char *text, const char *name);

#endif
