/* format/assayfile: what was recorded is read again, whatever happened to the recorder or file. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/num.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/file/zio.h"
#include "format/assay/assayfile.h"
#include "format/format.h"
#include "format/assay/assayfile_layout.h"
#include "format/assay/assayfile_sections.h"

/* ---- a synthetic capture that grows by seconds ------------------------------------------- */

struct synth {
	struct profile *p;
	uint64_t seed;
	uint64_t now_ns;
	uint32_t table;
	uint32_t waits;
	loc_id loc[4096];
	size_t nr_loc;
	size_t nr_named;
};

static uint64_t rnd(struct synth *s, uint64_t below)
{
	s->seed = hash_u64(s->seed + 0x1234567);
	return s->seed % below;
}

static void synth_init(struct synth *s, struct profile *p)
{
	*s = (struct synth){.p = p, .seed = 1, .now_ns = 1000000000000};
	p->start_ns = s->now_ns;
	p->wall_start_ns = 1700000000000000000;
	profile_fact(p, FACT_TARGET, "synth \xff\n");
	p->losses.nr[LOSS_SPANS_INSIDE] = 7; /* not part of the sum of samples */
	for (int i = 0; i < 8; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/usr/lib/lib%d.so", i);
		struct module m = {.kind = MODULE_ELF,
				   .path = profile_cstr(p, path),
				   .nr_build_id = 20,
				   .dev = 0x800000001,
				   .inode = 1000 + (uint64_t)i};
		memset(m.build_id, i + 1, sizeof(m.build_id));
		module_id id = profile_module(p, &m);
		vec_push(&p->mappings,
			 (struct mapping){.module = id,
					  .pid = 42,
					  .start = 0x7f0000000000 + (uint64_t)i * 0x1000000,
					  .len = 0x200000,
					  .pgoff = 0x1000,
					  .to_ns = UINT64_MAX});
	}
	struct table shape = {.event = profile_cstr(p, "cpu-clock"),
			      .nr_columns = 2,
			      .weight_column = 1,
			      .freq_hz = 999};
	shape.columns[0] = (struct column){.name = profile_cstr(p, "samples")};
	shape.columns[1] = (struct column){
		.name = profile_cstr(p, "time"), .unit = UNIT_NS, .is_estimate = true};
	s->table = profile_table(p, &shape);
	struct table waits = {.event = profile_cstr(p, "off-cpu"),
			      .time_kind = TABLE_TIME_SLICE,
			      .nr_columns = 3,
			      .weight_column = 1,
			      .has_tags = true};
	waits.columns[0] = (struct column){.name = profile_cstr(p, "waits")};
	waits.columns[1] = (struct column){.name = profile_cstr(p, "time"), .unit = UNIT_NS};
	waits.columns[2] = (struct column){
		.name = profile_cstr(p, "longest"), .unit = UNIT_NS, .is_level = true};
	s->waits = profile_table(p, &waits);
	(void)profile_pseudo_location(p, "[truncated]");
}

/* Paths through a call graph: node -> one of a few callees, leaf addresses vary. */
static stack_id synth_stack(struct synth *s)
{
	stack_id at = 0;
	uint64_t fn = rnd(s, 4);
	size_t depth = 12 + rnd(s, 12);
	for (size_t d = 0; d < depth; d++) {
		uint64_t site = rnd(s, d < 8 ? 1 : 2);
		uint64_t key = (fn * 16 + site) % 4000;
		if (!s->loc[key]) {
			s->loc[key] = profile_location(s->p, 1 + (module_id)(fn % 8),
						       0x1000 + key * 77, LOCATION_CALL);
			s->nr_loc++;
		}
		at = profile_stack(s->p, at, s->loc[key]);
		fn = fn * 3 + site * 5 + 1;
		fn %= 250;
	}
	loc_id leaf =
		profile_location(s->p, 1 + (module_id)(fn % 8), 0x200000 + fn * 64 + rnd(s, 9), 0);
	return profile_stack(s->p, at, leaf);
}

