/* Finds locks by who ends their waits; see peerlocks.h. */
#include "base/base.h"
#include "analyze/wait/peerlocks.h"

#include "analyze/wait/frames.h"
#include "base/map.h"
#include "base/vec.h"

#define REQUEST_WAITS_MAX 8    /* stacks of each thread that are compared */
#define PAIRS_MAX         4096 /* pairs of stacks of each place that are compared */
#define PEER_WAITS_MIN    4
#define NEARLY_ALL_PCT    90

/* The places in which a thread waits for requests, or for answers to its own. */
struct requests {
	size_t n;
	stack_id stack[REQUEST_WAITS_MAX];
	uint64_t us[REQUEST_WAITS_MAX];
};

/* A function that waits on condition variables. */
struct place {
	uint64_t nr_by_peers; /* waits that were ended by threads which wait there as well ... */
	uint64_t nr_by_others;
	uint64_t nr_pairs;
	/* Request waits of the waiters that are outside of the call which waiter and peer share; others. */
	uint64_t outside_us;
	uint64_t inside_us;
};

struct peerlocks {
	struct waitframes *frames;
	str_id *locks; /* names of functions; few */
	size_t nr_locks;
};

struct search {
	const struct profile *p;
	const struct table *t;
	struct stackkinds *kinds;
	struct peerlocks *pl;
	struct map waiters;  /* place << 32 | tid: a set */
	struct map index;    /* tid -> requests */
	struct map place_at; /* name -> places */
	VEC(struct requests) requests;
	VEC(struct place) places;
};

static void search_release(struct search *s)
{
	map_release(&s->waiters);
	map_release(&s->index);
	map_release(&s->place_at);
	vec_release(&s->requests);
	vec_release(&s->places);
}

static const struct tag *tag_at(const struct search *s, size_t i)
{
	return &s->p->tags.p[s->t->tag[i]];
}

static uint64_t key_of(str_id place, const struct profile *p, task_id task)
{
	return (uint64_t)place << 32 | (uint32_t)p->tasks.p[task].tid;
}

static uint64_t value_at(const struct table *t, size_t i, uint32_t column)
{
	return (uint64_t)MAX(t->values[i * t->nr_columns + column], 0);
}

/* The name of the function that waits on a condition variable in a row; 0: not such a row. */
static str_id place_at(struct search *s, size_t i)
{
	bool is_condvar = tag_at(s, i)->reason == WAIT_SYNC &&
			  stackkinds_of(s->kinds, s->t->stack[i]) == SYNC_PARK_PART;
	return is_condvar ? waitframes_innermost(s->pl->frames, s->t->stack[i]) : 0;
}

/* ---- first pass: who waits where -------------------------------------------------------------- */

static bool is_request_wait(struct search *s, size_t i)
{
	const struct tag *tag = tag_at(s, i);
	switch ((enum wait_reason)tag->reason) {
	case WAIT_POLL:
		return true;
	case WAIT_NET:
	case WAIT_PIPE:
		return !wait_is_send(tag);
	case WAIT_SYNC:
		return stackkinds_of(s->kinds, s->t->stack[i]) == SYNC_PARK;
	default:
		return false;
	}
}

static void add_request_wait(struct search *s, size_t i)
{
	bool is_new;
	int32_t tid = s->p->tasks.p[s->t->task[i]].tid;
	uint32_t *at = map_put(&s->index, (uint32_t)tid, &is_new);
	if (is_new) {
		*at = (uint32_t)s->requests.n;
		vec_push(&s->requests, (struct requests){0});
	}
	struct requests *r = &s->requests.p[*at];
	size_t k = 0;
	while (k < r->n && r->stack[k] != s->t->stack[i])
		k++;
	if (k == REQUEST_WAITS_MAX)
		return;
	r->stack[k] = s->t->stack[i];
	r->us[k] += value_at(s->t, i, s->t->weight_column) / 1000;
	r->n = MAX(r->n, k + 1);
}

