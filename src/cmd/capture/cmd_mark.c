/* assay mark: marks the start of a phase in running captures. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "base/log.h"
#include "base/text/num.h"
#include "cmd/capture/targetopts.h"
#include "host/target.h"
#include "session/marksocket.h"

struct mark_opts {
	struct target_opts target; /* only pids and names are used */
	bool is_all;
};

static const struct opt mark_opts[] = {
	OPT_LIST('p', "pid", struct mark_opts, target.pids, "PID[,PID]",
		 "captures of processes with these ids"),
	OPT_LIST('n', "name", struct mark_opts, target.names, "NAME",
		 "captures of processes of exactly this name; the same as a bare word"),
	OPT_FLAG('a', "all", struct mark_opts, is_all, "all running captures"),
	OPT_END,
};
static const struct opt_group mark_group = {"Which captures", mark_opts};

static const char details[] =
	"Sets a mark at the present time in each running capture of TARGET: a process name, -p "
	"PID, or -a for all captures. TEXT is the name of the phase that starts here. assay "
	"report --marks then prints where time went in each phase. A capture accepts marks of "
	"its own user, of root, and of the user who started it through sudo.";

static const char examples[] = "assay mark redis-server \"load starts\"\tcaptures of redis-server\n"
			       "assay mark -p 4242 warm\tcaptures of process 4242\n"
			       "assay mark -a \"deploy of 1.4\"\tall running captures\n"
			       "assay report --marks\tthe phases of the newest recording\n";

/* Appends the operands from @first on, separated by blanks. */
static void join_words(struct buf *to, const struct opt_args *args, size_t first)
{
	for (size_t i = first; i < args->operands.n; i++)
		buf_addf(to, "%s%s", i > first ? " " : "", args->operands.p[i]);
}

/* Resolves the target, and joins the other operands in @text. -EINVAL: a usage error. */
static int read_request(struct target *ret_t, struct buf *text, const struct mark_opts *o,
			const struct opt_args *args, struct err *err)
{
	CLEANUP(target_spec_release) struct target_spec spec = {0};
	CLEANUP(target_candidates_release) struct target_candidates none = {0};
	bool has_option = o->is_all || o->target.pids.n || o->target.names.n;
	if (o->is_all && (o->target.pids.n || o->target.names.n))
		return err_set(err, -EINVAL, "-a means all captures: it excludes -p and -n");
	if (args->operands.n < (has_option ? 1 : 2))
		return err_set(err, -EINVAL, "missing %s",
			       has_option || args->operands.n ? "TEXT of the mark"
							      : "TARGET and TEXT of the mark");
	TRY(target_opts_spec(&spec, &o->target, err));
	spec.takes_all = true;
	if (!has_option)
		vec_push(&spec.words, args->operands.p[0]);
	join_words(text, args, has_option ? 0 : 1);
	return o->is_all ? 0 : target_resolve(ret_t, &spec, &none, err);
}

/* Names the captures that have not answered. */
static void emit_late(const struct mark_answer *a, bool is_error)
{
	CLEANUP(buf_release) struct buf pids = {0};
	size_t nr = a->nr_captures - a->nr_answers;
	for (size_t i = 0; i < a->nr_late; i++)
		buf_addf(&pids, "%s%" PRId32, i ? ", " : "", a->late_pids[i]);
	const char *more = nr > a->nr_late ? ", ..." : "";
	if (is_error)
		log_error("%zu of %zu running captures did not answer within 1 s: process %s%s", nr,
			  a->nr_captures, buf_str(&pids), more);
	else
		log_note("%zu of %zu running captures have not answered yet: process %s%s", nr,
			 a->nr_captures, buf_str(&pids), more);
	log_hint(
		"a capture that is stopped or gets no CPU sets the mark when it continues, with the time of this request");
}

static int emit(const struct mark_answer *a, const char *text)
{
	if (a->nr_taken)
		log_note("marked '%s' in %s", text, num_noun(a->nr_taken, "captures").s);
	if (a->nr_answers < a->nr_captures)
		emit_late(a, !a->nr_taken);
	if (a->nr_taken)
		return EXIT_OK;
	if (a->nr_answers < a->nr_captures)
		return EXIT_FAILED;
	if (a->nr_captures)
		log_error("the mark was accepted by none of %s",
			  num_noun(a->nr_captures, "running captures").s);
	else if (a->nr_refused)
		log_error("no capture of this user is running; %zu of other users %s not marked",
			  a->nr_refused, a->nr_refused == 1 ? "was" : "were");
	else
		log_error("no capture is running");
	log_hint(
		"%s",
		a->nr_captures
			? "they must be of your user and have this target; to mark all: assay mark -a TEXT"
			: "start one first: assay cpu TARGET");
	return EXIT_FAILED;
}

static int mark(const struct mark_opts *o, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(target_release) struct target target = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct mark_answer answer;
	int rc = read_request(&target, &text, o, args, &err);
	if (rc == -EINVAL && !err.hint)
		return cmd_usage("mark", "%s", err_msg(&err));
	const struct mark_request request = {
		.pids = target.pids.pids.p, .nr_pids = target.pids.pids.n, .text = buf_str(&text)};
	if (!rc)
		rc = mark_send(&answer, &request, &err);
	return rc ? cmd_refuse(&err) : emit(&answer, buf_str(&text));
}

int cmd_mark(int argc, char **argv)
{
	struct mark_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "mark",
		.usage = {"TARGET TEXT...", "-p PID TEXT...", "-a TEXT..."},
		.details = details,
		.examples = examples,
		.groups = {{&mark_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	return mark(&o, &args);
}
