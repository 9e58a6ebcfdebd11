/* Resolves targets to process ids; see target.h. */
#include "base/base.h"
#include "host/target.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/regex.h"
#include "base/sv.h"
#include "host/proc.h"
#include "host/targetgroups.h"

#define FAMILY_SHARE 20
#define CMDLINE_MAX  100u
#define FAMILY_DEPTH 64 /* parents of a process that are looked at */

void target_spec_release(struct target_spec *s)
{
	vec_release(&s->pids);
	vec_release(&s->tids);
	vec_release(&s->words);
	vec_release(&s->names);
	vec_release(&s->containers);
	vec_release(&s->cgroups);
	vec_release(&s->users);
}

void target_release(struct target *t)
{
	pid_list_release(&t->pids);
	pid_list_release(&t->tids);
	vec_release(&t->starts);
	vec_foreach(m, &t->groups)
		members_release(m);
	vec_release(&t->groups);
	vec_foreach(c, &t->containers) {
		free(c->name);
		free(c->id);
		free(c->image);
	}
	vec_release(&t->containers);
	free(t->name);
	*t = (struct target){0};
}

void target_candidates_release(struct target_candidates *c)
{
	vec_foreach(e, &c->list)
		free(e->cmdline);
	vec_release(&c->list);
}

static void add_pid(struct pid_list *l, int32_t pid)
{
	if (!pid_list_has(l, pid))
		vec_push(&l->pids, pid);
}

void target_add_pid(struct target *t, int32_t pid)
{
	add_pid(&t->pids, pid);
}

static bool is_self_or_parent(int32_t pid)
{
	return pid == getpid() || pid == getppid();
}

static struct sv base_name(struct sv path)
{
	return sv_from_idx(path, (size_t)(sv_rindex(path, '/') + 1));
}

/*
 * A process matches by its comm (truncated to 15 bytes by the kernel) or by the base name of its
 * first argument: "redis-check-rdb" started as redis-server has both names.
 */
static bool has_name(int32_t pid, const char *name)
{
	CLEANUP(buf_release) struct buf comm = {0};
	CLEANUP(buf_release) struct buf cmdline = {0};
	if (!proc_comm(&comm, pid, pid, NULL)) {
		size_t len = strlen(name);
		if (!strcmp(buf_str(&comm), name) ||
		    (comm.n == 15 && len > 15 && !strncmp(comm.p, name, 15)))
			return true;
	}
	if (proc_argv0(&cmdline, pid, NULL) || !cmdline.n)
		return false;
	/* The first argument may be a path with blanks, or a title that the program set. */
	struct sv rest = buf_sv(&cmdline);
	return sv_eq_str(base_name(rest), name) || sv_eq_str(base_name(sv_split(&rest, ' ')), name);
}

static void add_candidate(struct target_candidates *c, struct known_containers *k, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (proc_cmdline(&text, pid, NULL) || !text.n) {
		buf_clear(&text);
		(void)proc_comm(&text, pid, pid, NULL); /* a kernel thread has no command line */
	}
	if (text.n > CMDLINE_MAX)
		text.n = CMDLINE_MAX;
	targetgroups_add_place(&text, k, pid);
	vec_push(&c->list, (struct target_candidate){pid, buf_detach(&text)});
}

/* Whether one contains the other; a short part of @name is no evidence of a misspelling. */
bool target_is_similar(const char *comm, const char *name)
{
	return strcasestr(comm, name) ||
	       (2 * strlen(comm) >= strlen(name) && strcasestr(name, comm));
}

/* Appends the names of running processes that are similar to @name, at most 5. */
static void add_similar_names(struct buf *to, const struct pid_list *all, const char *name)
{
	size_t nr = 0;
	CLEANUP(buf_release) struct buf comm = {0};
	for (size_t i = 0; i < all->pids.n && nr < 5; i++) {
		buf_clear(&comm);
		if (proc_comm(&comm, all->pids.p[i], all->pids.p[i], NULL) || !comm.n)
			continue;
		if (target_is_similar(comm.p, name))
			buf_addf(to, "%s%s (pid %d)", nr++ || to->n ? ", " : "", comm.p,
				 all->pids.p[i]);
	}
}

