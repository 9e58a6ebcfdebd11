/* Facts: their keys, and what a profile holds of them; see facts.h. */
#include "base/base.h"
#include "model/facts.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "model/profile.h"

/* When a fact is a detail, which is shown only with -v. */
enum detail {
	DETAIL_NEVER,
	DETAIL_ALWAYS,
	DETAIL_IF_NUMBER, /* a note shows the number with its unit */
	DETAIL_IF_ONE,    /* "1" is the usual case */
	DETAIL_IF_USUAL,  /* the value begins with that of a machine that has memory */
	DETAIL_SECOND,    /* no detail, but first pages do not have it */
};

/* Keys are stored in files and must not change. */
static const struct {
	const char *key;
	enum detail detail;
	const char *usual; /* of DETAIL_IF_USUAL */
	const char *shown; /* of numbers of ns or bytes: the key without its unit */
	bool is_bytes;
} facts[FACT_NR] = {
	[FACT_RECORDER] = {"recorder", DETAIL_SECOND},
	[FACT_KIND] = {"kind", DETAIL_SECOND},
	[FACT_SOURCE] = {"source", DETAIL_SECOND},
	[FACT_HOST] = {"host", DETAIL_SECOND},
	[FACT_KERNEL] = {"kernel", DETAIL_SECOND},
	[FACT_ARCH] = {"arch", DETAIL_SECOND},
	[FACT_CPU] = {"cpu", DETAIL_SECOND},
	[FACT_CPUS] = {"cpus", DETAIL_SECOND},
	[FACT_TARGET] = {"target"},
	[FACT_CONTAINER] = {"container"},
	[FACT_CONTAINER_IMAGE] = {"container image"},
	[FACT_CONTAINER_ENGINE] = {"container engine", DETAIL_SECOND},
	[FACT_CONTAINER_ID] = {"container id", DETAIL_SECOND},
	[FACT_JOINED] = {"processes that joined"},
	[FACT_COMMAND] = {"command"},
	[FACT_STARTED_WHEN] = {"started when"},
	[FACT_TARGET_END] = {"target end"},
	[FACT_EXIT_STATUS] = {"exit status of the command", DETAIL_IF_USUAL, "0"},
	[FACT_PAGE_OF] = {"page of", DETAIL_ALWAYS},
	[FACT_REDACTED] = {"redacted"},
	[FACT_EVENT] = {"event"},
	[FACT_FREQUENCY] = {"frequency_hz", DETAIL_SECOND},
	[FACT_MODE] = {"mode", DETAIL_SECOND},
	[FACT_STACKS] = {"stacks", DETAIL_SECOND},
	[FACT_JIT_MAP] = {"JIT map"},
	[FACT_PYTHON] = {"Python frames", DETAIL_SECOND},
	[FACT_TAIL_CALLS] = {"inferred tail calls", DETAIL_ALWAYS},
	[FACT_CPU_TIME] = {"CPU time"},
	[FACT_CPU_TIME_NS] = {"CPU time ns", DETAIL_ALWAYS, .shown = "CPU time, exact"},
	[FACT_THROTTLED_NS] = {"throttled by CPU quota, ns", DETAIL_ALWAYS,
			       .shown = "throttled by CPU quota"},
	[FACT_OTHER_CPU] = {"other programs used", DETAIL_SECOND},
	[FACT_ACCURACY] = {"accuracy"},
	[FACT_NOT_RECORDED] = {"not recorded"},
	[FACT_REMEDY] = {"remedy"},
	[FACT_PROBLEM] = {"problem"},
	[FACT_DAMAGED] = {"damaged", DETAIL_ALWAYS},
	[FACT_RECORDING_NOTE] = {"recording-note"},
	[FACT_LOSSES_IGNORED] = {"losses"},
	[FACT_DUMPS] = {"dumps"},
	[FACT_STEAL] = {"stolen by the hypervisor (ns, all CPUs)", DETAIL_ALWAYS,
			.shown = "stolen by the hypervisor (all CPUs)"},
	[FACT_NO_ANSWER] = {"did not answer within 2 s"},
	[FACT_HEAP_ALLOCATOR] = {"heap allocator"},
	[FACT_HEAP_METHOD] = {"heap method", DETAIL_SECOND},
	[FACT_HEAP_SAMPLING] = {"heap sampling", DETAIL_IF_NUMBER,
				.shown = "heap sampling, a block per", .is_bytes = true},
	[FACT_HEAP_ATTACHED] = {"heap attached", DETAIL_ALWAYS},
	[FACT_HEAP_SLICES] = {"heap slices", DETAIL_ALWAYS, .shown = "heap recorded from"},
	[FACT_HEAP_TICK] = {"heap tick", DETAIL_ALWAYS, .shown = "heap resolution of ages"},
	[FACT_HEAP_ENDED] = {"heap ended", DETAIL_ALWAYS},
	[FACT_HEAP_PROGRAMS_ENDED] = {"heap programs ended", DETAIL_ALWAYS},
	[FACT_HEAP_KILLED] = {"heap processes killed", DETAIL_ALWAYS},
	[FACT_HEAP_DUMP] = {"heap dump"},
	[FACT_HEAP_DUMP_BAD_LINE] = {"heap dump first bad line"},
	[FACT_HEAP_ALLOCATIONS] = {"heap allocations counted", DETAIL_ALWAYS},
	[FACT_HEAP_BYTES] = {"heap bytes counted", DETAIL_ALWAYS,
			     .shown = "heap allocated, counted", .is_bytes = true},
	[FACT_HEAP_FREES] = {"heap frees counted", DETAIL_ALWAYS},
	[FACT_HEAP_FULL_FOR] = {"heap recorded in full", DETAIL_ALWAYS},
	[FACT_HEAP_SIZES] = {"heap allocations counted by size", DETAIL_ALWAYS},
	[FACT_HEAP_CHECK] = {"heap check", DETAIL_ALWAYS},
	[FACT_HEAP_PROCESSES] = {"heap processes", DETAIL_IF_ONE},
	[FACT_HEAP_UNPATCHED_NAME] = {"heap function not patched"},
	[FACT_HEAP_LOADED_LATER] = {"heap allocator loaded later"},
	[FACT_HEAP_RECORDER_STOPPED] = {"heap recorder stopped"},
	[FACT_HEAP_RECORDED_UNTIL] = {"heap recorded until"},
	[FACT_HEAP_THREADS_STOPPED] = {"heap threads stopped"},
	[FACT_HEAP_LONGEST_THREAD_STOP] = {"heap longest stop of a thread", DETAIL_ALWAYS},
	[FACT_HEAP_LONGEST_STOP] = {"heap longest stop"},
	[FACT_HEAP_RING_READING] = {"heap ring reading", DETAIL_ALWAYS},
	[FACT_HEAP_LONGEST_GAP] = {"heap rings not drained for"},
	[FACT_HEAP_TABLE_BYTES] = {"heap table bytes", DETAIL_ALWAYS,
				   .shown = "heap block tables of assay", .is_bytes = true},
	[FACT_HEAP_PROBES] = {"heap probes"},
	[FACT_GROWTH] = {"growth"},
	[FACT_MEMORY_MACHINE] = {"machine memory", .shown = "machine memory", .is_bytes = true},
	[FACT_MEMORY_LIMIT] = {"memory limit", .shown = "memory limit", .is_bytes = true},
	[FACT_MEMORY_PEAK] = {"memory peak"},
	[FACT_AT_LIMIT] = {"at the limit"},
	[FACT_OUT_OF_MEMORY] = {"out of memory"},
	[FACT_OOM_KILL] = {"OOM kill ns", DETAIL_ALWAYS, .shown = "last OOM kill after"},
	[FACT_MEMORY_PEAK_RSS] = {"memory peak RSS", DETAIL_ALWAYS, .shown = "memory peak RSS",
				  .is_bytes = true},
	[FACT_MEMORY_REFUSED] = {"memory refused"},
	[FACT_MEMORY_READINGS] = {"memory readings", DETAIL_ALWAYS},
	[FACT_MEMORY_PARTS] = {"memory parts", DETAIL_ALWAYS},
	[FACT_MEMORY_PRESSURE] = {"memory pressure", DETAIL_IF_USUAL,
				  "some threads stalled for 0 ns,"},
	[FACT_MEMORY_CGROUP] = {"memory cgroup", DETAIL_IF_USUAL,
				"no limit, times at a limit: 0, pages refaulted: 0"},
	[FACT_DISK_READS] = {"disk reads of the process"},
	[FACT_IO_NOTHING] = {"no I/O recorded"},
	[FACT_IO_SYNCS_ONLY] = {"read and write calls, minor faults"},
	[FACT_IO_CALLS_AT_START] = {"I/O calls in progress at start"},
	[FACT_BLOCK_IN_FLIGHT] = {"max block requests in flight"},
	[FACT_EVENTS_WITH_STACKS] = {"events with stacks"},
	[FACT_EVENTS_OF_MACHINE] = {"events of the whole machine"},
	[FACT_EVENTS_SINGLE_FOR] = {"single events recorded for"},
	[FACT_EVENTS_REFUSED] = {"events refused"},
	[FACT_NEVER_CALLED] = {"functions not entered during the capture"},
	[FACT_INTERVALS] = {"single waits kept", DETAIL_ALWAYS},
	[FACT_MASSIF_UNIT] = {"massif time unit"},
	[FACT_MASSIF_OPTIONS] = {"massif options"},
	[FACT_MASSIF_LAST_SITES] = {"massif's last snapshot with sites"},
	[FACT_MASSIF_BAD_LINE] = {"massif first bad line"},
	[FACT_HEAPTRACK_BAD_LINE] = {"heaptrack first bad line"},
	[FACT_FOLDED_ROUNDED] = {"folded counts rounded"},
	[FACT_FOLDED_BAD_LINE] = {"folded first bad line"},
	[FACT_DURATION] = {"duration"},
	[FACT_VIEW] = {"view"},
	[FACT_VERDICT] = {"verdict"},
	[FACT_CPUS_IN_USE] = {"CPUs in use"},
	[FACT_CONTEXT_SWITCHES] = {"context switches"},
	[FACT_READ_WRITE] = {"read/write"},
	[FACT_PROCESS] = {"process"},
	[FACT_ALLOCATOR] = {"allocator"},
	[FACT_ARENAS] = {"arenas"},
	[FACT_MACHINE] = {"machine"},
	[FACT_CGROUP] = {"cgroup"},
	[FACT_LIMIT] = {"limit"},
	[FACT_TIME] = {"time"},
	[FACT_PRESSURE] = {"pressure"},
	[FACT_BEFORE] = {"before"},
	[FACT_AFTER] = {"after"},
	[FACT_MARKS] = {"marks"},
};

