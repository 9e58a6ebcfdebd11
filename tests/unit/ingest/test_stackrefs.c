/*
 * ingest/stackrefs: stacks reported ahead and rows that refer to them, in any order; what the
 * table, its tags and the losses say.
 */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "ingest/builder.h"
#include "unwind/space.h"
#include "no_files.h"

#define CODE   0x400000ull
#define KERNEL 0xffffffff81000000ull

enum { SPEC_SAMPLES = 0, SPEC_WAITS = 2, SPEC_BLAMED = 3 };

static const struct file_access files = {.open = open_nothing};

struct change {
	int32_t pid;
	size_t nr_maps; /* SIZE_MAX: gone */
};

struct fixture {
	struct profile *p;
	struct builder *b;
	uint32_t samples;
	uint32_t waits;
	struct change changes[16];
	size_t nr_changes;
};

static void on_change(void *ctx, int32_t pid, const struct space *sp)
{
	struct fixture *f = ctx;
	CHECK(f->nr_changes < ARRAY_LEN(f->changes));
	f->changes[f->nr_changes++] = (struct change){pid, sp ? sp->maps.n : SIZE_MAX};
}

static uint32_t wait_table(struct profile *p, const char *name)
{
	return profile_table(p, &(struct table){.event = profile_cstr(p, name),
						.time_kind = TABLE_TIME_SLICE,
						.nr_columns = 2,
						.weight_column = 1,
						.has_tags = true,
						.columns = {{.name = profile_cstr(p, "waits")},
							    {.name = profile_cstr(p, "time"),
							     .unit = UNIT_NS}}});
}

static void set_up(struct fixture *f)
{
	*f = (struct fixture){.p = profile_new()};
	f->b = builder_new(f->p, &(struct builder_options){
					 .files = &files, .space_changed = on_change, .ctx = f});
	struct table shape = builder_table_shape(f->p, "cpu-clock", 999);
	f->samples = profile_table(f->p, &shape);
	f->waits = wait_table(f->p, "off-cpu");
	builder_set_table(f->b, SPEC_SAMPLES, f->samples);
	builder_set_table(f->b, SPEC_WAITS, f->waits);
	builder_set_table(f->b, SPEC_BLAMED, wait_table(f->p, "blame"));
}

static void tear_down(struct fixture *f)
{
	builder_free(f->b);
	profile_free(f->p);
}

static void emit(struct fixture *f, struct event ev)
{
	ev.tid = ev.tid ? ev.tid : ev.pid;
	struct event_sink sink = builder_sink(f->b);
	CHECK(!sink.event(sink.ctx, &ev, NULL));
}

static void emit_map(struct fixture *f, int32_t pid, uint64_t start, const char *path)
{
	emit(f, (struct event){.kind = EVENT_MAP,
			       .pid = pid,
			       .map = {.start = start,
				       .len = 0x10000,
				       .inode = 5,
				       .is_exec = true,
				       .path = path}});
}

static void emit_stack(struct fixture *f, int32_t pid, uint64_t ref, const uint64_t *chain,
		       uint32_t nr, enum loss_kind loss)
{
	emit(f, (struct event){.kind = EVENT_STACK,
			       .pid = pid,
			       .stack = {.ref = ref,
					 .is_kernel = nr && chain[0] >= KERNEL,
					 .is_callers = true,
					 .chain = chain,
					 .nr_chain = nr,
					 .loss = loss}});
}

static void emit_wait(struct fixture *f, uint32_t spec, uint64_t user_ref, uint64_t kernel_ref,
		      int64_t nr)
{
	const int64_t values[] = {nr, nr * 1000};
	emit(f, (struct event){.kind = EVENT_AGGREGATE,
			       .pid = 10,
			       .tid = 11,
			       .time_ns = 1000,
			       .cpu = -1,
			       .aggregate = {.spec = spec,
					     .user_ref = user_ref,
					     .kernel_ref = kernel_ref,
					     .reason = WAIT_FSYNC,
					     .evidence = EVIDENCE_IOWAIT,
					     .log2_ns = 20,
					     .syscall = 74,
					     .object = "/data/log",
					     .detail = NULL,
					     .other_pid = 10,
					     .other_tid = 12,
					     .values = values}});
}

