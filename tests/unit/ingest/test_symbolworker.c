/*
 * ingest/naming: what the worker finds out while the owner goes on, applied by the owner. Under
 * ThreadSanitizer these tests show that the two share nothing but batches.
 */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/proc.h"
#include "ingest/builder.h"
#include "ingest/symbolworker.h"
#include "no_files.h"

#define JIT_START 0x7f0000000000ull

__attribute__((noinline)) static int known_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

struct ours {
	uint64_t addr;
	struct event_map map;
};

static int take_map(void *ctx, const struct proc_map *m, struct err *err)
{
	(void)err;
	struct ours *o = ctx;
	if (o->addr < m->start || o->addr >= m->end)
		return 0;
	o->map = (struct event_map){.start = m->start,
				    .len = m->end - m->start,
				    .pgoff = m->pgoff,
				    .dev_major = m->dev_major,
				    .dev_minor = m->dev_minor,
				    .inode = m->inode,
				    .is_exec = true,
				    .path = "/opt/tests"};
	return 1;
}

static int open_self(void *ctx, struct byte_source *ret_s, int32_t pid, const struct event_map *map)
{
	(void)ctx;
	(void)pid;
	(void)map;
	CLEANUP(close_p) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return source_from_fd(ret_s, fd, NULL);
}

static int fake_kallsyms(void *ctx, struct buf *to)
{
	(void)ctx;
	for (unsigned i = 0; i < 4000; i++)
		buf_addf(to, "ffffffff81%06x t kernel_%u%s\n", i * 64, i,
			 i % 3 ? "" : "\t[module_of_three]");
	return 0;
}

/* What a copy may have missed: everything from kernel_1000 on. */
static int cached_kallsyms(void *ctx, struct buf *to)
{
	(void)ctx;
	for (unsigned i = 0; i < 1000; i++)
		buf_addf(to, "ffffffff81%06x t kept_%u\n", i * 64, i);
	return 0;
}

static int fake_perfmap(void *ctx, int32_t pid, struct byte_source *ret_s)
{
	(void)ctx;
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%llx 100 jit_of_%d\n", JIT_START, pid);
	source_from_bytes(ret_s, text.p, text.n);
	return 0;
}

static const struct file_access files = {
	.open = open_self, .read_kallsyms = fake_kallsyms, .open_perfmap = fake_perfmap};

static const char *name_of(const struct profile *p, loc_id loc)
{
	const struct location *l = &p->locations.p[loc];
	return l->nr_frames ? profile_frame_name(p, &p->frames.p[l->first_frame + l->nr_frames - 1])
			    : "-";
}

