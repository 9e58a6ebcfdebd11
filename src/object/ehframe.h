/*
 * Walks the CIEs and FDEs of .eh_frame and .debug_frame without interpreting their programs:
 * who covers which addresses. unwind/ compiles the programs; symbol/ takes function starts.
 * Format: LSB 5.0 core-generic 10.6 (.eh_frame), DWARF 5 section 6.4 (.debug_frame).
 *
 * The bytes are foreign: every length is checked, entries that make no sense are skipped and
 * counted. Nothing is allocated. Addresses that only a running process could tell
 * (DW_EH_PE_indirect, textrel, datarel) make an entry bad.
 */
#ifndef ASSAY_OBJECT_EHFRAME_H
#define ASSAY_OBJECT_EHFRAME_H

#include "base/base.h"
#include "base/err.h"
#include "base/file/rd.h"
#include "object/elf.h"

struct ehframe_section {
	const uint8_t *p;
	size_t n;
	uint64_t vaddr; /* link-time address of p[0] */
	bool is_debug_frame;
	bool is_terminated; /* a zero length ends it (extent unknown), instead of being skipped */
};

struct ehframe_cie {
	uint64_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	uint8_t pointer_encoding; /* DW_EH_PE_* of FDE addresses */
	uint8_t lsda_encoding;    /* DW_EH_PE_omit: none */
	uint8_t address_bytes;    /* of DW_EH_PE_absptr */
	uint8_t segment_bytes;    /* DWARF 4 segment selector before the address */
	bool is_signal_frame;     /* 'S' */
	bool has_augmentation;    /* 'z' */
	struct rd program;        /* initial instructions */
};

struct ehframe_fde {
	uint64_t start; /* link-time addresses */
	uint64_t end;
	uint64_t offset;               /* in the section, for ehframe_fde_at */
	const struct ehframe_cie *cie; /* valid until the next ehframe_next */
	struct rd program;
};

#define EHFRAME_NR_CIES 8 /* kept by an iterator; real files have one to five */

struct ehframe_iter {
	struct ehframe_section section;
	uint64_t offset; /* of the next entry */
	struct ehframe_cie cies[EHFRAME_NR_CIES];
	uint64_t cie_keys[EHFRAME_NR_CIES]; /* offset + 1, 0 = empty */
	uint64_t nr_bad; /* entries that were skipped because they make no sense */
};

void ehframe_start(struct ehframe_iter *it, const struct ehframe_section *s);
/* Over an image's .eh_frame or .debug_frame; false if it has none. */
bool ehframe_start_elf(struct ehframe_iter *it, struct elf *e, const char *section);
/* False at the end. Malformed entries are skipped and counted in nr_bad. */
bool ehframe_next(struct ehframe_iter *it, struct ehframe_fde *ret_fde);

/* The FDE at an offset that ehframe_next gave; @ret_cie is filled and pointed to. */
bool ehframe_fde_at(const struct ehframe_section *s, uint64_t offset, struct ehframe_fde *ret_fde,
		    struct ehframe_cie *ret_cie);

/* Where .eh_frame_hdr (PT_GNU_EH_FRAME, at @vaddr) says .eh_frame is: its link-time address. */
bool ehframe_hdr_to_vaddr(struct sv hdr, uint64_t vaddr, uint64_t *ret_vaddr);

#endif
