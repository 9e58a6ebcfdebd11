/* Views of blame: tables, and stacks for trees; see blame.h. */
#include "base/base.h"
#include "analyze/blame.h"

#include "analyze/threads.h"
#include "analyze/waitframes.h"
#include "analyze/waitgroups.h"
#include "base/mem.h"

static const char *doing_text(const struct blame_row *row)
{
	if (row->is_convoy)
		return "convoy";
	return wait_key(row->doing);
}

static const char *culprit_name(struct buf *to, const struct profile *p,
				const struct blame_row *row)
{
	if (!row->culprit)
		return "[not seen]";
	threads_fold_numbers(to, profile_text(p, p->tasks.p[row->culprit].comm));
	return to->n ? buf_str(to) : "[no name]";
}

static void add_row(struct waitgroups *g, const char *const *texts, size_t nr,
		    const struct blame_row *row)
{
	struct waitgroup *group = waitgroups_at(g, texts, nr);
	quantile_add(&group->q, LOG2_NONE, row->nr_waits, row->ns, 0);
	bool is_new;
	uint64_t at = (uint64_t)(group - g->groups.p);
	(void)map_put(&g->threads, at << 32 | row->waiter, &is_new);
	group->nr_threads += is_new;
}

/* What culprits did, by their own function; then who waited for whom. */
static void add_causes(struct report *r, const struct blame *b, const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(waitgroups_release) struct waitgroups g = {.arena = &a};
	CLEANUP(buf_release) struct buf name = {0};
	struct waitframes *wf = waitframes_new(&a, b->sel.p);
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct waitframe f = waitframe_of(wf, row->culprit_stack);
		const char *texts[] = {doing_text(row), waitframe_name(b->sel.p, &f),
				       profile_text(b->sel.p, f.via),
				       culprit_name(&name, b->sel.p, row)};
		add_row(&g, texts, ARRAY_LEN(texts), row);
	}
	waitgroups_report(
		r, &g,
		&(struct waitgroups_table){
			.key = "blame",
			.title = "what others were waited for, moved to its cause",
			.note = "on_cpu: it ran; convoy: threads that hand one lock around",
			.text_keys = {"doing", "function", "in", "culprit"},
			.text_titles = {"it did", "function", "in", "thread"},
			.nr_texts = 4,
			.other_at = 1,
			.flags = WAITGROUPS_THREADS,
		},
		b->ns, limits);
}

static void add_pairs(struct report *r, const struct blame *b, const struct view_limits *limits)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(waitgroups_release) struct waitgroups g = {.arena = &a};
	CLEANUP(buf_release) struct buf culprit = {0};
	CLEANUP(buf_release) struct buf waiter = {0};
	const struct profile *p = b->sel.p;
	struct waitframes *wf = waitframes_new(&a, p);
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct waitframe of_waiter = waitframe_of(wf, row->waiter_stack);
		struct waitframe of_culprit = waitframe_of(wf, row->culprit_stack);
		threads_fold_numbers(&waiter, profile_text(p, p->tasks.p[row->waiter].comm));
		const char *texts[] = {buf_str(&waiter), waitframe_name(p, &of_waiter),
				       culprit_name(&culprit, p, row),
				       waitframe_name(p, &of_culprit), doing_text(row)};
		add_row(&g, texts, ARRAY_LEN(texts), row);
	}
	waitgroups_report(
		r, &g,
		&(struct waitgroups_table){
			.key = "blame_pairs",
			.title = "who waited for whom",
			.text_keys = {"waiter", "waits_in", "culprit", "function", "doing"},
			.text_titles = {"waiter", "waits in", "for thread", "in", "which did"},
			.nr_texts = 5,
			.other_at = 1,
		},
		b->ns, limits);
}

void blame_report(struct report *r, const struct blame *b, const struct view_limits *limits)
{
	add_causes(r, b, limits);
	add_pairs(r, b, limits);
}

/* ---- trees --------------------------------------------------------------------------------- */

#define PARTS_MAX 5

void blame_add_to_tree(struct calltree *ct, const struct blame *b)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf name = {0};
	const struct profile *p = b->sel.p;
	struct calltree_row *rows = arena_calloc(&a, b->nr_rows + 1, sizeof(*rows));
	for (size_t i = 0; i < b->nr_rows; i++) {
		const struct blame_row *row = &b->rows[i];
		struct calltree_part *parts = arena_calloc(&a, PARTS_MAX, sizeof(*parts));
		size_t n = 0;
		parts[n++].stack = waitframes_user_part(p, row->waiter_stack);
		parts[n++].text = arena_fmt(&a, "[blamed on] %s", culprit_name(&name, p, row));
		if (row->is_convoy)
			parts[n++].text = "[convoy]";
		parts[n++].stack = waitframes_user_part(p, row->culprit_stack);
		const char *tip = row->doing == WAIT_ON_CPU ? "[on CPU]" : wait_frame(row->doing);
		if (tip)
			parts[n++].text = tip;
		ASSERT(n <= PARTS_MAX);
		rows[i] = (struct calltree_row){row->waiter, parts, n, row->ns};
	}
	calltree_add_parts(ct, &b->sel, rows, b->nr_rows);
}
