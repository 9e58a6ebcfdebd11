/*
 * Reads the static probes of a binary (USDT, "SDT"). Each probe is a `nop` in the code, described
 * by a note in section .note.stapsdt with owner "stapsdt" and type 3:
 *
 *	u64 address of the nop · u64 address of section .stapsdt.base when linked ·
 *	u64 address of a u16 semaphore (the number of attached tracers); 0 = no semaphore ·
 *	provider\0 name\0 arguments\0
 *
 * The section is not loaded, so its addresses are not adjusted when prelink or a separate debug
 * file moves the code. The difference between the current and the recorded address of .stapsdt.base
 * is therefore added to them.
 */
#ifndef ASSAY_OBJECT_SDTNOTES_H
#define ASSAY_OBJECT_SDTNOTES_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/elf.h"

struct sdt_note {
	struct sv provider; /* borrowed from the image, as is name */
	struct sv name;
	uint64_t offset;           /* file offset of the nop */
	uint64_t semaphore_offset; /* file offset, 0 = no semaphore */
};

/*
 * Calls @found for each probe. If @found returns a value other than 0, stops and returns it. Skips
 * malformed notes. Returns 0 at the end.
 */
int sdt_notes(struct elf *e, int (*found)(void *ctx, const struct sdt_note *n, struct err *err),
	      void *ctx, struct err *err);

#endif
