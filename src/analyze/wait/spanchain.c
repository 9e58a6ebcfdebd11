/* Chains of the slowest calls; see spanchain.h. */
#include "base/base.h"
#include "analyze/wait/spanchain.h"

#include <stdlib.h>

#include "analyze/wait/chain.h"

#define ROWS_OF_CALL 5 /* of the largest; the rest is one row */

static const struct report_column columns[] = {
	{"call_ns", "call", CELL_NS, NULL},
	{"span", "span", CELL_TEXT, NULL},
	{"at_s", "start (s)", CELL_FLOAT, "seconds since the start of the capture"},
	{"time_ns", "time", CELL_NS, "the rows of a call add up to its time"},
	{"pct", "%", CELL_PERCENT, "of the call"},
	{"reason", "reason", CELL_TEXT,
	 "on_cpu, or why this thread waited; unknown: not in the recording"},
	{"thread", "thread", CELL_TEXT,
	 "the thread that the call waited for, directly or through others, or its own"},
	{"tid", "tid", CELL_ID, NULL},
	{"function", "function", CELL_TEXT,
	 "the thread's innermost function where it waited, or at the end of its run"},
};

struct chain_group {
	const char *reason;
	int32_t tid;
	const char *function;
	uint64_t ns;
};
typedef VEC(struct chain_group) group_list;

static int by_what(const void *a, const void *b)
{
	const struct chain_group *x = a;
	const struct chain_group *y = b;
	return COMPARE(x->tid, y->tid)
		       ?: strcmp(x->reason, y->reason)
		       ?: strcmp(x->function, y->function);
}

static int by_time(const void *a, const void *b)
{
	const struct chain_group *x = a;
	const struct chain_group *y = b;
	return COMPARE(y->ns, x->ns) ?: by_what(a, b);
}

static const char *reason_text(const struct spanchain *s, const struct chain_part *part)
{
	const struct tag *tag = &s->p->tags.p[part->tag];
	switch (part->kind) {
	case CHAIN_UNKNOWN:
		return wait_key(WAIT_UNKNOWN);
	case CHAIN_ON_CPU:
		return wait_key(WAIT_ON_CPU);
	case CHAIN_STOLEN:
		return wait_key(WAIT_STOLEN);
	case CHAIN_RUN_QUEUE:
		if (tag->reason != WAIT_RUN_QUEUE) /* woken from another wait */
			return wait_key(WAIT_RUN_QUEUE);
		break;
	case CHAIN_BLOCKED:
		break;
	}
	return wait_key(reason_of(s->reasons, part->stack, tag));
}

static const char *function_text(const struct spanchain *s, const struct chain_part *part,
				 const struct spanchain_call *call)
{
	if (!part->stack)
		return part->kind == CHAIN_UNKNOWN ? "" : call->name;
	struct waitframe f = waitframe_of(s->frames, part->stack);
	return waitframe_name(s->p, &f);
}

/* Sums the parts by thread, reason and function, largest first. */
static void group_parts(const struct spanchain *s, const struct spanchain_call *call,
			const struct chain_parts *parts, group_list *to)
{
	vec_foreach(part, &parts->list)
		vec_push(to, (struct chain_group){reason_text(s, part), part->tid,
						  function_text(s, part, call),
						  part->to_ns - part->from_ns});
	if (!to->n)
		return;
	qsort(to->p, to->n, sizeof(*to->p), by_what);
	size_t n = 1;
	for (size_t i = 1; i < to->n; i++) {
		if (!by_what(&to->p[n - 1], &to->p[i]))
			to->p[n - 1].ns += to->p[i].ns;
		else
			to->p[n++] = to->p[i];
	}
	to->n = n;
	qsort(to->p, n, sizeof(*to->p), by_time);
}

/* The name of a thread; tasks are few compared with what is printed. */
static const char *thread_name(const struct profile *p, int32_t tid)
{
	for (task_id i = (task_id)p->tasks.n; i-- > 1;)
		if (p->tasks.p[i].tid == tid)
			return profile_text(p, p->tasks.p[profile_last_task(p, i)].comm);
	return "";
}

static void add_row(struct spanchain *s, const struct spanchain_call *call,
		    const struct chain_group *g)
{
	uint64_t start_ns = s->p->start_ns;
	union cell cells[] = {
		{.u = call->ns},
		{.text = call->name},
		{.d = call->start_ns > start_ns ? (double)(call->start_ns - start_ns) / 1e9 : 0},
		{.u = g->ns},
		{.d = view_pct(g->ns, call->ns)},
		{.text = g->reason},
		{.text = g->tid ? thread_name(s->p, g->tid) : ""},
		{.u = g->tid > 0 ? (uint64_t)g->tid : CELL_NO_ID},
		{.text = g->function},
	};
	report_add_row(s->r, s->t, cells);
}

void spanchain_begin(struct spanchain *s, struct arena *a)
{
	s->chains = chains_new(a, s->p);
	if (!s->chains)
		return;
	s->t = report_add_table(s->r, "span_chains",
				"what the slowest calls waited for, over all threads", columns,
				ARRAY_LEN(columns));
}

void spanchain_add(struct spanchain *s, const struct spanchain_call *call)
{
	struct chain_parts parts = {0};
	group_list groups = {0};
	if (!s->chains || !call->ns)
		return;
	chains_walk(s->chains, s->p->tasks.p[call->task].tid, call->start_ns,
		    call->start_ns + call->ns, &parts);
	group_parts(s, call, &parts, &groups);
	size_t nr = groups.n > ROWS_OF_CALL ? ROWS_OF_CALL + 1 : groups.n;
	s->t->nr_rows_total += nr;
	/* The first call is shown whole, however few rows are wanted. */
	bool has_room = !s->max_rows || !s->t->nr_rows || s->t->nr_rows + nr <= s->max_rows;
	struct chain_group other = {.reason = "<other>", .function = ""};
	for (size_t i = 0; has_room && i < groups.n; i++) {
		if (i < ROWS_OF_CALL)
			add_row(s, call, &groups.p[i]);
		else
			other.ns += groups.p[i].ns;
	}
	if (other.ns)
		add_row(s, call, &other);
	chain_parts_release(&parts);
	vec_release(&groups);
}
