/* The heap among the sources of a capture; see heap_kind.h. */
#include "base/base.h"
#include "session/heap_kind.h"

#include <math.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/stat.h"
#include "capture/heapsource.h"
#include "model/heap.h"

struct heap_kind {
	struct heapsource *source;
	struct heapsource_spec spec;
};

static int heap_kind_open(void **ret_s, const struct source_env *env, struct err *err)
{
	struct heap_kind *k = xcalloc(1, sizeof(*k));
	k->spec = *env->options->heap;
	k->spec.pids = env->options->target ? &env->options->target->pids : NULL;
	k->spec.child = env->child;
	k->spec.grow = env->grow;
	k->spec.grow_ctx = env->grow_ctx;
	*ret_s = k;
	return heapsource_new(&k->source, &k->spec, err);
}

static int heap_kind_start(void *s, const struct source_env *env, const struct event_sink *sink,
			   struct err *err)
{
	struct heap_kind *k = s;
	return heapsource_start(k->source, env->start_ns, !env->has_sampler, sink, err);
}

static int heap_kind_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return heapsource_drain(((struct heap_kind *)s)->source, sink, err);
}

static int heap_kind_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return heapsource_stop(((struct heap_kind *)s)->source, sink, err);
}

static void heap_kind_space(void *s, int32_t pid, const struct space *sp)
{
	heapsource_space(((struct heap_kind *)s)->source, pid, sp);
}

static int heap_kind_saw(void *s, const struct event *ev, const struct event_sink *sink,
			 struct err *err)
{
	return heapsource_saw(((struct heap_kind *)s)->source, ev, sink, err);
}

static int heap_kind_patience_ms(const void *s)
{
	return heapsource_patience_ms(((const struct heap_kind *)s)->source);
}

static void heap_kind_free(void *s)
{
	heapsource_free(((struct heap_kind *)s)->source);
	free_p(&s);
}

/* ---- facts -------------------------------------------------------------------------------- */

static void add_nr(struct profile *p, const char *key, uint64_t nr)
{
	if (!nr)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_u64(&b, nr);
	profile_fact(p, key, buf_str(&b));
}

static void add_ns(struct profile *p, const char *key, uint64_t ns)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_ns(&b, ns);
	profile_fact(p, key, buf_str(&b));
}

static const char *name_of_tier(enum heap_tier tier)
{
	switch (tier) {
	case HEAP_TIER_NONE:
		return "none";
	case HEAP_TIER_PROF:
		return "jemalloc-prof";
	case HEAP_TIER_HOOKS:
		return "hooks";
	case HEAP_TIER_PATCH:
		return "patch";
	case HEAP_TIER_UPROBES:
		return "uprobes";
	case HEAP_TIER_GROWTH:
		return "growth";
	}
	return "none";
}

/* "sampled 41.2 GiB +- 0.9 GiB, counted 41.3 GiB": an estimate beside its truth. */
static void add_check(struct profile *p, const struct heapsource_info *i)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, "sampled ");
	num_add_bytes(&b, (uint64_t)i->booked_bytes);
	buf_add_str(&b, " +- ");
	num_add_bytes(&b, (uint64_t)(STAT_Z95 * sqrt(i->booked_variance)));
	buf_add_str(&b, ", counted ");
	num_add_bytes(&b, i->nr_alloc_bytes);
	profile_fact(p, "heap check", buf_str(&b));
}

static void heap_kind_facts(void *s, struct profile *p)
{
	const struct heap_kind *k = s;
	struct heapsource_info i = heapsource_info(k->source);
	CLEANUP(buf_release) struct buf tier = {0};
	CLEANUP(buf_release) struct buf interval = {0};
	buf_addf(&tier, "%s%s%s", name_of_tier(i.tier), i.reason[0] ? ": " : "", i.reason);
	buf_add_u64(&interval, k->spec.interval_bytes);
	profile_fact(p, HEAP_FACT_TIER, buf_str(&tier));
	if (i.allocator[0])
		profile_fact(p, HEAP_FACT_ALLOCATOR, i.allocator);
	if (i.nr_processes || !i.nr_grown) /* growth knows no allocations */
		profile_fact(p, HEAP_FACT_SAMPLING,
			     k->spec.is_every ? "every allocation" : buf_str(&interval));
	profile_fact(p, HEAP_FACT_ATTACHED, k->spec.child ? "launch" : "attach");
	add_nr(p, HEAP_FACT_DROPPED, i.nr_dropped);
	add_nr(p, "heap allocations counted", i.nr_allocs);
	add_nr(p, "heap bytes counted", i.nr_alloc_bytes);
	add_nr(p, "heap frees counted", i.nr_frees);
	if (!k->spec.is_every && i.nr_allocs)
		add_check(p, &i);
	add_nr(p, "heap processes", i.nr_processes);
	add_nr(p, "heap processes refused", i.nr_refused);
	add_nr(p, "heap children not followed", i.nr_not_followed);
	add_nr(p, "heap children too short-lived", i.nr_too_short);
	add_nr(p, "heap rings broken", i.nr_broken);
	add_nr(p, "heap stacks without room", i.nr_no_stack);
	add_nr(p, "heap blocks not followed", i.nr_unbooked);
	add_nr(p, "heap functions not patched", i.nr_unpatched);
	if (i.unpatched[0])
		profile_fact(p, "heap function not patched", i.unpatched);
	if (i.late[0])
		profile_fact(p, "heap allocator loaded later", i.late);
	if (i.has_gone_silent)
		profile_fact(p, "heap recorder fell silent", "yes");
	if (i.has_shut)
		profile_fact(p, "heap recorded until",
			     "the program forbade itself the time stamp "
			     "counter (strict seccomp)");
	if (i.had_to_stop_all)
		profile_fact(p, "heap threads stopped", "all, for the moment of patching");
	if (i.nr_processes) {
		add_ns(p, "heap longest stop of a thread", i.stopped_ns);
		add_ns(p, "heap ring reading", i.drain_ns);
		if (i.nr_dropped)
			add_ns(p, "heap rings not read for", i.longest_gap_ns);
		add_nr(p, "heap table bytes", i.table_bytes);
	}
}

const struct source_kind heap_kind = {
	.name = "heap",
	.program = ENGINE_HEAP,
	.open = heap_kind_open,
	.start = heap_kind_start,
	.drain = heap_kind_drain,
	.stop = heap_kind_stop,
	.facts = heap_kind_facts,
	.space = heap_kind_space,
	.saw = heap_kind_saw,
	.patience_ms = heap_kind_patience_ms,
	.free = heap_kind_free,
};
