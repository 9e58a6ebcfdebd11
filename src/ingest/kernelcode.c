/* Code of the kernel that an input names itself; see kernelcode.h. */
#include "base/base.h"
#include "ingest/kernelcode.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void kernelcode_release(struct kernelcode *k)
{
	vec_foreach(c, &k->list)
		free(c->name);
	vec_release(&k->list);
}

void kernelcode_add(struct kernelcode *k, uint64_t start, uint64_t len, const char *name)
{
	if (!len || start + len < start || !name[0])
		return;
	vec_push(&k->list, ((struct kernel_code){start, start + len, xstrdup(name), false}));
	k->is_sorted = false;
}

static bool is_same(const struct kernel_code *a, const struct kernel_code *b)
{
	return a->start == b->start && a->end == b->end && !strcmp(a->name, b->name);
}

static int by_start(const void *x, const void *y)
{
	const struct kernel_code *a = x;
	const struct kernel_code *b = y;
	return COMPARE(a->start, b->start) ?: COMPARE(a->end, b->end) ?: strcmp(a->name, b->name);
}

/* Sorts; of equal ones one stays, and those that overlap are marked. */
static void sort(struct kernelcode *k)
{
	size_t n = 0;
	size_t furthest = 0; /* of those that stay, the one that ends last */
	if (k->list.n)
		qsort(k->list.p, k->list.n, sizeof(*k->list.p), by_start);
	for (size_t i = 0; i < k->list.n; i++) {
		struct kernel_code c = k->list.p[i];
		if (n && is_same(&k->list.p[n - 1], &c)) {
			free(c.name);
			continue;
		}
		if (n && k->list.p[furthest].end > c.start)
			c.is_ambiguous = k->list.p[furthest].is_ambiguous = true;
		k->list.p[n] = c;
		furthest = !n || c.end > k->list.p[furthest].end ? n : furthest;
		n++;
	}
	k->list.n = n;
	k->is_sorted = true;
}

const struct kernel_code *kernelcode_find(struct kernelcode *k, uint64_t addr)
{
	size_t low = 0;
	if (!k->is_sorted)
		sort(k);
	for (size_t high = k->list.n; low < high;) {
		size_t mid = low + (high - low) / 2;
		if (k->list.p[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	const struct kernel_code *c = low ? &k->list.p[low - 1] : NULL;
	return c && addr < c->end && !c->is_ambiguous ? c : NULL;
}
