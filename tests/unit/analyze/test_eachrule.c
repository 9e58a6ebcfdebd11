/*
 * analyze/diagnose/rules: each built-in rule fires on a made recording that has what it is for, and does not
 * on one that looks alike and has it not.
 */
#include "base/base.h"
#include "tap.h"

#include "analyze/diagnose/diagnose.h"
#include "base/arena.h"
#include "base/clock.h"
#include "made.h"
#include "madeheap.h"
#include "madewaits.h"
#include "model/facts.h"
#include "model/heap.h"
#include "model/tables.h"
#include "model/wait.h"

#define FORM_WAITS 6

/* Calls, requests, faults or reclaims, with the bytes and the time of all. */
struct call {
	enum table_id table;
	const char *what;
	int syscall;
	const char *object;
	int64_t nr;
	int64_t bytes;
	int64_t us;
};

/* Readings of memory, one a second, in MiB. */
struct readings {
	unsigned nr;
	unsigned anon;
	unsigned anon_end;
	unsigned file;
	unsigned in_use; /* of the allocator; 0: not known */
	unsigned space;  /* MiB of address space: the memory is shared; 0: anonymous */
};

/* A recording of 4 s, or of @ms. */
struct form {
	struct madewait waits[FORM_WAITS]; /* up to the first without nr */
	const char *samples;               /* stacks and numbers: "main;f 600|main;g 400" */
	const char *facts;                 /* "key=value|key=value" */
	struct madeheap heap[3];
	struct call calls[3];
	struct readings readings;
	void (*add)(struct profile *p, int is_well);
	unsigned ms;
	unsigned pct_of_loss; /* of 1000 samples */
	enum loss_kind loss;
};

struct each {
	const char *rule;
	struct form ill;
	struct form well;
};

#define WAIT(reason_, stack_, ms_)                                                        \
	{                                                                                 \
		.comm = "a", .tid = 2, .reason = (reason_), .stack = (stack_), .nr = 500, \
		.ms = (ms_)                                                               \
	}
#define QUEUED(ms_)                                                                     \
	{                                                                               \
		.comm = "a", .tid = 2, .reason = WAIT_RUN_QUEUE, .detail = "preempted", \
		.stack = "main;f", .nr = 500, .ms = (ms_)                               \
	}
#define MUTEX "main app;look_up app;pthread_mutex_lock libc.so.6"
#define SEM   "main app;await app;sem_wait libc.so.6"
#define COND  "main app;put app;pthread_cond_wait libc.so.6"
#define GIL   "run py;take_gil py;pthread_cond_timedwait libc.so.6"
#define BUSY  WAIT(WAIT_ON_CPU, NULL, 3000)
#define SECOND_BUSY                                                                 \
	{                                                                           \
		.comm = "b", .tid = 3, .reason = WAIT_ON_CPU, .nr = 500, .ms = 3000 \
	}
#define FSYNC WAIT(WAIT_FSYNC, "main app;commit app;fsync libc.so.6", 2000)
#define LOSS(kind)                               \
	{.loss = (kind), .pct_of_loss = 60},     \
	{                                        \
		.loss = (kind), .pct_of_loss = 0 \
	}
#define LITTLE 100 /* ms of 4 s */

/* The same wait for most of the time, and for little of it, beside other work. */
#define OF_REASON(id, reason, stack)                              \
	{                                                         \
		id, {{WAIT(reason, stack, 2500)}},                \
		{                                                 \
			{                                         \
				WAIT(reason, stack, LITTLE), BUSY \
			}                                         \
		}                                                 \
	}

static void add_deadlock(struct profile *p, int is_well)
{
	for (int32_t tid = 2; tid < 4; tid++) {
		struct madewait w = {.comm = "t",
				     .tid = tid,
				     .reason = WAIT_SYNC,
				     .evidence = EVIDENCE_OPEN,
				     .stack = MUTEX,
				     .object = tid == 2 ? "lock 0x10" : "lock 0x20",
				     .other = "t",
				     .other_tid = is_well ? 4 : 5 - tid,
				     .other_stack = MUTEX,
				     .nr = 1,
				     .ms = 3000};
		madewait(p, &w);
		w.table = "blame";
		w.detail = "lock/1";
		madewait(p, &w);
	}
}

