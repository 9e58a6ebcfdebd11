/* Parsing of command lines by option tables; see opt.h. Values: opt_value.c, help: opt_help.c. */
#include "base/base.h"
#include "base/opt.h"

#include <errno.h>

#include "base/opt_value.h"
#include "base/suggest.h"

struct found {
	const struct opt *opt;
	void *to;
};

void opt_list_release(struct opt_list *l)
{
	vec_release(l);
}

void opt_args_release(struct opt_args *a)
{
	vec_release(&a->operands);
	*a = (struct opt_args){0};
}

/* By either name; the other one is empty or 0. */
static bool find_option(struct found *ret_f, const struct opt_cmd *cmd, struct sv name, char letter)
{
	for (const struct opt_bind *b = cmd->groups; b < cmd->groups + OPT_GROUPS_MAX && b->group;
	     b++) {
		for (const struct opt *o = b->group->opts; o->kind; o++) {
			if (letter ? o->short_name != letter
				   : !o->long_name || !sv_eq_str(name, o->long_name))
				continue;
			*ret_f = (struct found){o, b->to};
			return true;
		}
	}
	return false;
}

static int unknown_long(const struct opt_cmd *cmd, struct sv name, struct err *err)
{
	err_set(err, -EINVAL, "unknown option '--%.*s'", SV_ARGS(name));
	struct suggest s = suggest_for(name);
	for (const struct opt_bind *b = cmd->groups; b < cmd->groups + OPT_GROUPS_MAX && b->group;
	     b++)
		for (const struct opt *o = b->group->opts; o->kind; o++)
			if (o->long_name && !(o->flags & OPT_HIDDEN))
				suggest_offer(&s, sv_from_str(o->long_name));
	if (s.best.n)
		err_hint(err, "did you mean '--%.*s'?", SV_ARGS(s.best));
	return -EINVAL;
}

/* @arg: the text after '=', or NULL. Takes the next word through *i where one is needed. */
static int parse_long(const struct opt_cmd *cmd, int argc, char **argv, int *i, struct err *err)
{
	struct sv rest = sv_from_str(argv[*i] + 2);
	const char *eq = strchr(argv[*i], '=');
	struct sv name = sv_split(&rest, '=');
	const char *arg = eq ? eq + 1 : NULL;
	struct found f;
	if (!find_option(&f, cmd, name, 0))
		return unknown_long(cmd, name, err);
	if (!opt_takes_arg(f.opt)) {
		if (arg)
			return err_set(err, -EINVAL, "option '--%s' takes no argument",
				       f.opt->long_name);
	} else if (!arg && !(f.opt->flags & OPT_ARG_OPTIONAL)) {
		if (*i + 1 >= argc) {
			err_set(err, -EINVAL, "option '--%s' needs an argument %s",
				f.opt->long_name, f.opt->arg ? f.opt->arg : "");
			return err_hint(err, "--%s: %s", f.opt->long_name, f.opt->help);
		}
		arg = argv[++*i];
	}
	return opt_set_value(f.opt, f.to, arg, err);
}

static int parse_shorts(const struct opt_cmd *cmd, int argc, char **argv, int *i, struct err *err)
{
	for (const char *s = argv[*i] + 1; *s; s++) {
		struct found f;
		if (!find_option(&f, cmd, SV(""), *s)) {
			err_set(err, -EINVAL, "unknown option '-%c'", *s);
			if (s == argv[*i] + 1 && s[1] && find_option(&f, cmd, sv_from_str(s), 0))
				err_hint(err, "did you mean '--%s'?", s);
			return -EINVAL;
		}
		if (!opt_takes_arg(f.opt)) {
			TRY(opt_set_value(f.opt, f.to, NULL, err));
			continue;
		}
		const char *arg = s[1] ? s + 1 : NULL;
		if (!arg && !(f.opt->flags & OPT_ARG_OPTIONAL)) {
			if (*i + 1 >= argc)
				return err_set(err, -EINVAL, "option '-%c' needs an argument %s",
					       *s, f.opt->arg ? f.opt->arg : "");
			arg = argv[++*i];
		}
		return opt_set_value(f.opt, f.to, arg, err);
	}
	return 0;
}

int opt_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	      struct err *err)
{
	struct opt_args args = {0};
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		int rc = 0;
		if (!strcmp(word, "--")) {
			args.command = argv + i + 1;
			args.nr_command = argc - i - 1;
			break;
		}
		if (word[0] != '-' || !word[1])
			vec_push(&args.operands, argv[i]);
		else if (word[1] == '-')
			rc = parse_long(cmd, argc, argv, &i, err);
		else
			rc = parse_shorts(cmd, argc, argv, &i, err);
		if (rc) {
			opt_args_release(&args);
			return rc;
		}
	}
	*ret_args = args;
	return 0;
}
