/* Files and messages that a capture writes; see outputs.h. */
#include "base/base.h"
#include "cmd/capture/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/escape.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "cmd/read/htmlpage.h"
#include "format/assay/assayfile.h"
#include "format/format.h"

#define MANY_FLAME_GRAPHS 8 /* more flame graphs are printed as one pattern */

int outputs_check_name(const char *option, const char *path, const char *own, const char *what,
		       struct err *err)
{
	static const char *const kinds[] = {".assay", ".svg", ".png", ".pdf",    ".html",
					    ".json",  ".csv", ".txt", ".folded", ".data"};
	struct sv s = sv_from_str(path);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!sv_has_suffix(s, sv_from_str(kinds[i])) || !strcmp(kinds[i], own))
			continue;
		s.n -= strlen(kinds[i]);
		err_set(err, -EINVAL, "%s '%s': the output is %s, not a %s file", option, path,
			what, kinds[i]);
		return err_hint(err, "%s %.*s%s", option, SV_ARGS(s), own);
	}
	return 0;
}

int outputs_open(struct outputs *ret_o, const char *output, const char *target, const char *kind,
		 struct err *err)
{
	struct outputs o = {.recording_fd = -1};
	int rc = output ? store_place_at(&o.place, &o.recording_fd, output, err)
			: store_place_new(&o.place, &o.recording_fd, cmd_recordings_dir(), target,
					  kind, clock_real_ns(), err);
	if (rc)
		return rc;
	if (o.place.has_other_owner)
		log_note("only user %u may write in '%s': the files belong to that user", geteuid(),
			 *o.place.dir ? o.place.dir : ".");
	*ret_o = o;
	return 0;
}

void outputs_release(struct outputs *o)
{
	vec_foreach(f, &o->flames)
		free(*f);
	vec_release(&o->flames);
	if (!o->place.stem)
		return;
	close_p(&o->recording_fd);
	store_place_release(&o->place);
}

void outputs_abandon(struct outputs *o)
{
	if (!o->place.stem)
		return;
	store_abandon(&o->place);
	log_note("no recording was written");
}