static void add_parker(struct profile *p, int is_well)
{
	for (int32_t tid = 2; tid < 5; tid++)
		madewait(p, &(struct madewait){.comm = "w",
					       .tid = tid,
					       .reason = WAIT_SYNC,
					       .evidence = EVIDENCE_OPEN |
							   (is_well ? 0 : EVIDENCE_AT_START),
					       .stack = "main app;serve app;sem_wait libc.so.6",
					       .object = "lock 0x1000",
					       .nr = 1,
					       .ms = 4000});
}

static void add_permits(struct profile *p, bool is_passed)
{
	for (int32_t i = 0; i < 2; i++)
		madewait(p, &(struct madewait){.comm = "worker",
					       .tid = 2 + i,
					       .reason = WAIT_SYNC,
					       .stack = SEM,
					       .object = "lock 0x1000",
					       .other = is_passed ? "boss" : "worker",
					       .other_tid = is_passed ? 9 : 3 - i,
					       .nr = 100,
					       .ms = 2000});
}

static void add_held(struct profile *p, int is_well)
{
	add_permits(p, is_well);
}

static void add_passed(struct profile *p, int is_well)
{
	add_permits(p, !is_well);
}

static void add_blamed(struct profile *p, enum wait_reason reason, const char *doing)
{
	struct madewait w = {.comm = "a",
			     .tid = 2,
			     .reason = reason,
			     .stack = "main app;take app;read libc.so.6",
			     .nr = 100,
			     .ms = 3500};
	madewait(p, &w);
	if (!doing)
		return;
	w.table = "blame";
	w.other = "b";
	w.other_tid = 3;
	w.other_stack = "main app;submit app;usleep libc.so.6";
	w.detail = doing;
	madewait(p, &w);
}

/* Waits for a lock; the well form: while its holder works for most of the time. */
static void add_held_in(struct profile *p, bool is_well, const char *doing, const char *stack)
{
	struct madewait w = WAIT(WAIT_SYNC, MUTEX, 2500);
	madewait(p, &w);
	w.table = "blame";
	w.other = "b";
	w.other_tid = 3;
	w.other_stack = stack;
	w.detail = doing;
	w.ms = is_well ? 1000 : 2500;
	madewait(p, &w);
	w.detail = "on_cpu/1";
	w.ms = is_well ? 1500 : 1;
	madewait(p, &w);
}

#define HELD_IN(name, doing, stack)                                     \
	static void name(struct profile *p, int is_well)                \
	{                                                               \
		add_held_in(p, is_well, doing "/1", "main app;" stack); \
	}
HELD_IN(add_synced, "fsync", "append app;fdatasync libc.so.6")
HELD_IN(add_read, "file_read", "load app;pread64 libc.so.6")
HELD_IN(add_asked, "net", "ask app;recv libc.so.6")
HELD_IN(add_slept, "sleep", "retry app;usleep libc.so.6")
HELD_IN(add_starved, "run_queue", "count app")
HELD_IN(add_reclaimed, "reclaim", "grow app")

/* In both forms. */
static void add_starved_lock(struct profile *p, int is_well)
{
	(void)is_well;
	add_starved(p, 0);
}

static void add_pipe(struct profile *p, int is_well)
{
	add_blamed(p, WAIT_PIPE, is_well ? "sleep/1" : "fsync/1");
}

static void add_idle_pipe(struct profile *p, int is_well)
{
	add_pipe(p, !is_well);
}

static void add_other(struct profile *p, int is_well)
{
	add_blamed(p, WAIT_SYNC, is_well ? NULL : "sleep/1");
}

/* Processes of 2 ms with three of four samples, or one of four. */
static void add_lives(struct profile *p, bool is_most)
{
	for (int32_t i = 0; i < 300; i++) {
		task_id task = profile_task(p, 100 + i, 100 + i, profile_cstr(p, "sh"),
					    p->start_ns + 1000);
		p->tasks.p[task].end_ns = p->start_ns + 2000000;
	}
	uint32_t t = made_table(p, "cpu-clock", 2);
	for (int32_t i = 0; i < 300; i++)
		made_sample(p, t,
			    &(struct made){.stack = "main;f",
					   .comm = "sh",
					   .pid = 100 + i,
					   .ns = p->start_ns + 2000,
					   .weight = is_most ? 3000000 : 1000000});
	madewaits_samples(p, 0, "a", 2, "main;g", is_most ? 300 : 900);
}

