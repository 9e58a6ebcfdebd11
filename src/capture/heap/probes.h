/*
 * The heap of processes by probes on the functions of their allocators (method UPROBES): for those
 * that nobody may trace, where programs may be loaded (bpf/heap.bpf.h). The books are the same as
 * those of the recorder (heapaccount.h), a book a process.
 *
 * A probe costs the program a trap, about a microsecond on an instruction that the kernel emulates
 * and several times as much elsewhere; so of each function the first instruction is taken that is
 * emulated, always reached, and still has the arguments (heapprobes_point). Sampled, only calls
 * whose block was chosen are probed at their return as well, where the kernel can do that.
 */
#ifndef ASSAY_CAPTURE_HEAP_PROBES_H
#define ASSAY_CAPTURE_HEAP_PROBES_H

#include "capture/source.h"
#include "heap_wire.h"

extern const struct source heapprobes_source;

/*
 * Where in a function's first bytes the probe goes: the offset of an instruction that is emulated,
 * always reached, with the arguments of its shape where they were and, unless it frees, the stack
 * pointer as well. 0 with *ret_is_emulated false: there is none, the first instruction is stepped
 * over.
 */
size_t heapprobes_point(const uint8_t *code, size_t n, enum heap_shape shape,
			bool *ret_is_emulated);

#endif
