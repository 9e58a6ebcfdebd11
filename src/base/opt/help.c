/* Help, man page fragment and completion words from option tables; see opt.h. */
#include "base/base.h"
#include "base/opt/opt.h"

#include "base/opt/value.h"

#define HELP_COLUMN 27 /* where the explanations begin */
#define HELP_WIDTH  92 /* fixed: help does not depend on the terminal */

static void add_spelling(struct buf *to, const struct opt *o)
{
	if (o->short_name)
		buf_addf(to, "-%c%s", o->short_name, o->long_name ? ", " : "");
	else
		buf_add_str(to, "    ");
	if (o->long_name)
		buf_addf(to, "--%s", o->long_name);
	if (!opt_takes_arg(o))
		return;
	const char *arg = o->arg ? o->arg : "ARG";
	if (o->flags & OPT_ARG_OPTIONAL)
		buf_addf(to, "[=%s]", arg);
	else
		buf_addf(to, " %s", arg);
}

/* Wraps text at words between HELP_COLUMN and HELP_WIDTH, starting at HELP_COLUMN. */
static void add_wrapped(struct buf *to, struct sv text)
{
	size_t col = HELP_COLUMN;
	while (text.n) {
		struct sv word = sv_split(&text, ' ');
		if (col > HELP_COLUMN && col + 1 + word.n > HELP_WIDTH) {
			buf_add_ch(to, '\n');
			buf_add_repeat(to, ' ', HELP_COLUMN);
			col = HELP_COLUMN;
		} else if (col > HELP_COLUMN) {
			buf_add_ch(to, ' ');
			col++;
		}
		buf_add_sv(to, word);
		col += word.n;
	}
	buf_add_ch(to, '\n');
}

static void add_option(struct buf *to, const struct opt *o)
{
	CLEANUP(buf_release) struct buf left = {0};
	add_spelling(&left, o);
	buf_addf(to, "  %s", buf_str(&left));
	if (left.n + 4 > HELP_COLUMN) {
		buf_add_ch(to, '\n');
		buf_add_repeat(to, ' ', HELP_COLUMN);
	} else {
		buf_add_repeat(to, ' ', HELP_COLUMN - 2 - left.n);
	}
	CLEANUP(buf_release) struct buf help = {0};
	buf_add_str(&help, o->help ? o->help : "");
	bool has_list = o->choices && o->choices->name;
	for (const struct opt_choice *c = o->choices; has_list && c->name; c++)
		buf_addf(&help, "%s%s", c == o->choices ? ": " : ", ", c->name);
	add_wrapped(to, buf_sv(&help));
}

static void add_examples(struct buf *to, const char *examples)
{
	struct sv left = sv_from_str(examples);
	size_t width = 0;
	while (left.n) {
		struct sv line = sv_split(&left, '\n');
		struct sv command = sv_split(&line, '\t');
		if (command.n <= 48)
			width = MAX(width, command.n);
	}
	left = sv_from_str(examples);
	buf_add_str(to, "\nExamples:\n");
	while (left.n) {
		struct sv line = sv_split(&left, '\n');
		struct sv command = sv_split(&line, '\t');
		buf_addf(to, "  %.*s", SV_ARGS(command));
		if (line.n) {
			buf_add_repeat(to, ' ', command.n < width ? width - command.n : 0);
			buf_addf(to, "  # %.*s", SV_ARGS(line));
		}
		buf_add_ch(to, '\n');
	}
}

/* Appends the titles of groups that have a visible option, between @before and @after. */
static void add_groups(struct buf *to, const struct opt_cmd *cmd, const char *before,
		       const char *after, void (*add)(struct buf *to, const struct opt *o))
{
	const struct opt_group *group = NULL;
	for (struct opt_at at = {0}; opt_next(cmd, &at);) {
		if (at.opt->flags & OPT_HIDDEN)
			continue;
		if (group != at.bind->group)
			buf_addf(to, "%s%s%s", before, at.bind->group->title, after);
		group = at.bind->group;
		add(to, at.opt);
	}
}

void opt_help(struct buf *to, const struct opt_cmd *cmd)
{
	for (size_t i = 0; i < OPT_USAGE_MAX && cmd->usage[i]; i++)
		buf_addf(to, "%s assay%s%s %s\n", i ? "      " : "usage:", cmd->name ? " " : "",
			 cmd->name ? cmd->name : "", cmd->usage[i]);
	if (cmd->summary)
		buf_addf(to, "\n%s\n", cmd->summary);
	if (cmd->details)
		buf_addf(to, "\n%s\n", cmd->details);
	add_groups(to, cmd, "\n", ":\n", add_option);
	if (cmd->examples)
		add_examples(to, cmd->examples);
}

static void add_man_option(struct buf *to, const struct opt *o)
{
	const char *arg = opt_takes_arg(o) ? (o->arg ? o->arg : "ARG") : NULL;
	bool is_optional = o->flags & OPT_ARG_OPTIONAL;
	buf_add_str(to, "\n");
	if (o->short_name)
		buf_addf(to, "**-%c**%s", o->short_name, o->long_name ? ", " : "");
	if (o->long_name)
		buf_addf(to, "**--%s**", o->long_name);
	if (arg)
		buf_addf(to, is_optional ? "[=*%s*]" : " *%s*", arg);
	buf_addf(to, "\n: %s", o->help ? o->help : "");
	for (const struct opt_choice *c = o->choices; c && c->name; c++)
		buf_addf(to, "%s`%s`%s%s%s", c == o->choices ? ": " : ", ", c->name,
			 c->help ? " (" : "", c->help ? c->help : "", c->help ? ")" : "");
	buf_add_ch(to, '\n');
}

void opt_man(struct buf *to, const struct opt_cmd *cmd)
{
	add_groups(to, cmd, "\n## ", "\n", add_man_option);
}

void opt_words(struct buf *to, const struct opt_cmd *cmd)
{
	for (struct opt_at at = {0}; opt_next(cmd, &at);) {
		const struct opt *o = at.opt;
		if (o->flags & OPT_HIDDEN)
			continue;
		if (o->short_name)
			buf_addf(to, "-%c\n", o->short_name);
		if (o->long_name)
			buf_addf(to, "--%s%s%s\n", o->long_name, opt_takes_arg(o) ? "=" : "",
				 opt_takes_arg(o) && o->arg ? o->arg : "");
	}
}