static void add_most(struct profile *p, int is_well)
{
	add_lives(p, !is_well);
}

static void add_some(struct profile *p, int is_well)
{
	add_lives(p, is_well);
}

static void add_call(struct profile *p, const struct call *c)
{
	int64_t each = c->us * 1000 / c->nr;
	const struct tag tag = {.log2_ns = (uint8_t)(63 - __builtin_clzll((uint64_t)each | 1)),
				.syscall = (int16_t)c->syscall,
				.object = profile_cstr(p, c->object),
				.detail = profile_cstr(p, c->what)};
	bool has_bytes = c->table == TABLE_IO || c->table == TABLE_BLOCK;
	const int64_t values[] = {c->nr, has_bytes ? c->bytes : c->us * 1000,
				  has_bytes ? c->us * 1000 : each, each};
	profile_tagged_sample(p, tables_add(p, c->table, 0), p->start_ns,
			      made_stack(p, "main app;work app"),
			      profile_task(p, 1, 2, profile_cstr(p, "a"), p->start_ns), -1,
			      profile_tag(p, &tag), values);
}

static void add_readings(struct profile *p, const struct readings *r)
{
	const struct tag tag = {.log2_ns = LOG2_NONE, .syscall = -1};
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "a"), p->start_ns);
	p->end_ns = p->start_ns + r->nr * NS_PER_SEC;
	for (unsigned i = 0; i < r->nr; i++) {
		int64_t anon = (int64_t)(r->anon + (r->anon_end - r->anon) * i / r->nr) << 20;
		int64_t file = (int64_t)r->file << 20;
		bool is_shared = r->space != 0;
		const int64_t memory[HEAP_MEMORY_NR] = {
			[HEAP_MEMORY_RSS] = anon + file,
			[HEAP_MEMORY_ANON] = is_shared ? 1 << 20 : anon,
			[HEAP_MEMORY_SHMEM] = is_shared ? anon : 0,
			[HEAP_MEMORY_VIRTUAL] = (int64_t)r->space << 20,
			[HEAP_MEMORY_FILE] = file};
		const int64_t allocator[] = {(int64_t)r->in_use << 20, anon, anon, anon};
		uint64_t at = p->start_ns + i * NS_PER_SEC;
		profile_tagged_sample(p, tables_add(p, TABLE_MEMORY, 0), at, 0, task, -1,
				      profile_tag(p, &tag), memory);
		if (r->in_use)
			profile_tagged_sample(p, tables_add(p, TABLE_ALLOCATOR, 0), at, 0, task, -1,
					      profile_tag(p, &tag), allocator);
	}
}

/* 2 KiB a second, or all of them in the first second. */
static void add_leak(struct profile *p, int is_well)
{
	p->end_ns = p->start_ns + 40 * NS_PER_SEC;
	for (unsigned s = 0; s < 40; s++) {
		struct madeheap m = {.table = TABLE_ALLOCATED,
				     .second = is_well ? 0 : s,
				     .stack = "main;drip;malloc libc.so.6",
				     .size = 2048,
				     .nr = 1};
		madeheap(p, &m);
		m.table = TABLE_LIVE;
		madeheap(p, &m);
	}
}

#define FEW_CALLS(table)                                         \
	{                                                        \
		.calls = { {table, "read", 0, "f", 1, 100, 10} } \
	}
#define BLOCKS(kind, nr_temporary_)                                                     \
	{                                                                               \
		.table = (kind), .stack = "main;f;malloc", .size = 4096, .nr = 1000000, \
		.nr_temporary = (nr_temporary_)                                         \
	}

