/*
 * Iterates over the CIEs and FDEs of .eh_frame and .debug_frame and gives the address range of each
 * FDE. Does not interpret their call frame instructions: unwind/ compiles those; symbol/ uses the
 * function starts. Format: LSB 5.0 core-generic 10.6 (.eh_frame), DWARF 5 section 6.4
 * (.debug_frame).
 *
 * The input is untrusted: every length is checked; malformed entries are skipped and counted.
 * Nothing is allocated. An entry whose addresses are known only at run time (DW_EH_PE_indirect,
 * textrel, datarel) counts as malformed.
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
	bool is_terminated; /* n is an upper bound: an entry of length 0 ends the section */
};

struct ehframe_cie {
	uint64_t offset; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_column;
	uint8_t pointer_encoding; /* DW_EH_PE_* of FDE addresses */
	uint8_t lsda_encoding;    /* DW_EH_PE_omit: none */
	uint8_t address_bytes;    /* size of DW_EH_PE_absptr */
	uint8_t segment_bytes;    /* size of the DWARF 4 segment selector before the address */
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

#define EHFRAME_NR_CIES 8 /* CIEs that an iterator caches; real files have one to five */

struct ehframe_iter {
	struct ehframe_section section;
	uint64_t offset; /* of the next entry */
	struct ehframe_cie cies[EHFRAME_NR_CIES];
	uint64_t cie_keys[EHFRAME_NR_CIES]; /* offset + 1, 0 = empty */
	uint64_t nr_bad;                    /* malformed entries that were skipped */
};

void ehframe_start(struct ehframe_iter *it, const struct ehframe_section *s);
/* Starts at @section of the image, ".eh_frame" or ".debug_frame"; false if it has none. */
bool ehframe_start_elf(struct ehframe_iter *it, struct elf *e, const char *section);
/* Returns the next FDE; false at the end. Malformed entries are skipped and counted in nr_bad. */
bool ehframe_next(struct ehframe_iter *it, struct ehframe_fde *ret_fde);

/*
 * Reads the FDE at @offset (ehframe_fde.offset). ret_fde->cie points to @ret_cie. False: malformed.
 */
bool ehframe_fde_at(const struct ehframe_section *s, uint64_t offset, struct ehframe_fde *ret_fde,
		    struct ehframe_cie *ret_cie);

/*
 * Reads the link-time address of .eh_frame from the contents of .eh_frame_hdr (PT_GNU_EH_FRAME),
 * whose own link-time address is @vaddr. False: malformed.
 */
bool ehframe_hdr_to_vaddr(struct sv hdr, uint64_t vaddr, uint64_t *ret_vaddr);

#endif
