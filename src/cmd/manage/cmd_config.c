/* assay config: shows the settings, and where each value comes from. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>

#include "base/log.h"
#include "base/text/escape.h"
#include "base/text/json.h"
#include "base/text/suggest.h"
#include "cmd/settings.h"

struct config_opts {
	bool is_json;
};

static const struct opt config_opts[] = {
	OPT_FLAG('j', "json", struct config_opts, is_json, "print JSON instead of a table"),
	OPT_END,
};
static const struct opt_group config_group = {"Options", config_opts};

static const char details[] =
	"Prints each setting with its value and where that comes from: a variable of the environment, "
	"a line of a file, or the default. With KEY, only the value of that setting. Changes nothing: "
	"settings are made with an editor. The exit status is 1 if a value is wrong.\n"
	"\n"
	"Files have lines 'key = value', or ASSAY_KEY=value as .env files have them. Read are "
	"/etc/assay/config, then $XDG_CONFIG_HOME/assay/config (default ~/.config/assay/config), or "
	"instead of it the file that $ASSAY_CONFIG names. A variable ASSAY_KEY wins over files, an "
	"option over all of them. A file must belong to you or to root, and only its owner may be "
	"able to write it; root reads only root's files.";

static const char examples[] =
	"assay config\tall settings\n"
	"assay config out\tone value, for a script\n"
	"ASSAY_RATE=499 assay config\twith a variable of the environment\n"
	"ASSAY_CONFIG=/etc/assay/container.env assay config\twith a file of variables\n";

/* An empty variable sets nothing. */
static bool is_set(size_t row)
{
	const char *text = cmd_settings()->values[row].text;
	return text && *text;
}

static const char *value_of(size_t row)
{
	return is_set(row) ? cmd_settings()->values[row].text : settings_table[row].standard;
}

static const char *origin_of(size_t row)
{
	return is_set(row) ? cmd_settings()->values[row].origin : "default";
}

/* Prints wrong values as errors. Returns an exit status. */
static int check_values(void)
{
	int status = EXIT_OK;
	const struct settings *s = cmd_settings();
	for (size_t i = 0; i < s->presets.n; i++) {
		CLEANUP(err_release) struct err err = {0};
		bool is_same = i && s->presets.p[i].value == s->presets.p[i - 1].value;
		if (!is_same && opt_check_preset(&s->presets.p[i], &err))
			status = cmd_fail(&err);
	}
	return status;
}

static void add_text(struct buf *to, struct arena *a)
{
	size_t width = strlen("VALUE");
	for (size_t i = 0; i < nr_settings; i++)
		width = MAX(width, strlen(value_of(i)));
	width = MIN(width, (size_t)40);
	buf_addf(to, "%-12s  %-18s  %-*s  %s\n", "SETTING", "VARIABLE", (int)width, "VALUE",
		 "FROM");
	for (size_t i = 0; i < nr_settings; i++) {
		CLEANUP(buf_release) struct buf value = {0};
		CLEANUP(buf_release) struct buf origin = {0};
		escape_term(&value, sv_from_str(value_of(i)));
		escape_term(&origin, sv_from_str(origin_of(i)));
		buf_addf(to, "%-12s  %-18s  %-*s  %s\n", settings_table[i].key,
			 setting_variable(a, &settings_table[i]), (int)width, buf_str(&value),
			 buf_str(&origin));
	}
	buf_add_ch(to, '\n');
	vec_foreach(f, &cmd_settings()->files) {
		const char *const states[] = {"not there", "read", "refused: "};
		buf_addf(to, "%s: %s%s\n", f->path, states[f->state], f->reason ? f->reason : "");
	}
}

static void add_json_setting(struct json *j, struct arena *a, size_t row)
{
	const struct setting *t = &settings_table[row];
	json_obj(j);
	json_put_str(j, "key", t->key);
	json_put_str(j, "variable", setting_variable(a, t));
	json_put_str(j, "option", t->option);
	json_key(j, "value");
	if (is_set(row))
		json_str(j, cmd_settings()->values[row].text);
	else
		json_null(j);
	json_put_str(j, "default", t->standard);
	json_put_str(j, "origin", origin_of(row));
	json_put_str(j, "help", setting_option(t)->help);
	json_end(j);
}

static void add_json(struct buf *to, struct arena *a)
{
	static const char *const states[] = {"absent", "read", "refused"};
	struct json j = json_to(to);
	json_obj(&j);
	json_put_str(&j, "schema", "assay-settings");
	json_put_u64(&j, "version", 1);
	json_put_arr(&j, "settings");
	for (size_t i = 0; i < nr_settings; i++)
		add_json_setting(&j, a, i);
	json_end(&j);
	json_put_arr(&j, "files");
	vec_foreach(f, &cmd_settings()->files) {
		json_obj(&j);
		json_put_str(&j, "path", f->path);
		json_put_str(&j, "state", states[f->state]);
		if (f->reason)
			json_put_str(&j, "reason", f->reason);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}

/* "rate" and "ASSAY_RATE". */
static int add_one(struct buf *to, struct arena *a, const char *key, struct err *err)
{
	struct suggest near = suggest_for(sv_from_str(key));
	for (size_t i = 0; i < nr_settings; i++) {
		const struct setting *t = &settings_table[i];
		if (!strcmp(t->key, key) || !strcmp(setting_variable(a, t), key)) {
			buf_addf(to, "%s\n", value_of(i));
			return 0;
		}
		suggest_offer(&near, sv_from_str(t->key));
	}
	(void)err_set(err, -EINVAL, "there is no setting '%s'", key);
	if (near.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(near.best));
	return err_hint(err, "list the settings with: assay config");
}

int cmd_config(int argc, char **argv)
{
	struct config_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "config",
		.usage = {"[OPTION...] [KEY]"},
		.details = details,
		.examples = examples,
		.groups = {{&config_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.operands.n > 1)
		return cmd_usage("config", "unexpected '%s': one KEY at most", args.operands.p[1]);
	if (args.operands.n && o.is_json)
		return cmd_usage("config", "--json prints all settings, not one");
	if (args.operands.n && add_one(&b, &a, args.operands.p[0], &err))
		return cmd_refuse(&err);
	if (!args.operands.n && o.is_json)
		add_json(&b, &a);
	else if (!args.operands.n)
		add_text(&b, &a);
	status = check_values();
	int printed = cmd_print(&b);
	return printed != EXIT_OK ? printed : status;
}