int outputs_write(const struct outputs *o, const char *suffix, const struct buf *text)
{
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(err_release) struct err err = {0};
	if (store_out(&out, &o->place, suffix, &err) || out_write(&out, text->p, text->n, &err) ||
	    out_commit(&out, &err)) {
		log_err(&err);
		CLEANUP(free_p) char *path = store_path(&o->place, suffix);
		(void)unlink(path); /* a truncated file is worse than none */
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

#define PAGE_SUFFIX ".html"

int outputs_page(struct outputs *o, const struct profile *p, struct codefiles *code)
{
	CLEANUP(buf_release) struct buf html = {0};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	code->is_live = true;
	codefiles_of(code, p);
	if (htmlpage_make(&html, p, path_base(recording), &code->access, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	int status = outputs_write(o, PAGE_SUFFIX, &html);
	o->has_page = status == EXIT_OK;
	source_print_note(code);
	return status;
}

int outputs_replace_recording(struct outputs *o, struct capture_result *r, const char *kind)
{
	CLEANUP(buf_release) struct buf bytes = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = assayfile_write(&bytes, r->profile, kind, &err);
	if (rc)
		log_err(&err);
	int status = rc ? EXIT_FAILED : outputs_write(o, STORE_SUFFIX, &bytes);
	r->nr_bytes = status == EXIT_OK ? bytes.n : 0;
	return status;
}

int outputs_flame(struct outputs *o, const char *suffix, const char *title,
		  const struct picture *pic)
{
	CLEANUP(buf_release) struct buf svg = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = flamegraph_svg(&svg, pic, NULL, &err);
	if (rc == -ENODATA) /* no row has a weight: calls that moved no bytes */
		return EXIT_NOTHING;
	if (rc) {
		log_err(&err);
		return EXIT_FAILED;
	}
	int status = outputs_write(o, suffix, &svg);
	if (status == EXIT_OK) {
		CLEANUP(free_p) char *path = store_path(&o->place, suffix);
		vec_push(&o->flames, title ? xasprintf("%s (%s)", path, title) : xstrdup(path));
	}
	return status;
}

static int write_text(const struct outputs *o, const struct buf *text, int rc,
		      const struct err *err)
{
	if (!rc)
		return outputs_write(o, ".folded", text);
	log_err(err);
	return EXIT_FAILED;
}

int outputs_folded(const struct outputs *o, const struct picture *pic)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = flamegraph_folded(&text, pic, &err);
	return write_text(o, &text, rc, &err);
}

int outputs_folded_samples(const struct outputs *o, const struct profile *p)
{
	CLEANUP(err_release) struct err err = {0};
	struct format_output to = {0};
	const struct format_options options = {
		.folded = {.flags = FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT}};
	int rc = folded_write(&to, p, &options, &err);
	int status = write_text(o, &to.buf, rc, &err);
	buf_release(&to.buf);
	return status;
}

int outputs_print(const struct outputs *o, const struct report *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (o->flags & OUTPUTS_ONE_OF_RUNS)
		return EXIT_OK;
	bool is_text = renderer_is_text(&o->form);
	if (is_text && cmd_is_quiet())
		return EXIT_OK;
	bool to_stderr = is_text && o->flags & OUTPUTS_HAS_COMMAND;
	int fd = to_stderr ? STDERR_FILENO : STDOUT_FILENO;
	struct text_style style = output_style(&o->form, fd);
	renderer_render(&o->form, &text, r, &style);
	if (!is_text)
		return cmd_print(&text);
	if (fd == STDOUT_FILENO)
		(void)cmd_print(&text); /* the recording has the same data */
	else
		(void)file_write_all(fd, text.p, text.n, NULL); /* stderr is closed */
	return EXIT_OK;
}

void outputs_print_disk_error(const struct outputs *o, const struct capture_result *r)
{
	if (!r->disk.code)
		return;
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	log_error("recording '%s' lacks %" PRIu64 " of %" PRIu64 " rows: %s", recording,
		  r->nr_unsaved, capture_nr_rows(r), err_msg(&r->disk));
	log_hint(r->nr_bytes ? "free disk space; the part written so far can be read"
			     : "free disk space, or write to another disk with -o FILE");
}

void outputs_print_cost(const struct capture_result *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	double all_ns = (double)r->duration_ns;
	buf_addf(&text, "assay used %s of CPU time while recording (%.2f %% of one CPU)",
		 num_ns(r->own_cpu_ns).s, all_ns > 0 ? 100.0 * (double)r->own_cpu_ns / all_ns : 0);
	if (r->has_engine && r->engine.own_ns)
		buf_addf(&text, ", %s in its BPF programs (%.2f %%)", num_ns(r->engine.own_ns).s,
			 all_ns > 0 ? 100.0 * (double)r->engine.own_ns / all_ns : 0);
	if (r->symbolize_cpu_ns)
		buf_addf(&text, ", %s for symbolization", num_ns(r->symbolize_cpu_ns).s);
	log_note("%s", buf_str(&text));
}

bool outputs_print_copy(const char *page)
{
	/* "CLIENT PORT SERVER PORT" */
	struct sv rest = sv_from_str(getenv("SSH_CONNECTION") ?: "");
	CLEANUP(buf_release) struct buf word = {0};
	CLEANUP(free_p) char *path = realpath(page, NULL);
	(void)sv_split(&rest, ' ');
	(void)sv_split(&rest, ' ');
	struct sv server = sv_split(&rest, ' ');
	if (!server.n || !path)
		return false;
	bool is_ip6 = sv_index(server, ':') >= 0;
	const char *user = getenv("USER");
	buf_addf(&word, "%s%s%s%.*s%s:%s", user ? user : "", user ? "@" : "", is_ip6 ? "[" : "",
		 SV_ARGS(server), is_ip6 ? "]" : "", path);
	CLEANUP(buf_release) struct buf quoted = {0};
	escape_shell(&quoted, buf_sv(&word));
	log_note("copy it:     scp %s .", buf_str(&quoted));
	return true;
}

static void print_page(const struct outputs *o)
{
	if (!o->has_page)
		return;
	CLEANUP(free_p) char *page = store_path(&o->place, PAGE_SUFFIX);
	log_note("page:        %s (for a browser)", page);
	(void)outputs_print_copy(page); /* not over ssh */
}

static void print_flames(const struct outputs *o)
{
	CLEANUP(free_p) char *stem = store_path(&o->place, "");
	if (o->flames.n > MANY_FLAME_GRAPHS) {
		log_note("flame graphs: %s*.svg (%zu)", stem, o->flames.n);
		return;
	}
	vec_foreach(path, &o->flames)
		log_note("flame graph: %s", *path);
}

void outputs_print_files(struct outputs *o, const struct capture_result *r)
{
	CLEANUP(free_p) char *recording = store_path(&o->place, STORE_SUFFIX);
	print_page(o);
	print_flames(o);
	if (!r->nr_bytes || (r->disk.code && r->nr_unsaved == capture_nr_rows(r))) {
		if (!r->nr_bytes) /* else its header and facts can be read */
			store_abandon(&o->place);
		log_note("recording:   none, it could not be written");
		return;
	}
	log_note("recording:   %s (%s)", recording, num_bytes(r->nr_bytes).s);
	if (o->flags & OUTPUTS_ONE_OF_RUNS)
		return;
	CLEANUP(buf_release) struct buf word = {0};
	escape_shell(&word, sv_from_str(recording));
	log_note("next: assay report %s", buf_str(&word));
}