static const struct each table[] = {
	{"losses", LOSS(LOSS_LOST)},
	{"unsymbolized", LOSS(LOSS_UNSYM_NO_FILE)},
	{"truncated", LOSS(LOSS_TRUNC_FP)},
	{"steal",
	 {.facts = "cpus=2|stolen by the hypervisor (ns, all CPUs)=3000000000"},
	 {.facts = "cpus=2|stolen by the hypervisor (ns, all CPUs)=30000000"}},
	{"throttled",
	 {.facts = "throttled by CPU quota, ns=2000000000"},
	 {.facts = "throttled by CPU quota, ns=60000000"}},
	{"unaccounted", {{WAIT(WAIT_FSYNC, "main;f", 1000)}}, {{WAIT(WAIT_FSYNC, "main;f", 3900)}}},
	{"deadlock", {.add = add_deadlock}, {.add = add_deadlock}},
	{"blocked-executor",
	 {{WAIT(WAIT_FILE_READ, "main app;tokio::runtime::task::harness::poll_future app;ask app",
		900),
	   BUSY}},
	 {{WAIT(WAIT_FILE_READ, "main app;ask app", 900), BUSY}}},
	OF_REASON("backpressure", WAIT_BACKPRESSURE, "main app;send app"),
	{"permits", {.add = add_held}, {.add = add_held}},
	{"no-load", {{WAIT(WAIT_SYNC, COND, 3990)}}, {{WAIT(WAIT_SYNC, COND, 1500), FSYNC}}},
	{"held-throughout", {.add = add_parker}, {.add = add_parker}},
	{"lock-fsync", {.add = add_synced}, {.add = add_synced}},
	{"lock-file", {.add = add_read}, {.add = add_read}},
	{"lock-remote", {.add = add_asked}, {.add = add_asked}},
	{"lock-sleep", {.add = add_slept}, {.add = add_slept}},
	{"lock-cpu", {.add = add_starved}, {.add = add_starved}},
	{"lock-cpu", {.add = add_starved_lock}, {{QUEUED(6000)}, .add = add_starved_lock}},
	{"lock-memory", {.add = add_reclaimed}, {.add = add_reclaimed}},
	{"cpu-quota",
	 {{QUEUED(2000)}, .facts = "throttled by CPU quota, ns=1900000000"},
	 {{QUEUED(2000)}, .facts = "throttled by CPU quota, ns=1000000"}},
	{"cpu-taken",
	 {{QUEUED(2000), WAIT(WAIT_ON_CPU, NULL, 2000)}},
	 {{QUEUED(2000), WAIT(WAIT_ON_CPU, NULL, 1900), SECOND_BUSY}}},
	{"cpu-starved",
	 {{QUEUED(2000), WAIT(WAIT_ON_CPU, NULL, 1900), SECOND_BUSY}},
	 {{QUEUED(LITTLE), BUSY}}},
	{"on-cpu",
	 {{BUSY, WAIT(WAIT_FSYNC, "main;f", LITTLE)}},
	 {{WAIT(WAIT_ON_CPU, NULL, 1000), FSYNC}}},
	{"gil", {{WAIT(WAIT_SYNC, GIL, 2000)}}, {{WAIT(WAIT_SYNC, MUTEX, 2000)}}},
	{"lock", {{WAIT(WAIT_SYNC, MUTEX, 2000)}}, {{WAIT(WAIT_SYNC, COND, 2000), BUSY}}},
	{"postgres-locks",
	 {{WAIT(WAIT_LOCK, "main postgres;LockAcquireExtended postgres;ProcSleep postgres", 2000)}},
	 {{WAIT(WAIT_SYNC, MUTEX, 2000)}}},
	{"passed-permits", {.add = add_passed}, {.add = add_passed}},
	{"join",
	 {{WAIT(WAIT_SYNC, "main app;finish app;pthread_join libc.so.6", 2000)}},
	 {{WAIT(WAIT_SYNC, "main app;finish app;pthread_join libc.so.6", LITTLE), BUSY}}},
	OF_REASON("futex", WAIT_SYNC, "main app;my_lock app"),
	{"other-threads", {.add = add_other}, {.add = add_other}},
	OF_REASON("fsync", WAIT_FSYNC, "main app;commit app"),
	OF_REASON("file-read", WAIT_FILE_READ, "main app;load app"),
	OF_REASON("file-write", WAIT_FILE_WRITE, "main app;store app"),
	OF_REASON("file-other", WAIT_FILE_OTHER, "main app;open app"),
	OF_REASON("net", WAIT_NET, "main app;ask app"),
	{"pipe", {.add = add_pipe}, {.add = add_pipe}},
	{"pipe-idle", {.add = add_idle_pipe}, {.add = add_idle_pipe}},
	OF_REASON("major-faults", WAIT_FAULT, "main app;look_up app"),
	OF_REASON("reclaim", WAIT_RECLAIM, "main app;grow app"),
	OF_REASON("mmap-lock", WAIT_MMAP_LOCK, "main app;map app"),
	{"yield",
	 {{{.comm = "a",
	    .tid = 2,
	    .reason = WAIT_RUN_QUEUE,
	    .detail = "yielded",
	    .stack = "main app;spin app;sched_yield libc.so.6",
	    .nr = 500,
	    .ms = 2000}}},
	 {{{.comm = "a",
	    .tid = 2,
	    .reason = WAIT_RUN_QUEUE,
	    .detail = "yielded",
	    .stack = "main app;spin app;sched_yield libc.so.6",
	    .nr = 500,
	    .ms = LITTLE},
	   BUSY}}},
	{"cpu-idle", {.samples = "main;f 10"}, {.samples = "main;f 900"}},
	{"few-samples", {.ms = 200, .samples = "main;f 99"}, {.samples = "main;f 900"}},
	{"short-processes", {.add = add_most}, {.add = add_most}},
	{"some-short-processes", {.add = add_some}, {.add = add_some}},
	{"hot-path", {.samples = "main;run;f 900"}, {.samples = "a;f 300|b;f 300|c;f 300"}},
	{"hot-function", {.samples = "a;f 300|b;f 300|c;f 300"}, {.samples = "main;run;f 900"}},
	{"gc",
	 {.samples = "main;f 600|main;f;gc_collect_main;move_unreachable 300"},
	 {.samples = "main;f 600|main;gc_collector_of_mine 300"}},
	{"allocator",
	 {.samples = "main;f 600|main;f;malloc;_int_malloc 300"},
	 {.samples = "main;f 900|main;f;malloc;_int_malloc 50"}},
	{"spin",
	 {.samples = "main;f 600|main;f;pthread_spin_lock 300"},
	 {.samples = "main;f 600|main;f;pthread_spin_unlock 300"}},
	{"faulting",
	 {.samples = "main;f 600|main;f;asm_exc_page_fault [k];clear_page [k] 300"},
	 {.samples = "main;f 900|main;f;asm_exc_page_fault [k];clear_page [k] 50"}},
	{"reclaiming",
	 {.samples = "main;f 600|main;f;read;try_to_free_pages [k];shrink_node [k] 90"},
	 {.samples = "main;f 600|main;f;read;free_pages [k] 90"}},
	{"leak", {.readings = {40, 100, 200, 10}}, {.readings = {40, 100, 100, 10}}},
	{"fragmentation",
	 {.readings = {40, 200, 200, 10, 50}},
	 {.readings = {40, 200, 200, 10, 190}}},
	{"bloat",
	 {.readings = {40, 900, 900, 10}, .facts = "machine memory=1073741824"},
	 {.readings = {40, 100, 100, 10}, .facts = "machine memory=1073741824"}},
	{"growth-uncollected",
	 {.readings = {40, 100, 200, 10}, .samples = "node::Start;f 600"},
	 {.readings = {59, 100, 200, 10}, .samples = "node::Start;f 600"}},
	{"first-use",
	 {.readings = {40, 100, 200, 10, .space = 900}},
	 {.readings = {40, 100, 100, 10, .space = 900}}},
	{"page-cache", {.readings = {40, 10, 10, 300}}, {.readings = {40, 100, 100, 10}}},
	{"steady", {.readings = {40, 100, 100, 10}}, {.readings = {40, 100, 200, 10}}},
	{"growth-unclear", {.readings = {4, 100, 100, 10}}, {.readings = {40, 100, 100, 10}}},
	{"leak-site", {.add = add_leak}, {.add = add_leak}},
	{"heap-held",
	 {.heap = {BLOCKS(TABLE_ALLOCATED, 0), BLOCKS(TABLE_LIVE, 0)}},
	 {.heap = {BLOCKS(TABLE_ALLOCATED, 0)}}},
	{"heap-allocated",
	 {.heap = {BLOCKS(TABLE_ALLOCATED, 0)}},
	 {.heap = {BLOCKS(TABLE_LIVE, 0)}}},
	{"temporary",
	 {.heap = {BLOCKS(TABLE_ALLOCATED, 900000)}},
	 {.heap = {BLOCKS(TABLE_ALLOCATED, 9000)}}},
	{"io-time", FEW_CALLS(TABLE_IO), FEW_CALLS(TABLE_BLOCK)},
	{"io-bytes", FEW_CALLS(TABLE_IO), FEW_CALLS(TABLE_BLOCK)},
	{"small-syncs",
	 {.calls = {{TABLE_IO, "write", 1, "wal", 500, 500 * 200, 5000},
		    {TABLE_IO, "fsync", 74, "wal", 500, 0, 900000}}},
	 {.calls = {{TABLE_IO, "write", 1, "wal", 500, 500 << 20, 5000},
		    {TABLE_IO, "fsync", 74, "wal", 500, 0, 900000}}}},
	{"slow-syncs",
	 {.calls = {{TABLE_IO, "fsync", 74, "wal", 20, 0, 2000000}}},
	 {.calls = {{TABLE_IO, "fsync", 74, "wal", 20, 0, 20000}}}},
	{"small-reads",
	 {.calls = {{TABLE_IO, "read", 0, "f", 100000, 100000 * 64, 900000}}},
	 {.calls = {{TABLE_IO, "read", 0, "f", 100000, 100000 * 65536l, 900000}}}},
	{"disk-busy",
	 {.calls = {{TABLE_BLOCK, "read", -1, "sda", 1000, 4096000, 80000000}}},
	 {.calls = {{TABLE_BLOCK, "read", -1, "sda", 1000, 4096000, 900000}}}},
	{"disk-slow",
	 {.calls = {{TABLE_BLOCK, "read", -1, "sda", 300, 4096000, 30000000}}},
	 {.calls = {{TABLE_BLOCK, "read", -1, "sda", 300, 4096000, 300000}}}},
	{"swapping",
	 {.calls = {{TABLE_FAULTS, "major", -1, "[heap]", 500, 0, 50000}}},
	 {.calls = {{TABLE_FAULTS, "major", -1, "data.db", 500, 0, 50000}}}},
	{"direct-reclaim",
	 {.calls = {{TABLE_RECLAIM, "memcg", -1, "", 100, 0, 400000}}},
	 {.calls = {{TABLE_RECLAIM, "kswapd", -1, "", 100, 0, 400000}}}},
	{"minor-fault-rate",
	 {.calls = {{TABLE_FAULTS, "minor", -1, "[heap]", 500000, 0, 900000}}},
	 {.calls = {{TABLE_FAULTS, "minor", -1, "[heap]", 5000, 0, 9000}}}},
	{"faults-major",
	 {.calls = {{TABLE_FAULTS, "major", -1, "f", 5, 0, 500}}},
	 {.calls = {{TABLE_FAULTS, "minor", -1, "f", 5, 0, 50}}}},
	{"faults-no-major",
	 {.calls = {{TABLE_FAULTS, "minor", -1, "f", 5, 0, 50}}},
	 {.calls = {{TABLE_FAULTS, "major", -1, "f", 5, 0, 500}}}},
	{"faults-minor",
	 {.calls = {{TABLE_FAULTS, "minor", -1, "f", 5, 0, 50}}},
	 {.calls = {{TABLE_FAULTS, "major", -1, "f", 5, 0, 500}}}},
	{"kernel-share",
	 {.samples = "main;f 500|main;f;write;ksys_write [k] 500"},
	 {.samples = "main;f 900|main;f;write;ksys_write [k] 100"}},
};

