/* Running a capture from a command line; see recording.h. */
#include "base/base.h"
#include "cmd/recording.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/progress.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "host/cachedir.h"

struct shown {
	struct progress bar;
	const char *count_name;
};

static void show_status(void *ctx, const struct capture_status *s)
{
	struct shown *p = ctx;
	if (!progress_due(&p->bar))
		return;
	if (s->is_naming) {
		progress_text(&p->bar, "naming %" PRIu64 " of %" PRIu64 " addresses", s->nr_named,
			      s->nr_to_name);
		return;
	}
	CLEANUP(buf_release) struct buf text = {0};
	num_add_count(&text, s->losses->nr[LOSS_WRITTEN]);
	buf_addf(&text, " %s", p->count_name);
	if (s->losses->nr[LOSS_LOST]) {
		buf_add_str(&text, ", ");
		num_add_count(&text, s->losses->nr[LOSS_LOST]);
		buf_add_str(&text, " lost");
	}
	if (s->left_ns != UINT64_MAX)
		buf_addf(&text, ", %" PRIu64 " s left", (s->left_ns + 999999999u) / 1000000000u);
	else
		buf_addf(&text, ", %" PRIu64 " s", s->elapsed_ns / 1000000000u);
	progress_text(&p->bar, "%s", buf_str(&text));
}

static int failed_status(const struct capture_result *r, bool has_command)
{
	if (r->has_exit_code)
		return r->exit_code;
	return has_command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}

void recording_target(struct recording *rec, const struct chosen_target *t,
		      const struct opt_args *args)
{
	struct capture_options *c = &rec->options;
	c->target = t->has_target ? &t->target : NULL;
	c->command = args->command;
	c->duration_ns = t->duration_ns;
	if (!c->duration_ns && !c->command)
		c->duration_ns = (uint64_t)RECORDING_SECONDS_DEFAULT * 1000000000u;
}

const char *recording_target_name(const struct chosen_target *t, const struct opt_args *args)
{
	return t->has_target ? t->target.name : path_base(args->command[0]);
}

int recording_into(const struct recording *rec, struct outputs *out)
{
	bool has_command = rec->options.command != NULL;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result result = {0};
	CLEANUP(free_p) char *cache_dir = host_cache_dir();
	struct shown shown = {.count_name = rec->count_name};
	struct capture_options c = rec->options;
	c.status = show_status;
	c.ctx = &shown;
	c.cache_dir = cache_dir;
	if (stop_install(&err)) {
		log_err(&err);
		outputs_abandon(out);
		return failed_status(&result, has_command);
	}
	c.recording_fd = take_fd(&out->recording_fd);
	progress_init(&shown.bar, c.kind);
	int rc = capture_run(&result, &c, &err);
	progress_release(&shown.bar);
	if (rc) {
		log_err(&err);
		outputs_abandon(out);
		return failed_status(&result, has_command);
	}
	out->flags |= rec->skips_pictures || stop_count() > 1 ? OUTPUTS_SKIP_PICTURES : 0;
	out->flags |= has_command ? OUTPUTS_HAS_COMMAND : 0;
	int status = rec->finish(rec->ctx, out, &result);
	if (!result.has_exit_code)
		return status;
	/* Our own failure must not pass for a good run of the command. */
	bool has_failed = status == EXIT_FAILED && !result.exit_code;
	return has_failed ? EXIT_ASSAY_FAILED : result.exit_code;
}

int recording_run(const struct recording *rec, const char *output, const char *target_name)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(outputs_release) struct outputs out = {0};
	if (!outputs_open(&out, output, target_name, rec->options.kind, &err))
		return recording_into(rec, &out);
	log_err(&err);
	return rec->options.command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
}
