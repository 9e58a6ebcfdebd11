/*
 * From what is in a process to how its heap is watched: the method, why this one, and for which
 * functions. A method that the user forces and that cannot be is an error which says why. Nothing is
 * attached to: of a jemalloc without symbols it is only likely that it can be spoken to, and
 * capture/heap/planner.h asks it.
 */
#ifndef ASSAY_PLAN_HEAPCHOICE_H
#define ASSAY_PLAN_HEAPCHOICE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"

/* @no_mallctl: why what was found for mallctl turned out not to be it; NULL = it may be. */
int heapchoice_plan(const struct heaptarget *h, enum heap_method forced, const char *no_mallctl,
		    struct heap_plan *ret_p, struct err *err);
/* "prof", "hooks", "patch", "uprobes", "growth", as options and facts say it; "none". */
const char *heapchoice_method_name(enum heap_method method);
/* False: no such method. */
bool heapchoice_method_from_name(const char *name, enum heap_method *ret_method);
/* Whether this jemalloc has experimental.hooks.install, by its version. */
bool heapchoice_has_hooks(const uint32_t version[3]);

/* "jemalloc 5.3.0, static, prefix _rjem_"; "none found". Owned by the caller. */
char *heaptarget_describe(const struct heaptarget *h);
enum heap_allocator heaptarget_allocator(const struct heaptarget *h);

/*
 * Which source a capture of heaps needs: the recorder inside the target (PATCH, HOOKS), probes
 * (UPROBES) or page faults (GROWTH).
 */
struct heap_way {
	/* HEAP_METHOD_NONE: each process's plan says so when it is attached to. */
	enum heap_method method;
	bool has_no_programs; /* the kernel takes none: GROWTH samples */
	char *reason;         /* owned; NULL unless method is UPROBES or GROWTH */
};

/* By the method that is asked for, else by the plan for the target's first process, if any. */
void heapchoice_way(struct heap_way *ret_w, enum heap_method forced, const struct heap_plan *plan);
void heap_way_release(struct heap_way *w);

#endif
