/*
 * The kernel's types that our programs name, out of the hundred thousand that it describes. libbpf
 * goes through all of them for each type of ours that it relocates (CO-RE), 3 ms each; going
 * through them once and giving it the few that matter makes a capture start sooner.
 */
#ifndef ASSAY_CAPTURE_BPF_CORETYPES_H
#define ASSAY_CAPTURE_BPF_CORETYPES_H

#include <stddef.h>

/*
 * A descriptor of a file of BTF without a name, to be closed; @elf: our object. -1: it did not
 * work, so libbpf has to take the whole.
 */
int coretypes_open(const void *elf, size_t nr_bytes);

#endif
