/*
 * Reduces the kernel's BTF to the types that the BPF object refers to. For each type that libbpf
 * relocates (CO-RE), it searches all of the kernel's BTF, about a hundred thousand types, which
 * takes 3 ms each. Searching once and giving libbpf a small BTF makes a capture start sooner.
 */
#ifndef ASSAY_CAPTURE_BPF_CORETYPES_H
#define ASSAY_CAPTURE_BPF_CORETYPES_H

#include <stddef.h>

/*
 * Returns the descriptor of a memfd with the reduced BTF, which the caller closes, or -1 on
 * failure: then libbpf has to use the complete BTF. @elf: the BPF object.
 */
int coretypes_open(const void *elf, size_t nr_bytes);

#endif
