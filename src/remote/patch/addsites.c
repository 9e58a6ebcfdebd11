/*
 * Patches functions of libraries loaded after the attach; see inject.h.
 *
 * They get new stub regions in new memory, because threads execute the existing ones. Of existing
 * memory only entries of heap_data are written that no stub uses yet. From the first change of code
 * on they belong to the recorder and are restored with it.
 */
#include "base/base.h"
#include "remote/patch/inject.h"

#include <errno.h>

#include "base/mem.h"
#include "remote/patch/image.h"
#include "remote/patch/attach.h"
#include "remote/patch/injectstate.h"
#include "remote/patch/patchtext.h"

/* Limits the memory for stubs in a program that loads plug-ins again and again. */
#define REGIONS_MAX 24u

uint32_t heapinject_nr_sites(const struct heapinject *h)
{
	return h->nr_sites;
}

static bool is_patched(const struct heapinject *h, const struct heap_patch *p)
{
	uint8_t jump[5];
	uint8_t now[5];
	size_t n = heappatch_jump(p, jump);
	return !heapinject_read((void *)(uintptr_t)h, p->at, now, n) && !memcmp(now, jump, n);
}

bool heapinject_can_patch(const struct heapinject *h, uint64_t addr)
{
	vec_foreach(p, &h->patches)
		if (p->function == addr && (p->kind == PATCH_NONE || is_patched(h, p)))
			return false;
	return true;
}

/* Writes the heap_data entries of the new functions. */
static int write_originals(struct heapinject *more, struct err *err)
{
	uint64_t at = more->image + heap_image()->data;
	uint64_t off = more->first_site * sizeof(uint64_t);
	size_t n = (more->nr_sites - more->first_site) * sizeof(uint64_t);
	struct heap_data data = {0};
	heapattach_originals(more, &data);
	TRY(heapinject_write(more, at + offsetof(struct heap_data, original) + off,
			     data.original + more->first_site, n, err));
	return heapinject_write(more, at + offsetof(struct heap_data, nothrow) + off,
				data.nothrow + more->first_site, n, err);
}

static int patch(struct heapinject *more, const struct buf *code, struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	TRY(heapinject_open(&s, more, false, err));
	if (more->has_filter)
		return err_set(err, -EPERM, "pid %d has a seccomp filter now", more->pid);
	TRY(heapattach_map_stubs(more, s.r, code, err));
	TRY(write_originals(more, err));
	more->is_changing = true;
	return heaptext_patch(more, s.r, err);
}

/* Moves the patches and regions of @more to @h. */
static void merge_part(struct heapinject *h, struct heapinject *more)
{
	vec_foreach(p, &more->patches)
		vec_push(&h->patches, *p);
	vec_foreach(g, &more->regions)
		vec_push(&h->regions, *g);
	more->regions.n = 0; /* with their patches */
	h->nr_sites = more->nr_sites;
	h->info.nr_patched += more->info.nr_patched;
	h->info.nr_unpatched += more->info.nr_unpatched;
	h->info.nr_unpatched_heap += more->info.nr_unpatched_heap;
	h->info.had_to_stop_all |= more->info.had_to_stop_all;
	if (!h->info.unpatched)
		h->info.unpatched = TAKE(more->info.unpatched);
}

static int add(struct heapinject *h, struct heapinject *more, struct err *err)
{
	CLEANUP(buf_release) struct buf code = {0};
	TRY(heapinject_check_seccomp(more, err));
	TRY(heapspace_read(&more->space, h->pid, err));
	heapstubs_plan(more);
	heapstubs_place(more);
	if (h->regions.n + more->regions.n > REGIONS_MAX)
		return err_set(err, -ENOSPC, "too many libraries with allocators were loaded");
	heapstubs_make(more, &code);
	heapstubs_count(more);
	int rc = 0;
	if (!more->info.nr_patched) /* map nothing */
		vec_clear(&more->regions);
	else
		rc = patch(more, &code, err);
	if (!rc)
		rc = heaptext_change_multi(more, false, err);
	h->info.stopped_ns = MAX(h->info.stopped_ns, more->info.stopped_ns);
	if (!rc || more->is_changing)
		merge_part(h, more);
	return rc;
}

