/* What a capture of events leaves behind; see event_outputs.h. */
#include "base/base.h"
#include "cmd/event_outputs.h"

#include <unistd.h>

#include "analyze/calltree.h"
#include "analyze/eventsum.h"
#include "base/buf.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "cmd/outputs.h"
#include "cmd/drawing.h"
#include "render/text.h"

#define FUNCTION_ROWS 5

static bool has_stacks(const struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->stack[i])
			return true;
	return false;
}

/* ".sched.sched_switch.svg" */
static void add_suffix(struct buf *to, const char *event)
{
	buf_add_ch(to, '.');
	for (const char *c = event; *c; c++)
		buf_add_ch(to, *c == ':' || *c == '/' ? '.' : *c);
	buf_add_str(to, ".svg");
}

static int write_picture(const struct store_place *place, const struct profile *p,
			 const char *event)
{
	CLEANUP(picture_release)
	struct picture pic = {.spec = {.event = event}, .tree_flags = CALLTREE_ROOT_COMM};
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(buf_release) struct buf suffix = {0};
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(err_release) struct err err = {0};
	picture_add(&pic, p, place->stem);
	add_suffix(&suffix, event);
	if (!drawing_svg(&svg, &pic, NULL, &err) &&
	    !store_out(&out, place, buf_str(&suffix), &err) &&
	    !out_write(&out, svg.p, svg.n, &err) && !out_commit(&out, &err))
		return EXIT_OK;
	log_err(&err);
	return EXIT_FAILED;
}

static int write_pictures(const struct store_place *place, const struct profile *p, size_t *ret_nr)
{
	for (uint32_t t = 0; t < p->tables.n; t++) {
		if (p->tables.p[t].id != TABLE_EVENTS || !has_stacks(&p->tables.p[t]))
			continue;
		if (write_picture(place, p, profile_text(p, p->tables.p[t].event)))
			return EXIT_FAILED;
		++*ret_nr;
	}
	return EXIT_OK;
}

static int summarize(const struct capture_result *r, bool to_stderr)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct view_limits limits = {.max_rows = FUNCTION_ROWS};
	if (eventsum_report(report, r->profile, &(struct select_spec){0}, NULL, &limits, 0, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	struct text_style style = output_style(to_stderr ? STDERR_FILENO : STDOUT_FILENO);
	text_render(&text, report, &style);
	if (!to_stderr)
		return cmd_print(&text);
	(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	return EXIT_OK;
}

static void say_files(const struct store_place *place, const struct capture_result *r,
		      size_t nr_pictures)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf word = {0};
	CLEANUP(free_p) char *recording = store_path(place, STORE_SUFFIX);
	CLEANUP(free_p) char *pictures = store_path(place, ".*.svg");
	num_add_bytes(&text, r->nr_bytes);
	escape_shell(&word, sv_from_str(recording));
	if (nr_pictures)
		log_note("flame graphs: %s (%zu, one for each event that has stacks)", pictures,
			 nr_pictures);
	if (!r->nr_bytes) {
		log_note("recording:    none, nothing of it could be written");
		return;
	}
	log_note("recording:    %s (%s)", recording, buf_str(&text));
	log_note("next: assay report %s", buf_str(&word));
}

int event_outputs_finish(const struct store_place *place, const struct capture_result *r,
			 bool skips_pictures, bool has_command)
{
	size_t nr_pictures = 0;
	int status = EXIT_OK;
	if (r->disk.code) {
		log_error("the recording lacks %" PRIu64 " of %" PRIu64 " events: %s",
			  r->nr_unsaved, r->profile->losses.nr[LOSS_WRITTEN], err_msg(&r->disk));
		log_hint("free some space, or name a file elsewhere with -o FILE");
		status = EXIT_FAILED;
	}
	bool is_empty = !r->profile->losses.nr[LOSS_WRITTEN];
	if (summarize(r, has_command))
		status = EXIT_FAILED;
	if (is_empty)
		log_warn("none of these events happened in this window");
	if (!skips_pictures && write_pictures(place, r->profile, &nr_pictures))
		status = EXIT_FAILED;
	outputs_say_cost(r);
	say_files(place, r, nr_pictures);
	return status == EXIT_OK && is_empty ? EXIT_NOTHING : status;
}
