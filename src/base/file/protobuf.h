/*
 * The wire format of Protocol Buffers, as far as file formats need it: fields with varints, fixed
 * numbers and bytes. Groups (wire types 3 and 4) are errors.
 *
 *	struct pb_field f;
 *	while (pb_next(&rd, &f))
 *		if (f.nr == 4) names[n++] = pb_text(&f);
 *	if (rd.is_bad) ...
 */
#ifndef ASSAY_BASE_FILE_PROTOBUF_H
#define ASSAY_BASE_FILE_PROTOBUF_H

#include "base/base.h"
#include "base/buf.h"
#include "base/file/rd.h"

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
	uint32_t nr;
	enum pb_type type;
	uint64_t v;      /* of a number */
	struct rd bytes; /* of PB_BYTES; borrowed */
};

/* Reads the next field of a message; false at its end, and if it is damaged (r->is_bad). */
bool pb_next(struct rd *r, struct pb_field *ret_f);
/*
 * Iterates over the numbers of a repeated field, which are one varint or packed into bytes: consumes
 * @f. Returns false after the last one; a damaged number sets f->bytes.is_bad.
 */
bool pb_next_number(struct pb_field *f, uint64_t *ret_v);
static inline struct sv pb_text(const struct pb_field *f)
{
	return f->type == PB_BYTES ? sv_from((const char *)f->bytes.p, rd_left(&f->bytes))
				   : sv_from("", 0);
}

/* Append fields. A number that is 0 is the default, and not written. */
void pb_put_number(struct buf *to, uint32_t nr, uint64_t v);
void pb_put_bytes(struct buf *to, uint32_t nr, const void *p, size_t n);
/* The varints of a repeated field, packed. @scratch is overwritten. */
void pb_put_numbers(struct buf *to, uint32_t nr, const uint64_t *v, size_t n, struct buf *scratch);

#endif