static bool is_digit_first(const char *name)
{
	return name[0] >= '0' && name[0] <= '9';
}

/* @k: NULL: containers were not asked for. */
static int not_found(const struct pid_list *all, struct known_containers *k, const char *name,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf near = {0};
	if (k)
		targetgroups_add_similar(&near, k, name);
	add_similar_names(&near, all, name);
	err_set(err, -ESRCH, "no %sprocess is named '%s'", k ? "container and no " : "", name);
	if (is_digit_first(name))
		err_hint(err,
			 "a duration is SECONDS, or a number with a unit: 2, 1.5, 500ms, 2m, 1h");
	else if (near.n)
		err_hint(err, "similar names: %s", near.p);
	else
		err_hint(err,
			 "list names with: ps -eo pid,comm  (or search command lines: --match %s)",
			 name);
	return -ESRCH;
}

/* Adds the one match, or all with @takes_all. @what: "processes are named 'x'". Owns @found. */
static int add_matches(struct target *t, struct target_candidates *found, const char *what,
		       bool takes_all, struct target_candidates *ret_c, struct err *err)
{
	if (found->list.n > 1 && !takes_all) {
		err_set(err, -ENOTUNIQ, "%zu %s", found->list.n, what);
		*ret_c = *found;
		return err_hint(err, "choose one with -p PID, or take all of them with "
				     "--all-matching");
	}
	vec_foreach(e, &found->list)
		add_pid(&t->pids, e->pid);
	target_candidates_release(found);
	return 0;
}

/* Whether @pid descends from @from. */
static bool descends(int32_t pid, int32_t from)
{
	for (unsigned depth = 0; pid > 1 && depth < FAMILY_DEPTH; depth++)
		if (proc_parent(pid, &pid, NULL))
			return false;
		else if (pid == from)
			return true;
	return false;
}

/* Whether one of the processes started all others: a server and its workers. */
static bool is_family(const struct target_candidates *found)
{
	vec_foreach(first, &found->list) {
		size_t nr = 0;
		vec_foreach(e, &found->list)
			nr += e == first || descends(e->pid, first->pid);
		if (nr == found->list.n)
			return true;
	}
	return false;
}

/* What is resolved, and what all words and names have in common. */
struct resolution {
	struct target *t;
	struct pid_list all;
	struct known_containers containers;
	bool takes_all;
	struct target_candidates *ret_c;
};

static void resolution_release(struct resolution *r)
{
	pid_list_release(&r->all);
	known_containers_release(&r->containers);
}

static int resolve_name(struct resolution *r, const char *name, bool is_word, struct err *err)
{
	CLEANUP(free_p) char *what = xasprintf("processes are named '%s'", name);
	struct target_candidates found = {0};
	for (size_t i = 0; i < r->all.pids.n; i++)
		if (!is_self_or_parent(r->all.pids.p[i]) && has_name(r->all.pids.p[i], name))
			add_candidate(&found, &r->containers, r->all.pids.p[i]);
	bool takes_all = r->takes_all || is_family(&found);
	return found.list.n ? add_matches(r->t, &found, what, takes_all, r->ret_c, err)
			    : not_found(&r->all, is_word ? &r->containers : NULL, name, err);
}

static int resolve_word(struct resolution *r, const char *word, struct err *err)
{
	int rc = targetgroups_add_container(r->t, &r->containers, word, 0, r->takes_all, r->ret_c,
					    err);
	if (rc != -ENOENT)
		return rc;
	rc = resolve_name(r, word, true, err);
	if (rc != -ESRCH)
		return rc;
	/* Last what needs an engine's answer, labels of podman, and what only --container means. */
	int late = targetgroups_add_container(r->t, &r->containers, word, CONTAINER_SHORT_ID,
					      r->takes_all, r->ret_c, err);
	if (!late && err)
		err_release(err);
	return late == -ENOENT ? rc : late;
}

