/* The end of a capture of waits; see wait_outputs.h. */
#include "base/base.h"
#include "cmd/wait_outputs.h"

#include "analyze/calltree.h"
#include "analyze/hotcold.h"
#include "analyze/ledger.h"
#include "analyze/select.h"
#include "analyze/views.h"
#include "analyze/waittables.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"

#define ROWS 12

struct ending {
	const struct outputs *o;
	const struct profile *p;
	unsigned flags; /* enum wait_outputs_flags */
	bool is_hotcold;
};

static struct picture picture_of(const struct ending *e)
{
	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM | CALLTREE_MARK_KERNEL};
	pic.spec.event = e->is_hotcold ? table_key(TABLE_THREAD_TIME) : table_key(TABLE_OFF_CPU);
	if (e->flags & WAIT_OUTPUTS_IDLE)
		pic.spec.flags = SELECT_IDLE;
	picture_add(&pic, e->p, e->o->place.stem);
	return pic;
}

/* Nothing in view is no failure: a program that only idled has no picture. */
static bool has_rows(const struct ending *e, const struct picture *pic)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct selection sel;
	int rc = views_select(&a, e->p, &pic->spec, &sel, NULL);
	return !rc && sel.weight;
}

/* "offcpu-20261121-101112-lock.svg" */
static int flame_of_reason(const struct ending *e, enum wait_reason reason)
{
	CLEANUP(picture_release) struct picture pic = picture_of(e);
	pic.spec.reason = wait_key(reason);
	if (!has_rows(e, &pic))
		return EXIT_OK;
	CLEANUP(free_p) char *suffix = xasprintf("-%s.svg", wait_key(reason));
	int status = outputs_flame(e->o, suffix, &pic);
	CLEANUP(free_p) char *path = store_path(&e->o->place, suffix);
	if (status == EXIT_OK)
		log_note("flame graph: %s", path);
	return status;
}

static int write_pictures(const struct ending *e, bool *ret_has_flame)
{
	CLEANUP(picture_release) struct picture pic = picture_of(e);
	int status = EXIT_OK;
	*ret_has_flame = has_rows(e, &pic);
	if (*ret_has_flame) {
		status = outputs_folded(e->o, &pic);
		if (outputs_flame(e->o, ".svg", &pic) != EXIT_OK)
			status = EXIT_FAILED;
		*ret_has_flame = status == EXIT_OK;
	}
	for (int r = WAIT_RUN_QUEUE; e->flags & WAIT_OUTPUTS_BY_REASON && r < WAIT_NR; r++)
		if (flame_of_reason(e, (enum wait_reason)r) != EXIT_OK)
			status = EXIT_FAILED;
	return status;
}

void wait_outputs_say_accuracy(const struct capture_result *r)
{
	if (!r->no_engine.code)
		return;
	const char *remedy = profile_get_fact(r->profile, "remedy");
	log_note("without programs in the kernel: %s", err_msg(&r->no_engine));
	if (r->no_engine.hint || remedy)
		log_hint("%s", r->no_engine.hint ? r->no_engine.hint : remedy);
}

static int summarize(const struct ending *e)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(err_release) struct err err = {0};
	struct view_limits limits = {.max_rows = ROWS};
	if (views_page(report, e->p, &(struct select_spec){0}, NULL, &limits, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	outputs_print(e->o, report);
	return EXIT_OK;
}

int wait_outputs_finish(struct outputs *o, const struct capture_result *r, unsigned flags)
{
	struct ending e = {.o = o,
			   .p = r->profile,
			   .flags = flags,
			   .is_hotcold = hotcold_is_there(r->profile)};
	if (!(flags & WAIT_OUTPUTS_NO_BPF))
		wait_outputs_say_accuracy(r);
	outputs_say_disk(o, r);
	if (!ledger_is_there(r->profile)) {
		log_warn("nothing was recorded: the target has ended, or ended at once");
		outputs_say_cost(r);
		outputs_say_files(o, r, false);
		return EXIT_NOTHING;
	}
	int status = summarize(&e);
	bool has_flame = false;
	if (status == EXIT_OK && !(o->flags & OUTPUTS_SKIP_PICTURES))
		status = write_pictures(&e, &has_flame);
	outputs_say_cost(r);
	outputs_say_files(o, r, has_flame);
	return r->disk.code ? EXIT_FAILED : status;
}
