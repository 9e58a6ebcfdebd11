/* Prints help, man page sections and completion words from option tables; see opt.h. */
#include "base/base.h"
#include "base/opt/opt.h"

#include "base/opt/value.h"
#include "base/text/wrap.h"

#define HELP_COLUMN 27 /* where explanations of options begin */
#define HELP_WIDTH  80 /* fixed: help does not depend on the terminal */

static void add_spelling(struct buf *to, const struct opt_cmd *cmd, const struct opt *o)
{
	char letter = opt_letter(cmd, o);
	if (letter)
		buf_addf(to, "-%c%s", letter, o->long_name ? ", " : "");
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

/* The cursor is at @indent already. */
static void add_wrapped(struct buf *to, struct sv text, size_t indent)
{
	wrap_add(to, text, indent, indent, HELP_WIDTH);
	buf_add_ch(to, '\n');
}

static void add_details(struct buf *to, const char *details)
{
	buf_add_ch(to, '\n');
	for (struct sv left = sv_from_str(details); left.n;)
		add_wrapped(to, sv_split(&left, '\n'), 0);
}

static void add_option(struct buf *to, const struct opt_cmd *cmd, const struct opt *o)
{
	CLEANUP(buf_release) struct buf left = {0};
	add_spelling(&left, cmd, o);
	buf_addf(to, "  %s", buf_str(&left));
	if (left.n + 4 > HELP_COLUMN) {
		buf_add_ch(to, '\n');
		buf_add_repeat(to, ' ', HELP_COLUMN);
	} else {
		buf_add_repeat(to, ' ', HELP_COLUMN - 2 - left.n);
	}
	CLEANUP(buf_release) struct buf help = {0};
	buf_add_str(&help, o->help ? o->help : "");
	const char *before = ": ";
	for (const struct opt_choice *c = o->choices; c && c->name; c++) {
		if (opt_why_excluded(cmd, o, c->name))
			continue;
		buf_addf(&help, "%s%s", before, c->name);
		before = ", ";
	}
	add_wrapped(to, buf_sv(&help), HELP_COLUMN);
}

#define COMMENT_BEFORE "  # "
#define ALIGN_MAX      44 /* comments of longer commands are not aligned */

/* The comment is behind the command, or on a line above it where both do not fit in one. */
static void add_example(struct buf *to, struct sv command, struct sv comment, size_t width)
{
	size_t pad = command.n < width ? width - command.n : 0;
	size_t columns = 2 + command.n + strlen(COMMENT_BEFORE) + comment.n;
	bool is_above = comment.n && columns > HELP_WIDTH;
	if (columns + pad > HELP_WIDTH)
		pad = 0;
	if (is_above)
		buf_addf(to, "%s%.*s\n", COMMENT_BEFORE, SV_ARGS(comment));
	buf_addf(to, "  %.*s", SV_ARGS(command));
	if (comment.n && !is_above) {
		buf_add_repeat(to, ' ', pad);
		buf_addf(to, "%s%.*s", COMMENT_BEFORE, SV_ARGS(comment));
	}
	buf_add_ch(to, '\n');
}

void opt_add_examples(struct buf *to, const char *examples)
{
	struct sv left = sv_from_str(examples);
	size_t width = 0;
	while (left.n) {
		struct sv line = sv_split(&left, '\n');
		struct sv command = sv_split(&line, '\t');
		if (command.n <= ALIGN_MAX)
			width = MAX(width, command.n);
	}
	left = sv_from_str(examples);
	buf_add_str(to, "\nExamples:\n");
	while (left.n) {
		struct sv line = sv_split(&left, '\n');
		struct sv command = sv_split(&line, '\t');
		add_example(to, command, line, width);
	}
}

/* Adds the listed options under the titles of their groups, which are put between @before, @after. */
static void add_groups(struct buf *to, const struct opt_cmd *cmd, const char *before,
		       const char *after,
		       void (*add)(struct buf *to, const struct opt_cmd *cmd, const struct opt *o))
{
	const struct opt_group *group = NULL;
	for (struct opt_at at = {0}; opt_next(cmd, &at);) {
		if (!opt_is_listed(cmd, at.opt))
			continue;
		bool is_new = !group || strcmp(group->title, at.bind->group->title) != 0;
		if (is_new)
			buf_addf(to, "%s%s%s", before, at.bind->group->title, after);
		group = at.bind->group;
		add(to, cmd, at.opt);
	}
}

void opt_help(struct buf *to, const struct opt_cmd *cmd)
{
	const char *blank = cmd->name ? " " : "";
	const char *name = cmd->name ? cmd->name : "";
	if (cmd->summary)
		buf_addf(to, "assay%s%s: %s\n\n", blank, name, cmd->summary);
	for (size_t i = 0; i < OPT_USAGE_MAX && cmd->usage[i]; i++)
		buf_addf(to, "%s assay%s%s %s\n", i ? "      " : "usage:", blank, name,
			 cmd->usage[i]);
	if (cmd->details)
		add_details(to, cmd->details);
	add_groups(to, cmd, "\n", ":\n", add_option);
	if (cmd->examples)
		opt_add_examples(to, cmd->examples);
}

static void add_man_option(struct buf *to, const struct opt_cmd *cmd, const struct opt *o)
{
	const char *arg = opt_takes_arg(o) ? (o->arg ? o->arg : "ARG") : NULL;
	bool is_optional = o->flags & OPT_ARG_OPTIONAL;
	buf_add_str(to, "\n");
	char letter = opt_letter(cmd, o);
	if (letter)
		buf_addf(to, "**-%c**%s", letter, o->long_name ? ", " : "");
	if (o->long_name)
		buf_addf(to, "**--%s**", o->long_name);
	if (arg)
		buf_addf(to, is_optional ? "[=*%s*]" : " *%s*", arg);
	buf_addf(to, "\n: %s", o->help ? o->help : "");
	const char *before = ": ";
	for (const struct opt_choice *c = o->choices; c && c->name; c++) {
		if (opt_why_excluded(cmd, o, c->name))
			continue;
		buf_addf(to, "%s`%s`%s%s%s", before, c->name, c->help ? " (" : "",
			 c->help ? c->help : "", c->help ? ")" : "");
		before = ", ";
	}
	buf_add_ch(to, '\n');
}

void opt_man(struct buf *to, const struct opt_cmd *cmd)
{
	add_groups(to, cmd, "\n## ", "\n", add_man_option);
}

static void add_word(struct buf *to, const struct opt *o, const char *spelling)
{
	const char *arg = o->arg ? o->arg : "ARG";
	buf_add_str(to, spelling);
	if (opt_takes_arg(o) && !(o->flags & OPT_ARG_OPTIONAL))
		buf_addf(to, " %s", arg);
	else if (opt_takes_arg(o) && spelling[1] == '-')
		buf_addf(to, "[=%s]", arg);
	buf_addf(to, "\t%s\n", o->help ? o->help : "");
}

void opt_words(struct buf *to, const struct opt_cmd *cmd)
{
	CLEANUP(buf_release) struct buf spelling = {0};
	for (struct opt_at at = {0}; opt_next(cmd, &at);) {
		const struct opt *o = at.opt;
		if (!opt_is_listed(cmd, o))
			continue;
		if (opt_letter(cmd, o))
			add_word(to, o, (char[]){'-', o->short_name, 0});
		if (!o->long_name)
			continue;
		buf_clear(&spelling);
		buf_addf(&spelling, "--%s", o->long_name);
		add_word(to, o, buf_str(&spelling));
		for (const struct opt_choice *c = o->choices; c && c->name; c++)
			if (!opt_why_excluded(cmd, o, c->name))
				buf_addf(to, "%s=%s\t%s\n", buf_str(&spelling), c->name,
					 c->help ? c->help : "");
	}
	for (size_t i = 0; i < OPT_USAGE_MAX && cmd->usage[i]; i++)
		buf_addf(to, "usage: %s\n", cmd->usage[i]);
}
