/* assay doctor: what may be measured here, what not, and the remedy. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/doctor_rights.h"
#include "cmd/doctor_target.h"
#include "cmd/optgroups.h"
#include "cmd/targetopts.h"
#include "host/features.h"
#include "render/jsonout.h"
#include "render/text.h"

struct doctor_opts {
	struct target_opts target;
	bool is_json;
	bool is_brief;
};

static const struct opt doctor_table[] = {
	OPT_FLAG('j', "json", struct doctor_opts, is_json, "JSON instead of text"),
	OPT_FLAG('s', "short", struct doctor_opts, is_brief,
		 "the table of commands and the remedies only"),
	OPT_END,
};
static const struct opt_group doctor_group = {"Output", doctor_table};

static const char details[] =
	"Tries what each command needs of this kernel, user and container: events are opened and\n"
	"closed, a program is loaded, files are read; nothing is changed. Prints for each command\n"
	"whether it works, what it degrades to, or why it is refused, with the remedy, and the least\n"
	"capabilities and container flags that each needs. With a TARGET also whether it may be\n"
	"profiled, and what its binaries lack, with the build flags that help.";

static const char examples[] = "assay doctor\twhat may I do here?\n"
			       "assay doctor redis-server\tand with this program?\n"
			       "assay doctor --json\tfor scripts\n";

/* Exit status of the process part: EXIT_OK when all are open. */
static int add_targets(struct report *r, const struct target *t)
{
	int status = EXIT_OK;
	for (size_t i = 0; i < t->pids.pids.n; i++) {
		CLEANUP(err_release) struct err err = {0};
		bool is_open = false;
		if (doctor_add_target(r, t->pids.pids.p[i], &is_open, &err)) {
			log_error("process %d has ended", t->pids.pids.p[i]);
			status = EXIT_FAILED;
		} else if (!is_open) {
			status = EXIT_FAILED;
		}
	}
	return status;
}

static int examine(const struct doctor_opts *o, const struct chosen_target *t)
{
	struct features f;
	features_try(&f);
	CLEANUP(report_free_p) struct report *r = report_new();
	r->title = "assay doctor";
	r->has_no_samples = true;
	if (!o->is_brief)
		doctor_add_host(r, &f);
	int status = doctor_add_rights(r, &f, !o->is_brief) ? EXIT_OK : EXIT_FAILED;
	if (t->has_target && add_targets(r, &t->target) != EXIT_OK)
		status = EXIT_FAILED;
	CLEANUP(buf_release) struct buf b = {0};
	if (o->is_json) {
		jsonout_render(&b, r);
	} else {
		struct text_style style = output_style(STDOUT_FILENO);
		style.width = 0; /* a remedy that is cut is none */
		text_render(&b, r, &style);
	}
	int printed = cmd_print(&b);
	return printed == EXIT_OK ? status : printed;
}

int cmd_doctor(int argc, char **argv)
{
	CLEANUP(opt_args_release) struct opt_args args = {0};
	struct doctor_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "doctor",
		.usage = {"[options] [TARGET]"},
		.summary = "what may be measured here, what not, and the remedy",
		.details = details,
		.examples = examples,
		.groups = {{&target_group, &o.target}, {&doctor_group, &o}},
	};
	int status;
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		const struct target_opts *t = &o.target;
		bool has_target = args.operands.n || t->pids.n || t->tids.n || t->names.n ||
				  t->match || t->is_system;
		if (!has_target || target_opts_choose(&target, t, &args, &status))
			status = examine(&o, &target);
	}
	target_opts_release(&o.target);
	return status;
}
