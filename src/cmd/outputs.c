/* What a capture leaves behind; see outputs.h. */
#include "base/base.h"
#include "cmd/outputs.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "render/jsonout.h"
#include "render/text.h"

int outputs_open(struct outputs *ret_o, const char *output, const char *target, const char *kind,
		 struct err *err)
{
	struct outputs o = {.recording_fd = -1};
	int rc = output ? store_place_at(&o.place, &o.recording_fd, output, err)
			: store_place_new(&o.place, &o.recording_fd, NULL, target, kind,
					  clock_real_ns(), err);
	if (!rc)
		*ret_o = o;
	return rc;
}

void outputs_release(struct outputs *o)
{
	if (!o->place.stem)
		return;
	close_p(&o->recording_fd);
	store_place_release(&o->place);
}

void outputs_abandon(struct outputs *o)
{
	store_abandon(&o->place);
}

int outputs_write(const struct outputs *o, const char *suffix, const struct buf *text)
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

int outputs_flame(const struct outputs *o, const char *suffix, const struct picture *pic)
{
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(err_release) struct err err = {0};
	if (drawing_svg(&svg, pic, NULL, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	return outputs_write(o, suffix, &svg);
}

int outputs_folded(const struct outputs *o, const struct picture *pic)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(err_release) struct err err = {0};
	if (drawing_folded(&text, pic, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	return outputs_write(o, ".folded", &text);
}

void outputs_print(const struct outputs *o, const struct report *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	bool is_json = o->flags & OUTPUTS_JSON;
	bool to_stderr = o->flags & OUTPUTS_HAS_COMMAND && !is_json;
	struct text_style style = output_style(to_stderr ? STDERR_FILENO : STDOUT_FILENO);
	if (o->flags & OUTPUTS_ONE_OF_RUNS)
		return;
	if (is_json)
		jsonout_render(&text, r);
	else
		text_render(&text, r, &style);
	if (to_stderr)
		(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	else
		(void)cmd_print(&text); /* the files say the same */
}

void outputs_say_disk(const struct outputs *o, const struct capture_result *r)
{
	if (!r->disk.code)
		return;
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	log_error("recording '%s' lacks %" PRIu64 " of %" PRIu64 " samples: %s", recording,
		  r->nr_unsaved, capture_nr_rows(r), err_msg(&r->disk));
	log_hint(r->nr_bytes ? "free some space; what was written before can be read"
			     : "free some space, or name a file elsewhere with -o FILE");
}

void outputs_say_cost(const struct capture_result *r)
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
	if (r->has_engine && r->engine.own_ns) {
		buf_add_str(&text, ", ");
		num_add_ns(&text, r->engine.own_ns);
		buf_addf(&text, " in the kernel (%.2f %%)",
			 r->duration_ns ? 100.0 * (double)r->engine.own_ns / (double)r->duration_ns
					: 0.0);
	}
	log_note("%s", buf_str(&text));
}

void outputs_say_files(const struct outputs *o, const struct capture_result *r, bool has_pictures)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	CLEANUP(free_p) char *svg = store_path(&o->place, ".svg");
	num_add_bytes(&text, r->nr_bytes);
	if (has_pictures)
		log_note("flame graph: %s", svg);
	if (!r->nr_bytes || (r->disk.code && r->nr_unsaved == capture_nr_rows(r))) {
		log_note("recording:   none, nothing of it could be written");
		return;
	}
	log_note("recording:   %s (%s)", recording, buf_str(&text));
	if (o->flags & OUTPUTS_ONE_OF_RUNS)
		return;
	CLEANUP(buf_release) struct buf word = {0};
	escape_shell(&word, sv_from_str(recording));
	log_note("next: assay report %s", buf_str(&word));
}
