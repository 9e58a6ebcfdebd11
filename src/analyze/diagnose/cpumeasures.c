/*
 * Measures of CPU samples: the hottest path and function, short processes, and what classes of functions
 * take: allocators, garbage collectors, spinning, page faults, the kernel; see measures.h.
 */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/memory/heapframes.h"
#include "analyze/select/funcglob.h"
#include "analyze/stacks/groups.h"
#include "analyze/stacks/hotpath.h"
#include "analyze/stacks/shortlived.h"
#include "analyze/stacks/top.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/text/num.h"

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

enum func_class {
	CLASS_ALLOCATOR,
	CLASS_GC,
	CLASS_SPIN,
	CLASS_FAULT,
	CLASS_RECLAIM,
	CLASS_KERNEL,
	CLASS_NR
};

/* Patterns as in funcglob.h. */
static const struct {
	const char *patterns; /* NULL: by other means */
	bool is_of_leaf;      /* only time in the functions themselves */
} classes[CLASS_NR] = {
	[CLASS_GC] =
		{.patterns =
			 "gc_collect_main|_PyGC_Collect*|gc_collect_*|deduce_unreachable|"
			 "runtime.gcBgMarkWorker*|runtime.gcAssistAlloc*|runtime.gcDrain*|"
			 "runtime.bgsweep|runtime.bgscavenge|GCTaskThread::*|G1YoungCollector*|"
			 "G1CollectedHeap::*collect*|G1FullCollector::*|G1Concurrent*::*|"
			 "ParallelScavengeHeap::*collect*|PSParallelCompact::*|SerialHeap::*collect*|"
			 "GenCollectedHeap::*collect*|Generation::collect|"
			 "TenuredGeneration::collect|DefNewGeneration::collect|"
			 "GenMarkSweep::*|VM_GenCollect*|ShenandoahConcurrentGC::*|ZDriver*::*|"
			 "v8::internal::Heap::CollectGarbage*|v8::internal::Scavenger*|"
			 "v8::internal::MarkCompactCollector*|v8::internal::ConcurrentMarking*|"
			 "GC_collect*|GC_try_to_collect*|gc_start_internal|garbage_collect*"},
	[CLASS_SPIN] = {.patterns =
				"pthread_spin_lock|__pthread_spin_lock|__GI___pthread_spin_lock|"
				"native_queued_spin_lock_slowpath|queued_spin_lock_slowpath|"
				"osq_lock|mutex_spin_on_owner|rwsem_spin_on_owner|"
				"std::hint::spin_loop|core::hint::spin_loop|spin::*|"
				"parking_lot_core::spinwait::*|crossbeam_utils::backoff::*|"
				"runtime.procyield*|absl::*SpinLock*|*::SpinLock::lock|"
				"*::spin_lock|spin_lock|*::SpinLock::SpinLoop",
			.is_of_leaf = true},
	[CLASS_FAULT] = {.patterns = "asm_exc_page_fault|exc_page_fault|handle_mm_fault|"
				     "do_page_fault|do_user_addr_fault|el0_da|el0_ia"},
	[CLASS_RECLAIM] = {.patterns = "try_to_free_pages|try_to_free_mem_cgroup_pages|"
				       "__alloc_pages_direct_reclaim|shrink_node"},
};

struct cpumeasures {
	const struct selection *sel; /* NULL: no CPU samples */
	struct selection own_sel;
	bool has_path;
	struct hotpath path;
	bool has_lives;
	struct shortlived lives;
	bool has_top;
	struct view_item top;
	bool has_classes;
	uint64_t weights[CLASS_NR];
	uint64_t kernel_spin;
	uint64_t busy; /* all of them, without idle CPUs */
	const char *where[CLASS_NR];
};

/* What does not depend on the filters. */
struct cpufunctions {
	struct groups groups;
	uint8_t *classes; /* by function, bits */
};

static struct cpumeasures *new_cpu(struct measures *m)
{
	return m->cpu = arena_calloc(&m->a, 1, sizeof(*m->cpu));
}

void measures_give_cpu(struct measures *m, const struct selection *sel)
{
	new_cpu(m)->sel = sel;
}