static void synth_name(struct synth *s)
{
	struct profile *p = s->p;
	for (loc_id i = 1; i < p->locations.n; i++) {
		if (p->locations.p[i].flags & LOCATION_SYMBOLIZED)
			continue;
		char name[64];
		snprintf(name, sizeof(name), "synth::module%u::function_%" PRIu64,
			 p->locations.p[i].module, p->locations.p[i].offset / 64);
		struct frame f[2] = {0};
		struct function fn = {.name = profile_cstr(p, name),
				      .module = p->locations.p[i].module,
				      .start = p->locations.p[i].offset & ~63ull};
		f[0] = (struct frame){.func = profile_function(p, &fn),
				      .file = profile_cstr(p, "/src/synth.c"),
				      .line = (uint32_t)p->locations.p[i].offset / 7,
				      .is_inlined = i % 3 == 0};
		f[1] = f[0];
		f[1].is_inlined = false;
		profile_set_frames(p, i, f, i % 5 ? 1 + (i % 3 == 0) : 0, LOSS_UNSYM_NO_FILE);
	}
}

#define WAITS_PER_SECOND 40
#define PER_SECOND       (1998 + WAITS_PER_SECOND)

/* Waits of one second, of a few reasons and objects. */
static void synth_waits(struct synth *s, task_id task, task_id other)
{
	struct profile *p = s->p;
	for (int i = 0; i < WAITS_PER_SECOND; i++) {
		char object[32];
		snprintf(object, sizeof(object), "/data/file%" PRIu64, rnd(s, 5));
		bool has_file = i % 3 == 0;
		struct tag tag = {.reason = (uint8_t)(1 + rnd(s, WAIT_NR - 1)),
				  .evidence = (uint8_t)rnd(s, 128),
				  .log2_ns = i % 7 ? (uint8_t)rnd(s, 40) : LOG2_NONE,
				  .syscall = i % 5 ? (int16_t)rnd(s, 300) : -1,
				  .object = has_file ? profile_cstr(p, object) : 0,
				  .detail = i % 4 ? 0 : profile_cstr(p, "woken"),
				  .other = i % 2 ? other : 0,
				  .other_stack = i % 2 ? synth_stack(s) : 0,
				  .direct = i % 3 ? task : 0,
				  .direct_stack = i % 3 ? synth_stack(s) : 0};
		int64_t nr = 1 + (int64_t)rnd(s, 100);
		int64_t v[3] = {nr, nr * 5000, 9000};
		profile_tagged_sample(p, s->waits, s->now_ns, synth_stack(s), task, -1,
				      profile_tag(p, &tag), v);
		p->losses.nr[LOSS_SEEN]++;
		p->losses.nr[LOSS_WRITTEN]++;
	}
}

/* One second of two busy threads at 999 Hz. */
static void synth_second(struct synth *s)
{
	struct profile *p = s->p;
	for (int i = 0; i < 999 * 2; i++) {
		int thread = i & 1;
		str_id comm = profile_cstr(p, thread ? "worker" : "main");
		task_id t = profile_task(p, 42, 42 + thread, comm, s->now_ns);
		s->now_ns += 500500 + rnd(s, 4000);
		int64_t v[2] = {1, 1001001};
		profile_sample(p, s->table, s->now_ns, synth_stack(s), t, thread, v);
		p->losses.nr[LOSS_SEEN]++;
		p->losses.nr[LOSS_WRITTEN]++;
	}
	synth_waits(s, 1, 2);
	p->end_ns = s->now_ns;
}

/* ---- equality ------------------------------------------------------------------------------ */

