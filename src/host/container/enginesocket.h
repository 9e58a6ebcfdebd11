/*
 * Asks a container engine by its Unix socket for the names, images and labels of its containers, as
 * Docker's API has them and podman answers too: GET /_ping says which version of the API the engine
 * speaks, GET /vVERSION/containers/json lists. Only these two requests are ever sent. An engine that
 * does not answer within a second is given up; replies are limited and believed in nothing.
 *
 * API: https://docs.docker.com/reference/api/engine/, HTTP: RFC 9112.
 */
#ifndef ASSAY_HOST_CONTAINER_ENGINESOCKET_H
#define ASSAY_HOST_CONTAINER_ENGINESOCKET_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "host/container/container.h"

/* Adds what the engine at the socket says of the containers in the list. @engine: "docker". */
int enginesocket_ask(struct containers *l, const char *path, const char *engine, struct err *err);
/*
 * Asks those engines whose containers are in the list, at $DOCKER_HOST (unix: only) and the usual
 * paths; an error of the first that cannot be asked. Asking podman may start its service.
 */
int enginesocket_ask_all(struct containers *l, struct err *err);

struct http_reply {
	unsigned status;
	struct sv api_version; /* of the header Api-Version; borrowed from the text */
	struct buf body;
};
/* Parses a whole reply, whose body may be in chunks. -EPROTO: malformed or incomplete. Public for tests. */
int http_parse(struct http_reply *ret_r, struct sv text, struct err *err);

#endif
