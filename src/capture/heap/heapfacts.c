/* Facts about heap recording; see heapfacts.h. */
#include "base/base.h"
#include "capture/heap/heapfacts.h"

#include <math.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/stat.h"
#include "plan/heapchoice.h"

void heapfacts_count(struct heapsource_info *sum, const struct heapprocess *p)
{
	struct heapring_counts c = heapprocess_counts(p);
	struct heapaccount_info b = heapprocess_account_info(p);
	struct heapinject_info i = heapprocess_inject_info(p);
	sum->nr_killed += heapprocess_killed_by(p) != 0;
	sum->nr_broken += c.nr_broken;
	sum->nr_dropped += c.nr_dropped;
	sum->nr_allocs += c.nr_allocs;
	sum->nr_alloc_bytes += c.nr_bytes;
	sum->nr_frees += c.nr_frees;
	uint64_t full_ns = heapprocess_full_ns(p);
	sum->nr_sampled += full_ns != UINT64_MAX;
	if (full_ns && full_ns != UINT64_MAX)
		sum->full_ns = sum->full_ns ? MIN(sum->full_ns, full_ns) : full_ns;
	for (unsigned k = 0; k < HEAP_COUNT_CLASSES; k++) {
		sum->classes[k].nr = u64_add(sum->classes[k].nr, c.classes[k].nr);
		sum->classes[k].nr_bytes = u64_add(sum->classes[k].nr_bytes, c.classes[k].nr_bytes);
	}
	sum->nr_no_stack += c.nr_no_stack;
	struct heapprocess_pythons y = heapprocess_pythons(p);
	sum->pythons.nr += y.nr;
	sum->pythons.nr_partly += y.nr_partly;
	sum->pythons.nr_without += y.nr_without;
	sum->has_implausible |= c.has_implausible;
	sum->has_timed_out |= c.inert_tsc != 0;
	sum->is_tsc_forbidden |= c.is_tsc_forbidden;
	sum->nr_unaccounted += b.nr_unaccounted;
	sum->table_bytes = MAX(sum->table_bytes, b.max_bytes);
	sum->accounted_bytes += b.nr_alloc_bytes;
	sum->accounted_variance += b.alloc_variance;
	sum->stopped_ns = MAX(sum->stopped_ns, i.stopped_ns);
	sum->had_to_stop_all |= i.had_to_stop_all;
	sum->nr_unpatched += i.nr_unpatched;
	if (i.unpatched && !sum->unpatched)
		sum->unpatched = xstrdup(i.unpatched);
}

/* "sampled 41.2 GiB +- 0.9 GiB, counted 41.3 GiB": the estimate and the exact count. */
static void add_check(struct profile *p, const struct heapsource_info *i)
{
	if (!i->nr_allocs)
		return;
	profile_factf(p, FACT_HEAP_CHECK, "sampled %s +- %s, counted %s",
		      num_bytes((uint64_t)i->accounted_bytes).s,
		      num_bytes((uint64_t)(STAT_Z95 * sqrt(i->accounted_variance))).s,
		      num_bytes(i->nr_alloc_bytes).s);
}

void heapfacts_add_sampling(struct profile *p, uint64_t interval_bytes, bool is_launch)
{
	if (interval_bytes)
		profile_fact_nr(p, FACT_HEAP_SAMPLING, interval_bytes);
	else
		profile_fact(p, FACT_HEAP_SAMPLING, "every allocation");
	profile_fact(p, FACT_HEAP_ATTACHED, is_launch ? "launch" : "attach");
}

void heapfacts_add_counts(struct profile *p, const struct heap_class_count *classes,
			  uint64_t nr_frees, bool is_sampled)
{
	CLEANUP(buf_release) struct buf sizes = {0};
	uint64_t nr = 0;
	uint64_t nr_bytes = 0;
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		nr = u64_add(nr, classes[i].nr);
		nr_bytes = u64_add(nr_bytes, classes[i].nr_bytes);
		if (classes[i].nr)
			buf_addf(&sizes, "%s%u:%" PRIu64 ":%" PRIu64, sizes.n ? " " : "", i,
				 (uint64_t)classes[i].nr, (uint64_t)classes[i].nr_bytes);
	}
	if (is_sampled && sizes.n)
		profile_fact(p, FACT_HEAP_SIZES, buf_str(&sizes));
	profile_fact_nr(p, FACT_HEAP_ALLOCATIONS, nr);
	profile_fact_nr(p, FACT_HEAP_BYTES, nr_bytes);
	profile_fact_nr(p, FACT_HEAP_FREES, nr_frees);
}

