/* Protocol Buffers; see protobuf.h. */
#include "base/base.h"
#include "base/file/protobuf.h"

bool pb_next(struct rd *r, struct pb_field *ret_f)
{
	if (!rd_left(r))
		return false;
	uint64_t tag = rd_uleb(r);
	struct pb_field f = {.nr = (uint32_t)(tag >> 3), .type = (enum pb_type)(tag & 7)};
	switch (f.type) {
	case PB_VARINT:
		f.v = rd_uleb(r);
		break;
	case PB_FIXED64:
		f.v = rd_u64(r);
		break;
	case PB_FIXED32:
		f.v = rd_u32(r);
		break;
	case PB_BYTES: {
		uint64_t n = rd_uleb(r);
		r->is_bad |= n > rd_left(r);
		f.bytes = rd_sub(r, MIN(n, rd_left(r)));
		break;
	}
	default:
		r->is_bad = true;
	}
	r->is_bad |= !f.nr || tag >> 3 > 0x1fffffff; /* numbers have 29 bits */
	*ret_f = f;
	return !r->is_bad;
}

bool pb_next_number(struct pb_field *f, uint64_t *ret_v)
{
	if (f->type != PB_BYTES) {
		*ret_v = f->v;
		f->type = PB_BYTES; /* with no bytes: the end */
		return true;
	}
	if (!rd_left(&f->bytes))
		return false;
	*ret_v = rd_uleb(&f->bytes);
	return !f->bytes.is_bad;
}

static void add_tag(struct buf *to, uint32_t nr, enum pb_type type)
{
	buf_add_uleb(to, (uint64_t)nr << 3 | type);
}

void pb_put_number(struct buf *to, uint32_t nr, uint64_t v)
{
	if (!v)
		return;
	add_tag(to, nr, PB_VARINT);
	buf_add_uleb(to, v);
}

void pb_put_bytes(struct buf *to, uint32_t nr, const void *p, size_t n)
{
	add_tag(to, nr, PB_BYTES);
	buf_add_uleb(to, n);
	if (n)
		buf_add(to, p, n);
}

void pb_put_numbers(struct buf *to, uint32_t nr, const uint64_t *v, size_t n, struct buf *scratch)
{
	if (!n)
		return;
	buf_clear(scratch);
	for (size_t i = 0; i < n; i++)
		buf_add_uleb(scratch, v[i]);
	pb_put_bytes(to, nr, scratch->p, scratch->n);
}
