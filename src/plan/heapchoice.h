/*
 * Chooses how the heap of a process is recorded: the method, the reason, and the functions. If the
 * user forces a method that is not possible, the result is an error with the reason. Does not
 * access the process: in a jemalloc without symbols the address of mallctl is only likely, and
 * capture/heap/planner.h verifies it.
 */
#ifndef ASSAY_PLAN_HEAPCHOICE_H
#define ASSAY_PLAN_HEAPCHOICE_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"

/* Makes the plan. @why_no_mallctl: why the verification of mallctl failed; NULL: it did not. */
int heapchoice_plan(const struct heaptarget *h, enum heap_method forced, const char *why_no_mallctl,
		    struct heap_plan *ret_p, struct err *err);
/*
 * The name of a method in options and facts: "prof", "hooks", "patch", "uprobes", "growth"; "none".
 */
const char *heapchoice_method_name(enum heap_method method);
/* False: no such method. */
bool heapchoice_method_from_name(const char *name, enum heap_method *ret_method);
/* Whether this version of jemalloc has experimental.hooks.install. */
bool heapchoice_has_hooks(const uint32_t version[3]);

/* "jemalloc 5.3.0, static, prefix _rjem_"; "none found". Owned by the caller. */
char *heaptarget_describe(const struct heaptarget *h);
enum heap_allocator heaptarget_allocator(const struct heaptarget *h);

/*
 * The method that decides which event source a heap capture opens: the recorder (PATCH, HOOKS),
 * probes (UPROBES) or page faults (GROWTH).
 */
struct heap_method_choice {
	/* HEAP_METHOD_NONE: decided per process when it is attached. */
	enum heap_method method;
	bool has_no_bpf; /* BPF programs are not used; GROWTH then samples page faults */
	char *reason;    /* owned; NULL unless method is UPROBES or GROWTH */
};

/* Chooses by the forced method, else by @plan of the target's first process, if not NULL. */
void heapchoice_method(struct heap_method_choice *ret_choice, enum heap_method forced,
		       const struct heap_plan *plan);
void heap_method_choice_release(struct heap_method_choice *w);

#endif
