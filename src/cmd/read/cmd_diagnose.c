/* assay diagnose: what is wrong with the program of a recording, by rules. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <unistd.h>

#include "analyze/diagnose/diagnosis.h"
#include "analyze/select/window.h"
#include "base/log.h"
#include "cmd/diagnoserules.h"
#include "cmd/optgroups.h"
#include "cmd/otherwords.h"
#include "cmd/read/inputs.h"
#include "host/reader/hostfile.h"

struct diagnose_opts {
	struct diagnose_rules rules;
	const char *time;
	bool prints_rules;
	bool lists_measures;
};

static const struct opt diagnose_opts[] = {
	OPT_FLAG(0, "print-rules", struct diagnose_opts, prints_rules,
		 "print the built-in rules, in the format of --rules"),
	OPT_FLAG(0, "list-measures", struct diagnose_opts, lists_measures,
		 "list the values that rules can use"),
	OPT_STR(0, "time", struct diagnose_opts, time, "FROM..TO",
		"only this part of the capture, as for assay report"),
	OPT_END,
};
static const struct opt_group diagnose_group = {"Recording and rules", diagnose_opts};

static const char details[] =
	"Prints at most three findings: defects (a deadlock, a fast leak) first, then by share of the time; a CPU "
	"shortage that other programs cause is second at best. Each has the measured "
	"values with what they are a share of, the test, in how many of ten equal parts of the capture it "
	"holds, an upper bound of the gain, the command that shows its rows, a remedy, and what would "
	"refute it. A rule that is the cause of another one's values replaces it.\n"
	"\n"
	"Without a finding the answer is one of: mostly idle (no load), inconclusive with what was "
	"not recorded, or that the capture is not to be relied on.\n"
	"\n"
	"FILE is a recording or another profile that assay reads. Without FILE, the newest recording below "
	"./profiling is read. With a TARGET in its place, or -p PID, a capture is made first, with the options of "
	"assay all. A word that is both a running process and a file is the file if that is a profile; ./NAME is always "
	"the file, -n NAME the process.";

static const char examples[] =
	"assay diagnose\tthe newest recording\n"
	"assay diagnose redis-server 30\ta running service, recorded for 30 seconds\n"
	"assay diagnose redis.assay --all-rules\thow each rule came out\n"
	"assay diagnose --print-rules > my.rules\ta template for own rules\n"
	"assay diagnose redis.assay --rules my.rules --md\tfor an issue\n";

static int print_rules(void)
{
	CLEANUP(buf_release) struct buf text = {0};
	rules_add_builtin_text(&text);
	return cmd_print(&text);
}

static int print_measures(const struct output_opts *out)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	struct output_opts all = *out;
	all.form.has_limit = true; /* not a page: all rows */
	diagnosis_list_measures(r);
	return output_report(&all, r);
}

static int diagnose(struct diagnose_opts *o, const struct output_opts *out,
		    const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(inputs_release) struct inputs in = {0};
	CLEANUP(profile_free_p) struct profile *p = NULL;
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct select_spec spec = {.time = o->time};
	struct window w;
	if (diagnose_rules_read(&o->rules, &err))
		return cmd_refuse(&err);
	if (inputs_find(&in, args, &err) || inputs_confine(in.paths, in.nr, out->path, &err) ||
	    inputs_load(&p, in.paths, in.nr, &(struct load_options){0}, &err))
		return cmd_fail(&err);
	if (o->time && window_parse(p, o->time, &w, &err))
		return cmd_refuse(&err);
	diagnosis_report(r, p, &spec, &o->rules.all, in.nr == 1 ? in.paths[0] : NULL,
			 diagnose_rules_flags(&o->rules));
	return output_report(out, r);
}

/*
 * Whether a word is a process: one of that name runs, and the word is neither a path nor the file of a
 * profile. *ret_has_both: there is a file of that name, too.
 */
static bool is_process(const char *word, bool *ret_has_both)
{
	if (word[0] == '-' || strchr(word, '/') || !word_is_running(word))
		return false;
	*ret_has_both = !access(word, F_OK);
	return !inputs_is_profile(word);
}

/* "-p", "-p7", "--pid", "--pid=7" */
static bool is_option(const char *word, const char *option)
{
	size_t n = strlen(option);
	return !strncmp(word, option, n) &&
	       (!word[n] || (n == 2 ? option[1] != '-' : word[n] == '='));
}

/*
 * A running program is recorded first: its name behind any options of a capture, an option that names a
 * target, a command.
 */
static bool is_of_target(int argc, char **argv, const char *operand, bool *ret_has_both)
{
	static const char *const options[] = {"-p",    "--pid",    "-t",      "--tid",
					      "-n",    "--name",   "--match", "--container",
					      "--uid", "--cgroup", "-a",      "--"};
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < ARRAY_LEN(options); k++)
			if (is_option(argv[i], options[k]))
				return true;
	return operand && is_process(operand, ret_has_both);
}

static void opts_release(struct diagnose_opts *o)
{
	diagnose_rules_release(&o->rules);
}

int cmd_diagnose(int argc, char **argv)
{
	bool has_both = false;
	const char *name = cmd_all_operand(argc, argv);
	if (is_of_target(argc, argv, name, &has_both)) {
		hostfile_start(0, NULL); /* as for each command that captures */
		return cmd_all_diagnosed(argc, argv, has_both ? name : NULL);
	}
	CLEANUP(opts_release) struct diagnose_opts o = {0};
	struct output_opts out = {0};
	const struct opt_cmd cmd = {
		.name = "diagnose",
		.usage = {"[OPTION...] [FILE...]", "TARGET [SECONDS]"},
		.details = details,
		.examples = examples,
		.groups = {{&diagnose_rules_group, &o.rules},
			   {&diagnose_group, &o},
			   {&output_group, &out},
			   {&renderer_group, &out.form}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (o.prints_rules)
		return print_rules();
	if (o.lists_measures)
		return print_measures(&out);
	if (has_both)
		log_note("'%s' is taken as the recording; the running process: "
			 "assay diagnose -n %s",
			 name, name);
	out.form.has_limit = true; /* all rows */
	return diagnose(&o, &out, &args);
}