static void find_waits(struct search *s)
{
	for (size_t i = 0; i < s->t->n; i++) {
		str_id place = place_at(s, i);
		bool is_new = false;
		if (place)
			(void)map_put(&s->waiters, key_of(place, s->p, s->t->task[i]), NULL);
		else if (is_request_wait(s, i))
			add_request_wait(s, i);
		uint32_t *at = place ? map_put(&s->place_at, place, &is_new) : NULL;
		if (is_new) {
			*at = (uint32_t)s->places.n;
			vec_push(&s->places, (struct place){0});
		}
	}
}

/* ---- second pass: who ends the waits --------------------------------------------------------- */

/* The innermost call that two stacks have in common: parents have smaller ids than their children. */
static stack_id common_part(const struct profile *p, stack_id a, stack_id b)
{
	while (a != b) {
		if (a > b)
			a = p->stacks.p[a].parent;
		else
			b = p->stacks.p[b].parent;
	}
	return a;
}

/* A wait that a peer has ended, in a call that both are in or not. */
static void compare_stacks(struct search *s, struct place *to, size_t i)
{
	const struct profile *p = s->p;
	stack_id stack = s->t->stack[i];
	const uint32_t *at = map_get(&s->index, (uint32_t)p->tasks.p[s->t->task[i]].tid);
	if (!at || to->nr_pairs >= PAIRS_MAX)
		return;
	to->nr_pairs++;
	const struct requests *r = &s->requests.p[*at];
	stack_id shared = common_part(p, stack, tag_at(s, i)->other_stack);
	for (size_t k = 0; k < r->n; k++) {
		if (common_part(p, stack, r->stack[k]) < shared)
			to->outside_us += r->us[k];
		else
			to->inside_us += r->us[k];
	}
}

static void find_ends(struct search *s)
{
	for (size_t i = 0; i < s->t->n; i++) {
		const struct tag *tag = tag_at(s, i);
		bool has_other = tag->other && tag->other != s->t->task[i] &&
				 !(tag->evidence & (EVIDENCE_BY_IRQ | EVIDENCE_SELF));
		str_id place = has_other ? place_at(s, i) : 0;
		if (!place)
			continue;
		struct place *to = &s->places.p[*map_get(&s->place_at, place)];
		uint64_t nr = value_at(s->t, i, 0);
		if (!map_get(&s->waiters, key_of(place, s->p, tag->other))) {
			to->nr_by_others += nr;
			continue;
		}
		to->nr_by_peers += nr;
		compare_stacks(s, to, i);
	}
}

static bool is_nearly_all(uint64_t part, uint64_t rest)
{
	return part && (double)part * 100 >= ((double)part + (double)rest) * NEARLY_ALL_PCT;
}

static bool is_lock(const struct place *place)
{
	return place->nr_by_peers >= PEER_WAITS_MIN &&
	       is_nearly_all(place->nr_by_peers, place->nr_by_others) &&
	       is_nearly_all(place->outside_us, place->inside_us);
}

static void find_locks(struct search *s, struct arena *a)
{
	struct peerlocks *pl = s->pl;
	uint64_t name;
	uint32_t at;
	pl->locks = arena_calloc(a, s->places.n + 1, sizeof(*pl->locks));
	for (size_t it = 0; map_next(&s->place_at, &it, &name, &at);)
		if (is_lock(&s->places.p[at]))
			pl->locks[pl->nr_locks++] = (str_id)name;
}

struct peerlocks *peerlocks_new(struct arena *a, const struct profile *p, struct stackkinds *kinds)
{
	const struct table *t = tables_find_rows(p, TABLE_OFF_CPU);
	struct peerlocks *pl = arena_calloc(a, 1, sizeof(*pl));
	struct search s CLEANUP(search_release) = {.p = p, .t = t, .kinds = kinds, .pl = pl};
	if (!t || !t->has_tags)
		return pl;
	pl->frames = waitframes_new(a, p);
	find_waits(&s);
	find_ends(&s);
	find_locks(&s, a);
	return pl;
}

bool peerlocks_has(struct peerlocks *pl, stack_id stack)
{
	str_id name = pl->nr_locks ? waitframes_innermost(pl->frames, stack) : 0;
	for (size_t i = 0; name && i < pl->nr_locks; i++)
		if (pl->locks[i] == name)
			return true;
	return false;
}
