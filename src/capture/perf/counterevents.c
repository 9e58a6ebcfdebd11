/* Names of events; see counterevents.h. */
#include "base/base.h"
#include "capture/perf/counterevents.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sv.h"
#include "base/text/suggest.h"
#include "host/tracefs.h"

enum family {
	FAMILY_NONE,
	FAMILY_CORE,
	FAMILY_CACHE,
	FAMILY_OTHER,
	FAMILY_CACHES /* one for each */
};

#define HARDWARE(name, other, config, role, family)                                      \
	{                                                                                \
		name, other, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config, COUNTER_##role, \
			FAMILY_##family                                                  \
	}
#define SOFTWARE(name, other, config)                                                   \
	{                                                                               \
		name, other, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, COUNTER_OTHER, \
			FAMILY_NONE                                                     \
	}
#define CLOCK(name, config)                                                                        \
	{                                                                                          \
		name, NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, COUNTER_CLOCK, FAMILY_NONE \
	}

static const struct {
	const char *name;
	const char *other_name;
	uint32_t type;
	uint64_t config;
	enum counter_role role;
	enum family family;
} known[] = {
	CLOCK("task-clock", TASK_CLOCK),
	CLOCK("cpu-clock", CPU_CLOCK),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS),
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, CYCLES, CORE),
	HARDWARE("instructions", NULL, INSTRUCTIONS, INSTRUCTIONS, CORE),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, BRANCHES, CORE),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, BRANCH_MISSES, CORE),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, CACHE_REFERENCES, CACHE),
	HARDWARE("cache-misses", NULL, CACHE_MISSES, CACHE_MISSES, CACHE),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, OTHER, OTHER),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, OTHER, OTHER),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, OTHER,
		 CORE),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, OTHER,
		 CORE),
};

/* NAME-OPs and NAME-OP-misses, as perf writes them: L1-dcache-loads, L1-dcache-load-misses. */
static const struct {
	const char *name;
	uint64_t id;
	enum counter_role loads;
	enum counter_role misses;
} caches[] = {
	{"L1-dcache", PERF_COUNT_HW_CACHE_L1D, COUNTER_L1D_LOADS, COUNTER_L1D_MISSES},
	{"L1-icache", PERF_COUNT_HW_CACHE_L1I, COUNTER_OTHER, COUNTER_OTHER},
	{"LLC", PERF_COUNT_HW_CACHE_LL, COUNTER_LLC_LOADS, COUNTER_LLC_MISSES},
	{"dTLB", PERF_COUNT_HW_CACHE_DTLB, COUNTER_DTLB_LOADS, COUNTER_DTLB_MISSES},
	{"iTLB", PERF_COUNT_HW_CACHE_ITLB, COUNTER_ITLB_LOADS, COUNTER_ITLB_MISSES},
	{"branch", PERF_COUNT_HW_CACHE_BPU, COUNTER_OTHER, COUNTER_OTHER},
	{"node", PERF_COUNT_HW_CACHE_NODE, COUNTER_OTHER, COUNTER_OTHER},
};
static const struct {
	const char *all;
	const char *misses;
	uint64_t id;
} cache_ops[] = {
	{"loads", "load-misses", PERF_COUNT_HW_CACHE_OP_READ},
	{"stores", "store-misses", PERF_COUNT_HW_CACHE_OP_WRITE},
	{"prefetches", "prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH},
};

static bool find_known(struct counter_event *e, struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!sv_eq_str(name, known[i].name) &&
		    !(known[i].other_name && sv_eq_str(name, known[i].other_name)))
			continue;
		e->type = known[i].type;
		e->config = known[i].config;
		e->role = known[i].role;
		e->family = known[i].family;
		e->is_time = known[i].role == COUNTER_CLOCK;
		return true;
	}
	return false;
}

