/* Selects the target of a command; see targetopts.h. */
#include "base/base.h"
#include "cmd/capture/targetopts.h"

#include <errno.h>

#include "base/buf.h"
#include "base/text/escape.h"
#include "base/log.h"
#include "base/sv.h"
#include "base/text/num.h"
#include "cmd/cmd.h"

static const struct opt target_opts_table[] = {
	OPT_LIST('p', "pid", struct target_opts, pids, "PID[,PID]", "processes with these ids"),
	OPT_LIST('t', "tid", struct target_opts, tids, "TID[,TID]",
		 "single threads with these ids"),
	OPT_LIST('n', "name", struct target_opts, names, "NAME",
		 "the process of exactly this name; a bare word may also be a container"),
	OPT_LIST(0, "container", struct target_opts, containers, "NAME|ID",
		 "all processes of this container (Docker, podman, containerd, Kubernetes: POD, "
		 "CONTAINER or POD/CONTAINER; compose: a service), also those that start later"),
	OPT_LIST(0, "cgroup", struct target_opts, cgroups, "PATH",
		 "all processes of this cgroup and those below, also those that start later"),
	OPT_LIST(0, "uid", struct target_opts, users, "USER",
		 "all processes of this user, a name or a number, also those that start later"),
	OPT_STR(0, "match", struct target_opts, match, "REGEX",
		"the process whose command line matches"),
	OPT_FLAG(0, "all-matching", struct target_opts, takes_all,
		 "all processes that match the name or --match, if there are several"),
	OPT_FLAG(0, "children", struct target_opts, takes_children,
		 "also the descendants of these processes"),
	OPT_FLAG('a', "all", struct target_opts, is_system, "the whole system"),
	OPT_END,
};
const struct opt_group target_group = {"Target", target_opts_table};

void chosen_target_release(struct chosen_target *c)
{
	target_release(&c->target);
}

static int not_a_number(const char *text, bool is_tid, struct err *err)
{
	(void)err_set(err, -EINVAL, "'%s' is not a %s", text, is_tid ? "thread id" : "process id");
	if (is_tid)
		return err_hint(err, "list threads with: ps -eLo pid,tid,comm");
	return err_hint(err, "a process is named by a bare word, or with -n NAME");
}

static int add_numbers(struct target_spec *spec, bool is_tid, const char *text, struct err *err)
{
	struct sv rest = sv_from_str(text);
	do {
		uint64_t v;
		struct sv one = sv_trim(sv_split(&rest, ','));
		if (!sv_to_u64(one, &v) || !v || v > INT32_MAX)
			return not_a_number(text, is_tid, err);
		if (is_tid)
			vec_push(&spec->tids, (int32_t)v);
		else
			vec_push(&spec->pids, (int32_t)v);
	} while (rest.n);
	return 0;
}

/* Adds the bare words: one number is the duration, all others are containers or processes. */
static int add_operands(struct target_spec *spec, const struct opt_args *args,
			uint64_t *ret_duration_ns, struct err *err)
{
	for (size_t i = 0; i < args->operands.n; i++) {
		const char *word = args->operands.p[i];
		bool is_number = word[0] >= '0' && word[0] <= '9';
		uint64_t ns;
		bool is_duration = is_number && !opt_to_duration(&ns, word, NULL);
		/* The first word may be a name: "7zip". A later one, "2x", is a mistyped duration. */
		if (is_number && !is_duration && i > 0)
			return opt_to_duration(&ns, word, err);
		if (!is_duration) {
			vec_push(&spec->words, word);
			continue;
		}
		if (*ret_duration_ns) {
			err_set(err, -EINVAL, "two durations are given, the second is '%s'", word);
			return err_hint(err, "a bare number is SECONDS; a process id is -p %s",
					word);
		}
		if (!ns) {
			(void)err_set(err, -EINVAL, "a duration of 0 records nothing");
			return err_hint(err, "SECONDS is a positive number: 10, 0.5, 2m");
		}
		*ret_duration_ns = ns;
	}
	return 0;
}