static size_t nr_open_files(void)
{
	size_t nr = 0;
	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* The kept symbols name one address; the whole text is read only for one they do not have. */
static void name_kernel_at(const struct file_access *o, uint64_t addr, const char *want)
{
	struct profile *p = profile_new();
	struct modules modules = {.p = p, .files = o};
	struct symbolworker *n =
		symbolworker_new(p, &modules, o, &(struct symbolworker_options){0});
	loc_id loc =
		profile_location(p, modules_kernel(&modules)->unwind.id, addr, LOCATION_KERNEL);
	symbolworker_submit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_STR(name_of(p, loc), want);
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}

TEST(naming_reads_all_kernel_symbols_when_the_kept_ones_lack_an_address)
{
	struct file_access o = files;
	o.read_cached_kallsyms = cached_kallsyms;
	name_kernel_at(&o, 0xffffffff81000000ull + 70, "kept_1");
	name_kernel_at(&o, 0xffffffff81000000ull + 2000 * 64 + 5, "kernel_2000");
}

TEST(naming_goes_on_while_the_owner_adds_locations)
{
	struct ours o = {.addr = (uintptr_t)known_function};
	CHECK(proc_maps(getpid(), take_map, &o, NULL) == 1);
	size_t nr_open_before = nr_open_files(); /* with the file reader's */
	struct profile *p = profile_new();
	struct modules modules = {.p = p, .files = &files};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &files, &(struct symbolworker_options){0});
	CHECK(known_function(1) == 2);

	struct ingest_module *im = modules_for_map(&modules, 7, &o.map);
	loc_id known = profile_location(p, im->unwind.id, o.addr - o.map.start + o.map.pgoff, 0);
	loc_id kernel = 0;
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 50; i++) {
			uint64_t at = (round * 50 + i) * 64;
			(void)profile_location(p, im->unwind.id, o.map.pgoff + at % o.map.len,
					       LOCATION_CALL);
			kernel = profile_location(p, modules_kernel(&modules)->unwind.id,
						  0xffffffff81000000ull + at + 5, LOCATION_KERNEL);
		}
		symbolworker_submit(n);
		if (round == 10) { /* the same binary, announced with another identity */
			o.map.inode++;
			CHECK(modules_for_map(&modules, 8, &o.map) == im);
		}
		symbolworker_collect(n, 0);
		uint64_t done;
		uint64_t total;
		symbolworker_progress(n, &done, &total);
		CHECK(done <= total);
		(void)symbolworker_cpu_ns(n);
	}
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_STR(name_of(p, known), "known_function");
	CHECK_STR(name_of(p, kernel), "kernel_1999");
	for (size_t i = 1; i < p->locations.n; i++)
		if (!(p->locations.p[i].flags & LOCATION_SYMBOLIZED))
			CHECK_U64(i, 0);
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
	CHECK_U64(nr_open_files(), nr_open_before);
}

TEST(naming_of_jit_code_waits_and_is_by_process)
{
	struct profile *p = profile_new();
	struct modules modules = {.p = p, .files = &files};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &files, &(struct symbolworker_options){0});
	struct event_map anon = {
		.start = JIT_START, .len = 4096, .is_exec = true, .path = "//anon"};
	loc_id in[2];
	loc_id past = 0;
	for (int pid = 1; pid <= 2; pid++) {
		module_id id = modules_for_map(&modules, pid, &anon)->unwind.id;
		in[pid - 1] = profile_location(p, id, JIT_START + 0xff, 0);
		past = profile_location(p, id, JIT_START + 0x100, 0);
	}
	/* A return address at the end of the code belongs to the call before it. */
	loc_id call =
		profile_location(p, p->locations.p[past].module, JIT_START + 0x100, LOCATION_CALL);
	symbolworker_submit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_STR(name_of(p, in[0]), "-");
	symbolworker_submit_jit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_STR(name_of(p, in[0]), "jit_of_1");
	CHECK_STR(name_of(p, in[1]), "jit_of_2");
	CHECK_STR(name_of(p, past), "-");
	CHECK_U64(p->locations.p[past].unsym, LOSS_UNSYM_JIT);
	CHECK_STR(name_of(p, call), "jit_of_2");
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}

static void expect_mapped_at(const char *path, const char *module, const char *name)
{
	struct profile *p = profile_new();
	const struct file_access nothing = {.open = open_nothing};
	struct modules modules = {.p = p, .files = &nothing};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &nothing, &(struct symbolworker_options){0});
	struct event_map map = {.start = 0x1000, .len = 0x1000, .is_exec = true, .path = path};
	module_id id = modules_for_map(&modules, 1, &map)->unwind.id;
	loc_id loc = profile_location(p, id, 0x1008, 0);
	symbolworker_submit(n);
	symbolworker_submit_jit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_STR(profile_module_name(p, id), module);
	CHECK_STR(name_of(p, loc), name);
	CHECK_U64(p->locations.p[loc].unsym, name[0] == '-' ? LOSS_UNSYM_JIT : 0);
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}

