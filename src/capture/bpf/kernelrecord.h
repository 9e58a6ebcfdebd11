/*
 * Records of our BPF programs -> struct event (wire/kernel_record.h and the like). The
 * kernel wrote them, but lengths are checked all the same.
 */
#ifndef ASSAY_CAPTURE_BPF_KERNELRECORD_H
#define ASSAY_CAPTURE_BPF_KERNELRECORD_H

#include "arch.h"
#include "base/base.h"
#include "kernel_record.h"
#include "model/event.h"

/* What a decoded event may point into. */
struct kernelrecord_scratch {
	uint64_t regs[ARCH_NR_DWARF_REG];
};

/* Whether @nr_bytes of the ring hold the record's head and all that it says it has. */
bool kernelrecord_is_sane(const struct kernel_record *r, uint32_t nr_bytes);
/* Samples and stacks, of a record that is sane; false: of another kind. The event borrows both. */
bool kernelrecord_decode(const struct kernel_record *r, struct kernelrecord_scratch *scratch,
			 struct event *ret_ev);

#endif
