/* capture/perf/record: decoding of perf records: valid, truncated, and with wrong counts. */
#include "base/base.h"
#include "tap.h"

#include "arch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "capture/perf/record.h"

#define NR_REGS ((unsigned)__builtin_popcountll(ARCH_PERF_REGS_MASK))

static const struct perf_event_attr plain = {.sample_type = PERF_SAMPLE_IP, .build_id = 1};
static const struct perf_event_attr no_build_ids = {.sample_type = PERF_SAMPLE_IP};
static const struct perf_event_attr with_chain = {.sample_type = PERF_SAMPLE_CALLCHAIN};
static const struct perf_event_attr with_stack = {
	.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_USER};

/* Records are 8-byte aligned; buf's memory is. */
static void start(struct buf *b, uint32_t type, uint16_t misc)
{
	buf_clear(b);
	buf_add_u32le(b, type);
	buf_add_u32le(b, misc); /* misc, and the size that finish() sets */
}

static const struct perf_event_header *finish(struct buf *b)
{
	struct perf_event_header *h = (void *)b->p;
	h->size = (uint16_t)b->n;
	return h;
}

static void add_ids(struct buf *b, uint32_t pid, uint32_t tid)
{
	buf_add_u32le(b, pid);
	buf_add_u32le(b, tid);
}

static const struct perf_event_header *finish_side(struct buf *b, uint64_t time_ns)
{
	add_ids(b, 70, 71);
	buf_add_u64le(b, time_ns);
	buf_add_u32le(b, 3);
	buf_add_u32le(b, 0);
	return finish(b);
}

static void start_sample(struct buf *b, uint16_t misc)
{
	start(b, PERF_RECORD_SAMPLE, misc);
	buf_add_u64le(b, 0x401000);
	add_ids(b, 70, 71);
	buf_add_u64le(b, 5000);
	buf_add_u32le(b, 2);
	buf_add_u32le(b, 0);
	buf_add_u64le(b, 1001001);
}

static void add_chain(struct buf *b)
{
	buf_add_u64le(b, 3);
	buf_add_u64le(b, CHAIN_USER);
	buf_add_u64le(b, 0x401000);
	buf_add_u64le(b, 0x402000);
}

static void add_user_stack(struct buf *b, uint64_t abi, uint64_t asked, uint64_t got)
{
	buf_add_u64le(b, abi);
	for (unsigned i = 0; abi && i < NR_REGS; i++)
		buf_add_u64le(b, 1000 + i);
	buf_add_u64le(b, asked);
	for (uint64_t i = 0; i < asked; i += 8)
		buf_add_u64le(b, 0xabcd0000 + i);
	if (asked)
		buf_add_u64le(b, got);
}

TEST(record_sample_has_its_fields)
{
	CLEANUP(buf_release) struct buf b = {0};
	start_sample(&b, PERF_RECORD_MISC_USER);
	add_chain(&b);
	add_user_stack(&b, ARCH_PERF_ABI_64, 64, 40);
	const struct perf_event_header *h = finish(&b);
	struct event ev;
	CHECK(record_decode(&with_stack, h, &ev) == RECORD_DECODED);
	CHECK_U64(record_time_ns(&with_stack, h), 5000);
	CHECK(ev.kind == EVENT_SAMPLE && ev.pid == 70 && ev.tid == 71 && ev.cpu == 2);
	CHECK_U64(ev.time_ns, 5000);
	CHECK_U64(ev.sample.ip, 0x401000);
	CHECK_U64(ev.sample.period, 1001001);
	CHECK(ev.sample.is_user && !ev.sample.is_compat && !ev.sample.is_stack_full);
	CHECK_U64(ev.sample.nr_chain, 3);
	CHECK_U64(ev.sample.chain[2], 0x402000);
	CHECK_U64(ev.sample.regs[NR_REGS - 1], 1000 + NR_REGS - 1);
	CHECK_U64(ev.sample.nr_stack, 40);
	CHECK_U64(ev.sample.stack[2], 0xcd);
}

