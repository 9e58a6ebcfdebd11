/*
 * Groups of processes that others join while a capture runs: those of a cgroup with the cgroups
 * below it (a container, a service), those of a user.
 *
 * A cgroup is held open, so one that is removed and created again under the same name, as when a
 * container is restarted, is not mistaken for it. Where the cgroup's folder cannot be opened, as in a
 * container with a cgroup namespace of its own, the cgroup paths of all visible processes are compared.
 */
#ifndef ASSAY_HOST_CONTAINER_MEMBERS_H
#define ASSAY_HOST_CONTAINER_MEMBERS_H

#include "base/base.h"
#include "base/err.h"
#include "host/container/container.h"
#include "host/proc.h"

struct members {
	int fd;       /* of the cgroup's folder; -1: there is none, or it cannot be opened */
	char *cgroup; /* its path as in /proc/PID/cgroup; NULL: a user */
	uint32_t uid;
	uint64_t next_ns; /* before it they are not listed again: so rarely that it takes 1/50 */
};

#define MEMBERS_INIT     \
	{                \
		.fd = -1 \
	}
void members_release(struct members *m);
/* The processes of a container. */
void members_of_container(struct members *ret_m, const char *root, const struct container *c);
/* @path: as in /proc/PID/cgroup ("/system.slice/x.service"), or of the folder. -ENOENT: none. */
int members_of_cgroup(struct members *ret_m, const char *root, const char *path, struct err *err);
/* @user: a name or a number. -ENOENT: no such user. */
int members_of_user(struct members *ret_m, const char *user, struct err *err);
/* Appends those of the processes that run now and are not in the list, assay itself never. */
void members_list(struct pid_list *to, struct members *m, const char *root);

#endif
