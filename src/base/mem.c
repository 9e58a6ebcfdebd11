/* Allocation; the only place besides main.c that may end the program. See mem.h. */
#include "base/base.h"
#include "base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

void bug_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	dprintf(STDERR_FILENO, "assay: BUG at %s:%d: ", file, line);
	vdprintf(STDERR_FILENO, fmt, ap);
	dprintf(STDERR_FILENO, "\n");
	va_end(ap);
	abort();
}

void mem_die(size_t n)
{
	dprintf(STDERR_FILENO, "assay: out of memory (%zu bytes)\n", n);
	_exit(125);
}

#define HUGE_BYTES ((size_t)2 << 20)
#define HUGE_MIN   ((size_t)4 << 20)
#define HEAP_BYTES ((size_t)256 << 20)

/* Asks for huge pages in a large block; where that fails, pages are small. */
static void *in_huge_pages(void *p, size_t n)
{
	char *end = (char *)p + n;
	char *first = (char *)p + (-(uintptr_t)p & (HUGE_BYTES - 1));
	if (n >= HUGE_MIN && first < end)
		(void)madvise(first, (size_t)(end - first) & ~(HUGE_BYTES - 1), MADV_HUGEPAGE);
	return p;
}

void mem_keep(void)
{
	/* Else freed blocks are unmapped, and the kernel clears the pages of the next ones again. */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	(void)mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	void *heap = malloc(HEAP_BYTES); /* grows the heap; memory that nothing uses costs none */
	if (heap)
		free(in_huge_pages(heap, HEAP_BYTES));
}

void *xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	if (UNLIKELY(!p))
		mem_die(n);
	return in_huge_pages(p, n);
}

void *xcalloc(size_t nr, size_t n)
{
	void *p = calloc(nr ? nr : 1, n ? n : 1);
	if (UNLIKELY(!p))
		mem_die(nr * n);
	return p;
}

void *xcalloc_huge(size_t nr, size_t n)
{
	return in_huge_pages(xcalloc(nr, n), nr * n);
}

void *xrealloc(void *p, size_t n)
{
	void *q = realloc(p, n ? n : 1);
	if (UNLIKELY(!q))
		mem_die(n);
	return in_huge_pages(q, n);
}

void *xreallocarray(void *p, size_t nr, size_t n)
{
	size_t total;
	if (UNLIKELY(__builtin_mul_overflow(nr, n, &total)))
		mem_die(SIZE_MAX);
	return xrealloc(p, total);
}

char *xstrdup(const char *s)
{
	return xmemdup(s, strlen(s) + 1);
}

char *xstrndup(const char *s, size_t n)
{
	n = strnlen(s, n);
	char *p = xmalloc(n + 1);
	memcpy(p, s, n);
	p[n] = 0;
	return p;
}

void *xmemdup(const void *p, size_t n)
{
	void *q = xmalloc(n);
	if (n)
		memcpy(q, p, n);
	return q;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		mem_die(strlen(fmt));
	return s;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void free_p(void *pp)
{
	free(*(void **)pp);
}

void close_p(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}
