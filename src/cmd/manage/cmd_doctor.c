/* assay doctor: reports what this machine permits, with remedies. */
#include "base/base.h"

#include <unistd.h>

#include "analyze/rightsreport.h"
#include "base/log.h"
#include "base/opt/opt.h"
#include "cmd/capture/targetopts.h"
#include "cmd/cmd.h"
#include "cmd/cmd_table.h"
#include "cmd/manage/doctor_binary.h"
#include "cmd/manage/doctor_container.h"
#include "cmd/optgroups.h"
#include "host/features.h"
#include "host/limits.h"
#include "host/proc.h"
#include "render/renderers.h"

#define SCREEN_WIDTH 80

struct doctor_opts {
	struct target_opts target;
	struct renderer_choice form;
};

static const char details[] =
	"Tries what each command needs from this kernel, user and container: opens and closes "
	"events, loads a BPF program, reads files; changes nothing. Prints on one screen which "
	"commands work, which work in part or not and why, and the remedies. With TARGET, the same "
	"for that process, and what its program lacks, its allocator, and the build flags that add "
	"what is missing; of a container also how to run assay on it or beside it, with the least flags. With FILE, a path with '/', these of a program that is not running. "
	"--details adds each tested feature, a row for each command, and its least capabilities "
	"and container flags. The exit status is 1 if a command does not work at all.";

static const char examples[] =
	"assay doctor\tthis machine and user\n"
	"assay doctor redis-server\ta process and its program\n"
	"assay doctor --container web\ta container, and the least flags of one beside it\n"
	"assay doctor ./server\ta program that is not running\n"
	"assay doctor --details\teverything that was tested\n"
	"assay doctor --json\tthe result as JSON\n";

static const struct opt_exclusion excluded[] = {
	{"tid", NULL, "whole processes are examined, name one with -p PID"},
	{"all", NULL, "without TARGET the machine alone is examined"},
	{0},
};

struct examination {
	struct report *report;
	struct features features; /* of this host */
	VEC(struct rights_row) rows;
	bool has_details;
};

/* All uses of all commands, those that read and manage last. */
static void list_uses(struct examination *e)
{
	for (size_t i = 0; i < nr_cmds; i++)
		for (size_t k = 0; k < CMD_USES_MAX && cmd_table[i].needs[k].bits; k++) {
			struct rights_row *row = vec_add(&e->rows);
			*row = (struct rights_row){cmd_table[i].name, &cmd_table[i].needs[k]};
		}
}

static bool examine_rights(struct examination *e, const struct features *f, unsigned whose,
			   bool is_one_target)
{
	const struct rights_page p = {.report = e->report,
				      .features = f,
				      .rows = e->rows.p,
				      .nr_rows = e->rows.n,
				      .whose = whose,
				      .is_one_target = is_one_target,
				      .has_details = e->has_details};
	bool is_good = rights_report(&p);
	if (e->has_details && !is_one_target)
		rights_detail_report(&p);
	return is_good;
}

/* Adds the tables of a process. Returns false if a command does not work on it, or it has ended. */
static bool examine_process(struct examination *e, int32_t pid)
{
	CLEANUP(buf_release) struct buf name = {0};
	uint32_t uid;
	if (proc_comm(&name, pid, pid, NULL) || proc_uid(pid, &uid, NULL)) {
		log_error("process %d has ended", pid);
		return false;
	}
	struct features f = e->features;
	int rc = features_probe_process(&f, pid);
	report_finding(e->report, "process %d (%s) %s%s", pid, buf_str(&name),
		       rc ? "may not be profiled: " : "may be profiled", rc ? strerror(-rc) : "");
	if (rc) {
		CLEANUP(buf_release) struct buf remedy = {0};
		host_perf_remedy(&remedy, rc, pid);
		report_note(e->report, "%s", buf_str(&remedy));
	}
	unsigned whose = uid == f.uid ? 1u << RIGHTS_OWN : 1u << RIGHTS_OTHERS;
	bool is_good = examine_rights(e, &f, whose, true);
	doctor_add_process(e->report, pid, e->has_details);
	return is_good;
}

/* The flags are those of the command cpu. */
static void add_containers(struct examination *e, const struct target *t)
{
	vec_foreach(row, &e->rows)
		for (size_t i = 0; !strcmp(row->command, "cpu") && i < t->containers.n; i++)
			doctor_add_container(e->report, &t->containers.p[i], row->needs,
					     t->pids.pids.p[0]);
}

/* Examines the first process; the others too in details, else only how they are to be seen. */
static bool examine_target(struct examination *e, const struct target *t)
{
	size_t nr = e->has_details ? t->pids.pids.n : MIN(t->pids.pids.n, (size_t)1);
	bool is_good = true;
	for (size_t i = 0; i < nr; i++)
		is_good &= examine_process(e, t->pids.pids.p[i]);
	if (nr < t->pids.pids.n)
		report_note(e->report, "%zu more processes of the target: --details",
			    t->pids.pids.n - nr);
	add_containers(e, t);
	return is_good;
}

/* The text of one screen, unless more or another width was asked for. */
static int print(const struct doctor_opts *o, const struct report *r)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct text_style style = output_style(&o->form, STDOUT_FILENO);
	style.max_lines = 0; /* every check counts */
	if (!o->form.width && !o->form.is_wide && !o->form.is_details)
		style.width = style.width ? MIN(style.width, SCREEN_WIDTH) : SCREEN_WIDTH;
	renderer_render(&o->form, &b, r, &style);
	return cmd_print(&b);
}

static int examine(const struct doctor_opts *o, const struct target *t, const char *file)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct examination e = {.report = r,
				.has_details = o->form.is_details || !renderer_is_text(&o->form)};
	bool is_good = true;
	r->title = "assay doctor";
	r->has_no_samples = true;
	if (file) {
		if (doctor_add_file(r, file, &err))
			return cmd_fail(&err);
		return print(o, r);
	}
	list_uses(&e);
	features_probe(&e.features);
	if (t->pids.pids.n)
		is_good = examine_target(&e, t);
	else
		is_good = examine_rights(&e, &e.features, (1u << RIGHTS_WHOSE_NR) - 1, false);
	if (e.has_details)
		rights_host_report(r, &e.features);
	vec_release(&e.rows);
	int printed = print(o, r);
	return printed != EXIT_OK ? printed : is_good ? EXIT_OK : EXIT_FAILED;
}

/* A single operand that is a path names a program, not a process. */
static const char *file_operand(const struct opt_args *args)
{
	return args->operands.n == 1 && strchr(args->operands.p[0], '/') ? args->operands.p[0]
									 : NULL;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "doctor",
		.usage = {"[OPTION...] [TARGET | FILE]"},
		.details = details,
		.examples = examples,
		.excluded = excluded,
		.groups = {{&target_group, &o.target}, {&renderer_group, &o.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	const struct target_opts *t = &o.target;
	const char *file = file_operand(&args);
	bool has_target = args.operands.n || target_opts_has_any(t);
	if (has_target && !file && !target_opts_choose(&target, t, &args, &status))
		return status;
	return examine(&o, &target.target, file);
}
