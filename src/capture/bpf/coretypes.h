/*
 * Reduces the kernel's BTF to the types that the BPF object refers to. For each type in a CO-RE
 * relocation, libbpf searches the whole kernel BTF, about a hundred thousand types, in about 3 ms. One
 * search here, and a small BTF for libbpf, make a capture start sooner.
 */
#ifndef ASSAY_CAPTURE_BPF_CORETYPES_H
#define ASSAY_CAPTURE_BPF_CORETYPES_H

#include <stddef.h>

struct btf;

/*
 * Returns the descriptor of a memfd with the reduced BTF, which the caller closes, or -1 on
 * failure: then libbpf has to use the complete BTF. @elf: the BPF object. @kernel: the kernel's types,
 * NULL if it has no BTF.
 */
int coretypes_open(const void *elf, size_t nr_bytes, const struct btf *kernel);

#endif