#define SAME(field)                                                                           \
	do {                                                                                  \
		if (a->field != b->field) {                                                   \
			tap_fail(__FILE__, __LINE__, "%s of element %zu differs", #field, i); \
			return;                                                               \
		}                                                                             \
	} while (0)

static void check_defs(const struct profile *x, const struct profile *y)
{
	CHECK_U64(intern_count(&x->strings), intern_count(&y->strings));
	for (size_t i = 0; i < intern_count(&x->strings); i++)
		CHECK(sv_eq(profile_sv(x, (str_id)i), profile_sv(y, (str_id)i)));
	CHECK_U64(x->modules.n, y->modules.n);
	for (size_t i = 0; i < x->modules.n; i++) {
		const struct module *a = &x->modules.p[i], *b = &y->modules.p[i];
		SAME(kind);
		SAME(path);
		SAME(nr_build_id);
		SAME(is_deleted);
		SAME(dev);
		SAME(inode);
		SAME(pid);
		CHECK(!memcmp(a->build_id, b->build_id, a->nr_build_id));
	}
	CHECK_U64(x->mappings.n, y->mappings.n);
	for (size_t i = 0; i < x->mappings.n; i++) {
		const struct mapping *a = &x->mappings.p[i], *b = &y->mappings.p[i];
		SAME(module);
		SAME(pid);
		SAME(start);
		SAME(len);
		SAME(pgoff);
		SAME(from_ns);
		SAME(to_ns);
	}
	CHECK_U64(x->functions.n, y->functions.n);
	for (size_t i = 0; i < x->functions.n; i++) {
		const struct function *a = &x->functions.p[i], *b = &y->functions.p[i];
		SAME(name);
		SAME(linkage);
		SAME(module);
		SAME(flags);
		SAME(start);
	}
	CHECK_U64(x->locations.n, y->locations.n);
	for (size_t i = 0; i < x->locations.n; i++) {
		const struct location *a = &x->locations.p[i], *b = &y->locations.p[i];
		SAME(module);
		SAME(flags);
		SAME(offset);
		SAME(nr_frames);
		SAME(unsym);
		SAME(first_frame);
	}
	CHECK_U64(x->frames.n, y->frames.n);
	for (size_t i = 0; i < x->frames.n; i++) {
		const struct frame *a = &x->frames.p[i], *b = &y->frames.p[i];
		SAME(func);
		SAME(file);
		SAME(line);
		SAME(is_inlined);
	}
	CHECK_U64(x->stacks.n, y->stacks.n);
	for (size_t i = 0; i < x->stacks.n; i++) {
		const struct stack_node *a = &x->stacks.p[i], *b = &y->stacks.p[i];
		SAME(parent);
		SAME(loc);
	}
}

static void check_table(const struct table *a, const struct table *b)
{
	size_t i = 0;
	SAME(event);
	SAME(time_kind);
	SAME(nr_columns);
	SAME(weight_column);
	SAME(freq_hz);
	SAME(n);
	for (i = 0; i < a->nr_columns; i++) {
		SAME(columns[i].name);
		SAME(columns[i].unit);
		SAME(columns[i].is_level);
		SAME(columns[i].is_estimate);
	}
	for (i = 0; i < a->n; i++) {
		SAME(time_ns[i]);
		SAME(stack[i]);
		SAME(task[i]);
		SAME(cpu[i]);
	}
	SAME(has_tags);
	for (i = 0; a->has_tags && i < a->n; i++)
		SAME(tag[i]);
	for (i = 0; i < a->n * a->nr_columns; i++)
		SAME(values[i]);
}

static void check_tags(const struct profile *x, const struct profile *y)
{
	CHECK_U64(x->tags.n, y->tags.n);
	for (size_t i = 0; i < x->tags.n; i++) {
		const struct tag *a = &x->tags.p[i], *b = &y->tags.p[i];
		SAME(reason);
		SAME(evidence);
		SAME(log2_ns);
		SAME(syscall);
		SAME(object);
		SAME(detail);
		SAME(other);
		SAME(other_stack);
		SAME(direct);
		SAME(direct_stack);
	}
}

static void check_equal(const struct profile *x, const struct profile *y)
{
	check_defs(x, y);
	check_tags(x, y);
	CHECK_U64(x->tasks.n, y->tasks.n);
	for (size_t i = 0; i < x->tasks.n; i++) {
		const struct task *a = &x->tasks.p[i], *b = &y->tasks.p[i];
		SAME(pid);
		SAME(tid);
		SAME(comm);
		SAME(start_ns);
		SAME(end_ns);
	}
	CHECK_U64(x->tables.n, y->tables.n);
	for (size_t i = 0; i < x->tables.n; i++)
		check_table(&x->tables.p[i], &y->tables.p[i]);
	CHECK_U64(x->marks.n, y->marks.n);
	for (size_t i = 0; i < x->marks.n; i++) {
		const struct mark *a = &x->marks.p[i], *b = &y->marks.p[i];
		SAME(time_ns);
		SAME(text);
	}
	CHECK_U64(x->facts.n, y->facts.n);
	for (size_t i = 0; i < x->facts.n; i++) {
		const struct fact *a = &x->facts.p[i], *b = &y->facts.p[i];
		SAME(key);
		SAME(value);
	}
	for (size_t i = 0; i < LOSS_NR; i++)
		CHECK_U64(x->losses.nr[i], y->losses.nr[i]);
	CHECK_U64(x->start_ns, y->start_ns);
	CHECK_U64(x->end_ns, y->end_ns);
	CHECK_U64(x->wall_start_ns, y->wall_start_ns);
}

static struct profile *read_ok(const void *p, size_t n)
{
	CLEANUP(err_release) struct err err = {0};
	struct profile *ret = NULL;
	if (assayfile_read(&ret, NULL, p, n, &err)) {
		tap_fail(__FILE__, __LINE__, "cannot read: %s", err_msg(&err));
		exit(1);
	}
	return ret;
}

static int temp_file(void)
{
	char path[] = "/tmp/assay-test-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	return fd;
}

static struct buf bytes_of(int fd)
{
	struct buf v = {0};
	CLEANUP(err_release) struct err err = {0};
	if (lseek(fd, 0, SEEK_SET) || file_read_fd(&v, fd, FILE_LIMIT, &err))
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
	return v;
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(a_recording_reads_back_equal_and_writes_the_same_bytes_again)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	synth_second(&s);
	synth_name(&s);
	profile_mark(p, s.now_ns, "phase 2");
	p->tasks.p[1].end_ns = s.now_ns;
	p->mappings.p[3].to_ns = s.now_ns;
	CLEANUP(buf_release) struct buf a = {0};
	CHECK(!assayfile_write(&a, p, "cpu", NULL));
	CHECK(assayfile_sniff(buf_sv(&a)));
	CLEANUP(profile_free_p) struct profile *q = read_ok(a.p, a.n);
	CHECK(!q->is_incomplete);
	check_equal(p, q);
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(!assayfile_write(&b, q, "cpu", NULL));
	CHECK_U64(a.n, b.n);
	CHECK(!memcmp(a.p, b.p, a.n));
}

TEST(flushes_append_only_what_is_new_and_later_changes_arrive)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	int fd = temp_file();
	CLEANUP(assayfile_writer_free_p)
	struct assayfile_writer *w = assayfile_writer_new(dup(fd), "cpu");
	uint64_t first_bytes = 0;
	for (int sec = 0; sec < 8; sec++) {
		synth_second(&s);
		if (sec % 2)
			synth_name(&s);
		CHECK(!assayfile_flush(w, p, NULL));
		if (!sec)
			first_bytes = assayfile_bytes(w);
		CLEANUP(buf_release) struct buf v = bytes_of(fd);
		CLEANUP(profile_free_p) struct profile *q = read_ok(v.p, v.n);
		CHECK(q->is_incomplete);
		check_equal(p, q);
	}
	CHECK(assayfile_bytes(w) < first_bytes * 8);
	uint64_t before = assayfile_bytes(w);
	CHECK(!assayfile_flush(w, p, NULL));
	CHECK_U64(assayfile_bytes(w), before);
	p->mappings.p[0].to_ns = 5;
	p->tasks.p[1].end_ns = 6;
	p->modules.p[2].is_deleted = true;
	stack_id leaf = p->tables.p[0].stack[0];
	loc_id base = p->stacks.p[leaf].loc;
	if (!p->locations.p[base].nr_frames)
		profile_set_frames(p, base, &(struct frame){.func = 1}, 1, 0);
	profile_set_tail(p, leaf,
			 profile_tail_location(p, base,
					       &(struct frame){.func = 2, .is_inferred = true}, 1));
	profile_fact_text(p, "cost", "cheap");
	CHECK(!assayfile_finish(w, p, NULL));
	CLEANUP(buf_release) struct buf v = bytes_of(fd);
	CLEANUP(profile_free_p) struct profile *q = read_ok(v.p, v.n);
	CHECK(!q->is_incomplete);
	check_equal(p, q);
	const struct location *tail = &q->locations.p[q->stacks.p[leaf].loc];
	CHECK(tail->flags & LOCATION_TAIL);
	CHECK(q->frames.p[tail->first_frame + tail->nr_frames - 1u].is_inferred);
	CHECK(!q->frames.p[tail->first_frame + tail->nr_frames - 1u].is_inlined);
	struct assayfile_info info;
	CHECK(!assayfile_info(&info, fd, NULL));
	CHECK_STR(info.kind, "cpu");
	CHECK_U64(info.nr_samples, 8 * PER_SECOND);
	CHECK_U64(info.duration_ns, p->end_ns - p->start_ns);
	CHECK_U64(info.wall_start_ns, 1700000000000000000);
	CHECK(!info.is_incomplete);
	close(fd);
}

