/* Registry of groupings; see groupings.h. */
#include "base/base.h"
#include "analyze/stacks/groupings.h"

#include <errno.h>

#include "analyze/memory/heapsum.h"
#include "analyze/wait/breakdown.h"
#include "analyze/stacks/threads.h"
#include "analyze/stacks/top.h"
#include "analyze/wait/waittables.h"
#include "base/buf.h"

#define GROUPING(name)                                                                    \
	static int name(struct report *r, const struct selection *sel,                    \
			const struct select_spec *spec, const struct view_limits *limits, \
			struct err *err)

/* A grouping that needs only the rows of the selection. */
#define GROUPING_OF_ROWS(name, call) \
	GROUPING(name)               \
	{                            \
		(void)spec;          \
		(void)err;           \
		(void)limits;        \
		call;                \
		return 0;            \
	}

GROUPING_OF_ROWS(by_function, top_report(r, sel, BY_FUNCTION, limits))
GROUPING_OF_ROWS(by_module, top_report(r, sel, BY_MODULE, limits))
GROUPING_OF_ROWS(by_crate, top_report(r, sel, BY_CRATE, limits))
GROUPING_OF_ROWS(by_file, top_report(r, sel, BY_FILE, limits))
GROUPING_OF_ROWS(by_line, top_report(r, sel, BY_LINE, limits))
GROUPING_OF_ROWS(by_thread, threads_report(r, sel, limits))
GROUPING_OF_ROWS(by_thread_group, thread_groups_report(r, sel, limits))
GROUPING_OF_ROWS(by_process, processes_report(r, sel, limits))
GROUPING_OF_ROWS(by_reason, waits_table(r, sel, WAITS_REASONS, limits))
GROUPING_OF_ROWS(by_waiter, (waits_table(r, sel, WAITS_FUNCTIONS, limits),
			     waits_table(r, sel, WAITS_RUN_QUEUE, limits)))
GROUPING_OF_ROWS(by_stack, waits_table(r, sel, WAITS_STACKS, limits))
GROUPING_OF_ROWS(by_waker, waits_table(r, sel, WAITS_WAKERS, limits))

/* For waits, threads are rows of the thread time breakdown, which has their on-CPU time, too. */
static int add_breakdown(struct report *r, const struct profile *p, const struct select_spec *spec,
			 unsigned flags, const struct view_limits *limits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct breakdown l;
	TRY(breakdown_make(&a, p, spec, &l, err));
	breakdown_threads_report(r, &l, flags, limits);
	return 0;
}

GROUPING(by_waiting_thread)
{
	return add_breakdown(r, sel->p, spec, 0, limits, err);
}

GROUPING(by_waiting_thread_group)
{
	return add_breakdown(r, sel->p, spec, BREAKDOWN_GROUPS, limits, err);
}

GROUPING(by_object)
{
	size_t nr = r->tables.n;
	(void)spec;
	waits_table(r, sel, WAITS_OBJECTS, limits);
	if (r->tables.n > nr)
		return 0;
	err_set(err, -ENODATA, "no wait shown is for a known file or socket");
	return err_hint(err, "for the wait reasons: assay report --by reason");
}

GROUPING(by_lock)
{
	size_t i = 0;
	while (i < sel->nr_tagged && sel->tagged[i].reason != WAIT_LOCK)
		i++;
	if (i == sel->nr_tagged) {
		err_set(err, -ENODATA, "no lock waits to show");
		return err_hint(err, "for the wait reasons: assay report --by reason");
	}
	waits_locks(r, sel, spec, limits);
	return 0;
}

GROUPING(by_allocating_thread)
{
	return heapsum_table(r, sel->p, spec, limits, HEAPSUM_THREADS, err);
}

GROUPING(by_size)
{
	return heapsum_table(r, sel->p, spec, limits, HEAPSUM_SIZES, err);
}

GROUPING(by_leak)
{
	return heapsum_table(r, sel->p, spec, limits, HEAPSUM_LEAKS, err);
}

/* Overrides of keys by views are in view_groupings. */
static const struct grouping groupings[] = {
	[BY_FUNCTION] = {"function", "inlined functions count as functions", VIEW_NR, by_function},
	[BY_MODULE] = {"module", "binaries, libraries, the kernel", VIEW_NR, by_module},
	[BY_CRATE] = {"crate", "Rust crates, C++ namespaces, Go packages, else modules", VIEW_NR,
		      by_crate},
	[BY_FILE] = {"file", "source files", VIEW_NR, by_file},
	[BY_LINE] = {"line", "source lines", VIEW_NR, by_line},
	{"thread", NULL, VIEW_NR, by_thread},
	{"thread-group",
	 "threads whose names differ in digits only (the kernel's thread groups: process)", VIEW_NR,
	 by_thread_group},
	{"process", "all threads of a process together", VIEW_NR, by_process},
	{"reason", "waits: wait reason", VIEW_WAITS, by_reason},
	{"waiter", "waits: innermost function of the program", VIEW_WAITS, by_waiter},
	{"stack", "waits: call stack", VIEW_WAITS, by_stack},
	{"waker", "waits: thread and function that ended them", VIEW_WAITS, by_waker},
	{"lock", "lock waits: lock, holder, what it was doing", VIEW_WAITS, by_lock},
	{"object", "waits: file or socket", VIEW_WAITS, by_object},
	{"size", "memory: block size", VIEW_HEAP, by_size},
	{"leak", "memory: leaks by allocation site, with age and growth", VIEW_HEAP, by_leak},
};
static const struct grouping view_groupings[] = {
	{"thread", NULL, VIEW_WAITS, by_waiting_thread},
	{"thread-group", NULL, VIEW_WAITS, by_waiting_thread_group},
	{"thread", NULL, VIEW_HEAP, by_allocating_thread},
};

const struct grouping *groupings_at(size_t i)
{
	return i < ARRAY_LEN(groupings) ? &groupings[i] : NULL;
}

int groupings_add(struct report *r, size_t i, const struct selection *sel,
		  const struct select_spec *spec, const struct view_limits *limits, struct err *err)
{
	const struct grouping *g = &groupings[i];
	const struct view *of = views_of_rows(sel);
	for (size_t k = 0; k < ARRAY_LEN(view_groupings); k++)
		if (views_at(view_groupings[k].view) == of &&
		    !strcmp(view_groupings[k].key, g->key))
			g = &view_groupings[k];
	if (g->view == VIEW_NR || views_at(g->view) == of)
		return g->add(r, sel, spec, limits, err);
	const struct view *needed = views_at(g->view);
	CLEANUP(buf_release) struct buf keys = {0};
	for (size_t k = 0; k < ARRAY_LEN(groupings); k++)
		if (groupings[k].view == VIEW_NR || views_at(groupings[k].view) == of)
			buf_addf(&keys, "%s%s", keys.n ? ", " : "", groupings[k].key);
	err_set(err, -EINVAL, "--by %s needs %s, which event '%s' does not have", g->key,
		needed->rows, sel->event);
	return err_hint(err, "choose of --by %s; to record %s: %s", buf_str(&keys), needed->rows,
			needed->record);
}