TEST(naming_takes_anonymous_memory_for_jit_code_and_no_page_of_the_kernel)
{
	static const char *const anonymous[] = {
		"",
		"//anon",
		"/dev/zero (deleted)",
		"/memfd:doublemapper (deleted)",
		"[heap]",
		"[anon:.NET code]",
		"[stack]",
		"/SYSV00000000 (deleted)",
	};
	for (size_t i = 0; i < ARRAY_LEN(anonymous); i++)
		expect_mapped_at(anonymous[i], "[jit]", "-");
	expect_mapped_at("[uprobes]", "[uprobes]", "[uprobes]");
	expect_mapped_at("[vvar]", "[vvar]", "[vvar]");
	expect_mapped_at("/memfd:assay-heap-stubs (deleted)", "memfd:assay-heap-stubs (deleted)",
			 "[assay heap recorder]");
	expect_mapped_at("anon_inode:[x]", "anon_inode:[x]", "anon_inode:[x]");
}

TEST(naming_says_why_there_is_no_name)
{
	struct profile *p = profile_new();
	const struct file_access nothing = {.open = open_self};
	struct modules modules = {.p = p, .files = &nothing};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &nothing, &(struct symbolworker_options){0});
	struct event_map changed = {.start = 0x1000,
				    .len = 0x1000,
				    .nr_build_id = 20,
				    .is_exec = true,
				    .path = "/opt/tests"};
	loc_id file = profile_location(p, modules_for_map(&modules, 1, &changed)->unwind.id, 8, 0);
	loc_id kernel = profile_location(p, modules_kernel(&modules)->unwind.id, UINT64_MAX - 4096,
					 LOCATION_KERNEL);
	loc_id nowhere = profile_location(p, modules_unknown(&modules, 1)->unwind.id, 1, 0);
	symbolworker_submit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_U64(p->locations.p[file].unsym, LOSS_UNSYM_CHANGED);
	CHECK_U64(p->locations.p[kernel].unsym, LOSS_UNSYM_NO_KERNEL);
	CHECK_U64(p->locations.p[nowhere].unsym, LOSS_UNSYM_NO_MAP);
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}

static int hidden_kallsyms(void *ctx, struct buf *to)
{
	(void)ctx;
	buf_add_str(to, "0000000000000000 T _text\n0000000000000000 t a_function\n");
	return 0;
}

static int other_kernel(void *ctx, struct buf *to)
{
	(void)ctx;
	(void)to;
	return -ENOENT;
}

static void check_kernel(int (*read)(void *ctx, struct buf *to), enum loss_kind want)
{
	struct profile *p = profile_new();
	const struct file_access access = {.read_kallsyms = read};
	struct modules modules = {.p = p, .files = &access};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &access, &(struct symbolworker_options){0});
	loc_id kernel = profile_location(p, modules_kernel(&modules)->unwind.id,
					 0xffffffff90000000ull, LOCATION_KERNEL);
	symbolworker_submit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	CHECK_U64(p->locations.p[kernel].unsym, want);
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}

TEST(naming_calls_the_kernel_hidden_only_if_it_is)
{
	check_kernel(hidden_kallsyms, LOSS_UNSYM_KERNEL);
	check_kernel(other_kernel, LOSS_UNSYM_NO_KERNEL);
	check_kernel(fake_kallsyms, LOSS_UNSYM_NO_KERNEL); /* past its last one */
	check_kernel(NULL, LOSS_UNSYM_NO_KERNEL);
}

static void emit_kernel_symbol(struct builder *b, uint64_t start, uint64_t len, const char *name)
{
	struct event_sink sink = builder_sink(b);
	const struct event ev = {.kind = EVENT_MAP,
				 .pid = -1,
				 .tid = -1,
				 .map = {.start = start,
					 .len = len,
					 .pgoff = start,
					 .is_exec = true,
					 .is_kernel = true,
					 .is_symbol = true,
					 .path = name}};
	CHECK(!sink.event(sink.ctx, &ev, NULL));
}

