/* Tests of ingest/builder: processes and threads that come and go, and what is kept of them. */
#include "base/base.h"
#include "ingest/builder.h"

#include <errno.h>

#include "tap.h"
#include "no_files.h"

struct unwind_process {
	struct file_access files;
	struct profile *p;
	struct builder *b;
	struct event_sink sink;
	uint64_t now_ns;
};

static void unwind_process_init(struct unwind_process *w)
{
	*w = (struct unwind_process){.files = {.open = open_nothing}, .p = profile_new()};
	w->b = builder_new(w->p, &(struct builder_options){.files = &w->files});
	struct table shape = builder_table_shape(w->p, "cpu-clock", 999);
	builder_set_table(w->b, 0, profile_table(w->p, &shape));
	w->sink = builder_sink(w->b);
}

static void unwind_process_release(struct unwind_process *w)
{
	builder_free(w->b);
	profile_free(w->p);
}

static void emit(struct unwind_process *w, struct event ev)
{
	ev.time_ns = ++w->now_ns;
	ev.cpu = -1;
	CHECK(!w->sink.event(w->sink.ctx, &ev, NULL));
}

static void emit_fork(struct unwind_process *w, int32_t pid, int32_t tid, int32_t ppid,
		      int32_t ptid)
{
	emit(w, (struct event){.kind = EVENT_FORK,
			       .pid = pid,
			       .tid = tid,
			       .fork = {.ppid = ppid, .ptid = ptid}});
}

static void emit_exit(struct unwind_process *w, int32_t pid, int32_t tid)
{
	emit(w, (struct event){.kind = EVENT_EXIT, .pid = pid, .tid = tid});
}

static void emit_exec(struct unwind_process *w, int32_t pid)
{
	emit(w, (struct event){.kind = EVENT_COMM,
			       .pid = pid,
			       .tid = pid,
			       .comm = {.name = "new", .is_exec = true}});
}

static void emit_map(struct unwind_process *w, int32_t pid, uint64_t start)
{
	emit(w, (struct event){.kind = EVENT_MAP,
			       .pid = pid,
			       .tid = pid,
			       .map = {.start = start,
				       .len = 0x1000,
				       .inode = 7,
				       .is_exec = true,
				       .path = "/bin/it"}});
}

/* The kind of module that a sample's leaf lies in. */
static enum module_kind sample_kind(struct unwind_process *w, int32_t pid, int32_t tid, uint64_t ip)
{
	emit(w, (struct event){.kind = EVENT_SAMPLE,
			       .pid = pid,
			       .tid = tid,
			       .sample = {.ip = ip, .is_user = true, .period = 1}});
	const struct table *t = &w->p->tables.p[0];
	const struct location *l = &w->p->locations.p[w->p->stacks.p[t->stack[t->n - 1]].loc];
	return w->p->modules.p[l->module].kind;
}

TEST(builder_keeps_mappings_when_the_first_thread_ends_before_the_others)
{
	struct unwind_process w;
	unwind_process_init(&w);
	emit_fork(&w, 10, 10, 1, 1);
	emit_exec(&w, 10);
	emit_map(&w, 10, 0x10000);
	emit_fork(&w, 10, 11, 10, 10);
	emit_exit(&w, 10, 10);
	CHECK_U64(sample_kind(&w, 10, 11, 0x10010), MODULE_ELF);
	emit_exit(&w, 10, 11);
	CHECK_U64(sample_kind(&w, 10, 10, 0x10010), MODULE_UNKNOWN);
	unwind_process_release(&w);
}

TEST(builder_forgets_mappings_with_the_last_thread_after_an_exec_by_another_thread)
{
	struct unwind_process w;
	unwind_process_init(&w);
	emit_fork(&w, 10, 10, 1, 1);
	emit_fork(&w, 10, 11, 10, 10);
	emit_exit(&w, 10, 10); /* thread 11 executes: it becomes thread 10 */
	emit_exec(&w, 10);
	emit_map(&w, 10, 0x10000);
	CHECK_U64(sample_kind(&w, 10, 10, 0x10010), MODULE_ELF);
	emit_exit(&w, 10, 10);
	CHECK_U64(sample_kind(&w, 10, 10, 0x10010), MODULE_UNKNOWN);
	unwind_process_release(&w);
}

TEST(builder_keeps_mappings_of_a_process_whose_first_thread_never_said_anything)
{
	struct unwind_process w;
	unwind_process_init(&w);
	emit_map(&w, 10, 0x10000);
	emit_exit(&w, 10, 12);
	CHECK_U64(sample_kind(&w, 10, 11, 0x10010), MODULE_ELF);
	unwind_process_release(&w);
}

TEST(builder_lists_mappings_of_processes_that_have_samples_only)
{
	struct unwind_process w;
	unwind_process_init(&w);
	for (int32_t pid = 100; pid < 1100; pid++) {
		emit_fork(&w, pid, pid, 1, 1);
		emit_exec(&w, pid);
		emit_map(&w, pid, 0x10000);
		emit_map(&w, pid, 0x20000);
		if (pid % 100 == 0)
			(void)sample_kind(&w, pid, pid, 0x10010);
		emit_exit(&w, pid, pid);
	}
	CHECK_U64(w.p->mappings.n, 20);
	unwind_process_release(&w);
}

TEST(builder_lists_a_mapping_that_is_reported_again_once)
{
	struct unwind_process w;
	unwind_process_init(&w);
	emit_fork(&w, 10, 10, 1, 1);
	emit_map(&w, 10, 0x10000);
	(void)sample_kind(&w, 10, 10, 0x10010);
	for (int i = 0; i < 100; i++)
		emit_map(&w, 10, 0x20000);
	CHECK_U64(w.p->mappings.n, 2);
	/* A child has its parent's mappings, in the profile with its first sample. */
	emit_fork(&w, 20, 20, 10, 10);
	CHECK_U64(w.p->mappings.n, 2);
	CHECK_U64(sample_kind(&w, 20, 20, 0x20010), MODULE_ELF);
	CHECK_U64(w.p->mappings.n, 4);
	unwind_process_release(&w);
}

static uint64_t start_of(const struct unwind_process *w, const char *name)
{
	for (size_t i = 0; i < w->p->tasks.n; i++)
		if (!strcmp(profile_text(w->p, w->p->tasks.p[i].comm), name))
			return w->p->tasks.p[i].start_ns;
	return 0;
}

TEST(builder_starts_a_name_when_it_was_given_if_the_one_before_was_sampled)
{
	for (int is_sampled = 0; is_sampled < 2; is_sampled++) {
		CLEANUP(unwind_process_release) struct unwind_process w;
		unwind_process_init(&w);
		emit_fork(&w, 70, 70, 1, 1);
		if (is_sampled)
			(void)sample_kind(&w, 70, 70, 0x1000);
		emit_exec(&w, 70);
		uint64_t exec_ns = w.now_ns;
		(void)sample_kind(&w, 70, 70, 0x1000);
		CHECK_U64(start_of(&w, "new"), is_sampled ? exec_ns : 1);
	}
}
