/* Shared option groups; see optgroups.h. */
#include "base/base.h"
#include "cmd/optgroups.h"

#include <errno.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"

static const struct opt phase_opts[] = {
	OPT_LIST(0, "phase", struct phase_opts, phases, "NAME=RULE",
		 "a phase: RULE is a regex on functions (the one nearest to the root wins) or "
		 "@FROM..TO; may be repeated"),
	OPT_STR(0, "only-phase", struct phase_opts, only, "NAME", "samples of this phase"),
	OPT_END,
};
const struct opt_group phase_group = {"Phases", phase_opts};

int phases_finish(struct phase_opts *f, struct select_spec *spec, struct err *err)
{
	spec->phase = f->only;
	if (!f->phases.n)
		return 0;
	f->rules = xcalloc(f->phases.n, sizeof(*f->rules));
	f->names = xcalloc(f->phases.n, sizeof(*f->names));
	for (size_t i = 0; i < f->phases.n; i++) {
		const char *text = f->phases.p[i];
		const char *eq = strchr(text, '=');
		if (!eq || eq == text || !eq[1]) {
			err_set(err, -EINVAL, "--phase '%s': expected NAME=RULE", text);
			return err_hint(err, "for example --phase 'load=^read_input$' or "
					     "--phase 'warm-up=@0..5'");
		}
		f->names[i] = xstrndup(text, (size_t)(eq - text));
		f->rules[i] = (struct phase_rule){f->names[i], eq + 1};
	}
	spec->rules = f->rules;
	spec->nr_rules = f->phases.n;
	return 0;
}

void phases_release(struct phase_opts *f)
{
	for (size_t i = 0; f->names && i < f->phases.n; i++)
		free(f->names[i]);
	free(f->names);
	free(f->rules);
	opt_list_release(&f->phases);
}

static const struct opt output_opts[] = {
	OPT_STR('o', "output", struct output_opts, path, "FILE",
		"write to FILE instead of standard output ('-')"),
	OPT_FLAG(0, "json", struct output_opts, is_json,
		 "JSON, schema in docs/formats/report-json.md"),
	OPT_END,
};
const struct opt_group output_group = {"Output", output_opts};

int output_write(const struct output_opts *o, const struct buf *b)
{
	if (!o->path || !strcmp(o->path, "-"))
		return cmd_print(b);
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(out_release) struct out out = {.fd = -1};
	if (out_open(&out, o->path, 0644, &err) || out_write(&out, buf_str(b), b->n, &err) ||
	    out_commit(&out, &err))
		return cmd_fail(&err);
	return EXIT_OK;
}
