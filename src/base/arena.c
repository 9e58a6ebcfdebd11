/* Bump allocator; see arena.h. */
#include "base/base.h"
#include "base/arena.h"

#include <stdio.h>

#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define REDZONE        16
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define REDZONE        0
#endif

#define BLOCK_MIN ((size_t)64 << 10)
#define BLOCK_MAX ((size_t)4 << 20)

struct arena_block {
	struct arena_block *next;
	size_t cap;
	size_t used;
	_Alignas(16) char bytes[];
};

void arena_release(struct arena *a)
{
	struct arena_block *b = a->blocks;
	while (b) {
		struct arena_block *next = b->next;
		UNPOISON(b->bytes, b->cap);
		free(b);
		b = next;
	}
	*a = (struct arena){0};
}

static struct arena_block *add_block(struct arena *a, size_t need)
{
	size_t cap = a->blocks ? MIN(a->blocks->cap * 2, BLOCK_MAX) : BLOCK_MIN;
	cap = MAX(cap, need);
	struct arena_block *b = xmalloc(sizeof(*b) + cap);
	b->next = a->blocks;
	b->cap = cap;
	b->used = 0;
	POISON(b->bytes, cap);
	a->blocks = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	if (UNLIKELY(n > SIZE_MAX / 2))
		mem_die(n);
	size_t take = ((n + 15) & ~(size_t)15) + REDZONE;
	struct arena_block *b = a->blocks;
	if (!b || b->cap - b->used < take)
		b = add_block(a, take);
	void *p = b->bytes + b->used;
	b->used += take;
	a->total_bytes += take;
	UNPOISON(p, n);
	return p;
}

void *arena_calloc(struct arena *a, size_t nr, size_t n)
{
	size_t total;
	if (UNLIKELY(__builtin_mul_overflow(nr, n, &total)))
		mem_die(SIZE_MAX);
	return memset(arena_alloc(a, total), 0, total);
}

void *arena_dup(struct arena *a, const void *p, size_t n)
{
	void *q = arena_alloc(a, n);
	if (n)
		memcpy(q, p, n);
	return q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *q = arena_alloc(a, n + 1);
	if (n)
		memcpy(q, s, n);
	q[n] = 0;
	return q;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_fmt(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	ASSERT(n >= 0);
	char *s = arena_alloc(a, (size_t)n + 1);
	(void)vsnprintf(s, (size_t)n + 1, fmt, again); /* measured above */
	va_end(again);
	return s;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){a->blocks, a->blocks ? a->blocks->used : 0, a->total_bytes};
}

void arena_rewind(struct arena *a, struct arena_mark m)
{
	while (a->blocks != m.block) {
		struct arena_block *b = a->blocks;
		ASSERT(b);
		a->blocks = b->next;
		UNPOISON(b->bytes, b->cap);
		free(b);
	}
	if (m.block) {
		POISON(m.block->bytes + m.used, m.block->cap - m.used);
		m.block->used = m.used;
	}
	a->total_bytes = m.total_bytes;
}
