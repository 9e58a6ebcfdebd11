/* format/perfdata: the writer, read back by the reader. */
#include "base/base.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/perf/perfdata.h"
#include "made.h"
#include "model/profile.h"

#define START_NS 5000000000ull

struct sample {
	uint64_t time_ns;
	int32_t pid;
	int32_t tid;
	uint32_t spec;
	uint64_t period;
	uint64_t ip;
	uint32_t nr_chain;
	uint64_t chain[16];
};

struct seen {
	VEC(struct sample) samples;
	uint64_t nr_comm;
	uint64_t nr_fork;
	uint64_t nr_exit;
	uint64_t nr_map;
	char names[256]; /* of kernel maps that are symbols, joined */
	char map_path[256];
	struct event_map map;
};

static int see(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	struct seen *s = ctx;
	if (ev->kind == EVENT_SAMPLE) {
		struct sample *x = vec_add(&s->samples);
		*x = (struct sample){.time_ns = ev->time_ns,
				     .pid = ev->pid,
				     .tid = ev->tid,
				     .spec = ev->sample.spec,
				     .period = ev->sample.period,
				     .ip = ev->sample.ip,
				     .nr_chain = ev->sample.nr_chain};
		memcpy(x->chain, ev->sample.chain,
		       MIN(ev->sample.nr_chain, ARRAY_LEN(x->chain)) * sizeof(uint64_t));
	}
	s->nr_comm += ev->kind == EVENT_COMM;
	s->nr_fork += ev->kind == EVENT_FORK;
	s->nr_exit += ev->kind == EVENT_EXIT;
	if (ev->kind == EVENT_MAP && !ev->map.is_kernel) {
		s->nr_map++;
		s->map = ev->map;
		snprintf(s->map_path, sizeof(s->map_path), "%s", ev->map.path);
	} else if (ev->kind == EVENT_MAP && ev->map.path[0] != '[') {
		size_t n = strlen(s->names);
		snprintf(s->names + n, sizeof(s->names) - n, "%s;", ev->map.path);
	}
	return 0;
}

/* Writes to a file in a temporary directory and reads it. */
static void round_trip(struct profile *p, struct seen *seen, struct perfdata_info *info,
		       struct perfdata_written *w)
{
	profile_seal(p);
	char dir[] = "/tmp/assay-perfdata-XXXXXX";
	CHECK(mkdtemp(dir));
	CLEANUP(free_p) char *path = xasprintf("%s/out", dir);
	CLEANUP(err_release) struct err err = {0};
	struct out o;
	CHECK(!out_open(&o, path, 0600, &err));
	struct format_output to = {.file = &o};
	struct format_options options = {.perfdata.ret_written = w};
	CHECK(!perfdata_write(&to, p, &options, &err));
	CHECK(!format_flush(&to, &err));
	CHECK(!err.msg);
	CHECK(!out_commit(&o, &err));
	out_release(&o);

	struct event_sink sink = {see, seen};
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!perfdata_read_fd(fd, &sink, info, &err));
	CHECK(!info->is_incomplete);
	CHECK_U64(info->nr_unparsed + info->nr_late, 0);
	struct file_info facts = {0};
	CHECK(!file_info_fd(&facts, fd, NULL));
	CHECK_U64(facts.nr_bytes, w->nr_bytes);
	(void)unlink(path);
	(void)rmdir(dir);
}

static uint32_t add_table(struct profile *p, const char *event, enum table_time time_kind)
{
	struct table shape = {.event = profile_cstr(p, event),
			      .time_kind = time_kind,
			      .nr_columns = 2,
			      .weight_column = 1,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, "period")}},
			      .freq_hz = 99};
	return profile_table(p, &shape);
}

static module_id add_elf(struct profile *p, const char *path)
{
	struct module m = {.kind = MODULE_ELF,
			   .path = profile_cstr(p, path),
			   .dev = (uint64_t)8 << 32 | 1,
			   .inode = 77,
			   .nr_build_id = 20};
	memset(m.build_id, 0xab, sizeof(m.build_id));
	return profile_module(p, &m);
}

static module_id add_kernel(struct profile *p)
{
	return profile_module(p, &(struct module){.kind = MODULE_KERNEL,
						  .path = profile_cstr(p, "[kernel.kallsyms]")});
}