static const struct table *waits(const struct fixture *f)
{
	return &f->p->tables.p[f->waits];
}

/* Frames of a stack, leaf first: offsets as hex, names where they have one. */
static void describe(const struct fixture *f, stack_id s, char *to, size_t n)
{
	size_t at = 0;
	to[0] = 0;
	for (; s; s = f->p->stacks.p[s].parent) {
		const struct location *l = &f->p->locations.p[f->p->stacks.p[s].loc];
		const struct frame *fr = &f->p->frames.p[l->first_frame];
		if (l->nr_frames)
			at += (size_t)snprintf(to + at, n - at, "%s ",
					       profile_frame_name(f->p, fr));
		else
			at += (size_t)snprintf(to + at, n - at, "%s%s+%" PRIx64 " ",
					       l->flags & LOCATION_CALL ? "" : "!",
					       profile_module_name(f->p, l->module),
					       l->offset & 0xffff);
		CHECK(at < n);
	}
}

#define CHECK_STACK(f, s, want)                       \
	do {                                          \
		char text_[512];                      \
		describe(f, s, text_, sizeof(text_)); \
		CHECK_STR(text_, want);               \
	} while (0)

static const uint64_t user[] = {CODE + 0x10, CODE + 0x20, CODE + 0x30};
static const uint64_t kernel[] = {KERNEL + 1, KERNEL + 2};

TEST(refs_deep_stack_keeps_root_and_leaf_with_a_frame_for_the_middle)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	struct event deep = {.kind = EVENT_STACK,
			     .pid = 10,
			     .stack = {.ref = 77,
				       .is_callers = true,
				       .chain = user,
				       .nr_chain = 3,
				       .nr_inner = 2,
				       .nr_gap_min = 4096,
				       .loss = LOSS_NR}};
	emit(&f, deep);
	deep.stack.ref = 78;
	deep.stack.loss = LOSS_TRUNC_NO_RULE;
	emit(&f, deep);
	emit_wait(&f, SPEC_WAITS, 77, 0, 1);
	emit_wait(&f, SPEC_WAITS, 78, 0, 1);
	CHECK_STACK(&f, waits(&f)->stack[0],
		    "ten+10 ten+20 [... 4,096 to 8,191 frames ...] ten+30 ");
	CHECK_STACK(&f, waits(&f)->stack[1],
		    "ten+10 ten+20 [... 4,096 to 8,191 frames ...] ten+30 [truncated] ");
	CHECK_U64(f.p->losses.nr[LOSS_TRUNC_DEPTH], 1);
	CHECK_U64(f.p->losses.nr[LOSS_TRUNC_NO_RULE], 1);
	tear_down(&f);
}

TEST(refs_wait_has_the_kernel_on_top_of_the_user)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_stack(&f, 10, 77, user, 3, LOSS_NR);
	emit_stack(&f, 10, 77, kernel, 2, LOSS_NR); /* the same number is another stack here */
	emit_wait(&f, SPEC_WAITS, 77, 77, 3);
	emit_wait(&f, SPEC_WAITS, 77, 0, 1);
	emit_wait(&f, SPEC_WAITS, 0, 77, 1);
	emit_wait(&f, SPEC_WAITS, 0, 0, 1);
	CHECK_U64(waits(&f)->n, 4);
	CHECK_STACK(&f, waits(&f)->stack[0], "[kernel]+1 [kernel]+2 ten+10 ten+20 ten+30 ");
	CHECK_STACK(&f, waits(&f)->stack[1], "ten+10 ten+20 ten+30 ");
	CHECK_STACK(&f, waits(&f)->stack[2], "[kernel]+1 [kernel]+2 ");
	CHECK_U64(waits(&f)->stack[3], 0);
	CHECK_U64(waits(&f)->values[1], 3000);
	CHECK_U64(f.p->losses.nr[LOSS_SEEN], 6);
	CHECK_U64(f.p->losses.nr[LOSS_WRITTEN], 6);
	CHECK_U64(losses_truncated(&f.p->losses), 0);
	tear_down(&f);
}

