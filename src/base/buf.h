/*
 * Growable byte buffer, NUL-terminated whenever it holds something. The buffer owns its memory;
 * buf_detach passes it to the caller. Start with {0}.
 */
#ifndef ASSAY_BASE_BUF_H
#define ASSAY_BASE_BUF_H

#include <stdarg.h>

#include "base/base.h"
#include "base/sv.h"

struct buf {
	char *p;
	size_t n;
	size_t cap;
};

void buf_release(struct buf *b);
/* Sets the length to 0 and keeps the memory. */
void buf_clear(struct buf *b);
/*
 * Makes room for n more bytes and a NUL and returns the end. The caller writes the bytes and the
 * NUL and adds to b->n.
 */
char *buf_reserve(struct buf *b, size_t n) __attribute__((returns_nonnull));
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_sv(struct buf *b, struct sv s);
void buf_add_ch(struct buf *b, char c);
void buf_add_repeat(struct buf *b, char c, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) PRINTF(2, 0);
/* Decimal and hexadecimal without printf, for writers of many numbers. */
void buf_add_u64(struct buf *b, uint64_t v);
void buf_add_hex(struct buf *b, uint64_t v);
/* Little-endian binary and varints, for file formats. */
void buf_add_u16le(struct buf *b, uint16_t v);
void buf_add_u32le(struct buf *b, uint32_t v);
void buf_add_u64le(struct buf *b, uint64_t v);
void buf_add_uleb_long(struct buf *b, uint64_t v); /* any number */
static inline void buf_add_uleb(struct buf *b, uint64_t v)
{
	if (UNLIKELY(v >= 0x80 || b->cap - b->n < 2))
		return buf_add_uleb_long(b, v);
	b->p[b->n++] = (char)v;
	b->p[b->n] = 0;
}
void buf_add_zigzag(struct buf *b, int64_t v);
/* Returns the string (never NULL), owned by the caller; the buffer is empty afterwards. */
char *buf_detach(struct buf *b);
/* Returns the string, borrowed; "" when empty. */
const char *buf_str(const struct buf *b);
static inline struct sv buf_sv(const struct buf *b)
{
	return sv_from(b->p, b->n);
}

#endif
