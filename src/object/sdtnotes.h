/*
 * Static probes that a program's author put into it (USDT, "SDT"): a `nop` in the code each, told
 * of in section .note.stapsdt as owner "stapsdt", type 3:
 *
 *	u64 address of the nop · u64 address of section .stapsdt.base when linked ·
 *	u64 address of a u16 that counts who listens, 0 = none · provider\0 name\0 arguments\0
 *
 * The section is not loaded, so nobody adjusts its addresses when prelink or a separate debug file
 * move the code: the difference between .stapsdt.base now and then is added to them.
 */
#ifndef ASSAY_OBJECT_SDTNOTES_H
#define ASSAY_OBJECT_SDTNOTES_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "object/elf.h"

struct sdt_note {
	struct sv provider; /* into the image */
	struct sv name;
	uint64_t offset;           /* into the file, of the nop */
	uint64_t semaphore_offset; /* into the file, 0 = none */
};

/* Until @found returns other than 0, which is then returned. What is malformed is passed over. */
int sdt_notes(struct elf *e, int (*found)(void *ctx, const struct sdt_note *n, struct err *err),
	      void *ctx, struct err *err);

#endif
