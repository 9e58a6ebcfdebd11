/* Finds threads that wait for each other's locks; see deadlock.h. */
#include "base/base.h"
#include "analyze/wait/deadlock.h"

#include "analyze/view.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/reason.h"
#include "base/map.h"
#include "base/text/num.h"
#include "base/vec.h"

#define NAMED_MAX 4    /* threads of a cycle that are named */
#define WHOLE_PCT 99.0 /* of the capture: all of it */
/*
 * A word that says who holds a lock can be older than the wait: at the end of a capture two threads that hand
 * a lock to each other can look like a cycle for some microseconds.
 */
#define SHORTEST_NS 100000000u

#define NO_EDGE UINT32_MAX

/* A thread waits for a lock that another one holds. */
struct edge {
	task_id waiter;
	task_id holder;
	str_id lock;
	stack_id stack;
	uint64_t ns;
	uint32_t next;  /* the edge of the holder, or NO_EDGE */
	uint32_t visit; /* the walk that came here */
	bool is_in_cycle;
};

struct finder {
	const struct profile *p;
	struct map edge_of; /* waiter -> index */
	VEC(struct edge) edges;
};

static void finder_release(struct finder *f)
{
	map_release(&f->edge_of);
	vec_release(&f->edges);
}

/* The lock functions themselves must be on the stack: other words can look like an owned lock. */
static bool is_held_lock(const struct blame *b, const struct select_tagged *row)
{
	const struct tag *tag = &b->sel.p->tags.p[row->tag];
	enum sync_kind kind = reason_of_frames(b->sel.reasons, row->stack);
	return row->reason == WAIT_LOCK && tag->evidence & EVIDENCE_OPEN && tag->other &&
	       (kind == SYNC_LOCK || kind == SYNC_LOCK_BY_PARK);
}

static void add_row(struct finder *f, const struct select_tagged *row)
{
	const struct tag *tag = &f->p->tags.p[row->tag];
	task_id waiter = profile_last_task(f->p, row->task);
	task_id holder = profile_last_task(f->p, tag->direct ? tag->direct : tag->other);
	bool is_new;
	uint32_t *at = map_put(&f->edge_of, waiter, &is_new);
	if (is_new) {
		*at = (uint32_t)f->edges.n;
		vec_push(&f->edges, (struct edge){.waiter = waiter,
						  .holder = holder,
						  .lock = tag->object,
						  .stack = row->stack,
						  .next = NO_EDGE});
	}
	struct edge *e = &f->edges.p[*at];
	e->ns += e->holder == holder ? (uint64_t)MAX(row->values[1], 0) : 0;
}

/*
 * Follows the holders from each waiter. Returns an edge of the cycle that lasted longest, or NO_EDGE;
 * a cycle lasts as long as its shortest wait.
 */
static uint32_t longest_cycle(struct finder *f, uint64_t *ret_ns)
{
	uint32_t best = NO_EDGE;
	*ret_ns = 0;
	vec_foreach(e, &f->edges) {
		const uint32_t *next = map_get(&f->edge_of, e->holder);
		e->next = next ? *next : NO_EDGE;
	}
	for (uint32_t i = 0; i < f->edges.n; i++) {
		uint32_t at = i;
		while (at != NO_EDGE && !f->edges.p[at].visit) {
			f->edges.p[at].visit = i + 1;
			at = f->edges.p[at].next;
		}
		if (at == NO_EDGE || f->edges.p[at].visit != i + 1)
			continue;
		uint64_t ns = UINT64_MAX;
		uint32_t first = at;
		bool is_one_lock = true;
		do {
			ns = MIN(ns, f->edges.p[at].ns);
			is_one_lock &= f->edges.p[at].lock == f->edges.p[first].lock;
			f->edges.p[at].is_in_cycle = true;
			at = f->edges.p[at].next;
		} while (at != first);
		/* A lock has one holder, so one lock makes no cycle. */
		if (ns > *ret_ns && ns >= SHORTEST_NS && !is_one_lock) {
			*ret_ns = ns;
			best = first;
		}
	}
	return best;
}

/* Number of further threads whose chain of holders ends in a cycle. */
static size_t count_behind(const struct finder *f)
{
	size_t nr = 0;
	for (uint32_t i = 0; i < f->edges.n; i++) {
		uint32_t at = i;
		for (size_t k = 0; at != NO_EDGE && !f->edges.p[at].is_in_cycle; k++)
			at = k < f->edges.n ? f->edges.p[at].next : NO_EDGE;
		nr += at != NO_EDGE && !f->edges.p[i].is_in_cycle;
	}
	return nr;
}

static void add_name(struct buf *to, const struct profile *p, task_id id)
{
	const struct task *t = &p->tasks.p[id];
	buf_addf(to, "%s (tid %d)", profile_text(p, t->comm), t->tid);
}

/* "a (tid 2) waits in f for a lock that b (tid 3) holds, b (tid 3) in g for one that a (tid 2) holds". */
static void add_cycle(struct arena *a, struct buf *to, const struct finder *f, uint32_t first)
{
	struct waitframes *wf = waitframes_new(a, f->p);
	uint32_t at = first;
	size_t nr = 0;
	do {
		const struct edge *e = &f->edges.p[at];
		at = e->next;
		if (nr++ >= NAMED_MAX)
			continue;
		struct waitframe frame = waitframe_of(wf, e->stack);
		buf_add_str(to, nr > 1 ? ", " : "");
		add_name(to, f->p, e->waiter);
		buf_addf(to, "%s in %s for %s that ", nr > 1 ? "" : " waits",
			 waitframe_name(f->p, &frame), nr > 1 ? "one" : "a lock");
		add_name(to, f->p, e->holder);
		buf_add_str(to, " holds");
	} while (at != first);
	if (nr > NAMED_MAX)
		buf_addf(to, ", and so on around %zu threads", nr);
}

const char *deadlock_text(struct arena *a, const struct blame *b, uint64_t window_ns)
{
	CLEANUP(finder_release) struct finder f = {.p = b->sel.p};
	CLEANUP(buf_release) struct buf text = {0};
	uint64_t ns;
	for (size_t i = 0; i < b->sel.nr_tagged; i++)
		if (is_held_lock(b, &b->sel.tagged[i]))
			add_row(&f, &b->sel.tagged[i]);
	uint32_t first = longest_cycle(&f, &ns);
	if (first == NO_EDGE)
		return NULL;
	buf_add_str(&text, "deadlock: ");
	add_cycle(a, &text, &f, first);
	if (view_pct(ns, window_ns) >= WHOLE_PCT)
		buf_add_str(&text, ", for the whole capture");
	else
		buf_addf(&text, ", for the last %s of the capture", num_ns(ns).s);
	size_t nr_behind = count_behind(&f);
	if (nr_behind)
		buf_addf(&text, "; %s for locks that such threads hold",
			 nr_behind == 1 ? "1 further thread waits"
					: arena_fmt(a, "%zu further threads wait", nr_behind));
	return arena_strdup(a, buf_str(&text));
}
