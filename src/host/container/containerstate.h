/*
 * What container engines have written about a container: its name, image and labels.
 *
 *	Docker      /var/lib/docker/containers/ID/config.v2.json
 *	podman,     the command line of conmon, which watches each of their containers, has the name
 *	CRI-O       and the folder; in it config.json (annotations), above it containers.json
 *	containerd  /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json
 *	Kubernetes  /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log, for any runtime
 */
#ifndef ASSAY_HOST_CONTAINER_CONTAINERSTATE_H
#define ASSAY_HOST_CONTAINER_CONTAINERSTATE_H

#include "base/base.h"
#include "base/sv.h"
#include "host/container/container.h"

/* Fills what the state files say. @pids: all processes, among which the conmons are searched. */
void containerstate_read(struct containers *l, const char *root, const struct pid_list *pids);

/* Parse the text of one file; what is already known is kept. Public for tests. */
void containerstate_docker(struct container *c, struct sv text); /* config.v2.json */
void containerstate_oci(struct container *c, struct sv text);    /* config.json of a bundle */
/* containers.json of podman and CRI-O, which lists all of them; @engine: where it is not known. */
void containerstate_storage(struct containers *l, struct sv text);
/* The reply to /containers/json of Docker and podman. */
void containerstate_list(struct containers *l, struct sv text, const char *engine);
/* "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT": names the parts and returns true. */
bool containerstate_kubernetes_name(struct container *c, struct sv name);

#endif