static void add_samples(struct profile *p, const char *text)
{
	struct sv rest = sv_from_str(text);
	while (rest.n) {
		CLEANUP(arena_release) struct arena a = {0};
		struct sv one = sv_split(&rest, '|');
		ssize_t blank = sv_rindex(one, ' ');
		uint64_t nr = 0;
		CHECK(blank > 0 && sv_to_u64(sv_from_idx(one, (size_t)blank + 1), &nr));
		madewaits_samples(p, 0, "a", 2, arena_strndup(&a, one.p, (size_t)blank),
				  (unsigned)nr);
	}
}

static void add_facts(struct profile *p, const char *text)
{
	struct sv rest = sv_from_str(text);
	while (rest.n) {
		CLEANUP(arena_release) struct arena a = {0};
		struct sv value = sv_split(&rest, '|');
		struct sv key = sv_split(&value, '=');
		enum fact_id id = fact_from_key(arena_strndup(&a, key.p, key.n));
		CHECK(id < FACT_NR);
		if (id < FACT_NR)
			profile_fact(p, id, arena_strndup(&a, value.p, value.n));
	}
}

static struct profile *profile_of(const struct form *f, int is_well)
{
	bool is_heap = f->heap[0].nr || f->add == add_leak;
	struct profile *p = is_heap ? madeheap_new(4, 0) : madewaits_new(4);
	p->end_ns = f->ms ? p->start_ns + f->ms * 1000000ull : p->end_ns;
	for (size_t i = 0; i < FORM_WAITS && f->waits[i].nr; i++)
		madewait(p, &f->waits[i]);
	if (f->samples)
		add_samples(p, f->samples);
	for (size_t i = 0; i < ARRAY_LEN(f->heap) && f->heap[i].nr; i++)
		madeheap(p, &f->heap[i]);
	for (size_t i = 0; i < ARRAY_LEN(f->calls) && f->calls[i].nr; i++)
		add_call(p, &f->calls[i]);
	if (f->readings.nr)
		add_readings(p, &f->readings);
	if (f->add)
		f->add(p, is_well);
	if (f->facts)
		add_facts(p, f->facts);
	profile_seal(p);
	if (f->loss) {
		p->losses.nr[LOSS_SEEN] = 1000;
		p->losses.nr[LOSS_WRITTEN] = 1000;
		p->losses.nr[f->loss] = f->pct_of_loss * 10;
	}
	return p;
}