TEST(perfdata_write_gives_back_addresses_contexts_and_facts)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	module_id elf = add_elf(p, "/bin/service");
	module_id kernel = add_kernel(p);
	vec_push(&p->mappings, (struct mapping){.module = elf,
						.pid = 10,
						.start = 0x400000,
						.len = 0x3000,
						.pgoff = 0x1000,
						.to_ns = UINT64_MAX});
	p->start_ns = START_NS;
	stack_id s = profile_stack(p, 0, profile_location(p, elf, 0x1800, LOCATION_CALL));
	s = profile_stack(p, s, profile_location(p, elf, 0x2010, LOCATION_CALL));
	s = profile_stack(p, s, profile_location(p, kernel, 0xffffffff81234567, LOCATION_KERNEL));
	task_id main_task = profile_task(p, 10, 10, profile_cstr(p, "service"), START_NS);
	task_id worker = profile_task(p, 10, 11, profile_cstr(p, "worker"), START_NS + 5);
	p->tasks.p[worker].end_ns = START_NS + 50;
	uint32_t cycles = add_table(p, "cycles:u", TABLE_TIME_INSTANT);
	uint32_t faults = add_table(p, "page-faults", TABLE_TIME_INSTANT);
	profile_sample(p, cycles, START_NS + 10, s, main_task, 1, (int64_t[]){1, 1234});
	profile_sample(p, faults, START_NS + 20, s, worker, 0, (int64_t[]){1, 1});
	profile_sample(p, cycles, START_NS + 30, 0, worker, -1, (int64_t[]){1, 99});
	profile_fact(p, FACT_HOST, "box");
	profile_fact(p, FACT_ARCH, "x86_64");
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);

	CHECK_U64(seen.samples.n, 3);
	const struct sample *a = &seen.samples.p[0];
	CHECK_U64(a->ip, 0xffffffff81234567);
	CHECK_U64(a->nr_chain, 5);
	const uint64_t want[] = {CHAIN_KERNEL, 0xffffffff81234567, CHAIN_USER, 0x401010, 0x400800};
	CHECK(!memcmp(a->chain, want, sizeof(want)));
	CHECK(a->pid == 10 && a->tid == 10 && a->period == 1234 && a->time_ns == START_NS + 10);
	CHECK(seen.samples.p[1].spec == 1 && seen.samples.p[1].tid == 11);
	CHECK_U64(seen.samples.p[2].nr_chain, 0);
	CHECK_STR(info.specs.p[0].name, "cycles:u");
	CHECK_STR(info.specs.p[1].name, "page-faults");
	CHECK_STR(info.hostname, "box");
	CHECK_U64(info.specs.p[0].freq_hz, 99);
	CHECK(seen.nr_comm == 2 && seen.nr_fork == 1 && seen.nr_exit == 1 && seen.nr_map == 1);
	CHECK(seen.map.start == 0x400000 && seen.map.inode == 77 && seen.map.dev_major == 8);
	CHECK(seen.map.nr_build_id == 20 && seen.map.build_id[19] == 0xab);
	CHECK_STR(seen.map_path, "/bin/service");
	CHECK_U64(w.nr_samples, 3);
	vec_release(&seen.samples);
}

TEST(perfdata_write_expands_rows_and_keeps_their_weight)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = profile_stack(p, 0, made_named(p, SV("main"), (struct sv){0}, 0));
	stack_id leaf = profile_stack(p, s, made_named(p, SV("work"), (struct sv){0}, 0));
	stack_id again = profile_stack(p, leaf, made_named(p, SV("main"), SV("libm.so"), 0));
	task_id task = profile_task(p, 0, 0, profile_cstr(p, "java"), 0);
	uint32_t t = add_table(p, "samples", TABLE_TIME_TIMELESS);
	profile_sample(p, t, 0, leaf, task, -1, (int64_t[]){7, 100});
	profile_sample(p, t, 0, again, task, -1, (int64_t[]){2, 2});
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);

	CHECK_U64(seen.samples.n, 9);
	uint64_t sum = 0;
	for (size_t i = 0; i < seen.samples.n; i++)
		sum += seen.samples.p[i].period;
	CHECK_U64(sum, 102);
	CHECK(seen.samples.p[0].pid > 0);
	CHECK(seen.samples.p[0].time_ns > 0);
	CHECK_U64(w.nr_named_frames, 2);
	CHECK_STR(seen.names, "main;work;");
	/* The same name is one symbol, also in different modules. */
	CHECK_U64(seen.samples.p[8].chain[1], seen.samples.p[8].chain[3]);
	CHECK(seen.samples.p[0].chain[1] != seen.samples.p[0].chain[2]);
	vec_release(&seen.samples);
}

TEST(perfdata_write_places_modules_whose_mapping_is_not_known)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	module_id lib = add_elf(p, "/lib/libx.so");
	module_id exe = add_elf(p, "/bin/parent");
	vec_push(&p->mappings, (struct mapping){.module = exe,
						.pid = 10,
						.start = 0x400000,
						.len = 0x3000,
						.to_ns = UINT64_MAX});
	stack_id s = profile_stack(p, 0, profile_location(p, exe, 0x800, LOCATION_CALL));
	s = profile_stack(p, s, profile_location(p, lib, 0x12345, 0));
	uint32_t t = add_table(p, "cpu-clock", TABLE_TIME_INSTANT);
	for (int32_t pid = 20; pid < 22; pid++)
		for (uint64_t i = 0; i < 3; i++)
			profile_sample(p, t, START_NS + i, s,
				       profile_task(p, pid, pid, profile_cstr(p, "child"), 1), 0,
				       (int64_t[]){1, 1});
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);
	CHECK_U64(seen.samples.n, 6);
	CHECK_U64(seen.samples.p[0].chain[2], 0x400800); /* as its parent had it */
	CHECK_U64(seen.samples.p[0].ip, seen.samples.p[5].ip);
	CHECK_U64(seen.samples.p[0].ip & 0xfff, 0x345);
	CHECK_U64(w.nr_guessed_maps, 4); /* two modules in two processes */
	CHECK_U64(seen.nr_map, 5);
	vec_release(&seen.samples);
}