TEST(refs_tags_say_why_on_what_and_who)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit(&f,
	     (struct event){.kind = EVENT_COMM, .pid = 10, .tid = 12, .comm = {.name = "waker"}});
	emit_stack(&f, 10, 5, user, 3, LOSS_NR);
	emit_wait(&f, SPEC_WAITS, 5, 0, 2);
	const struct tag *t = &f.p->tags.p[waits(&f)->tag[0]];
	CHECK_U64(t->reason, WAIT_FSYNC);
	CHECK_U64(t->evidence, EVIDENCE_IOWAIT);
	CHECK_U64(t->log2_ns, 20);
	CHECK_U64(t->syscall, 74);
	CHECK_STR(profile_text(f.p, t->object), "/data/log");
	CHECK_STR(profile_text(f.p, t->detail), "");
	CHECK_U64(f.p->tasks.p[t->other].tid, 12);
	CHECK_STR(profile_text(f.p, f.p->tasks.p[t->other].comm), "waker");
	CHECK_U64(f.p->tasks.p[waits(&f)->task[0]].tid, 11);
	emit_wait(&f, SPEC_WAITS, 5, 0, 9);
	CHECK_U64(waits(&f)->tag[1], waits(&f)->tag[0]);
	tear_down(&f);
}

TEST(refs_a_row_waits_for_its_stack_and_a_lost_one_heals_later)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_wait(&f, SPEC_WAITS, 5, 0, 2);
	emit_wait(&f, SPEC_WAITS, 6, 0, 4);
	CHECK_U64(waits(&f)->n, 0);
	builder_resolve_pending(f.b); /* neither is there: once more */
	CHECK_U64(waits(&f)->n, 0);
	emit_stack(&f, 10, 5, user, 3, LOSS_NR);
	builder_resolve_pending(f.b);
	CHECK_U64(waits(&f)->n, 2);
	CHECK_STACK(&f, waits(&f)->stack[0], "ten+10 ten+20 ten+30 ");
	CHECK_STACK(&f, waits(&f)->stack[1], "[lost stack] ");
	CHECK_U64(f.p->losses.nr[LOSS_STACK_LOST], 4);
	emit_stack(&f, 10, 6, user + 1, 2, LOSS_NR);
	emit_wait(&f, SPEC_WAITS, 6, 0, 1);
	CHECK_STACK(&f, waits(&f)->stack[2], "ten+20 ten+30 ");
	emit_wait(&f, SPEC_WAITS, 7, 9, 1);
	builder_resolve_all(f.b);
	CHECK_STACK(&f, waits(&f)->stack[3], "[lost stack] ");
	CHECK_U64(f.p->losses.nr[LOSS_STACK_LOST], 5);
	CHECK_U64(f.p->losses.nr[LOSS_SEEN], f.p->losses.nr[LOSS_WRITTEN]);
	tear_down(&f);
}

TEST(refs_losses_count_waits_and_derived_rows_count_nothing)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_stack(&f, 10, 5, user, 2, LOSS_TRUNC_DEPTH);
	emit_wait(&f, SPEC_WAITS, 5, 0, 7);
	emit_wait(&f, SPEC_BLAMED, 5, 0, 7);
	emit_wait(&f, 40, 5, 0, 7); /* nobody's */
	CHECK_STACK(&f, waits(&f)->stack[0], "ten+10 ten+20 [truncated] ");
	CHECK_U64(f.p->losses.nr[LOSS_TRUNC_DEPTH], 7);
	CHECK_U64(f.p->losses.nr[LOSS_WRITTEN], 7);
	CHECK_U64(f.p->tables.p[f.waits + 1].n, 1);
	tear_down(&f);
}

TEST(refs_a_better_telling_replaces_a_cut_stack)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_stack(&f, 10, 5, user, 1, LOSS_TRUNC_NO_RULE);
	emit_stack(&f, 10, 5, user, 3, LOSS_NR);
	emit_stack(&f, 10, 5, user, 2, LOSS_TRUNC_COPY);
	emit_wait(&f, SPEC_WAITS, 5, 0, 1);
	CHECK_STACK(&f, waits(&f)->stack[0], "ten+10 ten+20 ten+30 ");
	tear_down(&f);
}

