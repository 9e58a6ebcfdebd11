#include "base/base.h"

#include "arch.h"
#include "capture/bpf/copyref.h"
#include "tap.h"

struct reported {
	unsigned nr;
	uint64_t ref;
};

static int on_stack(void *ctx, const struct event *ev, struct err *err)
{
	struct reported *t = ctx;
	(void)err;
	t->nr += ev->kind == EVENT_STACK;
	t->ref = ev->stack.ref;
	return 0;
}

struct unwind_process {
	struct copyrefs refs;
	struct reported reported;
	uint64_t regs[64];
	uint64_t stack[16];
};

static uint64_t emit(struct unwind_process *w, int32_t pid)
{
	struct event_sink sink = {on_stack, &w->reported};
	struct event at = {.pid = pid, .tid = pid};
	uint64_t ref = 0;
	CHECK(!copyrefs_emit(&w->refs, &at, w->regs, (uint8_t *)w->stack, sizeof(w->stack), &sink,
			     &ref, NULL));
	return ref;
}

static void map(struct unwind_process *w, int32_t pid, uint64_t start, uint64_t len)
{
	struct event ev = {.kind = EVENT_MAP,
			   .pid = pid,
			   .map = {.start = start, .len = len, .is_exec = true}};
	copyrefs_apply(&w->refs, &ev);
}

TEST(copyref_reports_a_stack_once)
{
	struct unwind_process w = {0};
	map(&w, 1, 0x400000, 0x1000);
	w.regs[ARCH_PERF_IP] = 0x400010;
	w.regs[ARCH_PERF_SP] = 0x7f0000000000;
	w.stack[3] = 0x400100;
	uint64_t ref = emit(&w, 1);
	CHECK_U64(emit(&w, 1), ref);
	CHECK_U64(w.reported.nr, 1);
	CHECK_U64(w.reported.ref, ref);
	copyrefs_release(&w.refs);
}

TEST(copyref_hashes_code_and_stack_addresses_only)
{
	struct unwind_process w = {0};
	map(&w, 1, 0x400000, 0x1000);
	w.regs[ARCH_PERF_IP] = 0x400010;
	w.regs[ARCH_PERF_SP] = 0x7f0000000000;
	w.stack[3] = 0x400100;
	uint64_t ref = emit(&w, 1);
	w.stack[4] = 0x12345; /* data: does not affect the walk */
	CHECK_U64(emit(&w, 1), ref);
	w.stack[5] = 0x7f0000000020; /* may be a saved frame pointer */
	CHECK(emit(&w, 1) != ref);
	w.stack[5] = 0;
	w.stack[6] = 0x400200; /* a return address */
	CHECK(emit(&w, 1) != ref);
	w.stack[6] = 0;
	w.stack[7] = 0x400100; /* the same, at another place */
	w.stack[3] = 0;
	CHECK(emit(&w, 1) != ref);
	copyrefs_release(&w.refs);
}

TEST(copyref_distinguishes_processes_and_execs)
{
	struct unwind_process w = {0};
	map(&w, 1, 0x400000, 0x1000);
	struct event birth = {
		.kind = EVENT_FORK, .pid = 2, .tid = 2, .fork = {.ppid = 1, .ptid = 1}};
	copyrefs_apply(&w.refs, &birth);
	CHECK(copyrefs_is_code(&w.refs, 2, 0x400800));
	w.regs[ARCH_PERF_IP] = 0x400010;
	uint64_t ref = emit(&w, 1);
	uint64_t child = emit(&w, 2);
	CHECK(ref != child);
	struct event exec = {
		.kind = EVENT_COMM, .pid = 2, .tid = 2, .comm = {.name = "x", .is_exec = true}};
	copyrefs_apply(&w.refs, &exec);
	CHECK(!copyrefs_is_code(&w.refs, 2, 0x400800));
	CHECK(emit(&w, 2) != child);
	copyrefs_release(&w.refs);
}

TEST(copyref_merges_ranges_of_code)
{
	struct unwind_process w = {0};
	map(&w, 1, 0x3000, 0x1000);
	map(&w, 1, 0x1000, 0x1000);
	map(&w, 1, 0x8000, 0x1000);
	map(&w, 1, 0x1800, 0x2000); /* over the first two */
	CHECK(copyrefs_is_code(&w.refs, 1, 0x1000) && copyrefs_is_code(&w.refs, 1, 0x3fff));
	CHECK(!copyrefs_is_code(&w.refs, 1, 0xfff) && !copyrefs_is_code(&w.refs, 1, 0x4000));
	CHECK(copyrefs_is_code(&w.refs, 1, 0x8fff) && !copyrefs_is_code(&w.refs, 1, 0x9000));
	copyrefs_release(&w.refs);
}
