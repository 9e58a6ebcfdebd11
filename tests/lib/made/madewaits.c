/* Synthetic off-CPU recordings; see madewaits.h. */
#include "base/base.h"
#include "madewaits.h"

#include "made.h"

#define MS 1000000ll

struct profile *madewaits_new(unsigned seconds)
{
	struct profile *p = profile_new();
	p->start_ns = MADEWAITS_START_NS;
	p->end_ns = MADEWAITS_START_NS + (uint64_t)seconds * 1000 * MS;
	return p;
}

static task_id task_of(struct profile *p, int32_t pid, int32_t tid, const char *comm)
{
	return profile_task(p, pid ? pid : 1, tid ? tid : 1, profile_cstr(p, comm ? comm : "main"),
			    MADEWAITS_START_NS);
}

static uint8_t log2_of(int64_t ns)
{
	return ns > 0 ? (uint8_t)(63 - __builtin_clzll((uint64_t)ns)) : 0;
}

void madewait(struct profile *p, const struct madewait *w)
{
	bool is_on = w->reason == WAIT_ON_CPU && !w->table;
	const char *event = w->table ? w->table : is_on ? "on-cpu" : "off-cpu";
	uint32_t table = tables_add(p, table_from_key(event), 0);
	int64_t ns = w->ms * MS + w->us * 1000;
	int64_t each = w->nr ? ns / w->nr : ns;
	bool is_interval = !is_on && strcmp(event, "blame") != 0;
	struct tag tag = {
		.reason = (uint8_t)w->reason,
		.evidence = (uint8_t)w->evidence,
		.log2_ns = is_interval ? log2_of(each) : LOG2_NONE,
		.syscall = -1,
		.object = profile_cstr(p, w->object ? w->object : ""),
		.detail = profile_cstr(p, w->detail ? w->detail : ""),
		.other = w->other ? task_of(p, w->pid, w->other_tid, w->other) : 0,
		.other_stack = w->other_stack ? made_stack(p, w->other_stack) : 0,
		.direct = w->direct ? task_of(p, w->pid, w->direct_tid, w->direct) : 0,
		.direct_stack = w->direct_stack ? made_stack(p, w->direct_stack) : 0,
	};
	int64_t values[3] = {w->nr, ns, each};
	stack_id stack = w->stack ? made_stack(p, w->stack) : 0;
	profile_tagged_sample(p, table, MADEWAITS_START_NS + w->second * 1000ull * MS, stack,
			      task_of(p, w->pid, w->tid, w->comm), -1, profile_tag(p, &tag),
			      values);
}

void madewaits_samples(struct profile *p, unsigned second, const char *comm, int32_t tid,
		       const char *stack, unsigned nr)
{
	uint32_t t = made_table(p, "cpu-clock", 2);
	for (unsigned i = 0; i < nr; i++)
		made_sample(p, t,
			    &(struct made){.stack = stack,
					   .comm = comm,
					   .pid = 1,
					   .tid = tid,
					   .ns = MADEWAITS_START_NS + second * 1000ull * MS +
						 (i + 1) * 1000ull * MS / (nr + 1),
					   .nr = 1,
					   .weight = MS});
}

/* ---- the service ------------------------------------------------------------------------- */

#define WORKER "start_thread libc.so.6;worker_loop server;handle_request server;"
#define APPEND WORKER "log_append server;"
#define LOCKED APPEND "pthread_mutex_lock libc.so.6;__lll_lock_wait libc.so.6;futex_wait [k]"
#define SYNCED APPEND "fsync libc.so.6;ext4_sync_file [k]"
#define POOL                                                         \
	"start_thread libc.so.6;pool_main server;pthread_cond_wait " \
	"libc.so.6;futex_wait [k]"
#define READER "main server;load_index server;pread64 libc.so.6;filemap_read [k]"