/* perf.data has the names of BPF programs. Of two programs at one place it is not known which one ran. */
TEST(naming_takes_the_kernel_symbols_of_the_input)
{
	static const struct {
		uint64_t at;
		const char *name;
		const char *module;
	} want[] = {{0xffffffffc0000000, "bpf_prog_1_drop", "bpf"},
		    {0xffffffffc000007f, "bpf_prog_1_drop", "bpf"},
		    {0xffffffffc0000080, "-", NULL},
		    {0xffffffffc0001000, "ftrace_trampoline", "kernel"},
		    {0xffffffffc0002000, "-", NULL},
		    {0xffffffffc0002050, "-", NULL},
		    {0xffffffffbfffffff, "-", NULL}};
	struct profile *p = profile_new();
	const struct file_access nothing = {.open = open_nothing};
	struct builder *b = builder_new(p, &(struct builder_options){.files = &nothing});
	emit_kernel_symbol(b, 0xffffffffc0001000, 0x10, "ftrace_trampoline");
	emit_kernel_symbol(b, 0xffffffffc0000000, 0x80, "bpf_prog_1_drop");
	emit_kernel_symbol(b, 0xffffffffc0000000, 0x80, "bpf_prog_1_drop");
	emit_kernel_symbol(b, 0xffffffffc0002000, 0x60, "bpf_prog_2_pass");
	emit_kernel_symbol(b, 0xffffffffc0002040, 0x60, "bpf_prog_3_count");
	struct modules *modules = builder_modules(b);
	struct symbolworker *n =
		symbolworker_new(p, modules, &nothing, &(struct symbolworker_options){0});
	loc_id locs[ARRAY_LEN(want)];
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		locs[i] = profile_location(p, modules_kernel(modules)->unwind.id, want[i].at,
					   LOCATION_KERNEL);
	symbolworker_submit(n);
	symbolworker_collect(n, SYMBOLWORKER_WAIT);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const struct location *l = &p->locations.p[locs[i]];
		CHECK_STR(name_of(p, locs[i]), want[i].name);
		CHECK_U64(l->unsym, want[i].module ? 0 : LOSS_UNSYM_NO_KERNEL);
		if (!l->nr_frames)
			continue;
		const struct function *f = &p->functions.p[p->frames.p[l->first_frame].func];
		CHECK(f->flags & FUNC_KERNEL);
		CHECK(strstr(profile_module_name(p, f->module), want[i].module));
	}
	symbolworker_free(n);
	builder_free(b);
	profile_free(p);
}

/* hash_mix of this device is 0 with every inode: a target may choose build-ids in such a way. */
TEST(modules_with_equal_hashes_stay_apart)
{
	struct profile *p = profile_new();
	const struct file_access nothing = {.open = open_nothing};
	struct modules modules = {.p = p, .files = &nothing};
	struct event_map map = {.start = 0x1000,
				.len = 0x1000,
				.dev_major = 0x9e3779b9,
				.dev_minor = 0x7f4a7c15,
				.inode = 7,
				.is_exec = true,
				.nr_build_id = 0,
				.path = "/opt/none"};
	struct ingest_module *first = modules_for_map(&modules, 1, &map);
	map.inode = 8;
	struct ingest_module *second = modules_for_map(&modules, 1, &map);
	CHECK(first != second);
	CHECK(modules_for_map(&modules, 2, &map) == second);
	map.inode = 7;
	CHECK(modules_for_map(&modules, 2, &map) == first);
	modules_release(&modules);
	profile_free(p);
}

TEST(naming_ends_with_batches_in_the_queue)
{
	struct profile *p = profile_new();
	struct modules modules = {.p = p, .files = &files};
	struct symbolworker *n =
		symbolworker_new(p, &modules, &files, &(struct symbolworker_options){0});
	for (unsigned i = 0; i < 200; i++) {
		(void)profile_location(p, modules_unknown(&modules, (int32_t)i)->unwind.id, i, 0);
		symbolworker_submit(n);
	}
	symbolworker_free(n);
	modules_release(&modules);
	profile_free(p);
}
