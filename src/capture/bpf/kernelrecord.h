/*
 * Decodes records of the BPF programs (wire/kernel_record.h, kernel_sample.h, kernel_stack.h) into
 * struct event. The kernel wrote them, but lengths are checked all the same.
 */
#ifndef ASSAY_CAPTURE_BPF_KERNELRECORD_H
#define ASSAY_CAPTURE_BPF_KERNELRECORD_H

#include "arch.h"
#include "base/base.h"
#include "kernel_record.h"
#include "model/event.h"

/* Memory that a decoded event may point to. */
struct kernelrecord_scratch {
	uint64_t regs[ARCH_NR_DWARF_REG];
};

/* Whether a record of @nr_bytes has a complete head and the length that its head says. */
bool kernelrecord_is_sane(const struct kernel_record *r, uint32_t nr_bytes);
/*
 * Decodes a sane record of a sample or a stack; false: of another kind. The event points into the
 * record and the scratch memory.
 */
bool kernelrecord_decode(const struct kernel_record *r, struct kernelrecord_scratch *scratch,
			 struct event *ret_ev);

#endif