/* A small file of several chunks. */
static void small_file(struct buf *to, struct profile *p)
{
	struct synth s;
	synth_init(&s, p);
	int fd = temp_file();
	CLEANUP(assayfile_writer_free_p)
	struct assayfile_writer *w = assayfile_writer_new(dup(fd), "cpu");
	for (int sec = 0; sec < 4; sec++) {
		for (int i = 0; i < 5; i++) {
			int64_t v[2] = {1, 1000};
			s.now_ns += 1000;
			task_id t = profile_task(p, 42, 42, profile_cstr(p, "main"), s.now_ns);
			profile_sample(p, s.table, s.now_ns, synth_stack(&s), t, 0, v);
			p->losses.nr[LOSS_SEEN]++;
			p->losses.nr[LOSS_WRITTEN]++;
		}
		synth_name(&s);
		CHECK(!assayfile_flush(w, p, NULL));
	}
	CHECK(!assayfile_finish(w, p, NULL));
	CHECK(!lseek(fd, 0, SEEK_SET));
	CHECK(!file_read_fd(to, fd, 1 << 20, NULL));
	close(fd);
}

TEST(a_file_cut_at_any_byte_opens_with_every_whole_flush)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(buf_release) struct buf b = {0};
	small_file(&b, p);
	uint64_t last = 0;
	for (size_t n = ASSAYFILE_MAGIC_LEN; n < b.n; n++) {
		CLEANUP(free_p) void *copy = xmemdup(b.p, n); /* exact end, for ASan */
		CLEANUP(profile_free_p) struct profile *q = read_ok(copy, n);
		uint64_t nr = q->tables.n ? q->tables.p[0].n : 0;
		CHECK(nr >= last && nr % 5 == 0);
		const uint64_t *l = q->losses.nr;
		CHECK_U64(l[LOSS_WRITTEN], nr);
		CHECK_U64(l[LOSS_SEEN], nr + l[LOSS_DAMAGED]);
		CHECK(q->is_incomplete || nr == 20);
		CHECK(!profile_get_fact(q, FACT_DAMAGED)); /* cut, not damaged */
		last = nr;
	}
	CHECK_U64(last, 20);
	struct profile *q = NULL;
	for (size_t n = 0; n < ASSAYFILE_MAGIC_LEN; n++)
		CHECK(assayfile_read(&q, NULL, b.p, n, NULL) == -EBADMSG);
}

