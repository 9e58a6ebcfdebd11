/* Growable buffer; see buf.h. */
#include "base/base.h"
#include "base/buf.h"

#include <stdio.h>

#include "base/mem.h"

void buf_release(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	if (b->p)
		b->p[0] = 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
	if (UNLIKELY(n > SIZE_MAX / 2 - b->n))
		mem_die(n);
	size_t need = b->n + n + 1;
	if (need > b->cap) {
		size_t cap = MAX(need, b->cap * 2);
		b->cap = MAX(cap, 64);
		b->p = xrealloc(b->p, b->cap);
	}
	return b->p + b->n;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	char *to = buf_reserve(b, n);
	if (n)
		memcpy(to, p, n);
	b->n += n;
	b->p[b->n] = 0;
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_sv(struct buf *b, struct sv s)
{
	buf_add(b, s.p, s.n);
}

void buf_add_ch(struct buf *b, char c)
{
	char *to = buf_reserve(b, 1);
	to[0] = c;
	to[1] = 0;
	b->n++;
}

void buf_add_repeat(struct buf *b, char c, size_t n)
{
	memset(buf_reserve(b, n), c, n);
	b->n += n;
	b->p[b->n] = 0;
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	char *to = buf_reserve(b, 64);
	size_t room = b->cap - b->n;
	int n = vsnprintf(to, room, fmt, ap);
	ASSERT(n >= 0);
	if ((size_t)n >= room) {
		to = buf_reserve(b, (size_t)n);
		(void)vsnprintf(to, (size_t)n + 1, fmt, again); /* measured above */
	}
	va_end(again);
	b->n += (size_t)n;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(b, fmt, ap);
	va_end(ap);
}

static inline void add_digits(struct buf *b, uint64_t v, unsigned base)
{
	char text[20];
	size_t i = sizeof(text);
	do {
		text[--i] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	buf_add(b, text + i, sizeof(text) - i);
}

void buf_add_u64(struct buf *b, uint64_t v)
{
	add_digits(b, v, 10);
}

void buf_add_hex(struct buf *b, uint64_t v)
{
	add_digits(b, v, 16);
}

/* Both supported machines are little-endian. */
void buf_add_u16le(struct buf *b, uint16_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_add_u32le(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_add_u64le(struct buf *b, uint64_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_add_uleb_long(struct buf *b, uint64_t v)
{
	char *to = buf_reserve(b, 10);
	size_t n = 0;
	while (v >= 0x80) {
		to[n++] = (char)(v | 0x80);
		v >>= 7;
	}
	to[n++] = (char)v;
	b->n += n;
	b->p[b->n] = 0;
}

void buf_add_zigzag(struct buf *b, int64_t v)
{
	buf_add_uleb(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

char *buf_detach(struct buf *b)
{
	char *p = b->p ? b->p : xstrdup("");
	*b = (struct buf){0};
	return p;
}

const char *buf_str(const struct buf *b)
{
	return b->p ? b->p : "";
}