int target_opts_spec(struct target_spec *spec, const struct target_opts *o, struct err *err)
{
	for (size_t i = 0; i < o->pids.n; i++)
		TRY(add_numbers(spec, false, o->pids.p[i], err));
	for (size_t i = 0; i < o->tids.n; i++)
		TRY(add_numbers(spec, true, o->tids.p[i], err));
	for (size_t i = 0; i < o->names.n; i++)
		vec_push(&spec->names, o->names.p[i]);
	for (size_t i = 0; i < o->containers.n; i++)
		vec_push(&spec->containers, o->containers.p[i]);
	for (size_t i = 0; i < o->cgroups.n; i++)
		vec_push(&spec->cgroups, o->cgroups.p[i]);
	for (size_t i = 0; i < o->users.n; i++)
		vec_push(&spec->users, o->users.p[i]);
	spec->match = o->match;
	spec->is_system = o->is_system;
	spec->takes_all = o->takes_all;
	spec->takes_children = o->takes_children;
	return 0;
}

bool target_opts_has_any(const struct target_opts *o)
{
	return o->pids.n || o->tids.n || o->names.n || o->containers.n || o->cgroups.n ||
	       o->users.n || o->match || o->is_system;
}

static void list_candidates(const struct target_candidates *c)
{
	vec_foreach(e, &c->list) {
		CLEANUP(buf_release) struct buf text = {0};
		escape_term(&text, sv_from_str(e->cmdline));
		if (e->pid)
			log_note("%8d  %s", e->pid, buf_str(&text));
		else
			log_note("  %s", buf_str(&text));
	}
}

/* In a pre-forking server, the first process waits and its children do the work. */
static void print_children(const struct target *t)
{
	if (t->nr_children)
		log_note("%s of the target %s not included; to include %s: --children",
			 num_noun(t->nr_children, "child processes").s,
			 t->nr_children == 1 ? "is" : "are", t->nr_children == 1 ? "it" : "them");
}

/* A name that was taken for several processes. */
static void print_family(const struct target *t, const struct target_spec *spec)
{
	bool is_one_name = spec->words.n + spec->names.n == 1 && !spec->pids.n && !spec->takes_all;
	if (is_one_name && t->pids.pids.n > 1 && !t->groups.n && !t->takes_children)
		log_note(
			"%zu processes have this name, and one of them started the others: all are "
			"recorded",
			t->pids.pids.n);
}

/* A number without a target may be meant as a process id, another word as a program to start. */
static int missing_target(const struct opt_args *args, struct err *err)
{
	(void)err_set(err, -EINVAL, "missing target");
	if (args->operands.n == 1)
		return err_hint(err, "a bare number is SECONDS; a process id is -p %s",
				args->operands.p[0]);
	return err_hint(err, "name a container or a process, or use -p PID or -- CMD");
}

bool target_opts_choose(struct chosen_target *ret_c, const struct target_opts *o,
			const struct opt_args *args, int *ret_status)
{
	CLEANUP(target_spec_release) struct target_spec spec = {0};
	CLEANUP(target_candidates_release) struct target_candidates candidates = {0};
	CLEANUP(err_release) struct err err = {0};
	struct chosen_target c = {0};
	int rc = add_operands(&spec, args, &c.duration_ns, &err);
	rc = rc ? rc : target_opts_spec(&spec, o, &err);
	c.has_target = target_spec_has_any(&spec);
	if (!rc && !c.has_target && !args->command)
		rc = missing_target(args, &err);
	if (!rc && c.has_target)
		rc = target_resolve(&c.target, &spec, &candidates, &err);
	if (rc == -ESRCH && args->operands.n && !args->command)
		cmd_hint_launch(&err, args);
	if (rc) {
		log_error("%s", err_msg(&err));
		list_candidates(&candidates);
		if (err.hint)
			log_hint("%s", err.hint);
		else
			log_hint("assay %s --help", args->argv[0]);
		*ret_status = rc == -ESRCH ? EXIT_FAILED : EXIT_USAGE;
		return false;
	}
	print_family(&c.target, &spec);
	print_children(&c.target);
	*ret_c = c;
	return true;
}
