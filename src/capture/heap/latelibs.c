/* Detects allocators loaded later; see latelibs.h. */
#include "base/base.h"
#include "capture/heap/latelibs.h"

#include <errno.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "capture/heap/planner.h"
#include "host/proc.h"

#define LOADING_NS        (10 * NS_PER_SEC)
#define AGAIN_NS          (2 * NS_PER_MS)
#define RETRY_NS          (50 * NS_PER_MS)
#define TRIES             6u
#define CHECK_COST_FACTOR 20u /* minimum pause: this multiple of the last check's duration */

/* Binaries only: JIT code changes all the time. */
static uint64_t hash_of(const struct space *sp)
{
	uint64_t maps_hash = 1;
	for (size_t i = 0; sp && i < sp->maps.n; i++) {
		const struct space_map *m = &sp->maps.p[i];
		if (m->module && !m->module->is_jit)
			maps_hash += hash_mix(m->start, m->module->id);
	}
	return maps_hash;
}

void latelibs_begin(struct latelibs *l, const struct space *sp)
{
	*l = (struct latelibs){.maps_hash = hash_of(sp)};
}

void latelibs_on_event(struct latelibs *l, const struct space *sp)
{
	uint64_t maps_hash = sp ? hash_of(sp) : l->maps_hash;
	if (!l->maps_hash || maps_hash == l->maps_hash)
		return;
	uint64_t now = clock_mono_ns();
	l->maps_hash = maps_hash;
	l->nr_tries = 0;
	l->next_check_ns = MAX(now, l->not_before_ns);
	l->load_deadline_ns = now + LOADING_NS;
}

bool latelibs_is_due(const struct latelibs *l, uint64_t now)
{
	return l->next_check_ns && l->next_check_ns <= now;
}

/* Makes a plan of the current binaries; only for method PATCH. */
static int plan_again(const struct heapprocess *p, struct heaptargets *t, struct heap_plan *ret_p)
{
	if (heapprocess_plan(p)->method != HEAP_METHOD_PATCH)
		return -ENOTSUP;
	return heapplanner_plan(t, heapprocess_pid(p), HEAP_METHOD_PATCH, ret_p, NULL);
}

/* Without the time if the message may be repeated. */
static char *text_of(const struct heapprocess_added *a, uint64_t after_ns)
{
	const char *name = a->path ? path_base(a->path) : "a library";
	if (!a->nr)
		return xasprintf("%s of %s, which is loaded again, %s patched again",
				 num_noun(a->nr_again, "functions").s, name,
				 a->nr_again == 1 ? "is" : "are");
	return xasprintf("%s of %s %s patched after %s", num_noun(a->nr, "more functions").s, name,
			 a->nr == 1 ? "is" : "are", num_ns(after_ns).s);
}

bool latelibs_add(struct latelibs *l, struct heapprocess *p, struct heaptargets *t,
		  uint64_t start_ns, char **ret_text, char **ret_lost)
{
	CLEANUP(heap_plan_release) struct heap_plan now = {0};
	CLEANUP(err_release) struct err why = {0};
	uint64_t begin_ns = clock_mono_ns();
	struct heapprocess_added added = {0};
	l->next_check_ns = 0;
	if (plan_again(p, t, &now) || now.image != heapprocess_plan(p)->image)
		return false; /* it is exiting, or executing another program */
	const char *new = heapprocess_find_unrecorded(p, &now);
	CLEANUP(free_p) char *lost = new ? xstrdup(new) : NULL;
	int rc = now.is_loading && begin_ns < l->load_deadline_ns
			 ? -EINPROGRESS
			 : heapprocess_add(p, &now, &added, &why);
	uint64_t end_ns = clock_mono_ns();
	l->not_before_ns = end_ns + CHECK_COST_FACTOR * (end_ns - begin_ns);
	if (rc == -EINPROGRESS)
		l->next_check_ns = end_ns + AGAIN_NS;
	else if (rc && rc != -ESRCH && ++l->nr_tries < TRIES)
		l->next_check_ns = end_ns + (RETRY_NS << l->nr_tries);
	else if (rc && rc != -ESRCH)
		*ret_lost = TAKE(lost);
	if (!added.nr && !added.nr_again)
		return false;
	*ret_text = text_of(&added, end_ns - start_ns);
	return true;
}

char *latelibs_find_unrecorded(const struct heapprocess *p, struct heaptargets *t)
{
	CLEANUP(heap_plan_release) struct heap_plan now = {0};
	if (plan_again(p, t, &now))
		return NULL;
	const char *path = heapprocess_find_unrecorded(p, &now);
	return path ? xstrdup(path) : NULL;
}

static int is_map_known(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	const struct space *sp = ctx;
	if (!m->is_exec || !m->inode)
		return 0;
	for (size_t i = 0; i < sp->maps.n; i++)
		if (sp->maps.p[i].start <= m->start && m->start < sp->maps.p[i].end)
			return 0;
	return 1;
}

bool latelibs_is_complete(const struct space *sp, int32_t pid)
{
	return sp && sp->maps.n && !proc_maps(pid, is_map_known, (void *)sp, NULL);
}