/* Every allocation was recorded: it started so, and did not change to samples. */
static bool is_whole(const struct heapsource_info *i, const struct heapsource_spec *spec)
{
	return spec->is_full_trace || (spec->starts_full && i->nr_processes && !i->nr_sampled);
}

void heapfacts_add_method(struct profile *p, const struct heapsource_info *i,
			  const struct heapsource_spec *spec, bool is_launch)
{
	const char *reason = i->reason ? i->reason : "";
	bool is_full = is_whole(i, spec);
	profile_factf(p, FACT_HEAP_METHOD, "%s%s%s", heapchoice_method_name(i->method),
		      reason[0] ? ": " : "", reason);
	if (i->allocator && i->allocator[0])
		profile_fact(p, FACT_HEAP_ALLOCATOR, i->allocator);
	if (i->nr_processes || !i->nr_growth_only) /* GROWTH has no allocations */
		heapfacts_add_sampling(p, is_full ? 0 : spec->interval_bytes, is_launch);
	else
		profile_fact(p, FACT_HEAP_ATTACHED, is_launch ? "launch" : "attach");
}

static void add_pythons(struct profile *p, const struct heapprocess_pythons *y)
{
	if (y->nr_without)
		profile_factf(p, FACT_PYTHON, "not read for %s of Python code",
			      num_noun(y->nr_without, "events").s);
	else if (y->nr_partly)
		profile_factf(p, FACT_PYTHON, "some are missing in %" PRIu64 " of %s", y->nr_partly,
			      num_noun(y->nr, "stacks").s);
}

void heapfacts_add(struct profile *p, const struct heapsource_info *i,
		   const struct heapsource_spec *spec, bool is_launch)
{
	bool is_full = is_whole(i, spec);
	heapfacts_add_method(p, i, spec, is_launch);
	profile_lose(p, LOSS_HEAP_DROPPED, i->nr_dropped);
	heapfacts_add_counts(p, i->classes, i->nr_frees, !is_full);
	if (!is_full && spec->starts_full && i->full_ns)
		profile_factf(p, FACT_HEAP_FULL_FOR, "the first %s of the launched program",
			      num_ns(i->full_ns).s);
	else if (!is_full && spec->starts_full && i->nr_sampled < i->nr_processes)
		profile_fact(p, FACT_HEAP_FULL_FOR, "the launched program");
	if (!is_full)
		add_check(p, i);
	profile_fact_nr(p, FACT_HEAP_PROCESSES, i->nr_pids);
	profile_fact_nr(p, FACT_HEAP_KILLED, i->nr_killed);
	profile_fact_nr(p, FACT_HEAP_PROGRAMS_ENDED, i->nr_ended);
	profile_lose(p, LOSS_HEAP_LATE, i->nr_late);
	profile_lose(p, LOSS_HEAP_REFUSED, i->nr_refused);
	profile_lose(p, LOSS_HEAP_NOT_FOLLOWED, i->nr_not_followed);
	profile_lose(p, LOSS_HEAP_TOO_SHORT, i->nr_too_short);
	profile_lose(p, LOSS_HEAP_BROKEN, i->nr_broken);
	profile_lose(p, LOSS_HEAP_NO_STACK, i->nr_no_stack);
	add_pythons(p, &i->pythons);
	profile_lose(p, LOSS_HEAP_UNACCOUNTED, i->nr_unaccounted);
	profile_lose(p, LOSS_HEAP_UNPATCHED, i->nr_unpatched);
	if (i->has_implausible)
		profile_fact(p, FACT_LOSSES_IGNORED,
			     "the target's lost-event counters are not plausible: those are "
			     "ignored");
	if (i->unpatched)
		profile_fact(p, FACT_HEAP_UNPATCHED_NAME, i->unpatched);
	if (i->late)
		profile_fact(p, FACT_HEAP_LOADED_LATER, i->late);
	if (i->has_timed_out)
		profile_fact(p, FACT_HEAP_RECORDER_STOPPED, "yes");
	if (i->is_tsc_forbidden)
		profile_fact(p, FACT_HEAP_RECORDED_UNTIL,
			     "the program enabled strict seccomp, which forbids "
			     "the time stamp counter");
	if (i->had_to_stop_all)
		profile_fact(p, FACT_HEAP_THREADS_STOPPED, "all, for the moment of patching");
	if (i->nr_processes) {
		profile_fact_ns(p, FACT_HEAP_LONGEST_THREAD_STOP, i->stopped_ns);
		profile_fact_ns(p, FACT_HEAP_RING_READING, i->drain_ns);
		if (i->nr_dropped)
			profile_fact_ns(p, FACT_HEAP_LONGEST_GAP, i->longest_gap_ns);
		profile_fact_nr(p, FACT_HEAP_TABLE_BYTES, i->table_bytes);
	}
}