TEST(perfdata_write_follows_a_module_that_was_mapped_again_elsewhere)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	module_id lib = add_elf(p, "/lib/plugin.so");
	for (uint64_t i = 0; i < 2; i++)
		vec_push(&p->mappings, (struct mapping){.module = lib,
							.pid = 10,
							.start = 0x10000 * (i + 1),
							.len = 0x1000,
							.from_ns = START_NS + i * 100,
							.to_ns = UINT64_MAX});
	stack_id s = profile_stack(p, 0, profile_location(p, lib, 0x10, 0));
	task_id task = profile_task(p, 10, 10, profile_cstr(p, "host"), START_NS);
	uint32_t t = add_table(p, "cpu-clock", TABLE_TIME_INSTANT);
	profile_sample(p, t, START_NS + 150, s, task, 0, (int64_t[]){1, 1});
	profile_sample(p, t, START_NS + 50, s, task, 0, (int64_t[]){1, 1});
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);
	CHECK_U64(seen.samples.n, 2);
	CHECK_U64(seen.samples.p[0].ip, 0x10010);
	CHECK_U64(seen.samples.p[1].ip, 0x20010);
	vec_release(&seen.samples);
}

TEST(perfdata_write_cuts_what_no_record_can_hold_and_counts_it)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	module_id kernel = add_kernel(p);
	stack_id s = 0;
	for (uint64_t i = 0; i < 20000; i++)
		s = profile_stack(
			p, s, profile_location(p, kernel, 0xffffffff81000000 + i, LOCATION_KERNEL));
	uint32_t t = add_table(p, "cpu-clock", TABLE_TIME_INSTANT);
	profile_sample(p, t, START_NS, s, profile_task(p, 3, 3, 0, 0), 0, (int64_t[]){1, 1});
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);
	CHECK_U64(w.nr_truncated_stacks, 1);
	CHECK_U64(seen.samples.p[0].nr_chain, 8000);
	CHECK_U64(seen.samples.p[0].chain[1], 0xffffffff81000000 + 19999);
	vec_release(&seen.samples);
}

TEST(perfdata_write_of_nothing_is_an_error)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_seal(p);
	CLEANUP(err_release) struct err err = {0};
	struct format_output to = {0};
	struct format_options options = {0};
	CHECK(perfdata_write(&to, p, &options, &err) < 0);
	CHECK_STR(err_msg(&err), "there are no samples to write");
}

TEST(perfdata_write_to_a_pipe_gives_the_same_bytes_and_one_event_alone)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	module_id kernel = add_kernel(p);
	stack_id s = profile_stack(
		p, 0, profile_location(p, kernel, 0xffffffff81000000, LOCATION_KERNEL));
	task_id task = profile_task(p, 3, 3, 0, 0);
	uint32_t cycles = add_table(p, "cycles:u", TABLE_TIME_INSTANT);
	uint32_t faults = add_table(p, "page-faults", TABLE_TIME_INSTANT);
	profile_sample(p, cycles, START_NS, s, task, 0, (int64_t[]){1, 1});
	profile_sample(p, cycles, START_NS + 1, s, task, 0, (int64_t[]){1, 1});
	profile_sample(p, faults, START_NS, s, task, 0, (int64_t[]){1, 1});
	struct seen seen = {0};
	struct perfdata_written w = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info info = {0};
	round_trip(p, &seen, &info, &w);

	struct format_output to = {0};
	struct format_options options = {0};
	CHECK(!perfdata_write(&to, p, &options, NULL));
	CHECK_U64(to.buf.n, w.nr_bytes);
	buf_clear(&to.buf);
	options.event = "cycles";
	CHECK(!perfdata_write(&to, p, &options, NULL));
	struct seen only = {0};
	CLEANUP(perfdata_info_release) struct perfdata_info only_info = {0};
	struct event_sink sink = {see, &only};
	CHECK(!perfdata_read(to.buf.p, to.buf.n, &sink, &only_info, NULL));
	CHECK(only.samples.n == 2 && only_info.specs.n == 1);
	buf_release(&to.buf);
	vec_release(&seen.samples);
	vec_release(&only.samples);
}