TEST(record_sample_of_an_exiting_task_has_no_registers)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct event ev;
	start_sample(&b, PERF_RECORD_MISC_KERNEL);
	add_chain(&b);
	add_user_stack(&b, 0, 0, 0);
	CHECK(record_decode(&with_stack, finish(&b), &ev) == RECORD_DECODED);
	CHECK(!ev.sample.regs && !ev.sample.stack && !ev.sample.nr_stack && !ev.sample.is_user);

	start_sample(&b, PERF_RECORD_MISC_USER);
	add_chain(&b);
	add_user_stack(&b, ARCH_PERF_ABI_64 - 1, 16, 16);
	CHECK(record_decode(&with_stack, finish(&b), &ev) == RECORD_DECODED);
	CHECK(ev.sample.is_compat && ev.sample.is_stack_full);
}

TEST(record_sample_cut_anywhere_is_bad)
{
	CLEANUP(buf_release) struct buf b = {0};
	start_sample(&b, PERF_RECORD_MISC_USER);
	add_chain(&b);
	add_user_stack(&b, ARCH_PERF_ABI_64, 64, 40);
	struct perf_event_header *h = (void *)b.p;
	size_t whole = b.n;
	for (size_t n = 0; n < whole; n++) {
		/* A copy of exactly this size, so that a sanitizer detects a read beyond it. */
		struct perf_event_header *cut = xmemdup(h, MAX(n, sizeof(*h)));
		cut->size = (uint16_t)n;
		struct event ev;
		if (record_decode(&with_stack, cut, &ev) != RECORD_BAD)
			CHECK_U64(n, whole);
		(void)record_time_ns(&with_stack, cut);
		free(cut);
	}
}

TEST(record_with_wrong_counts_is_bad)
{
	static const uint64_t lies[] = {UINT64_MAX, UINT64_MAX / 8 + 2, 1ull << 61, 4, 1ull << 32};
	CLEANUP(buf_release) struct buf b = {0};
	struct event ev;
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		start_sample(&b, 0);
		buf_add_u64le(&b, lies[i]);
		buf_add_u64le(&b, 1);
		buf_add_u64le(&b, 2);
		buf_add_u64le(&b, 3);
		CHECK(record_decode(&with_chain, finish(&b), &ev) == RECORD_BAD);
	}
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		start_sample(&b, 0);
		add_chain(&b);
		buf_add_u64le(&b, 0);
		buf_add_u64le(&b, lies[i] | 8);
		buf_add_u64le(&b, 0);
		CHECK(record_decode(&with_stack, finish(&b), &ev) == RECORD_BAD);
	}
	/* More valid bytes than were copied. */
	start_sample(&b, 0);
	add_chain(&b);
	add_user_stack(&b, ARCH_PERF_ABI_64, 16, UINT64_MAX);
	CHECK(record_decode(&with_stack, finish(&b), &ev) == RECORD_DECODED);
	CHECK_U64(ev.sample.nr_stack, 16);
}

