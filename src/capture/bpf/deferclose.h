/*
 * Detaching from tracepoints and probes without waiting for it. The kernel waits for all CPUs at
 * each one that is closed (40 to 110 ms, one after the other: 4 s for the calls that `assay io`
 * watches). So a short-lived process of ours inherits the descriptors and is the last to close
 * them; the caller's own closing then costs nothing. It holds nothing else, so that nobody who
 * reads our output waits for it, and ends by itself.
 *
 * Programs that are still attached for that moment must have been told before to do nothing.
 */
#ifndef ASSAY_CAPTURE_BPF_DEFERCLOSE_H
#define ASSAY_CAPTURE_BPF_DEFERCLOSE_H

#include "base/base.h"
#include "base/vec.h"

/* The caller closes them afterwards. Where no process can be made, that takes its time. */
void deferclose(const int *fds, size_t nr_fds);

struct bpf_link;

struct bpf_links {
	VEC(struct bpf_link *) list; /* owned */
};
/* Detaches all; none is left. */
void bpf_links_detach(struct bpf_links *l);

#endif
