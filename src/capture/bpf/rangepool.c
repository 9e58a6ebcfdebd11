/* Allocator of index ranges; see rangepool.h. */
#include "base/base.h"
#include "capture/bpf/rangepool.h"

void rangepool_init(struct rangepool *p, uint32_t start, uint32_t n)
{
	*p = (struct rangepool){0};
	if (n)
		vec_push(&p->gaps, (struct rangepool_gap){start, n});
}

void rangepool_release(struct rangepool *p)
{
	vec_release(&p->gaps);
	p->nr_used = 0;
}

static void remove_gap(struct rangepool *p, size_t i)
{
	memmove(&p->gaps.p[i], &p->gaps.p[i + 1], (p->gaps.n - i - 1) * sizeof(*p->gaps.p));
	p->gaps.n--;
}

bool rangepool_alloc(struct rangepool *p, uint32_t n, uint32_t *ret_start)
{
	if (!n) {
		*ret_start = 0;
		return true;
	}
	for (size_t i = 0; i < p->gaps.n; i++) {
		struct rangepool_gap *g = &p->gaps.p[i];
		if (g->n < n)
			continue;
		*ret_start = g->start;
		g->start += n;
		g->n -= n;
		if (!g->n)
			remove_gap(p, i);
		p->nr_used += n;
		return true;
	}
	return false;
}

void rangepool_free(struct rangepool *p, uint32_t start, uint32_t n)
{
	if (!n)
		return;
	size_t at = 0;
	while (at < p->gaps.n && p->gaps.p[at].start < start)
		at++;
	ASSERT(at == p->gaps.n || start + n <= p->gaps.p[at].start);
	p->nr_used -= n;
	bool has_left = at > 0 && p->gaps.p[at - 1].start + p->gaps.p[at - 1].n == start;
	bool has_right = at < p->gaps.n && p->gaps.p[at].start == start + n;
	if (has_left) {
		p->gaps.p[at - 1].n += n;
		if (has_right) {
			p->gaps.p[at - 1].n += p->gaps.p[at].n;
			remove_gap(p, at);
		}
		return;
	}
	if (has_right) {
		p->gaps.p[at].start = start;
		p->gaps.p[at].n += n;
		return;
	}
	vec_reserve(&p->gaps, p->gaps.n + 1);
	memmove(&p->gaps.p[at + 1], &p->gaps.p[at], (p->gaps.n - at) * sizeof(*p->gaps.p));
	p->gaps.p[at] = (struct rangepool_gap){start, n};
	p->gaps.n++;
}
