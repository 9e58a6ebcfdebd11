/* Plans patches and makes stubs; see stubs.h. */
#include "base/base.h"
#include "remote/patch/stubs.h"

#include "base/mem.h"
#include "remote/patch/image.h"
#include "remote/patch/injectstate.h"
#include "remote/patch/nothrow.h"

#define STUBS_MIN  32u
#define GROUP_SPAN (1ull << 30)

uint64_t stub_region_bytes(uint32_t nr_stubs)
{
	uint64_t n = sizeof(struct stub_head) +
		     nr_stubs * (uint64_t)(sizeof(struct text_patch) + HEAPCODE_STUB_BYTES) +
		     HEAPCODE_BATCH_BYTES + 64;
	return (n + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

uint64_t stub_region_batch(const struct stub_region *g)
{
	uint64_t off = sizeof(struct stub_head) + g->nr_stubs * sizeof(struct text_patch);
	return g->addr + ((off + 63) & ~63ull);
}

uint64_t stub_region_stub(const struct stub_region *g, uint32_t i)
{
	return stub_region_batch(g) + HEAPCODE_BATCH_BYTES + (uint64_t)i * HEAPCODE_STUB_BYTES;
}

size_t stub_region_code_bytes(const struct stub_region *g)
{
	return HEAPCODE_BATCH_BYTES + (size_t)g->nr_stubs * HEAPCODE_STUB_BYTES;
}

/* ---- plans ----------------------------------------------------------------------------------- */

void heapstubs_plan(struct heapinject *h)
{
	const struct heap_plan *plan = h->spec->plan;
	CLEANUP(vec_free_p) struct heap_gaps gaps = {0};
	for (size_t i = 0; i < plan->functions.n && i < HEAP_SITES_MAX; i++) {
		const struct heap_function *site = &plan->functions.p[i];
		CLEANUP(vec_free_p) struct heap_bounds bounds = {0};
		struct heap_patch p = {.site = (uint32_t)i,
				       .function = site->addr,
				       .why = "patched under another name"};
		bool is_alias = false;
		for (size_t k = 0; k < i; k++)
			is_alias |= plan->functions.p[k].addr == site->addr;
		uint64_t base = heapspace_base(&h->space, site->addr);
		if (base)
			heap_bounds_load(&bounds, base, site->addr - MIN(site->addr, 512),
					 site->addr + 512, heapinject_read, h);
		if (!is_alias && nothrow_is_needed(site->name) && !nothrow_find(plan, site))
			p.why = "it throws and has no nothrow variant";
		else if (!is_alias)
			heappatch_plan(&p, site, (uint32_t)i, true, &bounds, &gaps, heapinject_read,
				       h);
		vec_push(&h->patches, p);
	}
}

static bool is_near(uint64_t addr, uint64_t nr_bytes, uint64_t lo, uint64_t hi)
{
	uint64_t limit = (1ull << 31) - (1ull << 24);
	uint64_t end = addr + nr_bytes;
	return (end > lo ? end - lo : lo - end) < limit &&
	       (hi > addr ? hi - addr : addr - hi) < limit;
}

static struct stub_region *new_region(struct heapinject *h, uint64_t lo, uint64_t hi, uint32_t n)
{
	n = MIN(MAX(n, STUBS_MIN), HEAP_SITES_MAX);
	uint64_t nr_bytes = stub_region_bytes(n);
	uint64_t at = hi ? heapspace_find_near(&h->space, lo, hi, nr_bytes)
			 : heapspace_find_free(&h->space, nr_bytes);
	if (!at)
		return NULL;
	heapspace_reserve(&h->space, at, nr_bytes);
	struct stub_region *g = vec_add(&h->regions);
	g->addr = at;
	g->nr_stubs = n;
	g->is_new = true;
	return g;
}

static struct stub_region *region_for(struct heapinject *h, uint64_t lo, uint64_t hi, uint32_t n)
{
	vec_foreach(g, &h->regions) {
		if (g->nr_used + n <= g->nr_stubs &&
		    is_near(g->addr, stub_region_bytes(g->nr_stubs), lo, hi))
			return g;
	}
	return new_region(h, lo, hi, n);
}

static int by_function(const void *a, const void *b)
{
	const struct heap_patch *const *x = a;
	const struct heap_patch *const *y = b;
	return (*x)->function < (*y)->function ? -1 : (*x)->function > (*y)->function;
}

void heapstubs_place(struct heapinject *h)
{
	struct heap_patch *sorted[HEAP_SITES_MAX];
	size_t n = 0;
	vec_foreach(p, &h->patches)
		if (p->kind != PATCH_NONE)
			sorted[n++] = p;
	qsort(sorted, n, sizeof(sorted[0]), by_function);
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;
		uint64_t lo = sorted[i]->function;
		while (end < n && sorted[end]->function - lo < GROUP_SPAN)
			end++;
		struct stub_region *g =
			region_for(h, lo, sorted[end - 1]->function + 64, (uint32_t)(end - i));
		for (; i < end; i++) {
			if (g) {
				sorted[i]->stub = stub_region_stub(g, g->nr_used++);
			} else {
				sorted[i]->kind = PATCH_NONE;
				sorted[i]->why = "no free memory within jump range";
			}
		}
	}
	if (!h->regions.n) /* for the batch routine */
		(void)new_region(h, 0, 0, 0);
}

static struct stub_region *region_of(struct heapinject *h, uint64_t stub)
{
	vec_foreach(g, &h->regions)
		if (stub >= g->addr && stub < g->addr + stub_region_bytes(g->nr_stubs))
			return g;
	return NULL;
}

bool heapstubs_text(const struct heap_patch *p, struct text_patch *ret_t)
{
	struct text_patch t = {.at = p->at,
			       .is_multi = p->kind == PATCH_MULTI,
			       .nr_multi = (uint8_t)p->nr_displaced,
			       .has_gap = p->kind == PATCH_GAP};
	t.nr_bytes = (uint8_t)heappatch_jump(p, t.new);
	memcpy(t.old, p->displaced + (p->at - p->function), MIN(sizeof(t.old), t.nr_bytes));
	if (t.has_gap) {
		t.gap = p->gap;
		memcpy(t.gap_old, p->gap_old, 5);
		if (!heapcode_jump(t.gap_new, p->gap, p->stub))
			return false;
	}
	*ret_t = t;
	return t.nr_bytes > 0;
}

/* Makes the stub and adds the change of code to its region. */
static bool make_patch(struct heapinject *h, struct heap_patch *p, uint8_t *code)
{
	const struct heap_function *site = &h->spec->plan->functions.p[p->site];
	struct heapcode_stub stub = {
		.at = p->stub,
		.entry = h->image + heap_image()->entry[site->shape],
		.site = h->first_site + p->site,
		.function = p->function,
		.nr_displaced = p->nr_displaced,
		.nr_undo = p->nr_undo,
	};
	memcpy(stub.displaced, p->displaced, sizeof(stub.displaced));
	memcpy(stub.undo, p->undo, sizeof(stub.undo));
	struct text_patch t;
	if (!heap_image()->entry[site->shape] || !heapstubs_text(p, &t) ||
	    !heapcode_stub(&stub, code))
		return false;
	struct stub_region *g = region_of(h, p->stub);
	vec_push(&g->patches, t);
	return true;
}

void heapstubs_count(struct heapinject *h)
{
	vec_foreach(p, &h->patches) {
		if (p->kind != PATCH_NONE) {
			h->info.nr_patched++;
			continue;
		}
		/* prctl and syscall are optional: heapinject_poll_seccomp finds seccomp, too. */
		if (h->spec->plan->functions.p[p->site].shape > HEAP_SBRK)
			continue;
		h->info.nr_unpatched++;
		h->info.nr_unpatched_heap += h->spec->plan->functions.p[p->site].shape < HEAP_MMAP;
		if (!h->info.unpatched && p->why)
			h->info.unpatched = xasprintf(
				"%s (%s)", h->spec->plan->functions.p[p->site].name, p->why);
	}
}

void heapstubs_make(struct heapinject *h, struct buf *ret_code)
{
	size_t nr_batch;
	const uint8_t *batch = heapcode_batch(&nr_batch);
	vec_foreach(g, &h->regions) {
		size_t n = stub_region_code_bytes(g);
		uint8_t *code = (uint8_t *)buf_reserve(ret_code, n);
		ret_code->n += n;
		memset(code, 0xcc, n);
		memcpy(code, batch, nr_batch);
		vec_foreach(p, &h->patches) {
			if (p->kind == PATCH_NONE || region_of(h, p->stub) != g)
				continue;
			if (!make_patch(h, p, code + (p->stub - stub_region_batch(g)))) {
				p->kind = PATCH_NONE;
				p->why = "its first instruction cannot be moved that far";
			}
		}
	}
}
