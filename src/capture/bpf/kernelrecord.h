/*
 * Decodes records of the BPF programs (wire/kernel_record.h, kernel_sample.h, kernel_stack.h) into
 * struct event. Lengths and counts in the records are checked before use.
 */
#ifndef ASSAY_CAPTURE_BPF_KERNELRECORD_H
#define ASSAY_CAPTURE_BPF_KERNELRECORD_H

#include "arch.h"
#include "base/base.h"
#include "kernel_record.h"
#include "kernel_stack.h"
#include "model/event.h"

/* Memory that a decoded event may point to. */
struct kernelrecord_scratch {
	uint64_t regs[ARCH_NR_DWARF_REG];
	uint64_t chain[KSTACK_FRAMES_MAX];
};

/*
 * Returns whether a record is valid: a complete head with a time, a length of at most @nr_bytes
 * (the bytes available) and, for samples, stacks and copies, a body that fits this length.
 */
bool kernelrecord_is_sane(const struct kernel_record *r, uint32_t nr_bytes);
/*
 * Decodes a valid record (kernelrecord_is_sane) of a sample or a stack. False: the record is of
 * another kind. The event points into the record and the scratch memory.
 */
bool kernelrecord_decode(const struct kernel_record *r, struct kernelrecord_scratch *scratch,
			 struct event *ret_ev);

#endif
