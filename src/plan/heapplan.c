/* Plans and ranges; see heapplan.h. */
#include "base/base.h"
#include "plan/heapplan.h"

#include "base/mem.h"

void heap_ranges_release(struct heap_ranges *r)
{
	vec_release(r);
}

static int by_start(const void *a, const void *b)
{
	const struct heap_range *x = a;
	const struct heap_range *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

void heap_ranges_join(struct heap_ranges *r, uint64_t gap)
{
	size_t n = 0;
	if (r->n)
		qsort(r->p, r->n, sizeof(*r->p), by_start);
	vec_foreach(one, r) {
		if (one->start >= one->end)
			continue;
		if (n && one->start <= r->p[n - 1].end + gap)
			r->p[n - 1].end = MAX(r->p[n - 1].end, one->end);
		else
			r->p[n++] = *one;
	}
	r->n = n;
}

bool heap_ranges_have(const struct heap_ranges *r, uint64_t addr)
{
	vec_foreach(one, r)
		if (addr >= one->start && addr < one->end)
			return true;
	return false;
}

const char *heap_allocator_name(enum heap_allocator a)
{
	static const char *const names[HEAP_ALLOCATOR_NR] = {
		[HEAP_ALLOCATOR_NONE] = "none",         [HEAP_ALLOCATOR_GLIBC] = "glibc",
		[HEAP_ALLOCATOR_MUSL] = "musl",         [HEAP_ALLOCATOR_JEMALLOC] = "jemalloc",
		[HEAP_ALLOCATOR_TCMALLOC] = "tcmalloc", [HEAP_ALLOCATOR_MIMALLOC] = "mimalloc",
		[HEAP_ALLOCATOR_OTHER] = "malloc",      [HEAP_ALLOCATOR_PAGES] = "pages",
	};
	return names[a];
}

void heap_plan_clear_functions(struct heap_plan *p)
{
	vec_foreach(s, &p->functions) {
		free_p(&s->name);
		free_p(&s->path);
	}
	vec_clear(&p->functions);
}

void heap_plan_release(struct heap_plan *p)
{
	heap_plan_clear_functions(p);
	vec_release(&p->functions);
	heap_ranges_release(&p->allocator_code);
	free_p(&p->allocator_text);
	free_p(&p->reason);
	free_p(&p->expected_version);
	*p = (struct heap_plan){0};
}
