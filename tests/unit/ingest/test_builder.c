/*
 * ingest/builder: events made by hand, in any order and with any numbers; what the profile and
 * its losses say.
 */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "arch.h"
#include "ingest/builder.h"
#include "no_files.h"

#define CODE 0x400000ull

static const struct file_access files = {.open = open_nothing};

struct fixture {
	struct profile *p;
	struct builder *b;
	uint32_t table;
};

static struct fixture set_up(void)
{
	struct fixture f = {.p = profile_new()};
	f.b = builder_new(f.p, &(struct builder_options){.files = &files});
	struct table shape = builder_table_shape(f.p, "cpu-clock", 999);
	f.table = profile_table(f.p, &shape);
	builder_set_table(f.b, 2, f.table);
	return f;
}

static void tear_down(struct fixture *f)
{
	builder_free(f->b);
	profile_free(f->p);
}

static void emit(struct fixture *f, const struct event *ev)
{
	struct event_sink sink = builder_sink(f->b);
	CHECK(!sink.event(sink.ctx, ev, NULL));
}

static void emit_map(struct fixture *f, int32_t pid, uint64_t start, uint64_t len, const char *path)
{
	emit(f, &(struct event){.kind = EVENT_MAP,
				.pid = pid,
				.tid = pid,
				.time_ns = 10,
				.map = {.start = start,
					.len = len,
					.inode = 5,
					.is_exec = true,
					.path = path}});
}

static void emit_comm(struct fixture *f, int32_t pid, const char *name, bool is_exec)
{
	emit(f, &(struct event){.kind = EVENT_COMM,
				.pid = pid,
				.tid = pid,
				.time_ns = 11,
				.comm = {.name = name, .is_exec = is_exec}});
}

static void emit_fork(struct fixture *f, int32_t pid, int32_t tid, int32_t ppid)
{
	emit(f, &(struct event){.kind = EVENT_FORK,
				.pid = pid,
				.tid = tid,
				.time_ns = 12,
				.fork = {.ppid = ppid, .ptid = ppid}});
}

static void emit_exit(struct fixture *f, int32_t pid, int32_t tid, uint64_t time_ns)
{
	emit(f, &(struct event){.kind = EVENT_EXIT, .pid = pid, .tid = tid, .time_ns = time_ns});
}

static struct event sample_at(int32_t pid, uint64_t time_ns, uint64_t ip)
{
	return (struct event){.kind = EVENT_SAMPLE,
			      .pid = pid,
			      .tid = pid,
			      .time_ns = time_ns,
			      .cpu = 1,
			      .sample = {.spec = 2, .ip = ip, .period = 1000, .is_user = true}};
}

static void emit_sample(struct fixture *f, int32_t pid, uint64_t time_ns, uint64_t ip)
{
	struct event ev = sample_at(pid, time_ns, ip);
	emit(f, &ev);
}

static const struct table *samples(const struct fixture *f)
{
	return &f->p->tables.p[f->table];
}

/* Module of the leaf of sample @i, by name. */
static const char *module_of(const struct fixture *f, size_t i)
{
	const struct stack_node *s = &f->p->stacks.p[samples(f)->stack[i]];
	return profile_module_name(f->p, f->p->locations.p[s->loc].module);
}

static const struct task *task_of(const struct fixture *f, size_t i)
{
	return &f->p->tasks.p[samples(f)->task[i]];
}

/* The sum that must hold; see loss.h. */
static void check_sum(const struct fixture *f)
{
	const uint64_t *nr = f->p->losses.nr;
	CHECK_U64(nr[LOSS_SEEN],
		  nr[LOSS_WRITTEN] + nr[LOSS_LOST] + nr[LOSS_UNPARSED] + nr[LOSS_FILTERED]);
	CHECK_U64(nr[LOSS_WRITTEN], samples(f)->n);
}

/* /bin/applets was started as "list" or "sort"; asked about a library it fails the test. */
static int find_started(void *ctx, int32_t pid, const char *comm, const char *mapped,
			struct buf *to)
{
	(void)ctx;
	(void)pid;
	CHECK_STR(mapped, "/bin/applets");
	if (strcmp(comm, "list") != 0 && strcmp(comm, "sort") != 0)
		return -ENOENT;
	buf_addf(to, "/opt/links/%s", comm);
	return 0;
}