/* NULL: there are no samples of CPU time. */
static struct cpumeasures *measured_cpu(struct measures *m)
{
	struct cpumeasures *c = m->cpu;
	if (!c) {
		struct select_spec own = m->spec;
		own.event = NULL;
		c = new_cpu(m);
		if (!select_run(&m->a, m->p, &own, &c->own_sel, NULL) &&
		    view_is_cpu_time(&c->own_sel))
			c->sel = &c->own_sel;
	}
	return c->sel ? c : NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

NUMBER(cpu_samples)
{
	const struct cpumeasures *c = measured_cpu(m);
	return c ? view_effective(c->sel, view_all(c->sel)) : (double)NAN;
}

NUMBER(cpu_used)
{
	const struct cpumeasures *c = measured_cpu(m);
	double cpus = c ? view_cpus(c->sel, view_busy(c->sel)) : -1;
	return cpus >= 0 ? cpus : (double)NAN;
}

TEXT(cpu_time)
{
	const struct cpumeasures *c = measured_cpu(m);
	return !c ? NULL : view_nr_out(c->sel) ? "the selection's CPU time" : "CPU time";
}

TEXT(cpu_event)
{
	const struct cpumeasures *c = measured_cpu(m);
	return c ? c->sel->event : NULL;
}

NUMBER(cpu_of_active)
{
	struct waitmeasures *w = measures_has(m, MEASURE_WAITS) ? measured_waits(m) : NULL;
	return w ? measured_pct(w, w->l->total.ns[WAIT_ON_CPU]) : 100;
}

static uint8_t classes_of_name(struct sv name)
{
	char plain[FUNCGLOB_NAME_MAX];
	uint8_t bits = heapframe_kind_of(name) == HEAPFRAME_ALLOCATOR ? 1u << CLASS_ALLOCATOR : 0;
	name = funcglob_plain(name, plain);
	for (enum func_class k = 0; k < CLASS_NR; k++)
		if (classes[k].patterns && funcglob_is_like(classes[k].patterns, name))
			bits |= (uint8_t)(1u << k);
	return bits;
}

static const struct cpufunctions *functions_of(struct measures *m)
{
	struct measures *whole = m->whole ?: m;
	const struct profile *p = m->p;
	struct cpufunctions *f = whole->functions;
	if (f)
		return f;
	f = whole->functions = arena_calloc(&whole->a, 1, sizeof(*f));
	f->groups = groups_by(&whole->a, p, BY_FUNCTION);
	f->classes = arena_calloc(&whole->a, p->functions.n + 1, 1);
	for (size_t i = 1; i < p->functions.n; i++)
		f->classes[i] = classes_of_name(profile_sv(p, p->functions.p[i].name));
	return f;
}

/* ---- the hottest ----------------------------------------------------------------------------- */

static const struct hotpath *path_of(struct measures *m)
{
	struct cpumeasures *c = measured_cpu(m);
	if (c && !c->has_path)
		hotpath_find(&c->path, &m->a, c->sel);
	if (c)
		c->has_path = true;
	return c ? &c->path : NULL;
}

TEXT(path_names)
{
	const struct hotpath *path = path_of(m);
	return path ? path->names : NULL;
}

TEXT(path_parts)
{
	const struct hotpath *path = path_of(m);
	return path ? path->parts : NULL;
}

NUMBER(path_pct)
{
	const struct hotpath *path = path_of(m);
	return path && path->names[0] ? path->pct : (double)NAN;
}

TEXT(path_error)
{
	const struct hotpath *path = path_of(m);
	return path ? arena_strdup(&m->a, num_pct(path->error_pct).s) : NULL;
}

static const struct view_item *top_of(struct measures *m)
{
	struct cpumeasures *c = measured_cpu(m);
	if (!c || c->has_top)
		return c ? &c->top : NULL;
	c->has_top = true;
	if (view_has_shares(c->sel))
		(void)top_of_phase(&m->a, c->sel, WEIGH_ALL_PHASES, &functions_of(m)->groups,
				   &c->top, 1); /* or none */
	return &c->top;
}

TEXT(top_function)
{
	const struct view_item *top = top_of(m);
	return !top ? NULL : top->name ? measures_name(m, top->name) : "";
}

NUMBER(top_pct)
{
	const struct view_item *top = top_of(m);
	return top && top->name ? view_pct(top->self.weight, m->cpu->sel->weight) : (double)NAN;
}

/* ---- short processes ------------------------------------------------------------------------- */

static const struct shortlived *lives_of(struct measures *m)
{
	struct cpumeasures *c = measured_cpu(m);
	if (c && !c->has_lives)
		shortlived_find(&c->lives, c->sel);
	if (c)
		c->has_lives = true;
	return c && c->lives.is_known ? &c->lives : NULL;
}

NUMBER(lives_nr)
{
	const struct shortlived *lives = lives_of(m);
	return lives ? (double)lives->nr : (double)NAN;
}

NUMBER(lives_rate)
{
	const struct shortlived *lives = lives_of(m);
	return lives ? lives->per_s : (double)NAN;
}

NUMBER(lives_median)
{
	const struct shortlived *lives = lives_of(m);
	return lives ? lives->median_ns : (double)NAN;
}

NUMBER(lives_pct)
{
	const struct shortlived *lives = lives_of(m);
	return lives ? lives->pct : (double)NAN;
}

/* ---- classes of functions -------------------------------------------------------------------- */

/* A function of a stripped library whose name is not known: who calls it says more. */
static bool is_unnamed_of_library(const struct profile *p, func_id func)
{
	const struct function *f = &p->functions.p[func];
	return f->flags & FUNC_GUESSED && strstr(profile_text(p, f->name), ".so") &&
	       strstr(profile_text(p, f->name), "!fn_");
}

/* The classes of a row, and for each the function that called the outermost one of it. */
struct row_classes {
	unsigned bits;
	str_id where[CLASS_NR];
};

static void classify(struct row_classes *rc, const struct selection *sel, stack_id stack,
		     const uint8_t *of_functions)
{
	const struct profile *p = sel->p;
	unsigned is_open = 0; /* classes whose caller is the next frame */
	bool is_leaf = true;
	struct frame_ref f;
	*rc = (struct row_classes){0};
	for (struct frame_it it = select_frames(sel, stack); frame_next(&it, &f); is_leaf = false) {
		bool is_kernel = p->locations.p[f.loc].flags & LOCATION_KERNEL;
		func_id func = f.frame_idx == UINT32_MAX ? 0 : p->frames.p[f.frame_idx].func;
		unsigned bits = of_functions[func] | (is_kernel ? 1u << CLASS_KERNEL : 0);
		for (enum func_class k = 0; k < CLASS_NR; k++) {
			unsigned bit = 1u << k;
			bool is_in =
				bits & bit && (is_leaf || rc->bits & bit || !classes[k].is_of_leaf);
			if (is_open & bit && !is_in)
				rc->where[k] = func ? p->functions.p[func].name : 0;
			if (is_in)
				is_open |= bit;
			else if (!func || !is_unnamed_of_library(p, func))
				is_open &= ~bit;
			rc->bits |= is_in ? bit : 0;
		}
	}
}

static void add_where(struct map *sums, enum func_class k, str_id where, uint64_t weight)
{
	bool is_new;
	uint32_t *at = map_put(sums, (uint64_t)k << 32 | where, &is_new);
	uint64_t sum = (is_new ? 0 : *at) + weight;
	*at = (uint32_t)MIN(sum, UINT32_MAX);
}

static void add_up_classes(struct measures *m, struct cpumeasures *c)
{
	CLEANUP(map_release) struct map sums = {0}; /* by class and caller, in parts of 2^-24 */
	const uint8_t *of_functions = functions_of(m)->classes;
	uint32_t most[CLASS_NR] = {0};
	struct row_classes rc = {0};
	stack_id last = UINT32_MAX;
	uint64_t unit = c->sel->weight / (1u << 24) + 1;
	for (size_t i = 0; i < c->sel->nr_rows; i++) {
		const struct select_row *row = &c->sel->rows[i];
		if (view_is_idle_thread(m->p, row->task))
			continue;
		if (row->stack != last)
			classify(&rc, c->sel, row->stack, of_functions);
		last = row->stack;
		c->busy += row->weight;
		if (rc.bits & 1u << CLASS_SPIN && rc.bits & 1u << CLASS_KERNEL)
			c->kernel_spin += row->weight;
		for (enum func_class k = 0; k < CLASS_NR; k++) {
			if (!(rc.bits & 1u << k))
				continue;
			c->weights[k] += row->weight;
			add_where(&sums, k, rc.where[k], row->weight / unit + 1);
			const uint32_t *sum = map_get(&sums, (uint64_t)k << 32 | rc.where[k]);
			if (!rc.where[k] || *sum <= most[k])
				continue;
			most[k] = *sum;
			c->where[k] = profile_text(m->p, rc.where[k]);
		}
	}
}

static struct cpumeasures *classes_of(struct measures *m)
{
	struct cpumeasures *c = measured_cpu(m);
	if (c && !c->has_classes)
		add_up_classes(m, c);
	if (c)
		c->has_classes = true;
	return c;
}

static double class_pct(struct measures *m, enum func_class k)
{
	const struct cpumeasures *c = classes_of(m);
	return c ? view_pct(c->weights[k], c->busy) : (double)NAN;
}

static const char *class_where(struct measures *m, enum func_class k)
{
	const struct cpumeasures *c = classes_of(m);
	return !c ? NULL : c->where[k] ? measures_name(m, c->where[k]) : "";
}

#define CLASS(name, k)                    \
	NUMBER(name##_pct)                \
	{                                 \
		return class_pct(m, k);   \
	}                                 \
	TEXT(name##_where)                \
	{                                 \
		return class_where(m, k); \
	}

CLASS(allocating, CLASS_ALLOCATOR)
CLASS(collecting, CLASS_GC)
CLASS(spinning, CLASS_SPIN)
CLASS(faulting, CLASS_FAULT)
CLASS(reclaiming, CLASS_RECLAIM)
CLASS(in_kernel, CLASS_KERNEL)

NUMBER(spin_is_kernel)
{
	const struct cpumeasures *c = classes_of(m);
	return c ? c->kernel_spin * 2 > c->weights[CLASS_SPIN] : (double)NAN;
}

/* ---- the rows -------------------------------------------------------------------------------- */

#define OF_CPU "CPU time"
#define CLASS_ROWS(key, function, what)                                              \
	{key ".pct", FORMULA_PERCENT, OF_CPU, what, .number = function##_pct},       \
	{                                                                            \
		key ".where", FORMULA_TEXT, NULL, "what called it, with most of it", \
			.text = function##_where                                     \
	}

static const struct measure rows[] = {
	{"cpu.event", FORMULA_TEXT, NULL, "the event of the CPU samples, as --event takes it",
	 .text = cpu_event},
	{"cpu.samples", FORMULA_COUNT, NULL,
	 "CPU samples: as many as would be as exact with equal weights", .number = cpu_samples},
	{"cpu.used", FORMULA_PLAIN, NULL, "CPUs in use on average, by samples", .number = cpu_used},
	{"cpu.time", FORMULA_TEXT, NULL, "what shares of CPU time are of, for sentences",
	 .text = cpu_time},
	{"cpu.of-active", FORMULA_PERCENT, MEASURE_ACTIVE,
	 "time on CPU; 100 % if waits are not recorded", .number = cpu_of_active},
	{"path.names", FORMULA_TEXT, NULL, "the path of calls with most of the time; empty: none",
	 .text = path_names},
	{"path.pct", FORMULA_PERCENT, OF_CPU, "on the path of calls with most of the time",
	 .number = path_pct},
	{"path.error", FORMULA_TEXT, NULL, "half width of its 95 % interval", .text = path_error},
	{"path.parts", FORMULA_TEXT, NULL, "what its end calls, with shares", .text = path_parts},
	{"hottest.name", FORMULA_TEXT, NULL,
	 "the hottest function (self time); empty: too few samples", .text = top_function},
	{"hottest.pct", FORMULA_PERCENT, OF_CPU, "self time of the hottest function",
	 .number = top_pct},
	{"short.processes", FORMULA_COUNT, NULL, "processes that started and ended in the capture",
	 .number = lives_nr},
	{"short.rate", FORMULA_COUNT, NULL,
	 "processes a second that started and ended in the capture", .number = lives_rate},
	{"short.median", FORMULA_NS, NULL,
	 "median life of processes that started and ended in the capture", .number = lives_median},
	{"short.pct", FORMULA_PERCENT, OF_CPU, "processes that lived for at most 50 ms",
	 .number = lives_pct},
	CLASS_ROWS("allocator.cpu", allocating, "in an allocator: malloc, free and what they call"),
	CLASS_ROWS("gc", collecting, "in a garbage collector"),
	CLASS_ROWS("spin", spinning, "spinning for a lock"),
	{"spin.kernel", FORMULA_PLAIN, NULL, "1: most of it for a lock of the kernel",
	 .number = spin_is_kernel},
	CLASS_ROWS("faulting", faulting, "handling page faults"),
	CLASS_ROWS("reclaiming", reclaiming, "reclaiming memory"),
	CLASS_ROWS("kernel.cpu", in_kernel, "in the kernel"),
};

const struct measure *cpu_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(rows);
	return rows;
}
