/* Tables of waits; see waittables.h. The first page is in waitspage.c. */
#include "base/base.h"
#include "analyze/waittables.h"

#include "analyze/threads.h"
#include "analyze/waitframes.h"
#include "analyze/waitgroups.h"

#define QUANTILE_NOTE "p50 and p99 are interpolated within classes of durations, powers of two"

int waits_reasons_in_view(const struct profile *p, const struct select_spec *spec,
			  uint32_t *ret_bits, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct select_spec own = *spec;
	struct selection sel;
	own.event = table_key(TABLE_OFF_CPU);
	int rc = select_run(&a, p, &own, &sel, err);
	for (size_t i = 0; !rc && i < sel.nr_rows; i++)
		if (sel.rows[i].weight)
			*ret_bits |= 1u << sel.rows[i].tip;
	return rc;
}

/* What the tables share. Lives on the stack; its arena holds texts until the table is made. */
struct maker {
	struct arena a;
	struct waitgroups g;
	struct waitframes *frames;
	struct buf text;
};

static void maker_release(struct maker *m)
{
	waitgroups_release(&m->g);
	buf_release(&m->text);
	arena_release(&m->a);
}

static void maker_init(struct maker *m, const struct selection *sel)
{
	*m = (struct maker){0};
	m->g.arena = &m->a;
	m->frames = waitframes_new(&m->a, sel->p);
}

/* ---- by reason ---------------------------------------------------------------------------- */

void waits_reasons(struct report *r, const struct selection *sel)
{
	struct maker m CLEANUP(maker_release);
	maker_init(&m, sel);
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		const char *texts[] = {wait_key(row->reason), wait_text(row->reason)};
		waitgroups_add(&m.g, waitgroups_at(&m.g, texts, ARRAY_LEN(texts)), sel, row);
	}
	waitgroups_report(r, &m.g,
			  &(struct waitgroups_table){
				  .key = "reasons",
				  .title = "reasons of waiting",
				  .note = QUANTILE_NOTE,
				  .text_keys = {"reason", "what"},
				  .text_titles = {"reason", ""},
				  .nr_texts = 2,
				  .flags = WAITGROUPS_QUANTILES | WAITGROUPS_THREADS,
			  },
			  sel->weight, &(struct view_limits){0});
}

/* ---- by function --------------------------------------------------------------------------- */

void waits_functions(struct report *r, const struct selection *sel,
		     const struct view_limits *limits)
{
	struct maker m CLEANUP(maker_release);
	maker_init(&m, sel);
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		struct waitframe f = waitframe_of(m.frames, row->stack);
		const char *texts[] = {
			wait_key(row->reason),
			waitframe_name(sel->p, &f),
			profile_text(sel->p, f.via),
			f.module ? profile_module_name(sel->p, f.module) : "",
		};
		waitgroups_add(&m.g, waitgroups_at(&m.g, texts, ARRAY_LEN(texts)), sel, row);
	}
	waitgroups_report(r, &m.g,
			  &(struct waitgroups_table){
				  .key = "waiting_functions",
				  .title = "functions that waited",
				  .text_keys = {"reason", "function", "in", "module"},
				  .text_titles = {"reason", "function", "in", "module"},
				  .nr_texts = 4,
				  .other_at = 1,
				  .flags = WAITGROUPS_QUANTILES,
			  },
			  sel->weight, limits);
}

void waits_stacks(struct report *r, const struct selection *sel, const struct view_limits *limits)
{
	struct maker m CLEANUP(maker_release);
	maker_init(&m, sel);
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		buf_clear(&m.text);
		waitframes_add_stack(&m.text, sel->p, row->stack);
		const char *texts[] = {wait_key(row->reason), buf_str(&m.text)};
		waitgroups_add(&m.g, waitgroups_at(&m.g, texts, ARRAY_LEN(texts)), sel, row);
	}
	waitgroups_report(r, &m.g,
			  &(struct waitgroups_table){
				  .key = "waiting_stacks",
				  .title = "stacks that waited",
				  .text_keys = {"reason", "stack"},
				  .text_titles = {"reason", "stack, from where it waited"},
				  .nr_texts = 2,
				  .other_at = 1,
				  .flags = WAITGROUPS_QUANTILES,
			  },
			  sel->weight, limits);
}