TEST(builder_names_a_program_as_it_was_started)
{
	static const struct file_access started = {.open = open_nothing, .invoked = find_started};
	static const struct {
		const char *comm;
		const char *module;
	} cases[] = {{"list", "list"},
		     {"sort", "sort"},
		     {"list", "list"},
		     {"renamed", "applets"},
		     {"applets", "applets"}};
	struct fixture f = set_up();
	builder_free(f.b);
	f.b = builder_new(f.p, &(struct builder_options){.files = &started});
	builder_set_table(f.b, 2, f.table);
	for (int i = 0; i < 5; i++) {
		emit_comm(&f, 10 + i, cases[i].comm, true);
		emit_map(&f, 10 + i, CODE, 0x1000, "/bin/applets");
		emit_map(&f, 10 + i, CODE + 0x1000, 0x1000, "/lib/libx.so.6");
		emit_sample(&f, 10 + i, 100 + 2 * (uint64_t)i, CODE + 1);
		emit_sample(&f, 10 + i, 101 + 2 * (uint64_t)i, CODE + 0x1001);
	}
	for (size_t i = 0; i < 5; i++) {
		CHECK_STR(module_of(&f, 2 * i), cases[i].module);
		CHECK_STR(module_of(&f, 2 * i + 1), "libx.so.6");
	}
	tear_down(&f);
}

/* A shell starts a wrapper script, which starts it again: python3, pyenv, python3. */
TEST(builder_knows_the_last_name_of_a_thread_that_gets_one_again)
{
	static const char *const names[] = {"python3", "pyenv", "python3", "python3"};
	struct fixture f = set_up();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		emit_comm(&f, 10, names[i], true);
		emit_sample(&f, 10, 100 + i, CODE);
	}
	for (int i = 0; i < 200;
	     i++) { /* a thread that is renamed with each job has not as many tasks */
		emit_comm(&f, 20, i % 2 ? "busy" : "idle", false);
		emit_sample(&f, 20, 300 + (uint64_t)i, CODE);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		CHECK_STR(profile_text(f.p, task_of(&f, i)->comm), names[i]);
	CHECK(f.p->tasks.n < 40);
	task_id wrapper = samples(&f)->task[1];
	profile_seal(f.p);
	CHECK_STR(profile_text(f.p, f.p->tasks.p[profile_last_task(f.p, wrapper)].comm), "python3");
	CHECK_STR(profile_text(f.p, f.p->tasks.p[profile_main_task(f.p, wrapper)].comm), "python3");
	tear_down(&f);
}