static int resolve_container(struct resolution *r, const char *word, struct err *err)
{
	int rc = targetgroups_add_container(r->t, &r->containers, word, CONTAINER_SHORT_ID,
					    r->takes_all, r->ret_c, err);
	return rc == -ENOENT ? targetgroups_no_container(&r->containers, word, err) : rc;
}

/* Ancestors (sudo, timeout, a script) may have assay's arguments in their command lines. */
static void list_ancestors(struct pid_list *l)
{
	for (int32_t pid = getpid(); pid > 1 && !pid_list_has(l, pid);) {
		vec_push(&l->pids, pid);
		if (proc_parent(pid, &pid, NULL))
			return;
	}
}

static int resolve_match(struct resolution *r, const char *pattern, struct err *err)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	if (regex_new(&re, pattern, 0, err))
		return err_wrap(err, "--match");
	CLEANUP(free_p) char *what = xasprintf("command lines match '%s'", pattern);
	CLEANUP(pid_list_release) struct pid_list ours = {0};
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf own = {0}; /* also of what assay forked */
	struct target_candidates found = {0};
	list_ancestors(&ours);
	(void)proc_cmdline(&own, getpid(), NULL);
	for (size_t i = 0; i < r->all.pids.n; i++) {
		int32_t pid = r->all.pids.p[i];
		buf_clear(&text);
		if (pid_list_has(&ours, pid) || proc_cmdline(&text, pid, NULL))
			continue;
		if (text.n && !sv_eq(buf_sv(&text), buf_sv(&own)) && regex_match(re, buf_sv(&text)))
			add_candidate(&found, &r->containers, pid);
	}
	if (found.list.n)
		return add_matches(r->t, &found, what, r->takes_all, r->ret_c, err);
	err_set(err, -ESRCH, "no command line matches '%s'", pattern);
	return err_hint(err, "list command lines with: ps -eo pid,args");
}

static int refuse_zombie(int32_t pid, struct err *err)
{
	CLEANUP(buf_release) struct buf comm = {0};
	int32_t parent;
	err_set(err, -ESRCH, "process %d has ended: it is a zombie, without memory and threads",
		pid);
	if (!proc_parent(pid, &parent, NULL) && !proc_comm(&comm, parent, parent, NULL))
		err_hint(err, "its parent has not waited for it: process %d (%s)", parent,
			 buf_str(&comm));
	return -ESRCH;
}

static int check_pid(int32_t pid, struct err *err)
{
	int32_t tgid;
	if (pid <= 0 || (kill(pid, 0) && errno == ESRCH) || proc_tgid(pid, &tgid, NULL)) {
		err_set(err, -ESRCH, "no process with pid %d", pid);
		err_hint(err, "list processes with: ps -eo pid,comm");
		return -ESRCH;
	}
	if (proc_has_ended(pid))
		return refuse_zombie(pid, err);
	if (tgid != pid) {
		err_set(err, -EINVAL, "%d is a thread of process %d", pid, tgid);
		err_hint(err, "-t %d profiles that thread, -p %d the whole process", pid, tgid);
		return -EINVAL;
	}
	return 0; /* by pid even assay itself may be a target */
}

static int resolve_numbers(struct target *t, const struct target_spec *spec, struct err *err)
{
	for (size_t i = 0; i < spec->pids.n; i++) {
		TRY(check_pid(spec->pids.p[i], err));
		add_pid(&t->pids, spec->pids.p[i]);
	}
	for (size_t i = 0; i < spec->tids.n; i++) {
		int32_t tgid;
		if (proc_tgid(spec->tids.p[i], &tgid, NULL)) {
			err_set(err, -ESRCH, "no thread with tid %d", spec->tids.p[i]);
			return err_hint(err, "list threads with: ps -eLo pid,tid,comm");
		}
		add_pid(&t->tids, spec->tids.p[i]);
	}
	return 0;
}

/*
 * Finds all descendants of the processes, except assay, which a shell among them may have started.
 * Parents mostly have smaller pids than their children, but pids wrap around: repeats until no new
 * one is found.
 */