const char *fact_key(enum fact_id id)
{
	ASSERT(id < FACT_NR);
	return facts[id].key;
}

enum fact_id fact_from_key(const char *key)
{
	enum fact_id id = 0;
	while (id < FACT_NR && strcmp(facts[id].key, key) != 0)
		id++;
	return id;
}

bool fact_is_detail(const char *key, const char *value)
{
	enum fact_id id = fact_from_key(key);
	switch (id < FACT_NR ? facts[id].detail : DETAIL_NEVER) {
	case DETAIL_NEVER:
	case DETAIL_SECOND:
		return false;
	case DETAIL_ALWAYS:
		return true;
	case DETAIL_IF_NUMBER:
		return value[0] >= '0' && value[0] <= '9';
	case DETAIL_IF_USUAL:
		return !strncmp(value, facts[id].usual, strlen(facts[id].usual));
	case DETAIL_IF_ONE:
		return !strcmp(value, "1");
	}
	return false;
}

bool fact_is_second(const char *key, const char *value)
{
	enum fact_id id = fact_from_key(key);
	return fact_is_detail(key, value) || (id < FACT_NR && facts[id].detail == DETAIL_SECOND);
}

const char *fact_shown(const char *key, const char *value, struct num_text *scratch,
		       const char **ret_value)
{
	enum fact_id id = fact_from_key(key);
	uint64_t nr;
	*ret_value = value;
	if (id == FACT_NR || !facts[id].shown || !sv_to_u64(sv_from_str(value), &nr))
		return key;
	*scratch = facts[id].is_bytes ? num_bytes(nr) : num_ns(nr);
	*ret_value = scratch->s;
	return facts[id].shown;
}

