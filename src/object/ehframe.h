/*
 * Walks the CIEs and FDEs of .eh_frame and .debug_frame without interpreting their programs:
 * who covers which addresses. unwind/ compiles the programs; symbol/ takes function starts.
 * Format: LSB 5.0 core-generic 10.6 (.eh_frame), DWARF 5 section 6.4 (.debug_frame).
 */
#ifndef ASSAY_OBJECT_EHFRAME_H
#define ASSAY_OBJECT_EHFRAME_H

#include "base/base.h"
#include "base/err.h"
#include "base/rd.h"
#include "object/elf.h"

struct ehframe_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	uint8_t pointer_encoding; /* DW_EH_PE_* of FDE addresses */
	bool is_signal_frame;     /* 'S' */
	bool has_augmentation;    /* 'z' */
	struct rd program;        /* initial instructions */
};

struct ehframe_fde {
	uint64_t start; /* link-time addresses */
	uint64_t end;
	const struct ehframe_cie *cie; /* valid until the next ehframe_next */
	struct rd program;
};

struct ehframe_iter {
	struct rd r;
	uint64_t section_vaddr;
	const uint8_t *section;
	size_t nr_section;
	bool is_debug_frame;
	const uint8_t *last_cie_at;
	struct ehframe_cie cie;
	uint64_t nr_bad; /* entries that were skipped because they make no sense */
};

/* @is_debug_frame: the 64-bit/32-bit .debug_frame rules instead of .eh_frame's. */
void ehframe_start(struct ehframe_iter *it, struct sv section, uint64_t section_vaddr,
                   bool is_debug_frame);
/* False at the end. Malformed entries are skipped and counted in nr_bad. */
bool ehframe_next(struct ehframe_iter *it, struct ehframe_fde *ret_fde);

#endif
