/*
 * Event source for heaps by uprobes on allocator functions (method UPROBES): for processes that
 * cannot be traced, where BPF programs may be loaded (bpf/heap.bpf.h). Accounting is that of the
 * recorder (heapaccount.h), one object per process.
 *
 * A uprobe costs the program a trap: about a microsecond on an instruction that the kernel
 * emulates, several times as much on others. So each function is probed at its first instruction
 * that is emulated, always executed, and still has the arguments (heapprobes_point). When sampling,
 * only calls whose block was chosen are probed at their return as well, if the kernel supports
 * that.
 */
#ifndef ASSAY_CAPTURE_HEAP_PROBES_H
#define ASSAY_CAPTURE_HEAP_PROBES_H

#include "capture/source.h"
#include "heap_wire.h"

extern const struct source heapprobes_source;

/*
 * Finds the instruction to probe in a function's first bytes: emulated by the kernel, always
 * executed, with the arguments of its shape unchanged and, unless it frees, the stack pointer, too.
 * Returns its offset, or 0 with *ret_is_emulated false: none; the first instruction is
 * single-stepped.
 */
size_t heapprobes_point(const uint8_t *code, size_t n, enum heap_shape shape,
			bool *ret_is_emulated);

#endif