static void find_descendants(struct pid_list *ret_found, const struct pid_list *of,
			     const struct pid_list *all)
{
	CLEANUP(free_p) int32_t *parents = xcalloc(all->pids.n + 1, sizeof(*parents));
	for (size_t i = 0; i < all->pids.n; i++)
		(void)proc_parent(all->pids.p[i], &parents[i], NULL); /* 0: it has exited */
	for (bool is_more = true; is_more;) {
		is_more = false;
		for (size_t i = 0; i < all->pids.n; i++) {
			int32_t pid = all->pids.p[i];
			if (!parents[i] || pid == getpid() || pid_list_has(of, pid) ||
			    pid_list_has(ret_found, pid))
				continue;
			if (pid_list_has(of, parents[i]) || pid_list_has(ret_found, parents[i])) {
				vec_push(&ret_found->pids, pid);
				is_more = true;
			}
		}
	}
}

static void resolve_children(struct target *t, const struct target_spec *spec,
			     const struct pid_list *all)
{
	CLEANUP(pid_list_release) struct pid_list found = {0};
	if (t->is_system || !t->pids.pids.n)
		return;
	find_descendants(&found, &t->pids, all);
	if (t->groups.n && !spec->takes_children)
		return;
	if (!spec->takes_children) {
		t->nr_children = (uint32_t)found.pids.n;
		return;
	}
	vec_foreach(pid, &found.pids)
		vec_push(&t->pids.pids, *pid);
	pid_list_sort(&t->pids);
}

size_t target_family_grow(struct target_family *f)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	CLEANUP(pid_list_release) struct pid_list found = {0};
	uint64_t start_ns = clock_mono_ns();
	if (start_ns < f->next_ns || proc_list(&all, NULL))
		return f->pids.pids.n;
	find_descendants(&found, &f->pids, &all);
	size_t nr_left = 0;
	vec_foreach(pid, &f->pids.pids) /* a pid may be used again */
		if (pid_list_has(&all, *pid))
			f->pids.pids.p[nr_left++] = *pid;
	f->pids.pids.n = nr_left;
	vec_foreach(pid, &found.pids)
		vec_push(&f->pids.pids, *pid);
	uint64_t end_ns = clock_mono_ns();
	f->next_ns = end_ns + MIN((end_ns - start_ns) * FAMILY_SHARE, NS_PER_SEC);
	return nr_left;
}

static char *target_name(const struct target *t, const struct target_spec *spec)
{
	if (t->is_system)
		return xstrdup("all");
	if (spec->words.n + spec->names.n == 1 && !spec->containers.n)
		return xstrdup(spec->words.n ? spec->words.p[0] : spec->names.p[0]);
	if (t->containers.n)
		return xstrdup(t->containers.p[0].name);
	if (spec->cgroups.n)
		return xstrdup(path_base(t->groups.p[0].cgroup));
	if (spec->users.n)
		return xasprintf("user-%s", spec->users.p[0]);
	int32_t pid = t->pids.pids.n ? t->pids.pids.p[0] : t->tids.pids.n ? t->tids.pids.p[0] : 0;
	CLEANUP(buf_release) struct buf comm = {0};
	if (pid && !proc_comm(&comm, pid, pid, NULL) && comm.n)
		return buf_detach(&comm);
	return xasprintf("pid-%d", pid);
}

static bool has_any(const struct target_spec *s)
{
	return s->pids.n || s->tids.n || s->words.n || s->names.n || s->containers.n ||
	       s->cgroups.n || s->users.n || s->match;
}

bool target_spec_has_any(const struct target_spec *s)
{
	return s->is_system || has_any(s);
}

static void set_starts(struct target *t)
{
	t->starts.n = 0;
	vec_foreach(pid, &t->pids.pids)
		vec_push(&t->starts, proc_start_ticks(*pid));
}