static void add_map(struct buf *b, uint8_t nr_build_id, const char *path, size_t nr_path)
{
	start(b, PERF_RECORD_MMAP2, nr_build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
	add_ids(b, 70, 71);
	buf_add_u64le(b, 0x400000);
	buf_add_u64le(b, 0x2000);
	buf_add_u64le(b, 0x1000);
	if (nr_build_id) {
		buf_add_u32le(b, nr_build_id);
		for (unsigned i = 0; i < 5; i++)
			buf_add_u32le(b, 0x01010101u * (i + 1));
	} else {
		buf_add_u32le(b, 8);
		buf_add_u32le(b, 1);
		buf_add_u64le(b, 4711);
		buf_add_u64le(b, 0);
	}
	buf_add_u32le(b, 5);
	buf_add_u32le(b, 2);
	buf_add(b, path, nr_path);
}

TEST(record_map_is_by_inode_or_build_id)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct event ev;
	add_map(&b, 0, "/bin/x\0\0", 8);
	CHECK(record_decode(&plain, finish_side(&b, 9000), &ev) == RECORD_DECODED);
	CHECK(ev.kind == EVENT_MAP && ev.pid == 70 && ev.cpu == 3 && ev.map.is_exec);
	CHECK_U64(ev.time_ns, 9000);
	CHECK_U64(ev.map.inode, 4711);
	CHECK_U64(ev.map.pgoff, 0x1000);
	CHECK_STR(ev.map.path, "/bin/x");
	static const uint8_t lengths[] = {1, 16, 20, 21, 255}; /* the last two do not fit */
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		add_map(&b, lengths[i], "/bin/x\0\0", 8);
		CHECK(record_decode(&plain, finish_side(&b, 9000), &ev) == RECORD_DECODED);
		CHECK_U64(ev.map.nr_build_id, MIN(lengths[i], 20));
		CHECK_U64(ev.map.build_id[0], 1);
		CHECK_U64(ev.map.build_id[19], lengths[i] < 20 ? 0 : 5);
		CHECK_U64(ev.map.inode, 0);
		CHECK_STR(ev.map.path, "/bin/x");
	}
	/* The flag of another perf user, which the kernel left set in this record. */
	add_map(&b, 0, "/bin/x\0\0", 8);
	((struct perf_event_header *)(void *)b.p)->misc = PERF_RECORD_MISC_MMAP_BUILD_ID;
	CHECK(record_decode(&no_build_ids, finish_side(&b, 9000), &ev) == RECORD_DECODED);
	CHECK_U64(ev.map.inode, 4711);
	CHECK_U64(ev.map.nr_build_id, 0);
	add_map(&b, 0, "/without", 8);
	CHECK(record_decode(&plain, finish_side(&b, 9000), &ev) == RECORD_BAD);
}

TEST(record_fork_comm_and_exit_are_decoded)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct event ev;
	start(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	add_ids(&b, 80, 81);
	buf_add(&b, "worker\0\0", 8);
	CHECK(record_decode(&plain, finish_side(&b, 1), &ev) == RECORD_DECODED);
	CHECK(ev.kind == EVENT_COMM && ev.pid == 80 && ev.tid == 81 && ev.comm.is_exec);
	CHECK_STR(ev.comm.name, "worker");

	for (unsigned type = PERF_RECORD_EXIT; type <= PERF_RECORD_FORK; type++) {
		if (type != PERF_RECORD_EXIT && type != PERF_RECORD_FORK)
			continue;
		start(&b, type, 0);
		add_ids(&b, 80, 1);
		add_ids(&b, 81, 2);
		buf_add_u64le(&b, 77);
		CHECK(record_decode(&plain, finish_side(&b, 1), &ev) == RECORD_DECODED);
		CHECK(ev.kind == (type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT));
		CHECK(ev.pid == 80 && ev.tid == 81 && ev.fork.ppid == 1 && ev.fork.ptid == 2);
	}

	start(&b, PERF_RECORD_LOST, 0);
	buf_add_u64le(&b, 1);
	buf_add_u64le(&b, 12);
	CHECK(record_decode(&plain, finish_side(&b, 1), &ev) == RECORD_DECODED);
	CHECK(ev.kind == EVENT_LOST && ev.lost.nr == 12);
}

TEST(record_of_unknown_type_is_ignored_and_without_trailer_bad)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct event ev;
	start(&b, 4711, 0);
	CHECK(record_decode(&plain, finish_side(&b, 1), &ev) == RECORD_IGNORED);
	for (unsigned type = 0; type < 24; type++) {
		start(&b, type, 0);
		CHECK(record_decode(&plain, finish(&b), &ev) == RECORD_BAD);
		CHECK_U64(record_time_ns(&plain, finish(&b)), 0);
	}
}