TEST(damage_costs_the_chunk_that_it_hit_and_is_counted)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(buf_release) struct buf b = {0};
	small_file(&b, p);
	uint64_t most = 0;
	for (size_t at = ASSAYFILE_MAGIC_LEN; at < b.n; at++) {
		CLEANUP(free_p) char *copy = xmemdup(b.p, b.n);
		copy[at] ^= 0x41;
		CLEANUP(profile_free_p) struct profile *q = read_ok(copy, b.n);
		uint64_t nr = q->tables.n ? q->tables.p[0].n : 0;
		const uint64_t *l = q->losses.nr;
		CHECK_U64(nr + l[LOSS_DAMAGED], 20);
		CHECK_U64(l[LOSS_WRITTEN], nr);
		CHECK_U64(l[LOSS_SEEN], 20);
		CHECK(q->is_incomplete || nr == 20);
		const char *damaged = profile_get_fact(q, FACT_DAMAGED);
		if (at >= sizeof(struct assayfile_header) && at < b.n / 2)
			CHECK(damaged && strstr(damaged, num_noun(l[LOSS_DAMAGED], "rows").s));
		if (at > sizeof(struct assayfile_header) + 2000)
			most = MAX(most, q->losses.nr[LOSS_DAMAGED]);
		/* The remaining elements can be iterated. */
		for (size_t i = 0; i < nr; i++)
			for (stack_id st = q->tables.p[0].stack[i]; st; st = q->stacks.p[st].parent)
				CHECK(q->stacks.p[st].loc < q->locations.n);
	}
	CHECK(most <= 5);
}