static enum diagnosis_state state_on(const struct form *f, int is_well, const char *id)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_of(f, is_well);
	enum diagnosis_state state = DIAGNOSIS_COULD_NOT_RUN;
	struct diagnoses d;
	CLEANUP(measures_free_p)
	struct measures *m = measures_new(p, &(struct select_spec){0}, NULL);
	rules_add_builtin(&rules, &a);
	diagnose_run(&d, &a, &rules, m, 0);
	for (size_t i = 0; i < d.nr; i++)
		if (!strcmp(d.all[i].rule->id, id))
			state = d.all[i].state;
	for (size_t i = 0; i < d.nr_fired; i++)
		CHECK(diagnose_sentence(&a, &d, d.fired[i])[0]);
	return state;
}

TEST(each_rule_fires_where_it_should_and_not_where_it_only_looks_so)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		enum diagnosis_state ill = state_on(&table[i].ill, 0, table[i].rule);
		enum diagnosis_state well = state_on(&table[i].well, 1, table[i].rule);
		if (ill != DIAGNOSIS_FIRED)
			tap_fail(__FILE__, __LINE__, "%s does not fire: %d", table[i].rule,
				 (int)ill);
		if (well == DIAGNOSIS_FIRED || well == DIAGNOSIS_EXPLAINED)
			tap_fail(__FILE__, __LINE__, "%s fires on the well form", table[i].rule);
	}
}

