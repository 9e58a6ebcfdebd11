/* The end of a capture of memory; see heap_outputs.h. */
#include "base/base.h"
#include "cmd/heap_outputs.h"

#include "analyze/calltree.h"
#include "analyze/heapweights.h"
#include "analyze/views.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/memchart.h"

#define ROWS 12

struct ending {
	const struct outputs *o;
	const struct profile *p;
	struct heap_spec heap;
	uint64_t live; /* all of it leaked: one picture is enough */
	size_t nr_pictures;
};

static struct picture picture_of(const struct ending *e, enum heap_weight w)
{
	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM};
	pic.spec.heap = e->heap;
	pic.spec.heap.weight = heap_weight_key(w);
	picture_add(&pic, e->p, e->o->place.stem);
	return pic;
}

static uint64_t weight_of(const struct picture *pic)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	return views_select(&a, pic->inputs.p[0].p, &pic->spec, &sel, NULL) ? 0 : sel.weight;
}

/* "heap-20261121-101112-live.svg" */
static int write_picture(struct ending *e, enum heap_weight w)
{
	CLEANUP(picture_release) struct picture pic = picture_of(e, w);
	CLEANUP(free_p) char *suffix = xasprintf("-%s.svg", heap_weight_key(w));
	uint64_t weight = weight_of(&pic);
	if (!weight || (w == HEAP_WEIGHT_LEAKED && weight == e->live))
		return EXIT_OK;
	if (w == HEAP_WEIGHT_LIVE)
		e->live = weight;
	int status = outputs_flame(e->o, suffix, &pic);
	if (status != EXIT_OK)
		return status;
	CLEANUP(free_p) char *path = store_path(&e->o->place, suffix);
	log_note("flame graph: %s (%s)", path, heap_weight_title(w));
	e->nr_pictures++;
	return EXIT_OK;
}

/*
 * What answers the questions that people record memory for: where does it go, what stays, what was
 * there when it was most. What leaked is a part of what lives, and the first page lists it.
 */
static const enum heap_weight usual[] = {HEAP_WEIGHT_ALLOCATED, HEAP_WEIGHT_PEAK, HEAP_WEIGHT_LIVE,
					 HEAP_WEIGHT_LEAKED, HEAP_WEIGHT_GROWTH};
static const enum heap_weight rest[] = {HEAP_WEIGHT_CALLS, HEAP_WEIGHT_TEMPORARY,
					HEAP_WEIGHT_MAPPED};

/* Growth as a weight of its own is allocated - freed, which live shows, where faults are unknown.
 */
static bool is_worth(const struct profile *p, enum heap_weight w)
{
	return w != HEAP_WEIGHT_GROWTH || tables_find_rows(p, heap_weight_table(w));
}

static int write_pictures(struct ending *e, unsigned flags)
{
	int status = EXIT_OK;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (is_worth(e->p, usual[i]) && write_picture(e, usual[i]) != EXIT_OK)
			status = EXIT_FAILED;
	for (size_t i = 0; flags & HEAP_OUTPUTS_ALL && i < ARRAY_LEN(rest); i++)
		if (write_picture(e, rest[i]) != EXIT_OK)
			status = EXIT_FAILED;
	if (!e->nr_pictures && status == EXIT_OK)
		log_note("no flame graph: nothing that was recorded has a stack and a size");
	return status;
}

static int summarize(const struct ending *e)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(err_release) struct err err = {0};
	struct view_limits limits = {.max_rows = ROWS};
	struct select_spec spec = {.heap = e->heap};
	if (views_page(report, e->p, &spec, NULL, &limits, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	outputs_print(e->o, report);
	return EXIT_OK;
}

int heap_outputs_finish(struct outputs *o, const struct capture_result *r,
			const struct heap_outputs_options *opts)
{
	struct ending e = {.o = o, .p = r->profile};
	unsigned flags = opts ? opts->flags : 0;
	if (opts) {
		e.heap.older_than = opts->heap.older_than;
		e.heap.suppress = opts->heap.suppress;
	}
	outputs_say_disk(o, r);
	if (!heapweights_are_there(r->profile)) {
		log_warn("nothing was recorded: the target allocated nothing, was "
			 "stopped, or has ended");
		outputs_say_cost(r);
		outputs_say_files(o, r, false);
		return EXIT_NOTHING;
	}
	int status = summarize(&e);
	if (status == EXIT_OK && !(o->flags & OUTPUTS_SKIP_PICTURES))
		status = write_pictures(&e, flags);
	if (status == EXIT_OK && !(o->flags & OUTPUTS_SKIP_PICTURES))
		status = memchart_output(o, r->profile);
	outputs_say_cost(r);
	outputs_say_files(o, r, false);
	return r->disk.code ? EXIT_FAILED : status;
}
