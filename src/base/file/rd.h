/*
 * Bounds-checked reader of bytes from a file, the kernel or a target; all parsers use it.
 *
 * A read past the end returns 0 and sets is_bad permanently, so callers check once per record
 * instead of once per field. Little-endian (both supported machines are).
 */
#ifndef ASSAY_BASE_FILE_RD_H
#define ASSAY_BASE_FILE_RD_H

#include "base/base.h"
#include "base/sv.h"

struct rd {
	const uint8_t *p;
	const uint8_t *end;
	bool is_bad;
};

static inline struct rd rd_from(const void *p, size_t n)
{
	return (struct rd){p, (const uint8_t *)p + n, false};
}
static inline size_t rd_left(const struct rd *r)
{
	return (size_t)(r->end - r->p);
}
static inline bool rd_need(struct rd *r, size_t n)
{
	if (LIKELY(rd_left(r) >= n))
		return true;
	r->is_bad = true;
	r->p = r->end;
	return false;
}
/* Returns the next n bytes, borrowed, or NULL. */
static inline const uint8_t *rd_bytes(struct rd *r, size_t n)
{
	if (!rd_need(r, n))
		return NULL;
	r->p += n;
	return r->p - n;
}
static inline void rd_skip(struct rd *r, size_t n)
{
	(void)rd_bytes(r, n); /* sets is_bad on failure */
}
#define RD_FIXED(name, type)                         \
	static inline type rd_##name(struct rd *r)   \
	{                                            \
		type v = 0;                          \
		if (rd_need(r, sizeof(v))) {         \
			memcpy(&v, r->p, sizeof(v)); \
			r->p += sizeof(v);           \
		}                                    \
		return v;                            \
	}
RD_FIXED(u8, uint8_t)
RD_FIXED(u16, uint16_t)
RD_FIXED(u32, uint32_t)
RD_FIXED(u64, uint64_t)
RD_FIXED(i8, int8_t)
RD_FIXED(i16, int16_t)
RD_FIXED(i32, int32_t)
RD_FIXED(i64, int64_t)
/*
 * LEB128 (DWARF), the same as protobuf varints. Bits above bit 63 are dropped, as both formats
 * require. rd_zigzag: a protobuf sint64.
 */
uint64_t rd_uleb_slow(struct rd *r);
static inline uint64_t rd_uleb(struct rd *r)
{
	if (LIKELY(r->p < r->end && *r->p < 0x80))
		return *r->p++;
	return rd_uleb_slow(r);
}
int64_t rd_sleb(struct rd *r);
int64_t rd_zigzag(struct rd *r);
/* Returns a NUL-terminated string without its NUL, borrowed. Sets is_bad if there is no NUL. */
struct sv rd_cstr(struct rd *r);
/* Returns a reader of the next n bytes and skips them in @r. If @r has fewer, both are bad. */
struct rd rd_sub(struct rd *r, size_t n);

#endif