/* ---- who ended them ------------------------------------------------------------------------ */

static const char *thread_name(struct maker *m, const struct profile *p, task_id id)
{
	threads_fold_numbers(&m->text, profile_text(p, p->tasks.p[id].comm));
	return m->text.n ? buf_str(&m->text) : "[no name]";
}

/* The thread that ended a wait, or what did if it was none. */
static const char *waker_name(struct maker *m, const struct profile *p, const struct tag *tag)
{
	if (tag->other)
		return thread_name(m, p, tag->other);
	if (tag->evidence & EVIDENCE_BY_IRQ)
		return "[device or timer]";
	if (tag->evidence & EVIDENCE_SELF)
		return "[timeout or signal]";
	return tag->evidence & EVIDENCE_OPEN ? "[still waiting]" : "[not seen]";
}

static const char *waking_function(struct maker *m, const struct profile *p, const struct tag *tag)
{
	if (!tag->other_stack)
		return "";
	struct waitframe f = waitframe_of(m->frames, tag->other_stack);
	return waitframe_name(p, &f);
}

void waits_wakers(struct report *r, const struct selection *sel, const struct view_limits *limits)
{
	struct maker m CLEANUP(maker_release);
	maker_init(&m, sel);
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		const struct tag *tag = &sel->p->tags.p[row->tag];
		if (row->reason == WAIT_RUN_QUEUE)
			continue; /* nobody has to wake those */
		struct waitframe f = waitframe_of(m.frames, row->stack);
		const char *texts[] = {
			wait_key(row->reason),
			waitframe_name(sel->p, &f),
			waker_name(&m, sel->p, tag),
			waking_function(&m, sel->p, tag),
		};
		waitgroups_add(&m.g, waitgroups_at(&m.g, texts, ARRAY_LEN(texts)), sel, row);
	}
	waitgroups_report(r, &m.g,
			  &(struct waitgroups_table){
				  .key = "wakers",
				  .title = "who ended the waits",
				  .text_keys = {"reason", "function", "waker", "waking_function"},
				  .text_titles = {"reason", "waiting function", "woken by", "in"},
				  .nr_texts = 4,
				  .other_at = 1,
			  },
			  sel->weight, limits);
}

/* ---- files and peers ----------------------------------------------------------------------- */

static bool is_of_futex(enum wait_reason r)
{
	return r == WAIT_LOCK || r == WAIT_SYNC || r == WAIT_PARK;
}

void waits_objects(struct report *r, const struct selection *sel, const struct view_limits *limits)
{
	struct maker m CLEANUP(maker_release);
	maker_init(&m, sel);
	uint64_t ns = 0;
	for (size_t i = 0; i < sel->nr_tagged; i++) {
		const struct select_tagged *row = &sel->tagged[i];
		const struct tag *tag = &sel->p->tags.p[row->tag];
		if (!tag->object || is_of_futex(row->reason) || row->reason == WAIT_RUN_QUEUE)
			continue;
		const char *texts[] = {wait_key(row->reason), profile_text(sel->p, tag->object)};
		waitgroups_add(&m.g, waitgroups_at(&m.g, texts, ARRAY_LEN(texts)), sel, row);
		ns += (uint64_t)MAX(row->values[1], 0);
	}
	if (!m.g.groups.n)
		return;
	waitgroups_report(r, &m.g,
			  &(struct waitgroups_table){
				  .key = "wait_objects",
				  .title = "files and peers that were waited for",
				  .text_keys = {"reason", "object"},
				  .text_titles = {"reason", "file or peer"},
				  .nr_texts = 2,
				  .other_at = 1,
				  .flags = WAITGROUPS_QUANTILES | WAITGROUPS_THREADS,
			  },
			  ns, limits);
}