TEST(random_damage_behind_good_checksums_never_breaks_the_reader)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(buf_release) struct buf b = {0};
	small_file(&b, p);
	struct assayfile_chunk c;
	memcpy(&c, b.p + sizeof(struct assayfile_header), sizeof(c));
	CLEANUP(buf_release) struct buf plain = {0};
	CHECK(!zio_decompress(&plain, ZKIND_ZSTD, b.p + sizeof(struct assayfile_header) + sizeof(c),
			      c.stored_bytes, c.raw_bytes, NULL));
	struct synth s = {.seed = 77};
	for (int round = 0; round < 20000; round++) {
		CLEANUP(free_p) uint8_t *raw = xmemdup(plain.p, plain.n);
		for (uint64_t k = 0; k <= rnd(&s, 3); k++)
			raw[rnd(&s, plain.n)] = rnd(&s, 2) ? (uint8_t)rnd(&s, 256) : 0xff;
		struct assayfile_reader r = {.p = profile_new(), .gap_budget = 1000};
		vec_push(&r.str_ids, 0);
		r.has_damage = rnd(&s, 2);
		(void)decode_sections(&r, raw, plain.n, NULL);
		profile_free(r.p);
		vec_release(&r.str_ids);
		vec_release(&r.table_rows);
	}
}

static void add_raw_chunk(struct buf *to, uint16_t type, uint16_t flags, const void *p, size_t n)
{
	struct assayfile_chunk c = {.mark = ASSAYFILE_CHUNK_MARK,
				    .type = type,
				    .flags = flags,
				    .stored_bytes = (uint32_t)n,
				    .raw_bytes = (uint32_t)n,
				    .payload_crc = zio_crc32(p, n)};
	c.header_crc = zio_crc32(&c, offsetof(struct assayfile_chunk, header_crc));
	buf_add(to, &c, sizeof(c));
	buf_add(to, p, n);
}

TEST(newer_files_are_read_as_far_as_they_may_be)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(buf_release) struct buf b = {0};
	small_file(&b, p);
	size_t n = b.n;
	CLEANUP(err_release) struct err err = {0};

	add_raw_chunk(&b, 77, 0, "xyz", 3);                   /* an unknown chunk: skipped */
	add_raw_chunk(&b, ASSAYFILE_DATA, 0, "\x63\x01z", 3); /* an unknown section: skipped */
	add_raw_chunk(&b, ASSAYFILE_END, 0, "\0", 1);
	CLEANUP(profile_free_p) struct profile *q = read_ok(b.p, b.n);
	CHECK_U64(q->tables.p[0].n, 20);
	CHECK(!q->is_incomplete);
	CHECK_STR(profile_get_fact(q, FACT_RECORDING_NOTE),
		  "written by a newer assay: 2 sections skipped");

	struct profile *no = NULL;
	b.n = n;
	add_raw_chunk(&b, 77, ASSAYFILE_CRITICAL, "xyz", 3);
	CHECK(assayfile_read(&no, NULL, b.p, b.n, &err) == -ENOTSUP);
	b.n = n;
	add_raw_chunk(&b, ASSAYFILE_DATA, 0, "\xe3\x01z", 3);
	CHECK(assayfile_read(&no, NULL, b.p, b.n, &err) == -ENOTSUP);

	struct assayfile_header h;
	memcpy(&h, b.p, sizeof(h));
	h.major++;
	h.crc = zio_crc32(&h, offsetof(struct assayfile_header, crc));
	memcpy(b.p, &h, sizeof(h));
	CHECK(assayfile_read(&no, NULL, b.p, n, &err) == -ENOTSUP);
	CHECK_STR(err_msg(&err), "recording format 2.4, this assay reads 1.x");
	CHECK(err.hint != NULL);
}

