/* format/perfdata: the reader on recordings of perf and on files made here, byte by byte. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "format/perf/perfdata.h"

/* ---- a sink that records its events ------------------------------------------------------- */

struct seen {
	uint64_t nr[EVENT_MARK + 1];
	uint64_t last_ns;
	uint64_t nr_disorder;
	uint64_t nr_lost;
	uint64_t nr_frames;
	uint64_t stop_after; /* events; 0 = never */
	uint64_t nr_events;
	struct event_sample last_sample;
	struct event last;
	uint64_t periods[8]; /* by spec */
};

static int see(void *ctx, const struct event *ev, struct err *err)
{
	struct seen *s = ctx;
	s->nr[ev->kind]++;
	if (ev->time_ns) {
		if (ev->time_ns < s->last_ns)
			s->nr_disorder++;
		s->last_ns = ev->time_ns;
	}
	if (ev->kind == EVENT_SAMPLE) {
		s->last_sample = ev->sample;
		s->nr_frames += ev->sample.nr_chain;
		if (ev->sample.spec < ARRAY_LEN(s->periods))
			s->periods[ev->sample.spec] += ev->sample.period;
	}
	if (ev->kind == EVENT_LOST)
		s->nr_lost += ev->lost.nr;
	s->last = *ev;
	if (s->stop_after && ++s->nr_events == s->stop_after)
		return err_set(err, -EBADMSG, "enough");
	return 0;
}

/* ---- files made here ---------------------------------------------------------------------- */

struct maker {
	struct buf data;
	struct perf_event_attr attr;
};

static void record(struct maker *m, uint32_t type, uint16_t misc, const void *p, size_t n)
{
	buf_add_u32le(&m->data, type);
	buf_add_u16le(&m->data, misc);
	buf_add_u16le(&m->data, (uint16_t)(8 + n));
	buf_add(&m->data, p, n);
}

/* A sample with IP, TID, TIME. */
static void simple_sample(struct maker *m, uint64_t time_ns)
{
	uint64_t body[] = {0x1000, (uint64_t)7 << 32 | 7, time_ns};
	record(m, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, body, sizeof(body));
}

static void round_end(struct maker *m)
{
	record(m, 68, 0, NULL, 0);
}

/* The whole file: header, one attribute per id given (0 ids: one without), data. */
static void finish(struct maker *m, const uint64_t *ids, unsigned nr_ids, struct buf *to)
{
	unsigned nr = nr_ids ? nr_ids : 1;
	uint64_t ids_off = 104;
	uint64_t attrs_off = ids_off + nr_ids * 8;
	uint64_t each = sizeof(m->attr) + 16;
	uint64_t data_off = attrs_off + nr * each;
	const uint64_t header[] = {0x32454c4946524550ull,
				   104,
				   each,
				   attrs_off,
				   nr * each,
				   data_off,
				   m->data.n,
				   0,
				   0,
				   0,
				   0,
				   0,
				   0};
	buf_add(to, header, sizeof(header));
	buf_add(to, ids, nr_ids * 8);
	for (unsigned i = 0; i < nr; i++) {
		m->attr.size = sizeof(m->attr);
		buf_add(to, &m->attr, sizeof(m->attr));
		buf_add_u64le(to, nr_ids ? ids_off + i * 8 : 0);
		buf_add_u64le(to, nr_ids ? 8 : 0);
	}
	buf_add(to, m->data.p, m->data.n);
	buf_release(&m->data);
}

static int read_all(const struct buf *file, struct seen *seen, struct perfdata_info *info,
		    struct err *err)
{
	struct event_sink sink = {see, seen};
	return perfdata_read(file->p, file->n, &sink, info, err);
}

static struct maker simple_maker(void)
{
	return (struct maker){
		.attr = {.type = PERF_TYPE_SOFTWARE,
			 .sample_period = 5,
			 .sample_id_all = 1,
			 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME}};
}

