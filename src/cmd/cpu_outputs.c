/* The end of a CPU capture; see cpu_outputs.h. */
#include "base/base.h"
#include "cmd/cpu_outputs.h"

#include "analyze/calltree.h"
#include "analyze/overview.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "format/format.h"

#define UNSAMPLED_MIN_NS    20000000 /* less is a matter of chance */
#define UNSAMPLED_MIN_SHARE 0.25     /* threads that wake all the time lose some 10 % */

static int write_folded(const struct outputs *o, const struct profile *p)
{
	CLEANUP(err_release) struct err err = {0};
	struct format_output to = {0};
	struct format_options options = {
		.folded = {.flags = FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT}};
	int status = EXIT_FAILED;
	if (folded_write(&to, p, &options, &err))
		log_err(&err);
	else
		status = outputs_write(o, ".folded", &to.buf);
	buf_release(&to.buf);
	return status;
}

static int write_pictures(const struct outputs *o, const struct profile *p)
{
	CLEANUP(picture_release)
	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM};
	picture_add(&pic, p, o->place.stem);
	int status = write_folded(o, p);
	return outputs_flame(o, ".svg", &pic) == EXIT_OK ? status : EXIT_FAILED;
}

static int summarize(const struct outputs *o, const struct capture_result *r)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(err_release) struct err err = {0};
	struct selection sel;
	if (select_run(&report->arena, r->profile, &(struct select_spec){0}, &sel, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	struct view_limits limits = {.max_rows = 15};
	overview_begin(report, &sel);
	overview_report(report, &sel, NULL, &limits);
	outputs_print(o, report);
	return o->flags & OUTPUTS_SKIP_PICTURES ? EXIT_OK : write_pictures(o, r->profile);
}

/*
 * Each thread's first sample comes after a whole period of its own CPU time, so a crowd of threads
 * or processes that run for less is in no sample. The kernel's count says what is missing.
 */
static void say_unsampled(const struct capture_result *r)
{
	const struct profile *p = r->profile;
	double freq_hz = p->tables.n ? p->tables.p[0].freq_hz : 0;
	if (!freq_hz || r->info.is_user_only || !r->info.cpu_ns)
		return;
	double sampled_ns = (double)p->losses.nr[LOSS_SEEN] * 1e9 / freq_hz;
	double missing_ns = (double)r->info.cpu_ns - sampled_ns;
	if (missing_ns < UNSAMPLED_MIN_NS ||
	    missing_ns < UNSAMPLED_MIN_SHARE * (double)r->info.cpu_ns)
		return;
	CLEANUP(buf_release) struct buf used = {0};
	num_add_ns(&used, r->info.cpu_ns);
	log_warn("of %s of CPU time that the target used, samples stand for %.0f %%",
		 buf_str(&used), 100.0 * sampled_ns / (double)r->info.cpu_ns);
	log_hint("threads and processes that run for less than a sample's period leave none: a "
		 "higher rate finds more of them (-F 9999), and so does the whole system (-a)");
}

int cpu_outputs_finish(struct outputs *o, const struct capture_result *r)
{
	outputs_say_disk(o, r);
	if (!r->profile->losses.nr[LOSS_WRITTEN]) {
		if (r->info.cpu_ns < UNSAMPLED_MIN_NS) {
			log_warn("no samples: the target used no CPU time in this window");
			log_hint("profile it under load, for longer, or see what it waits for");
		}
		say_unsampled(r);
		outputs_say_cost(r);
		outputs_say_files(o, r, false);
		return EXIT_NOTHING;
	}
	int status = summarize(o, r);
	say_unsampled(r);
	outputs_say_cost(r);
	outputs_say_files(o, r, !(o->flags & OUTPUTS_SKIP_PICTURES) && status == EXIT_OK);
	return r->disk.code ? EXIT_FAILED : status;
}