/* Whether a library was loaded again at the same address, so that the old stub is valid. */
static bool is_code_unchanged(const struct heapinject *h, const struct heap_patch *p)
{
	uint8_t code[HEAPCODE_DISPLACED_MAX];
	uint8_t gap[5];
	void *ctx = (void *)(uintptr_t)h;
	return p->kind != PATCH_NONE && p->nr_displaced <= sizeof(code) &&
	       !heapinject_read(ctx, p->function, code, p->nr_displaced) &&
	       !memcmp(code, p->displaced, p->nr_displaced) &&
	       (p->kind != PATCH_GAP || (!heapinject_read(ctx, p->gap, gap, sizeof(gap)) &&
					 !memcmp(gap, p->gap_old, sizeof(gap))));
}

static void find_reloaded(const struct heapinject *h, const struct heap_plan *plan,
			  struct stub_region *to)
{
	struct text_patch t;
	vec_foreach(s, &plan->functions) {
		vec_foreach(p, &h->patches) {
			if (p->function != s->addr || !is_code_unchanged(h, p) ||
			    !heapstubs_text(p, &t))
				continue;
			vec_push(&to->patches, t);
			break;
		}
	}
}

/* A copy of @h with patches and regions of its own. */
static struct heapinject new_part(const struct heapinject *h, const struct heapinject_spec *spec)
{
	return (struct heapinject){
		.pid = h->pid,
		.mem_fd = h->mem_fd,
		.spec = spec,
		.method = HEAP_METHOD_PATCH,
		.image = h->image,
		.batch = h->batch,
		.layout = h->layout,
		.saved_layouts = {h->saved_layouts[0], h->saved_layouts[1]},
		.is_mapped = true,
		.is_area_unsafe = h->is_area_unsafe,
		.first_site = h->nr_sites,
		.nr_sites = h->nr_sites + (uint32_t)spec->plan->functions.n,
	};
}

static int repatch(struct heapinject *part, struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	TRY(heapspace_read(&part->space, part->pid, err));
	TRY(heapinject_open(&s, part, false, err));
	return heaptext_patch(part, s.r, err);
}

int heapinject_repatch(struct heapinject *h, const struct heap_plan *plan, size_t *ret_nr,
		       struct err *err)
{
	struct heapinject_spec spec = {.pid = h->pid, .plan = plan};
	CLEANUP(heapinject_release) struct heapinject part = new_part(h, &spec);
	struct stub_region *g = vec_add(&part.regions);
	find_reloaded(h, plan, g);
	*ret_nr = 0;
	if (!g->patches.n)
		return 0;
	int rc = repatch(&part, err);
	if (!rc)
		rc = heaptext_change_multi(&part, false, err);
	h->info.stopped_ns = MAX(h->info.stopped_ns, part.info.stopped_ns);
	TRY(rc);
	*ret_nr = g->patches.n;
	return 0;
}

int heapinject_add(struct heapinject *h, const struct heap_plan *plan, struct err *err)
{
	struct heapinject_spec spec = {.pid = h->pid, .plan = plan};
	CLEANUP(heapinject_release) struct heapinject more = new_part(h, &spec);
	if (h->method != HEAP_METHOD_PATCH || h->is_stopped || h->is_detached)
		return err_set(err, -EINVAL,
			       "functions can be added only to an active recorder of method patch");
	if (plan->functions.n > HEAP_SITE_NONE - MIN(h->nr_sites, HEAP_SITE_NONE))
		return err_set(err, -ENOSPC, "pid %d has more functions than can be recorded",
			       h->pid);
	return add(h, &more, err);
}
