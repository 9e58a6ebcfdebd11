/* The heap by probes as a source; see probes_kind.h. */
#include "base/base.h"
#include "session/probes_kind.h"

#include "base/buf.h"
#include "base/num.h"
#include "capture/heapprobes.h"
#include "model/heap.h"

#define PATIENCE_MS 10 /* the ring holds 170,000 records */

static int probes_open(void **ret_s, const struct source_env *env, struct err *err)
{
	const struct capture_options *o = env->options;
	struct heapprobes *h = NULL;
	struct heapsource_spec spec = *o->heap;
	spec.pids = o->target ? &o->target->pids : NULL;
	spec.child = env->child;
	int rc = heapprobes_open(&h, env->engine, &spec, err);
	*ret_s = h;
	return rc;
}

static int probes_load(void *s, const struct source_env *env, struct err *err)
{
	(void)env;
	return heapprobes_attach(s, err);
}

static int probes_start(void *s, const struct source_env *env, const struct event_sink *sink,
			struct err *err)
{
	(void)sink;
	(void)err;
	heapprobes_start(s, env->start_ns);
	return 0;
}

static int probes_drain(void *s, const struct event_sink *sink, struct err *err)
{
	return heapprobes_poll(s, sink, err);
}

static int probes_stop(void *s, const struct event_sink *sink, struct err *err)
{
	return heapprobes_stop(s, sink, err);
}

static void add_fact(struct profile *p, const char *key, uint64_t nr)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_u64(&b, nr);
	if (nr)
		profile_fact(p, key, buf_str(&b));
}

static void probes_facts(void *s, struct profile *p)
{
	struct heapprobes_info i = heapprobes_info(s);
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf tier = {0};
	CLEANUP(buf_release) struct buf interval = {0};
	buf_addf(&tier, "uprobes%s%s", i.why[0] ? ": " : "", i.why);
	profile_fact(p, HEAP_FACT_TIER, buf_str(&tier));
	buf_add_u64(&interval, i.interval_bytes);
	profile_fact(p, HEAP_FACT_SAMPLING,
		     i.interval_bytes ? buf_str(&interval) : "every allocation");
	profile_fact(p, HEAP_FACT_ATTACHED, i.is_launch ? "launch" : "attach");
	if (i.allocator[0])
		profile_fact(p, HEAP_FACT_ALLOCATOR, i.allocator);
	add_fact(p, HEAP_FACT_DROPPED, i.nr_dropped);
	add_fact(p, "heap allocations counted", i.nr_allocs);
	add_fact(p, "heap bytes counted", i.nr_alloc_bytes);
	add_fact(p, "heap frees counted", i.nr_frees);
	add_fact(p, "heap blocks whose free is not seen", i.nr_no_room);
	num_add_count(&b, i.nr_hits);
	buf_addf(&b, " calls trapped, of %zu functions; %s", i.nr_probes,
		 i.has_sessions ? "a second trap at the return only where a block is told"
				: "allocations a second time at their return");
	if (i.nr_stepped)
		buf_addf(&b, "; %zu of the functions are stepped over, which is many times as slow",
			 i.nr_stepped);
	profile_fact(p, "heap probes", buf_str(&b));
}

static int probes_patience_ms(const void *s)
{
	(void)s;
	return PATIENCE_MS;
}

static void probes_free(void *s)
{
	heapprobes_free(s);
}

const struct source_kind probes_kind = {
	.name = "heap probes",
	.program = ENGINE_PROBES,
	.needs_engine = true,
	.open = probes_open,
	.load = probes_load,
	.start = probes_start,
	.drain = probes_drain,
	.stop = probes_stop,
	.facts = probes_facts,
	.patience_ms = probes_patience_ms,
	.free = probes_free,
};