TEST(each_rule_has_a_row)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(rules_release) struct rules rules = {0};
	rules_add_builtin(&rules, &a);
	vec_foreach(rule, &rules.all) {
		size_t i = 0;
		while (i < ARRAY_LEN(table) && strcmp(table[i].rule, rule->id) != 0)
			i++;
		if (i == ARRAY_LEN(table))
			tap_fail(__FILE__, __LINE__, "no row for rule %s", rule->id);
	}
}

/* Of memory that grows, where half of the time is a wait. */
static const char *first_rule(struct arena *a, unsigned mib, unsigned mib_end)
{
	const struct form f = {{WAIT(WAIT_FSYNC, "main app;commit app", 20000),
				WAIT(WAIT_ON_CPU, NULL, 20000)},
			       .readings = {40, mib, mib_end, 10}};
	CLEANUP(rules_release) struct rules rules = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_of(&f, 0);
	CLEANUP(measures_free_p)
	struct measures *m = measures_new(p, &(struct select_spec){0}, NULL);
	struct diagnoses d;
	rules_add_builtin(&rules, a);
	diagnose_run(&d, a, &rules, m, 0);
	return d.nr_fired ? d.fired[0]->rule->id : "none";
}

TEST(growth_is_before_waits_if_it_is_much)
{
	CLEANUP(arena_release) struct arena a = {0};
	CHECK_STR(first_rule(&a, 1000, 1090), "leak"); /* 135 MiB a minute */
	CHECK_STR(first_rule(&a, 20, 30), "leak");     /* a third of what it had */
	CHECK_STR(first_rule(&a, 200, 210), "fsync");
}