TEST(refs_samples_have_the_leaf_on_their_callers)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_stack(&f, 10, 5, user, 3, LOSS_NR);
	emit_stack(&f, 10, 6, kernel, 2, LOSS_NR);
	struct event ev = {.kind = EVENT_SAMPLE,
			   .pid = 10,
			   .time_ns = 5,
			   .sample = {.spec = SPEC_SAMPLES,
				      .ip = CODE + 8,
				      .is_user = true,
				      .period = 1000,
				      .user_ref = 5}};
	emit(&f, ev);
	ev.sample.is_user = false;
	ev.sample.ip = KERNEL + 1;
	ev.sample.kernel_ref = 6;
	emit(&f, ev);
	ev.sample.user_ref = 999;
	emit(&f, ev);
	const struct table *t = &f.p->tables.p[f.samples];
	CHECK_STACK(&f, t->stack[0], "!ten+8 ten+10 ten+20 ten+30 ");
	CHECK_STACK(&f, t->stack[1], "[kernel]+1 [kernel]+2 ten+10 ten+20 ten+30 ");
	CHECK_STACK(&f, t->stack[2], "[kernel]+1 [kernel]+2 [lost stack] ");
	CHECK_U64(f.p->losses.nr[LOSS_STACK_LOST], 1);
	CHECK_U64(f.p->mappings.n, 1);
	tear_down(&f);
}

TEST(refs_rows_of_ended_threads_keep_their_name_and_end_nothing)
{
	struct fixture f;
	set_up(&f);
	emit(&f,
	     (struct event){.kind = EVENT_COMM, .pid = 10, .tid = 11, .comm = {.name = "gone"}});
	emit(&f, (struct event){.kind = EVENT_EXIT, .pid = 10, .tid = 11, .time_ns = 50});
	emit_wait(&f, SPEC_WAITS, 0, 0, 1);
	CHECK_STR(profile_text(f.p, f.p->tasks.p[waits(&f)->task[0]].comm), "gone");
	CHECK_U64(f.p->tasks.p[waits(&f)->task[0]].end_ns, 50);
	CHECK(builder_knows_thread(f.b, 10, 11));
	CHECK(!builder_knows_thread(f.b, 9, 11));
	CHECK(!builder_knows_thread(f.b, 10, 99));
	tear_down(&f);
}

TEST(builder_reports_changed_spaces_once_for_a_run_of_mappings)
{
	struct fixture f;
	set_up(&f);
	emit_map(&f, 10, CODE, "/bin/ten");
	emit_map(&f, 10, CODE + 0x100000, "/lib/a.so");
	CHECK_U64(f.nr_changes, 0);
	emit_map(&f, 20, CODE, "/bin/twenty");
	CHECK_U64(f.nr_changes, 1);
	CHECK_U64(f.changes[0].pid, 10);
	CHECK_U64(f.changes[0].nr_maps, 2);
	builder_emit_spaces(f.b);
	builder_emit_spaces(f.b);
	CHECK_U64(f.nr_changes, 2);
	emit(&f, (struct event){.kind = EVENT_FORK, .pid = 30, .fork = {.ppid = 20, .ptid = 20}});
	emit(&f,
	     (struct event){.kind = EVENT_COMM, .pid = 20, .comm = {.name = "x", .is_exec = true}});
	emit(&f, (struct event){.kind = EVENT_EXIT, .pid = 30, .time_ns = 9});
	builder_emit_spaces(f.b);
	CHECK_U64(f.nr_changes, 5);
	CHECK_U64(f.changes[2].pid, 30);
	CHECK_U64(f.changes[2].nr_maps, 1);
	CHECK_U64(f.changes[3].pid, 20);
	CHECK_U64(f.changes[3].nr_maps, 0);
	CHECK_U64(f.changes[4].pid, 30);
	CHECK_U64(f.changes[4].nr_maps, SIZE_MAX);
	tear_down(&f);
}
