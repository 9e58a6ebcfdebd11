/* Allocators that are loaded while their process is recorded; see latelibs.h. */
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

#define LOADING_NS (10 * NS_PER_SEC)
#define AGAIN_NS   (2 * NS_PER_MS)
#define RETRY_NS   (50 * NS_PER_MS)
#define TRIES      6u
#define REST       20u /* times what the last look took */

/* Code that is made at runtime comes and goes; binaries only count. */
static uint64_t print_of(const struct space *sp)
{
	uint64_t print = 1;
	for (size_t i = 0; sp && i < sp->maps.n; i++) {
		const struct space_map *m = &sp->maps.p[i];
		if (m->module && !m->module->is_jit)
			print += hash_mix(m->start, m->module->id);
	}
	return print;
}

void latelibs_begin(struct latelibs *l, const struct space *sp)
{
	*l = (struct latelibs){.print = print_of(sp)};
}

void latelibs_on_event(struct latelibs *l, const struct space *sp)
{
	uint64_t print = sp ? print_of(sp) : l->print;
	if (!l->print || print == l->print)
		return;
	uint64_t now = clock_mono_ns();
	l->print = print;
	l->nr_tries = 0;
	l->due_ns = MAX(now, l->rest_until_ns);
	l->patient_until_ns = now + LOADING_NS;
}

bool latelibs_is_due(const struct latelibs *l, uint64_t now)
{
	return l->due_ns && l->due_ns <= now;
}

/* A plan of what it has by now; only where functions are patched. */
static int plan_again(const struct heapprocess *p, struct heaptargets *t, struct heap_plan *ret_p)
{
	if (heapprocess_plan(p)->method != HEAP_METHOD_PATCH)
		return -ENOTSUP;
	return heapplanner_plan(t, heapprocess_pid(p), HEAP_METHOD_PATCH, ret_p, NULL);
}

/* Without a time where it may be told many times. */
static char *text_of(const struct heapprocess_added *a, uint64_t after_ns)
{
	const char *name = a->path ? path_base(a->path) : "a library";
	if (!a->nr)
		return xasprintf("%zu functions of %s, which is loaded again, are patched again",
				 a->nr_again, name);
	return xasprintf("%zu more functions of %s are patched after %s", a->nr, name,
			 num_ns(after_ns).s);
}

bool latelibs_add(struct latelibs *l, struct heapprocess *p, struct heaptargets *t,
		  uint64_t start_ns, char **ret_text, char **ret_lost)
{
	CLEANUP(heap_plan_release) struct heap_plan now = {0};
	CLEANUP(err_release) struct err why = {0};
	uint64_t begin_ns = clock_mono_ns();
	struct heapprocess_added added = {0};
	l->due_ns = 0;
	if (plan_again(p, t, &now) || now.image != heapprocess_plan(p)->image)
		return false; /* it ends, or executes another program */
	const char *new = heapprocess_lacks(p, &now);
	CLEANUP(free_p) char *lost = new ? xstrdup(new) : NULL;
	int rc = now.is_loading && begin_ns < l->patient_until_ns
			 ? -EINPROGRESS
			 : heapprocess_add(p, &now, &added, &why);
	uint64_t end_ns = clock_mono_ns();
	l->rest_until_ns = end_ns + REST * (end_ns - begin_ns);
	if (rc == -EINPROGRESS)
		l->due_ns = end_ns + AGAIN_NS;
	else if (rc && rc != -ESRCH && ++l->nr_tries < TRIES)
		l->due_ns = end_ns + (RETRY_NS << l->nr_tries);
	else if (rc && rc != -ESRCH)
		*ret_lost = TAKE(lost);
	if (!added.nr && !added.nr_again)
		return false;
	*ret_text = text_of(&added, end_ns - start_ns);
	return true;
}

char *latelibs_unseen(const struct heapprocess *p, struct heaptargets *t)
{
	CLEANUP(heap_plan_release) struct heap_plan now = {0};
	if (plan_again(p, t, &now))
		return NULL;
	const char *path = heapprocess_lacks(p, &now);
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

bool latelibs_is_reported(const struct space *sp, int32_t pid)
{
	return sp && sp->maps.n && !proc_maps(pid, is_map_known, (void *)sp, NULL);
}
