/* Verified plans; see planner.h. */
#include "base/base.h"
#include "capture/heap/planner.h"

#include <errno.h>

#include "plan/heapchoice.h"
#include "remote/patch/image.h"
#include "remote/jemalloc/jemalloc.h"

#define ASK_TRIES 5

struct heaptargets *heapplanner_new(void)
{
	size_t nr_image_bytes;
	(void)heap_image_bytes(&nr_image_bytes);
	return heaptargets_new(nr_image_bytes ? HEAPTARGETS_RECORDER : 0);
}

static int ask(int32_t pid, const struct heap_plan *p, struct err *err)
{
	bool calls_it = p->method == HEAP_METHOD_HOOKS || p->method == HEAP_METHOD_PROF;
	if (!calls_it || p->main || !p->mallctl || !p->expected_version)
		return 0;
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	int rc = -EAGAIN;
	for (int i = 0; i < ASK_TRIES && rc == -EAGAIN; i++) {
		err_release(err);
		rc = jemalloc_open(&j, pid, p, err);
	}
	return rc;
}

int heapplanner_plan(struct heaptargets *t, int32_t pid, enum heap_method forced,
		     struct heap_plan *ret_p, struct err *err)
{
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	CLEANUP(err_release) struct err why = {0};
	struct heap_plan p = {0};
	TRY(heaptargets_inspect(t, pid, &h, err));
	TRY(heapchoice_plan(&h, forced, NULL, &p, err));
	if (ask(pid, &p, &why)) {
		heap_plan_release(&p);
		return heapchoice_plan(&h, forced, err_msg(&why), ret_p, err);
	}
	*ret_p = p;
	return 0;
}