TEST(perfdata_delivers_in_order_of_time_within_rounds)
{
	struct maker m = simple_maker();
	const uint64_t times[] = {10, 30, 50, 20, 40, 60, 0, 55, 70, 52, 65, 0, 90, 80};
	for (unsigned i = 0; i < ARRAY_LEN(times); i++) {
		if (times[i])
			simple_sample(&m, times[i]);
		else
			round_end(&m);
	}
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, NULL, 0, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(seen.nr[EVENT_SAMPLE], 12);
	CHECK_U64(seen.nr_disorder, 0);
	CHECK_U64(info.nr_late, 0);
	CHECK_U64(seen.periods[0], 12 * 5);
	CHECK_U64(info.first_ns, 10);
	CHECK_U64(info.last_ns, 90);
	CHECK(!info.is_incomplete);
}

TEST(perfdata_distinguishes_events_by_identifier)
{
	struct maker m = simple_maker();
	m.attr.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CPU;
	const uint64_t ids[] = {501, 502, 503};
	for (unsigned i = 0; i < 9; i++) {
		uint64_t body[] = {ids[i % 3], 0x1000, 0, i + 1, 3, (i % 3 + 1) * 100};
		record(&m, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body, sizeof(body));
	}
	uint64_t stray[] = {999, 0x1000, 0, 100, 3, 1};
	record(&m, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, stray, sizeof(stray));
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, ids, 3, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(info.specs.n, 3);
	CHECK_U64(info.specs.p[2].nr_samples, 3);
	CHECK_U64(seen.periods[0], 300);
	CHECK_U64(seen.periods[1], 600);
	CHECK_U64(seen.periods[2], 900);
	CHECK_U64(info.nr_unparsed, 1);
	CHECK(seen.last.cpu == 3 && !seen.last_sample.is_user);
}