void profile_fact_text(struct profile *p, const char *key, const char *value)
{
	str_id k = profile_cstr(p, key);
	str_id v = profile_cstr(p, value);
	vec_foreach(f, &p->facts) {
		if (f->key == k) {
			f->value = v;
			return;
		}
	}
	vec_push(&p->facts, (struct fact){k, v});
}

const char *profile_get_fact_text(const struct profile *p, const char *key)
{
	vec_foreach(f, &p->facts)
		if (!strcmp(profile_text(p, f->key), key))
			return profile_text(p, f->value);
	return NULL;
}

void profile_fact(struct profile *p, enum fact_id id, const char *value)
{
	profile_fact_text(p, fact_key(id), value);
}

const char *profile_get_fact(const struct profile *p, enum fact_id id)
{
	return profile_get_fact_text(p, fact_key(id));
}

void profile_factf(struct profile *p, enum fact_id id, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf b = {0};
	va_list args;
	va_start(args, fmt);
	buf_vaddf(&b, fmt, args);
	va_end(args);
	profile_fact(p, id, buf_str(&b));
}

uint64_t profile_get_fact_nr(const struct profile *p, enum fact_id id)
{
	const char *text = profile_get_fact(p, id);
	uint64_t nr = 0;
	return text && sv_to_u64(sv_from_str(text), &nr) ? nr : 0;
}

void profile_fact_nr(struct profile *p, enum fact_id id, uint64_t nr)
{
	if (nr)
		profile_factf(p, id, "%" PRIu64, nr);
}

void profile_fact_ns(struct profile *p, enum fact_id id, uint64_t ns)
{
	profile_fact(p, id, num_ns(ns).s);
}

void profile_lose(struct profile *p, enum loss_kind kind, uint64_t nr)
{
	losses_add(&p->losses, kind, nr);
}