TEST(a_decompression_bomb_is_rejected_before_it_is_decompressed)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CHECK(!assayfile_write(&b, p, "cpu", NULL));
	/* 12 million marks of 2 bytes each: 16 in memory */
	CLEANUP(buf_release) struct buf raw = {0};
	CLEANUP(buf_release) struct buf z = {0};
	size_t nr_marks = 12 << 20;
	size_t nr_raw = 2 * nr_marks + 64;
	buf_add_ch(&raw, SECTION_MARKS);
	buf_add_uleb(&raw, nr_raw);
	size_t start = raw.n;
	buf_add_uleb(&raw, 0);
	buf_add_uleb(&raw, nr_marks);
	buf_add_repeat(&raw, 0, start + nr_raw - raw.n);
	CHECK(!zio_compress_zstd(&z, raw.p, raw.n, 3, NULL));
	struct assayfile_chunk c = {.mark = ASSAYFILE_CHUNK_MARK,
				    .type = ASSAYFILE_DATA,
				    .flags = ASSAYFILE_ZSTD,
				    .stored_bytes = (uint32_t)z.n,
				    .raw_bytes = (uint32_t)raw.n,
				    .payload_crc = zio_crc32(z.p, z.n)};
	c.header_crc = zio_crc32(&c, offsetof(struct assayfile_chunk, header_crc));
	buf_add(&b, &c, sizeof(c));
	buf_add(&b, z.p, z.n);
	struct profile *no = NULL;
	CHECK(assayfile_read(&no, NULL, b.p, b.n, NULL) == -EFBIG);
}

TEST(names_found_later_are_appended)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	synth_second(&s);
	int fd = temp_file();
	struct assayfile_writer *w = assayfile_writer_new(dup(fd), "cpu");
	CHECK(!assayfile_finish(w, p, NULL));
	assayfile_writer_free(w);

	struct assayfile_pos pos;
	CLEANUP(buf_release) struct buf v = bytes_of(fd);
	CLEANUP(profile_free_p) struct profile *q = NULL;
	CHECK(!assayfile_read(&q, &pos, v.p, v.n, NULL));
	CHECK(pos.can_append);
	CHECK_STR(pos.kind, "cpu");
	s.p = q;
	synth_name(&s);
	CHECK(!assayfile_writer_resume(&w, dup(fd), &pos, q, NULL));
	CHECK(!assayfile_finish(w, q, NULL));
	CHECK(assayfile_bytes(w) > v.n);
	assayfile_writer_free(w);

	CLEANUP(buf_release) struct buf v2 = bytes_of(fd);
	CHECK(!memcmp(v.p + sizeof(struct assayfile_header), v2.p + sizeof(struct assayfile_header),
		      v.n - sizeof(struct assayfile_header)));
	CLEANUP(profile_free_p) struct profile *q2 = read_ok(v2.p, v2.n);
	check_equal(q, q2);
	CHECK(q2->locations.p[2].flags & LOCATION_SYMBOLIZED);
	CHECK(!q2->is_incomplete);
	close(fd);
}