static int resolve_all(struct resolution *r, const struct target_spec *spec, struct err *err)
{
	TRY(resolve_numbers(r->t, spec, err));
	for (size_t i = 0; i < spec->words.n; i++)
		TRY(resolve_word(r, spec->words.p[i], err));
	for (size_t i = 0; i < spec->names.n; i++)
		TRY(resolve_name(r, spec->names.p[i], false, err));
	for (size_t i = 0; i < spec->containers.n; i++)
		TRY(resolve_container(r, spec->containers.p[i], err));
	for (size_t i = 0; i < spec->cgroups.n; i++)
		TRY(targetgroups_add_cgroup(r->t, spec->cgroups.p[i], err));
	for (size_t i = 0; i < spec->users.n; i++)
		TRY(targetgroups_add_user(r->t, spec->users.p[i], err));
	return spec->match ? resolve_match(r, spec->match, err) : 0;
}

int target_resolve(struct target *ret_t, const struct target_spec *spec,
		   struct target_candidates *ret_c, struct err *err)
{
	CLEANUP(target_release)
	struct target t = {.is_system = spec->is_system, .takes_children = spec->takes_children};
	CLEANUP(resolution_release)
	struct resolution r = {.t = &t, .takes_all = spec->takes_all, .ret_c = ret_c};
	if (spec->is_system && (has_any(spec) || spec->takes_children))
		return err_set(
			err, -EINVAL,
			"-a selects the whole system and cannot be combined with other targets");
	t.resolved_ticks = proc_now_ticks();
	TRY(proc_list(&r.all, err));
	TRY(resolve_all(&r, spec, err));
	t.name = target_name(&t, spec);
	resolve_children(&t, spec, &r.all);
	pid_list_sort(&t.pids);
	set_starts(&t);
	*ret_t = t;
	t = (struct target){0};
	return 0;
}

/* ---- while it is captured ----------------------------------------------------------------- */

static bool is_same(const struct target *t, size_t i)
{
	uint64_t start = i < t->starts.n ? t->starts.p[i] : 0;
	uint64_t now = proc_start_ticks(t->pids.pids.p[i]);
	return !start || start == now;
}

bool target_is_same(const struct target *t, int32_t pid)
{
	for (size_t i = 0; i < t->pids.pids.n; i++)
		if (t->pids.pids.p[i] == pid)
			return is_same(t, i);
	return true;
}

size_t target_drop_ended(struct target *t)
{
	size_t nr_kept = 0;
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		if (!is_same(t, i))
			continue;
		t->starts.p[nr_kept] = t->starts.p[i];
		t->pids.pids.p[nr_kept++] = t->pids.pids.p[i];
	}
	size_t nr_dropped = t->pids.pids.n - nr_kept;
	t->pids.pids.n = t->starts.n = nr_kept;
	return nr_dropped;
}

size_t target_list_joined(struct target *t)
{
	size_t nr_before = t->pids.pids.n;
	vec_foreach(m, &t->groups)
		members_list(&t->pids, m, "/");
	for (size_t i = nr_before; i < t->pids.pids.n; i++)
		vec_push(&t->starts, proc_start_ticks(t->pids.pids.p[i]));
	return nr_before;
}

void target_list_early_forks(const struct target *t, struct pid_list *ret)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	CLEANUP(pid_list_release) struct pid_list found = {0};
	ret->pids.n = 0;
	if (proc_list(&all, NULL))
		return;
	find_descendants(&found, &t->pids, &all);
	vec_foreach(pid, &found.pids)
		if (proc_start_ticks(*pid) >= t->resolved_ticks)
			vec_push(&ret->pids, *pid);
}

static bool has_filter(const struct pid_list *l)
{
	struct proc_task task;
	vec_foreach(tid, &l->pids)
		if (!proc_task(*tid, *tid, &task) && task.seccomp == SECCOMP_MODE_FILTER)
			return true;
	return false;
}

bool target_has_pid(const struct target *t, int32_t pid)
{
	vec_foreach(p, &t->pids.pids)
		if (*p == pid)
			return true;
	return t->child == pid;
}

bool target_has_filter(const struct target *t)
{
	return has_filter(&t->pids) || has_filter(&t->tids);
}