/* All fields before those that are used: a wrong width would shift them. */
TEST(perfdata_lays_out_every_sample_field)
{
	struct maker m = {.attr = {.type = PERF_TYPE_RAW, .sample_id_all = 1}};
	m.attr.sample_type = (1u << 25) - 1;
	m.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
			     PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	m.attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
	m.attr.sample_regs_user = 0xf0;
	CLEANUP(buf_release) struct buf b = {0};
	const uint64_t start[] = {77, 0xabc, (uint64_t)12 << 32 | 11, 5000, 0xadd7, 77, 78, 2, 40};
	buf_add(&b, start, sizeof(start));
	const uint64_t read_group[] = {1, 900, 800, 40, 77, 0};
	buf_add(&b, read_group, sizeof(read_group));
	const uint64_t chain[] = {3, CHAIN_USER, 0xabc, 0xdef};
	buf_add(&b, chain, sizeof(chain));
	buf_add_u32le(&b, 12);
	buf_add(&b, "tracepoint!!", 12);
	const uint64_t branches[] = {2, 9, 1, 2, 3, 4, 5, 6};
	buf_add(&b, branches, sizeof(branches));
	const uint64_t regs[] = {PERF_SAMPLE_REGS_ABI_64, 101, 102, 103, 104};
	buf_add(&b, regs, sizeof(regs));
	const uint64_t stack[] = {16, 0x5555, 0x6666, 8};
	buf_add(&b, stack, sizeof(stack));
	const uint64_t rest[] = {1, 2, 3, 0, 4, 5, 6, 7, 0};
	buf_add(&b, rest, sizeof(rest));
	record(&m, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, b.p, b.n);
	CLEANUP(buf_release) struct buf file = {0};
	const uint64_t ids[] = {77};
	finish(&m, ids, 1, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(seen.nr[EVENT_SAMPLE], 1);
	const struct event_sample *s = &seen.last_sample;
	CHECK_U64(s->ip, 0xabc);
	CHECK(seen.last.pid == 11 && seen.last.tid == 12 && seen.last.cpu == 2);
	CHECK_U64(seen.last.time_ns, 5000);
	CHECK_U64(s->addr, 0xadd7);
	CHECK_U64(s->period, 40);
	CHECK(s->nr_chain == 3 && s->chain[2] == 0xdef);
	CHECK(s->nr_raw == 12 && !memcmp(s->raw, "tracepoint!!", 12));
	CHECK(s->regs_mask == 0xf0 && s->regs[3] == 104);
	CHECK(s->nr_stack == 8 && !s->is_stack_full && s->stack[0] == 0x55);
}

TEST(perfdata_side_records_take_time_and_thread_from_their_trailer)
{
	struct maker m = simple_maker();
	struct {
		uint32_t pid, tid;
		char comm[8];
		uint32_t at_pid, at_tid;
		uint64_t time_ns;
	} comm = {5, 6, "worker", 1, 2, 1234};
	record(&m, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &comm, sizeof(comm));
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, NULL, 0, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(seen.nr[EVENT_COMM], 1);
	CHECK(seen.last.pid == 5 && seen.last.tid == 6 && seen.last.comm.is_exec);
	CHECK_U64(seen.last.time_ns, 1234);
}

TEST(perfdata_distinguishes_forks_that_perf_found_from_those_that_happened)
{
	for (uint64_t time_ns = 0; time_ns < 2; time_ns++) {
		struct maker m = simple_maker();
		uint64_t fork[] = {(uint64_t)3 << 32 | 9, (uint64_t)3 << 32 | 9, time_ns,
				   (uint64_t)9 << 32 | 9, time_ns};
		record(&m, PERF_RECORD_FORK, 0, fork, sizeof(fork));
		CLEANUP(buf_release) struct buf file = {0};
		finish(&m, NULL, 0, &file);
		CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
		struct seen seen = {0};
		CHECK(!read_all(&file, &seen, &info, NULL));
		CHECK_U64(seen.nr[EVENT_FORK], 1);
		CHECK(seen.last.pid == 9 && seen.last.fork.ppid == 3);
		CHECK(seen.last.fork.is_synthesized == !time_ns);
	}
}

TEST(perfdata_counts_lost_samples_once_though_the_kernel_reports_twice)
{
	struct maker m = simple_maker();
	const uint64_t thread = (uint64_t)7 << 32 | 7;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t lost[] = {1, 10, thread, 100 + i};
		record(&m, PERF_RECORD_LOST, 0, lost, sizeof(lost));
	}
	uint64_t samples[] = {32, thread, 200};
	record(&m, PERF_RECORD_LOST_SAMPLES, 0, samples, sizeof(samples));
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, NULL, 0, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(info.nr_lost_records, 30);
	CHECK_U64(info.nr_lost_samples, 32);
	CHECK_U64(seen.nr_lost, 32);
}

TEST(perfdata_rejects_unsupported_files_with_a_reason)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} cases[] = {
		{"", 0, "is empty"},
		{"hello process, hello", 18, "is not a perf.data file"},
		{"2ELIFREP\0\0\0\0\0\0\0\x68", 16, "was recorded on a big-endian machine"},
		{"PERFFILE\x68\0\0\0\0\0\0\0", 16, "has the format of perf before 2010"},
		{"PERFILE2\x68\0\0\0\0\0\0\0", 16, "is truncated within its header"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
		CLEANUP(err_release) struct err err = {0};
		struct seen seen = {0};
		struct event_sink sink = {see, &seen};
		CHECK(perfdata_read(cases[i].bytes, cases[i].n, &sink, &info, &err) < 0);
		CHECK_STR(err_msg(&err), cases[i].says);
	}
}

TEST(perfdata_of_a_killed_perf_is_read_to_its_end)
{
	struct maker m = simple_maker();
	for (uint64_t t = 1; t <= 10; t++)
		simple_sample(&m, t);
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, NULL, 0, &file);
	memset(file.p + 48, 0, 8); /* the size of the data */
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	struct seen seen = {0};
	CHECK(!read_all(&file, &seen, &info, NULL));
	CHECK_U64(seen.nr[EVENT_SAMPLE], 10);
	CHECK(info.is_incomplete && info.problem);
}