TEST(a_full_disk_keeps_whole_flushes_and_counts_the_rest)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	int fd = temp_file();
	struct assayfile_writer *w = assayfile_writer_new(dup(fd), "cpu");
	synth_second(&s);
	CHECK(!assayfile_flush(w, p, NULL));
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old;
	getrlimit(RLIMIT_FSIZE, &old);
	struct rlimit full = old;
	full.rlim_cur = assayfile_bytes(w) + 1000;
	setrlimit(RLIMIT_FSIZE, &full);
	synth_second(&s);
	CLEANUP(err_release) struct err err = {0};
	CHECK(assayfile_flush(w, p, &err) < 0);
	CHECK_U64(assayfile_unsaved(w, p), PER_SECOND);
	{
		CLEANUP(buf_release) struct buf v = bytes_of(fd);
		CHECK_U64(v.n, assayfile_bytes(w));
	}
	setrlimit(RLIMIT_FSIZE, &old); /* space is available again: no data were lost */
	CHECK(assayfile_flush(w, p, NULL) == -ENOSPC); /* not tried yet */
	CHECK(!assayfile_flush(w, p, NULL));
	CHECK_U64(assayfile_unsaved(w, p), 0);
	setrlimit(RLIMIT_FSIZE, &full);
	synth_second(&s);
	CHECK(assayfile_finish(w, p, &err) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
	assayfile_writer_free(w);

	CLEANUP(buf_release) struct buf v = bytes_of(fd);
	CLEANUP(profile_free_p) struct profile *q = read_ok(v.p, v.n);
	CHECK(q->is_incomplete);
	CHECK_U64(q->tables.p[0].n, 2 * 1998);
	CHECK_U64(q->losses.nr[LOSS_DISK], PER_SECOND);
	CHECK_U64(q->losses.nr[LOSS_SEEN], 3 * PER_SECOND);
	close(fd);
}

/* Flushes repeatedly and stores, after each, how many samples the file must have. */
static void NORETURN record_until_killed(int fd, _Atomic uint64_t *nr_safe)
{
	struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
	for (;;) {
		for (int i = 0; i < 50; i++) {
			int64_t v[2] = {1, 1000};
			s.now_ns += 1000;
			task_id t = profile_task(p, 1, 1, profile_cstr(p, "x"), s.now_ns);
			profile_sample(p, s.table, s.now_ns, synth_stack(&s), t, 0, v);
		}
		if (p->tables.p[0].n % 500 == 0)
			synth_name(&s);
		if (assayfile_flush(w, p, NULL))
			_exit(1);
		*nr_safe = p->tables.p[0].n;
	}
}

TEST(recordings_of_killed_processes_have_every_flush)
{
	_Atomic uint64_t *nr_safe =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct synth s = {.seed = 5};
	uint64_t nr_files = 0;
	uint64_t nr_all = 0;
	for (int round = 0; round < 100; round++) {
		int fd = temp_file();
		*nr_safe = 0;
		pid_t pid = fork();
		if (!pid)
			record_until_killed(fd, nr_safe);
		while (!*nr_safe)
			usleep(50);
		usleep((useconds_t)rnd(&s, 12000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CLEANUP(buf_release) struct buf v = bytes_of(fd);
		CLEANUP(profile_free_p) struct profile *q = read_ok(v.p, v.n);
		CHECK(q->is_incomplete);
		CHECK(q->tables.p[0].n >= *nr_safe);
		CHECK(q->tables.p[0].n <= *nr_safe + 50);
		CHECK_U64(q->losses.nr[LOSS_DAMAGED], 0);
		struct assayfile_info info;
		CHECK(!assayfile_info(&info, fd, NULL));
		CHECK_U64(info.nr_samples, q->tables.p[0].n);
		CHECK(info.is_incomplete);
		nr_files++;
		nr_all += q->tables.p[0].n;
		close(fd);
	}
	CHECK_U64(nr_files, 100);
	CHECK(nr_all > 100 * 100);
}

TEST(a_sample_costs_under_twenty_bytes)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct synth s;
	synth_init(&s, p);
	int fd = temp_file();
	CLEANUP(assayfile_writer_free_p)
	struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
	uint64_t spent_ns = 0;
	for (int sec = 0; sec < 30; sec++) {
		synth_second(&s);
		synth_name(&s);
		uint64_t t0 = clock_mono_ns();
		CHECK(!assayfile_flush(w, p, NULL));
		spent_ns += clock_mono_ns() - t0;
	}
	CHECK(!assayfile_finish(w, p, NULL));
	double nr = (double)p->tables.p[0].n;
	printf("# %.1f bytes and %.0f ns a sample; %zu stack nodes, %zu locations\n",
	       (double)assayfile_bytes(w) / nr, (double)spent_ns / nr, p->stacks.n, p->locations.n);
	CHECK((double)assayfile_bytes(w) / nr < 20);
}
