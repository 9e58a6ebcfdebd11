/*
 * Containers that run on this machine: found by the cgroups of the visible processes, so without
 * asking an engine and in any cgroup or PID namespace; named by the state files of Docker, podman,
 * containerd and CRI-O, and by their sockets only where those files cannot answer (enginesocket.h).
 *
 * A process belongs to a container if a folder of its cgroup path is called after the container's id,
 * 64 hexadecimal digits: "docker-ID.scope", "ID", "libpod-ID.scope/container",
 * "kubepods-pod1_2.slice:cri-containerd:ID", of version 1 or 2. A process in a nested container
 * belongs to both.
 *
 * Names, images and labels are chosen by whoever started a container: any bytes may be in them, and
 * several containers may have the same. Files are read by a file reader (host/reader/hostfile.h), up
 * to a limit. What cannot be read is empty.
 *
 * All paths are resolved below one root folder ("/"; a prepared tree in tests), which ends with a slash.
 */
#ifndef ASSAY_HOST_CONTAINER_CONTAINER_H
#define ASSAY_HOST_CONTAINER_CONTAINER_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"
#include "host/proc.h"

#define CONTAINER_ID_LEN 64u

struct container {
	char id[CONTAINER_ID_LEN + 1];
	const char *engine; /* "docker", "podman", "containerd", "cri-o"; "": not known; static */
	char *name;         /* the texts are owned; NULL: not known */
	char *image;
	char *service; /* compose: label com.docker.compose.service */
	char *project;
	char *pod; /* Kubernetes */
	char *pod_namespace;
	char *cgroup;         /* path of its folder, as in /proc/PID/cgroup */
	char *controllers;    /* of that line: "" in version 2 */
	bool is_pause;        /* holds the namespaces of a pod, runs no service */
	struct pid_list pids; /* ascending */
};

struct containers {
	VEC(struct container) list; /* in the order of their first process */
};

void containers_release(struct containers *l);
/* Finds the containers of all visible processes and reads what state files say of them. */
int containers_find(struct containers *ret_l, const char *root, struct err *err);
/* Returns the innermost container of a process; NULL: none. */
const struct container *containers_of(const struct containers *l, int32_t pid);

enum container_match_flags {
	CONTAINER_SHORT_ID = 1 << 0, /* a prefix of an id may have less than 12 digits */
};
/*
 * Indexes of the containers that a word means, best meaning first, pause containers never: an exact
 * name; an id or the beginning of one; a compose service; a pod, a container of pods, "POD/CONTAINER"
 * or "NAMESPACE/POD/CONTAINER". Several: the word is ambiguous. The caller releases the vector.
 */
struct container_matches {
	VEC(size_t) idx;
};
struct container_matches containers_match(const struct containers *l, const char *word,
					  unsigned flags);
/* Appends "docker, image redis:7, 3 processes, id 0123456789ab". */
void container_describe(struct buf *to, const struct container *c);
/* Appends what to call it: its name, "pod/name", or the first 12 digits of its id. */
void container_add_name(struct buf *to, const struct container *c);

/*
 * The next container id in a cgroup path from offset @from on. *ret_end: the length of the path up to
 * the end of that folder's name. False: there is none. *ret_engine: "" where the name does not say.
 */
bool container_id_in(struct sv path, size_t from, struct sv *ret_id, size_t *ret_end,
		     const char **ret_engine);

#endif