TEST(builder_maps_addresses_to_files_by_process)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	emit_map(&f, 20, CODE, 0x1000, "/bin/twenty");
	emit_sample(&f, 10, 100, CODE + 1);
	emit_sample(&f, 20, 101, CODE + 1);
	emit_sample(&f, 10, 102, CODE + 0x1000); /* one past the end */
	emit_sample(&f, 30, 103, CODE + 1);      /* a process never heard of */
	CHECK_STR(module_of(&f, 0), "ten");
	CHECK_STR(module_of(&f, 1), "twenty");
	CHECK_STR(module_of(&f, 2), "[unknown]");
	CHECK_STR(module_of(&f, 3), "[unknown]");
	CHECK_U64(samples(&f)->values[1], 1000);
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_fork_inherits_and_exec_forgets_mappings)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/sh");
	emit_comm(&f, 10, "sh", false);
	emit_fork(&f, 11, 11, 10);
	emit_sample(&f, 11, 100, CODE + 1);
	CHECK_STR(module_of(&f, 0), "sh");
	CHECK_STR(profile_text(f.p, task_of(&f, 0)->comm), "sh");
	emit_comm(&f, 11, "make", true);
	emit_sample(&f, 11, 101, CODE + 1);
	CHECK_STR(module_of(&f, 1), "[unknown]");
	emit_map(&f, 11, CODE, 0x1000, "/bin/make");
	emit_sample(&f, 11, 102, CODE + 1);
	CHECK_STR(module_of(&f, 2), "make");
	CHECK_STR(profile_text(f.p, task_of(&f, 2)->comm), "make");
	/* The parent is as it was. */
	emit_sample(&f, 10, 103, CODE + 1);
	CHECK_STR(module_of(&f, 3), "sh");
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_pid_that_is_used_again_is_another_task)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/old");
	emit_comm(&f, 10, "same", false);
	emit_sample(&f, 10, 100, CODE + 1);
	emit_exit(&f, 10, 10, 150);
	emit_fork(&f, 10, 10, 1);
	emit_map(&f, 10, CODE, 0x1000, "/bin/new");
	emit_comm(&f, 10, "fresh", false);
	emit_sample(&f, 10, 200, CODE + 1);
	CHECK_STR(module_of(&f, 0), "old");
	CHECK_STR(module_of(&f, 1), "new");
	CHECK(samples(&f)->task[0] != samples(&f)->task[1]);
	CHECK_U64(task_of(&f, 0)->end_ns, 150);
	CHECK_U64(task_of(&f, 1)->end_ns, 0);
	/* A thread's id that comes back in another process. */
	emit_fork(&f, 10, 55, 10);
	struct event ev = sample_at(10, 210, CODE + 1);
	ev.tid = 55;
	emit(&f, &ev);
	emit_exit(&f, 10, 55, 220);
	ev.pid = 20;
	ev.time_ns = 230;
	emit(&f, &ev);
	CHECK(task_of(&f, 2)->pid == 10 && task_of(&f, 3)->pid == 20);
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_exit_of_a_thread_leaves_its_process_mapped)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	emit_fork(&f, 10, 11, 10);
	emit_exit(&f, 10, 11, 90);
	emit_sample(&f, 10, 100, CODE + 1);
	CHECK_STR(module_of(&f, 0), "ten");
	emit_exit(&f, 10, 10, 110);
	emit_sample(&f, 10, 120, CODE + 1);
	CHECK_STR(module_of(&f, 1), "[unknown]");
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_keeps_kernel_above_user_frames)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	const uint64_t chain[] = {CHAIN_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
				  CHAIN_USER,   CODE + 8,           CODE + 0x10};
	for (unsigned round = 0; round < 3; round++) { /* twice from the cache */
		struct event ev = sample_at(10, 100 + round, chain[1]);
		ev.sample.is_user = false;
		ev.sample.chain = chain;
		ev.sample.nr_chain = ARRAY_LEN(chain);
		emit(&f, &ev);
	}
	static const char *const want[] = {"[kernel]", "[kernel]", "ten", "ten"};
	stack_id s = samples(&f)->stack[2];
	CHECK_U64(s, samples(&f)->stack[0]);
	for (size_t i = 0; i < ARRAY_LEN(want); i++, s = f.p->stacks.p[s].parent) {
		const struct location *l = &f.p->locations.p[f.p->stacks.p[s].loc];
		CHECK_STR(profile_module_name(f.p, l->module), want[i]);
		CHECK_U64(!!(l->flags & LOCATION_CALL), i == 1 || i == 3);
	}
	/* Then [truncated], since no rule says that nothing called. */
	CHECK(f.p->stacks.p[s].parent == 0 && s);
	CHECK_U64(f.p->losses.nr[LOSS_TRUNC_FP], 3);
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_takes_time_that_goes_backwards)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	static const uint64_t times[] = {500, 100, UINT64_MAX - 1, 0, 300};
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		emit_sample(&f, 10, times[i], CODE + 1);
	CHECK_U64(builder_last_ns(f.b), UINT64_MAX - 1);
	profile_seal(f.p);
	for (size_t i = 1; i < samples(&f)->n; i++)
		CHECK(samples(&f)->time_ns[i - 1] <= samples(&f)->time_ns[i]);
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_counts_what_it_leaves_out)
{
	struct fixture f = set_up();
	static const uint32_t specs[] = {0, 1, 3, 65535, UINT32_MAX};
	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		struct event ev = sample_at(10, 100, CODE);
		ev.sample.spec = specs[i];
		emit(&f, &ev);
	}
	emit(&f, &(struct event){.kind = EVENT_LOST, .lost = {.nr = 40}});
	emit(&f, &(struct event){.kind = EVENT_THROTTLE});
	CHECK_U64(f.p->losses.nr[LOSS_FILTERED], ARRAY_LEN(specs));
	CHECK_U64(f.p->losses.nr[LOSS_LOST], 40);
	CHECK_U64(f.p->losses.nr[LOSS_THROTTLED], 1);
	CHECK_U64(f.p->losses.nr[LOSS_SEEN], ARRAY_LEN(specs) + 40);
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_survives_mappings_that_cannot_be)
{
	struct fixture f = set_up();
	emit_map(&f, 10, UINT64_MAX - 0xfff, 0x2000, "/bin/wraps");
	emit_map(&f, 10, CODE, 0, "/bin/empty");
	CHECK_U64(f.p->mappings.n, 0);
	emit_map(&f, 10, 0, UINT64_MAX, "/bin/everything");
	emit_map(&f, 10, CODE, 0x1000, "");
	emit_map(&f, -1, CODE, 0x1000, "/bin/minus");
	emit_map(&f, 0, CODE, 0x1000, "[vsyscall]");
	for (unsigned i = 0; i < 500; i++) /* each cuts the ones before */
		emit_map(&f, 12, CODE + i * 16, 0x10000, i & 1 ? "/bin/odd" : "/bin/even");
	emit_sample(&f, 10, 100, UINT64_MAX - 5);
	emit_sample(&f, 10, 101, CODE + 1);
	emit_sample(&f, 12, 102, CODE + 16 * 3 + 1);
	emit_sample(&f, -1, 103, CODE + 1);
	emit_exit(&f, -1, -1, 104);
	CHECK_STR(module_of(&f, 2), "odd");
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_survives_stacks_that_lie)
{
	struct fixture f = set_up();
	uint64_t regs[64];
	uint8_t stack[256];
	for (size_t i = 0; i < ARRAY_LEN(regs); i++)
		regs[i] = UINT64_MAX - i;
	memset(stack, 0xfe, sizeof(stack));
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	emit_map(&f, 10, 0x7f0000000000, 0x1000, "//anon");
	static const uint64_t masks[] = {ARCH_PERF_REGS_MASK, 0, 1, 1ull << 63};
	for (size_t i = 0; i < 4 * ARRAY_LEN(masks); i++) {
		struct event ev = sample_at(10, 100 + i, CODE + 1);
		ev.sample.regs = regs;
		ev.sample.regs_mask = masks[i % ARRAY_LEN(masks)];
		ev.sample.stack = i & 4 ? stack : NULL;
		ev.sample.nr_stack = i & 4 ? sizeof(stack) : 0;
		ev.sample.is_stack_full = i & 8;
		regs[ARCH_PERF_IP] = i & 8 ? CODE + 1 : 0x7f0000000010;
		regs[ARCH_PERF_SP] = i & 4 ? UINT64_MAX - 8 : 0x1000;
		emit(&f, &ev);
	}
	CHECK_U64(losses_truncated(&f.p->losses), 4 * ARRAY_LEN(masks));
	check_sum(&f);
	tear_down(&f);
}