TEST(perfdata_stops_when_the_sink_returns_an_error)
{
	struct maker m = simple_maker();
	for (uint64_t t = 1; t <= 10; t++)
		simple_sample(&m, t);
	CLEANUP(buf_release) struct buf file = {0};
	finish(&m, NULL, 0, &file);
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	CLEANUP(err_release) struct err err = {0};
	struct seen seen = {.stop_after = 4};
	CHECK(read_all(&file, &seen, &info, &err) == -EBADMSG);
	CHECK_STR(err_msg(&err), "enough");
	CHECK_U64(seen.nr[EVENT_SAMPLE], 4);
}

/* ---- recordings --------------------------------------------------------------------------- */

static const struct fixture {
	const char *path;
	const char *event;
	uint64_t nr_samples;
	uint64_t nr_specs;
} fixtures[] = {
	{"tests/fixtures/perfdata/fp.perfdata", "cpu-clock:ppp", 90, 1},
	{"tests/fixtures/perfdata/dwarf.perfdata", "cpu-clock:ppp", 19, 1},
	{"tests/fixtures/perfdata/pipe.perfdata", "cpu-clock:ppp", 56, 1},
	{"tests/fixtures/perfdata/z.perfdata", "cpu-clock:ppp", 201, 1},
	{"tests/fixtures/perfdata/multi.perfdata", "cpu-clock", 62, 3},
	{"tests/fixtures/perfdata/tp.perfdata", "sched:sched_switch", 13, 3},
	{"tests/fixtures/perfdata/bid.perfdata", "cpu-clock:ppp", 39, 1},
};

TEST(perfdata_recordings_have_as_many_samples_as_perf_says)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixtures); i++) {
		CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
		struct seen seen = {0};
		struct event_sink sink = {see, &seen};
		CLEANUP(close_p) int fd = open(fixtures[i].path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0);
		CHECK(!perfdata_read_fd(fd, &sink, &info, NULL));
		CHECK_U64(seen.nr[EVENT_SAMPLE], fixtures[i].nr_samples);
		CHECK_U64(info.specs.n, fixtures[i].nr_specs);
		CHECK_STR(info.specs.p[0].name, fixtures[i].event);
		CHECK_STR(info.arch, "x86_64");
		CHECK(seen.nr[EVENT_MAP] > 4 && seen.nr[EVENT_COMM] > 1 && seen.nr[EVENT_FORK] > 1);
		CHECK_U64(seen.nr_disorder + info.nr_late + info.nr_unparsed, 0);
	}
}

TEST(perfdata_memory_descriptor_and_pipe_give_the_same)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixtures); i++) {
		CLEANUP(perfdata_info_release) struct perfdata_info a = {0};
		CLEANUP(perfdata_info_release) struct perfdata_info b = {0};
		struct seen seen_a = {0};
		struct seen seen_b = {0};
		CLEANUP(buf_release) struct buf file = {0};
		CHECK(!file_read(&file, fixtures[i].path, (size_t)1 << 20, NULL));
		CHECK(!read_all(&file, &seen_a, &a, NULL));
		int fds[2];
		CHECK(!pipe(fds));
		(void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
		CHECK(!file_write_all(fds[1], file.p, file.n, NULL));
		close(fds[1]);
		struct event_sink sink = {see, &seen_b};
		CHECK(!perfdata_read_fd(fds[0], &sink, &b, NULL));
		close(fds[0]);
		CHECK(!memcmp(seen_a.nr, seen_b.nr, sizeof(seen_a.nr)));
		CHECK_U64(seen_a.nr_frames, seen_b.nr_frames);
	}
}

TEST(perfdata_cut_at_any_byte_gives_what_is_left_or_an_error)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixtures); i++) {
		CLEANUP(buf_release) struct buf file = {0};
		CHECK(!file_read(&file, fixtures[i].path, (size_t)1 << 20, NULL));
		size_t step = MAX(file.n / 400, 1) | 1;
		for (size_t n = 0; n < file.n; n += n < 512 ? 1 : step) {
			CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
			struct seen seen = {0};
			struct buf cut = {file.p, n, n};
			int rc = read_all(&cut, &seen, &info, NULL);
			CHECK(rc || info.is_incomplete || info.is_pipe);
		}
	}
}
