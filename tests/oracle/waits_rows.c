/*
 * waits_rows FILE: prints the rows of a recording's tables of waits and events as tab-separated
 * fields, for tests that compare them with what the target program measured itself:
 *
 *	table second pid tid thread reason raw-reason detail syscall evidence log2 object other-tid
 *	stack other-stack v0 v1 v2 v3
 *
 * "reason" is as views show it (locks and parking distinguished), in table "blame" what the blamed
 * thread did; "raw-reason" is as recorded. Stacks are
 * leaf first, frames joined by ";", inlined ones included. The first line is
 * "# start_ns end_ns", facts follow as "# key: value", losses as "! key count".
 */
#include "base/base.h"

#include <stdio.h>

#include "analyze/wait/blame.h"
#include "analyze/wait/reason.h"
#include "base/buf.h"
#include "session/load.h"

static void add_stack(struct buf *to, const struct profile *p, stack_id stack)
{
	for (; stack; stack = p->stacks.p[stack].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[stack].loc];
		for (uint32_t i = 0; i < l->nr_frames; i++)
			buf_addf(to, "%s;",
				 profile_frame_name(p, &p->frames.p[l->first_frame + i]));
		if (!l->nr_frames)
			buf_addf(to, "[%s];", profile_module_name(p, l->module));
	}
	if (!to->n)
		buf_addf(to, "-");
}

static const char *or_dash(const char *s)
{
	return *s ? s : "-";
}

static void print_row(const struct profile *p, const struct table *t, size_t i, struct reasons *rs)
{
	const struct tag *tag = &p->tags.p[t->tag[i]];
	const struct task *task = &p->tasks.p[t->task[i]];
	CLEANUP(buf_release) struct buf stack = {0};
	CLEANUP(buf_release) struct buf other = {0};
	enum wait_reason reason = t->id == TABLE_BLAME ? blame_tag_of(p, rs, tag).doing
						       : reason_of(rs, t->stack[i], tag);
	add_stack(&stack, p, t->stack[i]);
	add_stack(&other, p, tag->other_stack);
	printf("%s\t%.0f\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s",
	       profile_text(p, t->event), (double)(t->time_ns[i] - p->start_ns) / 1e9, task->pid,
	       task->tid, or_dash(profile_text(p, task->comm)), wait_key(reason),
	       wait_key(tag->reason), or_dash(profile_text(p, tag->detail)), tag->syscall,
	       tag->evidence, tag->log2_ns, or_dash(profile_text(p, tag->object)),
	       p->tasks.p[tag->other].tid, buf_str(&stack), buf_str(&other));
	for (uint32_t k = 0; k < TABLE_COLUMNS_MAX; k++)
		printf("\t%lld",
		       k < t->nr_columns ? (long long)t->values[i * t->nr_columns + k] : 0ll);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct err err = {0};
	struct profile *p = NULL;
	if (argc != 2 || load_profile(&p, argv[1], &(struct load_options){0}, &err)) {
		fprintf(stderr, "waits_rows: %s\n", argc == 2 ? err_msg(&err) : "FILE?");
		return 1;
	}
	struct arena arena = {0};
	struct reasons *rs = reasons_new(&arena, p);
	printf("# %llu %llu\n", (unsigned long long)p->start_ns, (unsigned long long)p->end_ns);
	for (size_t i = 0; i < p->facts.n; i++)
		printf("# %s: %s\n", profile_text(p, p->facts.p[i].key),
		       profile_text(p, p->facts.p[i].value));
	for (unsigned i = 0; i < LOSS_NR; i++)
		if (p->losses.nr[i])
			printf("! %s %llu\n", loss_key((enum loss_kind)i),
			       (unsigned long long)p->losses.nr[i]);
	for (size_t k = 0; k < p->tables.n; k++)
		for (size_t i = 0; p->tables.p[k].has_tags && i < p->tables.p[k].n; i++)
			print_row(p, &p->tables.p[k], i, rs);
	arena_release(&arena);
	profile_free(p);
	return 0;
}