static void add_workers(struct profile *p, unsigned second)
{
	for (int32_t tid = 11; tid <= 13; tid++) {
		const char *comm = tid == 11 ? "worker-1" : tid == 12 ? "worker-2" : "worker-3";
		int32_t holder = tid == 13 ? 11 : tid + 1;
		const char *by = holder == 11 ? "worker-1" : holder == 12 ? "worker-2" : "worker-3";
		struct madewait w = {.second = second, .comm = comm, .tid = tid};
		struct madewait lock = w;
		lock.stack = LOCKED;
		lock.reason = WAIT_SYNC;
		lock.evidence = EVIDENCE_LOCK_WORD;
		lock.object = "lock 0x55d0c0de1040";
		lock.other = by;
		lock.other_tid = holder;
		lock.other_stack = APPEND "pthread_mutex_unlock libc.so.6";
		lock.nr = 40;
		lock.ms = 400;
		madewait(p, &lock);
		struct madewait blame = lock;
		blame.table = "blame";
		blame.detail = "fsync/1";
		blame.other_stack = SYNCED;
		blame.nr = 36;
		blame.ms = 360;
		madewait(p, &blame);
		blame.detail = "on_cpu/1";
		blame.other_stack = APPEND "pthread_mutex_unlock libc.so.6";
		blame.nr = 4;
		blame.ms = 40;
		madewait(p, &blame);
		w.stack = SYNCED;
		w.reason = WAIT_FSYNC;
		w.object = "/var/lib/server/log";
		w.evidence = EVIDENCE_BY_IRQ;
		w.nr = 30;
		w.ms = 250;
		madewait(p, &w);
		w.object = NULL;
		w.stack = LOCKED;
		w.reason = WAIT_RUN_QUEUE;
		w.detail = "woken";
		w.nr = 70;
		w.ms = 30;
		madewait(p, &w);
		w.stack = WORKER "parse server";
		w.detail = "preempted";
		w.nr = 5;
		w.ms = 20;
		madewait(p, &w);
		w = (struct madewait){.second = second,
				      .comm = comm,
				      .tid = tid,
				      .reason = WAIT_ON_CPU,
				      .nr = 75,
				      .ms = 300};
		madewait(p, &w);
	}
}

static void add_others(struct profile *p, unsigned second)
{
	static const char *const pool[] = {"pool-1", "pool-2", "pool-3", "pool-4"};
	for (int32_t i = 0; i < 4; i++)
		madewait(p, &(struct madewait){.second = second,
					       .comm = pool[i],
					       .tid = 21 + i,
					       .stack = POOL,
					       .reason = WAIT_SYNC,
					       .nr = 1,
					       .ms = 1000});
	struct madewait w = {.second = second,
			     .comm = "server",
			     .tid = 1,
			     .stack = READER,
			     .reason = WAIT_FILE_READ,
			     .evidence = EVIDENCE_IOWAIT,
			     .object = "/var/lib/server/index",
			     .nr = 100,
			     .ms = 200};
	madewait(p, &w);
	w = (struct madewait){.second = second,
			      .comm = "server",
			      .tid = 1,
			      .stack = "main server;event_loop server;epoll_wait libc.so.6;"
				       "ep_poll [k]",
			      .reason = WAIT_POLL,
			      .nr = 20,
			      .ms = 700};
	madewait(p, &w);
	w = (struct madewait){.second = second,
			      .comm = "server",
			      .tid = 1,
			      .reason = WAIT_ON_CPU,
			      .nr = 120,
			      .ms = 100};
	madewait(p, &w);
}

struct profile *madewaits_service(bool has_samples)
{
	struct profile *p = madewaits_new(2);
	profile_fact(p, FACT_RECORDER, "assay");
	profile_fact(p, FACT_KIND, has_samples ? "cpu" : "offcpu");
	profile_fact(p, FACT_TARGET, "server");
	for (unsigned second = 0; second < 2; second++) {
		add_workers(p, second);
		add_others(p, second);
		if (!has_samples)
			continue;
		madewaits_samples(p, second, "worker-1", 11, WORKER "parse server", 200);
		madewaits_samples(p, second, "worker-1", 11, WORKER "render server", 90);
		madewaits_samples(p, second, "worker-2", 12, WORKER "parse server", 280);
		madewaits_samples(p, second, "worker-3", 13, WORKER "render server", 60);
		madewaits_samples(p, second, "server", 1, "main server;load_index server", second);
	}
	p->losses.nr[LOSS_SEEN] = p->losses.nr[LOSS_WRITTEN] = has_samples ? 1261 : 0;
	profile_seal(p);
	return p;
}
