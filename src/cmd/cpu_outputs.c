/* What a CPU capture leaves behind; see cpu_outputs.h. */
#include "base/base.h"
#include "cmd/cpu_outputs.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/calltree.h"
#include "analyze/overview.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "cmd/picture.h"
#include "format/format.h"
#include "render/text.h"

#define UNSAMPLED_MIN_NS    20000000 /* less is a matter of chance */
#define UNSAMPLED_MIN_SHARE 0.25     /* threads that wake all the time lose some 10 % */

int cpu_outputs_open(struct cpu_outputs *ret_o, const char *output, const char *target,
		     struct err *err)
{
	struct cpu_outputs o = {.recording_fd = -1};
	int rc = output ? store_place_at(&o.place, &o.recording_fd, output, err)
			: store_place_new(&o.place, &o.recording_fd, NULL, target, "cpu",
					  clock_real_ns(), err);
	if (!rc)
		*ret_o = o;
	return rc;
}

void cpu_outputs_release(struct cpu_outputs *o)
{
	if (!o->place.stem)
		return;
	close_p(&o->recording_fd);
	store_place_release(&o->place);
}

void cpu_outputs_abandon(struct cpu_outputs *o)
{
	store_abandon(&o->place);
}

static int write_file(const struct cpu_outputs *o, const char *suffix, const struct buf *text)
{
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(err_release) struct err err = {0};
	if (store_out(&out, &o->place, suffix, &err) || out_write(&out, text->p, text->n, &err) ||
	    out_commit(&out, &err)) {
		log_err(&err);
		CLEANUP(free_p) char *path = store_path(&o->place, suffix);
		(void)unlink(path); /* half a picture is worse than none */
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int write_folded(const struct cpu_outputs *o, const struct profile *p)
{
	CLEANUP(err_release) struct err err = {0};
	struct format_output to = {0};
	struct format_options options = {
		.folded = {.flags = FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT}};
	int status = EXIT_FAILED;
	if (folded_write(&to, p, &options, &err))
		log_err(&err);
	else
		status = write_file(o, ".folded", &to.buf);
	buf_release(&to.buf);
	return status;
}

static int write_flame(const struct cpu_outputs *o, const struct profile *p)
{
	CLEANUP(picture_release)
	struct picture pic = {.tree_flags = CALLTREE_ROOT_COMM, .svg = {.min_width_px = -1}};
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(err_release) struct err err = {0};
	picture_add(&pic, p, o->place.stem);
	if (picture_svg(&svg, &pic, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	return write_file(o, ".svg", &svg);
}

static void print_summary(const struct report *r, bool to_stderr)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct text_style style = output_style(to_stderr ? STDERR_FILENO : STDOUT_FILENO);
	text_render(&text, r, &style);
	if (to_stderr)
		(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	else
		(void)cmd_print(&text); /* the files say the same */
}

static void say_cost(const struct capture_result *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "assay used ");
	num_add_ns(&text, r->own_cpu_ns);
	buf_addf(&text, " of CPU while recording (%.2f %% of one core)",
		 r->duration_ns ? 100.0 * (double)r->own_cpu_ns / (double)r->duration_ns : 0.0);
	if (r->naming_cpu_ns) {
		buf_add_str(&text, " and ");
		num_add_ns(&text, r->naming_cpu_ns);
		buf_add_str(&text, " for naming");
	}
	log_note("%s", buf_str(&text));
}

static void say_files(const struct cpu_outputs *o, const struct capture_result *r,
		      bool has_pictures)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	CLEANUP(free_p) char *svg = store_path(&o->place, ".svg");
	num_add_bytes(&text, r->nr_bytes);
	if (has_pictures)
		log_note("flame graph: %s", svg);
	if (!r->nr_bytes ||
	    (r->disk.code && r->nr_unsaved == r->profile->losses.nr[LOSS_WRITTEN])) {
		log_note("recording:   none, nothing of it could be written");
		return;
	}
	log_note("recording:   %s (%s)", recording, buf_str(&text));
	if (o->flags & CPU_OUTPUTS_ONE_OF_RUNS)
		return;
	CLEANUP(buf_release) struct buf word = {0};
	escape_shell(&word, sv_from_str(recording));
	log_note("next: assay report %s", buf_str(&word));
}

static int summarize(const struct cpu_outputs *o, const struct capture_result *r,
		     bool skips_pictures, bool has_command)
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
	if (!(o->flags & CPU_OUTPUTS_ONE_OF_RUNS))
		print_summary(report, has_command);
	if (skips_pictures)
		return EXIT_OK;
	int status = write_folded(o, r->profile);
	return write_flame(o, r->profile) == EXIT_OK ? status : EXIT_FAILED;
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

int cpu_outputs_finish(struct cpu_outputs *o, const struct capture_result *r, bool skips_pictures,
		       bool has_command)
{
	if (r->disk.code) {
		CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
		log_error("recording '%s' lacks %" PRIu64 " of %" PRIu64 " samples: %s", recording,
			  r->nr_unsaved, r->profile->losses.nr[LOSS_WRITTEN], err_msg(&r->disk));
		log_hint(r->nr_bytes ? "free some space; what was written before can be read"
				     : "free some space, or name a file elsewhere with -o FILE");
	}
	if (!r->profile->losses.nr[LOSS_WRITTEN]) {
		if (r->info.cpu_ns < UNSAMPLED_MIN_NS) {
			log_warn("no samples: the target used no CPU time in this window");
			log_hint("profile it under load, for longer, or see what it waits for");
		}
		say_unsampled(r);
		say_cost(r);
		say_files(o, r, false);
		return EXIT_NOTHING;
	}
	int status = summarize(o, r, skips_pictures, has_command);
	say_unsampled(r);
	say_cost(r);
	say_files(o, r, !skips_pictures && status == EXIT_OK);
	return r->disk.code ? EXIT_FAILED : status;
}
