/* Bounded reader; see rd.h. */
#include "base/base.h"
#include "base/file/rd.h"

/* *ret_shift: bits read; *ret_last: the last byte. */
static uint64_t read_leb(struct rd *r, unsigned *ret_shift, uint8_t *ret_last)
{
	uint64_t v = 0;
	unsigned shift = 0;
	while (r->p < r->end) {
		uint8_t b = *r->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
		if (b & 0x80)
			continue;
		*ret_shift = shift;
		*ret_last = b;
		return v;
	}
	r->is_bad = true;
	return 0;
}

uint64_t rd_uleb_slow(struct rd *r)
{
	unsigned shift;
	uint8_t last;
	return read_leb(r, &shift, &last);
}

int64_t rd_sleb(struct rd *r)
{
	unsigned shift = 64;
	uint8_t last = 0;
	uint64_t v = read_leb(r, &shift, &last);
	if ((last & 0x40) && shift < 64)
		v |= ~(uint64_t)0 << shift;
	return (int64_t)v;
}

int64_t rd_zigzag(struct rd *r)
{
	uint64_t v = rd_uleb(r);
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

struct sv rd_cstr(struct rd *r)
{
	const uint8_t *nul = rd_left(r) ? memchr(r->p, 0, rd_left(r)) : NULL;
	if (!nul) {
		r->is_bad = true;
		r->p = r->end;
		return sv_from("", 0);
	}
	struct sv s = sv_from((const char *)r->p, (size_t)(nul - r->p));
	r->p = nul + 1;
	return s;
}

struct rd rd_sub(struct rd *r, size_t n)
{
	const uint8_t *p = rd_bytes(r, n);
	struct rd sub = rd_from(p ? p : r->end, p ? n : 0);
	sub.is_bad = !p;
	return sub;
}
