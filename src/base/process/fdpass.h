/* Messages with descriptors between processes, through sockets of type SOCK_SEQPACKET. */
#ifndef ASSAY_BASE_PROCESS_FDPASS_H
#define ASSAY_BASE_PROCESS_FDPASS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"

#define FDPASS_MAX 32

/* Sends the parts as one message, with @nr descriptors, which stay open here. 0 or -errno. */
int fdpass_send(int sock, const struct iovec *parts, size_t nr_parts, const int *fds, size_t nr);
/*
 * Receives one message of up to @n bytes. Returns its length, 0 at the end, or -errno; -EMSGSIZE: it
 * is longer. The first @nr entries of @fds are its descriptors, owned by the caller, or -1.
 */
ssize_t fdpass_receive(int sock, void *to, size_t n, int *fds, size_t nr);

#endif
