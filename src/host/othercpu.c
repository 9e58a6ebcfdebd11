/* CPU time of other programs; see othercpu.h. Fields of /proc/PID/stat: proc(5). */
#include "base/base.h"
#include "host/othercpu.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/num.h"

#define NAMED_MAX 3u
#define CPUS_MIN  0.05
#define KTHREADD  2
#define INIT      1
#define DEPTH_MAX 64

void othercpu_release(struct othercpu *o)
{
	vec_release(&o->list);
}

static bool parse(struct othercpu_process *ret_p, const struct buf *text)
{
	ssize_t open = sv_index(buf_sv(text), '(');
	ssize_t close = sv_rindex(buf_sv(text), ')');
	uint64_t parent, user, kernel, children_user, children_kernel;
	if (open < 0 || close < open || !proc_stat_field(text, 4, &parent) ||
	    !proc_stat_field(text, 14, &user) || !proc_stat_field(text, 15, &kernel) ||
	    !proc_stat_field(text, 16, &children_user) ||
	    !proc_stat_field(text, 17, &children_kernel) ||
	    !proc_stat_field(text, 22, &ret_p->start_ticks))
		return false;
	ret_p->parent = (int32_t)parent;
	ret_p->own_ticks = user + kernel;
	ret_p->children_ticks = children_user + children_kernel;
	size_t n = MIN((size_t)(close - open - 1), sizeof(ret_p->name) - 1);
	memcpy(ret_p->name, buf_str(text) + open + 1, n);
	ret_p->name[n] = 0;
	return true;
}

static void read_all(struct othercpu *to, const char *proc)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	CLEANUP(buf_release) struct buf text = {0};
	if (proc_list_in(&all, proc, NULL))
		return;
	pid_list_sort(&all);
	vec_foreach(pid, &all.pids) {
		char path[64];
		struct othercpu_process one = {.pid = *pid};
		(void)snprintf(path, sizeof(path), "%s/%d/stat", proc, *pid);
		buf_clear(&text);
		if (!file_read(&text, path, 1 << 16, NULL) && parse(&one, &text))
			vec_push(&to->list, one);
	}
}

static struct othercpu_process *find(const struct othercpu *in, int32_t pid)
{
	size_t at = lower_bound(in->list.p, in->list.n, pid, pid);
	return at < in->list.n && in->list.p[at].pid == pid ? &in->list.p[at] : NULL;
}

/* assay, the target and their descendants. */
static bool is_own(const struct othercpu *all, const struct target *t,
		   const struct othercpu_process *one)
{
	for (unsigned depth = 0; one && depth < DEPTH_MAX; depth++) {
		if (one->pid == getpid() || target_has_pid(t, one->pid) ||
		    pid_list_has(&t->tids, one->pid))
			return true;
		one = find(all, one->parent);
	}
	return false;
}

/* ---- sums ---------------------------------------------------------------------------------- */

struct program {
	const char *name;
	uint64_t ticks;
	uint64_t children_ticks;
};
struct programs {
	VEC(struct program) list;
};

static void add(struct programs *to, const char *name, uint64_t ticks, uint64_t children_ticks)
{
	struct program *at = NULL;
	vec_foreach(p, &to->list)
		if (!strcmp(p->name, name))
			at = p;
	if (!at) {
		at = vec_add(&to->list);
		at->name = name;
	}
	at->ticks += ticks + children_ticks;
	at->children_ticks += children_ticks;
}

static bool has_ended(const struct othercpu *now, const struct othercpu_process *one)
{
	const struct othercpu_process *then = find(now, one->pid);
	return !then || then->start_ticks != one->start_ticks;
}

/*
 * What processes had used before that have ended since: only now it is in the time of the children of their
 * nearest ancestor that still runs.
 */
static void subtract_ended(struct othercpu *before, const struct othercpu *now)
{
	vec_foreach(one, &before->list) {
		struct othercpu_process *to = one;
		for (unsigned depth = 0; to && has_ended(now, to); depth++)
			to = depth < DEPTH_MAX ? find(before, to->parent) : NULL;
		if (to && to != one)
			to->children_ticks += one->own_ticks + one->children_ticks;
	}
}

static int by_ticks(const void *a, const void *b)
{
	const struct program *x = a;
	const struct program *y = b;
	return x->ticks != y->ticks ? (x->ticks < y->ticks ? 1 : -1) : strcmp(x->name, y->name);
}

static void sum_up(struct programs *to, struct othercpu *before, const struct othercpu *now,
		   const struct target *t)
{
	subtract_ended(before, now);
	vec_foreach(one, &now->list) {
		const struct othercpu_process *first = find(before, one->pid);
		struct othercpu_process zero = {0};
		bool is_kernel = one->pid == KTHREADD || one->parent == KTHREADD;
		if (is_own(now, t, one))
			continue;
		if (!first || first->start_ticks != one->start_ticks)
			first = &zero;
		uint64_t own = one->own_ticks - MIN(first->own_ticks, one->own_ticks);
		uint64_t children = one->pid == INIT
					    ? 0 /* anybody's, also of long ago */
					    : one->children_ticks - MIN(first->children_ticks,
									one->children_ticks);
		if (own + children)
			add(to, is_kernel ? "kernel threads" : one->name, own, children);
	}
	if (to->list.n)
		qsort(to->list.p, to->list.n, sizeof(*to->list.p), by_ticks);
}

void othercpu_begin(struct othercpu *o, const char *proc)
{
	read_all(o, proc);
	o->start_ns = clock_mono_ns();
}

static void add_text(struct buf *to, const struct programs *all, double ticks)
{
	double sum = 0;
	vec_foreach(one, &all->list)
		sum += (double)one->ticks;
	if (sum < CPUS_MIN * ticks)
		return;
	buf_addf(to, "%s CPUs", num_double(sum / ticks, 2).s);
	for (size_t i = 0; i < MIN(all->list.n, (size_t)NAMED_MAX); i++) {
		const struct program *one = &all->list.p[i];
		bool is_by_children = one->children_ticks > one->ticks / 2;
		if ((double)one->ticks >= CPUS_MIN / 2 * ticks)
			buf_addf(to, "%s%s%s %s", i ? ", " : ": ", one->name,
				 is_by_children ? " with its children" : "",
				 num_double((double)one->ticks / ticks, 2).s);
	}
}

void othercpu_end(struct othercpu *o, struct buf *to, const char *proc, const struct target *t,
		  uint64_t now_ns)
{
	CLEANUP(othercpu_release) struct othercpu now = {0};
	struct programs all = {0};
	double ticks = (double)sysconf(_SC_CLK_TCK) * (double)(now_ns - o->start_ns) / 1e9;
	if (!o->list.n || !(ticks > 0))
		return;
	read_all(&now, proc);
	sum_up(&all, o, &now, t);
	add_text(to, &all, ticks);
	vec_release(&all.list);
}