TEST(builder_survives_chains_that_lie)
{
	struct fixture f = set_up();
	emit_map(&f, 10, CODE, 0x1000, "/bin/ten");
	static uint64_t chain[70000];
	uint64_t seed = 7;
	for (size_t i = 0; i < ARRAY_LEN(chain); i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		chain[i] = i % 7 ? CODE + (seed >> 52) : UINT64_MAX - (seed >> 50);
	}
	static const uint32_t lengths[] = {0, 1, 2, 4096, 4097, ARRAY_LEN(chain)};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct event ev = sample_at(10, 100 + i, CODE + 1);
		ev.sample.chain = chain;
		ev.sample.nr_chain = lengths[i];
		emit(&f, &ev);
	}
	check_sum(&f);
	tear_down(&f);
}

/* ---- what asks for a longer copy --------------------------------------------------------- */

static void note_want(void *ctx, int32_t tid, uint64_t nr_bytes)
{
	uint64_t *got = ctx;
	got[0]++;
	CHECK_U64(nr_bytes, got[1]);
	CHECK(tid == 10);
}

TEST(builder_asks_for_more_stack_only_when_the_copy_was_full)
{
	uint64_t got[2] = {0, 16};
	struct fixture f = {.p = profile_new()};
	f.b = builder_new(f.p, &(struct builder_options){
				       .files = &files, .wants_more_stack = note_want, .ctx = got});
	struct table shape = builder_table_shape(f.p, "cpu-clock", 999);
	f.table = profile_table(f.p, &shape);
	builder_set_table(f.b, 2, f.table);
	emit_map(&f, 10, 0x7f0000000000, 0x1000, "//anon"); /* JIT: by frame pointers */
	uint64_t regs[64] = {0};
	regs[ARCH_PERF_IP] = 0x7f0000000010;
	regs[ARCH_PERF_SP] = 0x1000;
	regs[ARCH_PERF_FP] = 0x1100; /* past the copy */
	uint64_t stack[2] = {0};
	struct event ev = sample_at(10, 100, regs[ARCH_PERF_IP]);
	ev.sample.regs = regs;
	ev.sample.regs_mask = 0x1ff;
	ev.sample.stack = (const uint8_t *)stack;
	ev.sample.nr_stack = sizeof(stack);
	emit(&f, &ev);
	CHECK_U64(got[0], 0);
	ev.sample.is_stack_full = true;
	emit(&f, &ev);
	CHECK_U64(got[0], 1);
	CHECK_U64(f.p->losses.nr[LOSS_TRUNC_COPY], 2);
	check_sum(&f);
	tear_down(&f);
}
