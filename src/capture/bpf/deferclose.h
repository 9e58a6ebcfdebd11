/*
 * Detaches from tracepoints and probes without waiting. Closing such a descriptor waits for a grace
 * period on all CPUs (40 to 110 ms each; closing those of all system calls that `assay io` counts
 * takes 4 s). Here a short-lived child process inherits the descriptors and closes them last, so
 * that the caller's own close returns at once. The child has no other descriptors, so no reader of
 * assay's output waits for it. It exits by itself.
 *
 * The programs remain attached until the child closes them: they must have been switched off
 * before, by a variable that they check.
 */
#ifndef ASSAY_CAPTURE_BPF_DEFERCLOSE_H
#define ASSAY_CAPTURE_BPF_DEFERCLOSE_H

#include "base/base.h"
#include "base/vec.h"

/*
 * Starts the child. The caller closes its own descriptors afterwards. If fork fails, there is no
 * child, and the caller's close waits for the grace period.
 */
void deferclose(const int *fds, size_t nr_fds);

struct bpf_link;

struct bpf_links {
	VEC(struct bpf_link *) list; /* owned */
};
/* Detaches and frees all links; the list is empty afterwards. */
void bpf_links_detach(struct bpf_links *l);

#endif