static bool find_cache(struct counter_event *e, struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(caches); i++) {
		size_t n = strlen(caches[i].name);
		if (!sv_has_prefix(name, sv_from_str(caches[i].name)) || name.n <= n ||
		    name.p[n] != '-')
			continue;
		struct sv op = sv_from_idx(name, n + 1);
		for (size_t k = 0; k < ARRAY_LEN(cache_ops); k++) {
			bool is_misses = sv_eq_str(op, cache_ops[k].misses);
			bool is_read = cache_ops[k].id == PERF_COUNT_HW_CACHE_OP_READ;
			if (!is_misses && !sv_eq_str(op, cache_ops[k].all))
				continue;
			e->type = PERF_TYPE_HW_CACHE;
			e->config = caches[i].id | cache_ops[k].id << 8 | (uint64_t)is_misses << 16;
			e->role = !is_read    ? COUNTER_OTHER
				  : is_misses ? caches[i].misses
					      : caches[i].loads;
			e->family = FAMILY_CACHES + (unsigned)i;
			return true;
		}
	}
	return false;
}

static bool find_raw(struct counter_event *e, struct sv name)
{
	uint64_t config = 0;
	if (name.n < 2 || name.n > 17 || name.p[0] != 'r')
		return false;
	for (size_t i = 1; i < name.n; i++) {
		const char *digits = "0123456789abcdef";
		const char *at = name.p[i] ? strchr(digits, name.p[i]) : NULL;
		if (!at)
			return false;
		config = config << 4 | (uint64_t)(at - digits);
	}
	e->type = PERF_TYPE_RAW;
	e->config = config;
	e->family = FAMILY_OTHER;
	return true;
}

static int find_tracepoint(struct counter_event *e, struct sv name, struct err *err)
{
	CLEANUP(close_p) int fd = -1;
	uint32_t id;
	TRY(tracefs_open(&fd, err));
	TRY(tracefs_id(&id, fd, name, err));
	e->type = PERF_TYPE_TRACEPOINT;
	e->config = id;
	return 0;
}

static int unknown_error(struct sv name, struct err *err)
{
	struct suggest near = suggest_for(name);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		suggest_offer(&near, sv_from_str(known[i].name));
	err_set(err, -EINVAL, "there is no event '%.*s'", SV_ARGS(name));
	if (near.best.n)
		return err_hint(err, "did you mean %.*s?", SV_ARGS(near.best));
	return err_hint(err, "events are counted by the names of perf list: cycles, "
			     "L1-dcache-load-misses, page-faults, sched:sched_switch, r1a8");
}

/* The modifiers behind the last colon: "cycles:u". A tracepoint's name has a colon, too. */
static struct sv take_modifiers(struct counter_event *e, struct sv word)
{
	ssize_t colon = sv_rindex(word, ':');
	if (colon <= 0)
		return word;
	struct sv mods = sv_from_idx(word, (size_t)colon + 1);
	bool has_user = false;
	bool has_kernel = false;
	for (size_t i = 0; i < mods.n; i++) {
		if (mods.p[i] != 'u' && mods.p[i] != 'k')
			return word;
		has_user |= mods.p[i] == 'u';
		has_kernel |= mods.p[i] == 'k';
	}
	if (!mods.n)
		return word;
	e->has_no_user = !has_user;
	e->has_no_kernel = !has_kernel;
	return (struct sv){word.p, (size_t)colon};
}

static int add_word(struct counter_events *to, struct arena *a, struct sv word, struct err *err)
{
	struct counter_event e = {.name = arena_strndup(a, word.p, word.n)};
	struct sv name = take_modifiers(&e, word);
	if (to->n == COUNTERS_MAX)
		return err_set(err, -EINVAL, "at most %d events can be counted", COUNTERS_MAX);
	if (!find_known(&e, name) && !find_cache(&e, name) && !find_raw(&e, name)) {
		if (sv_rindex(name, ':') <= 0)
			return unknown_error(name, err);
		TRY(find_tracepoint(&e, name, err));
	}
	to->p[to->n++] = e;
	return 0;
}

int counter_events_add(struct counter_events *to, struct arena *a, const char *list,
		       struct err *err)
{
	for (struct sv rest = sv_from_str(list); rest.n;) {
		struct sv word = sv_trim(sv_split(&rest, ','));
		while (word.n && word.p[0] == '{')
			word = sv_from_idx(word, 1);
		while (word.n && word.p[word.n - 1] == '}')
			word.n--;
		if (word.n)
			TRY(add_word(to, a, word, err));
	}
	return 0;
}
