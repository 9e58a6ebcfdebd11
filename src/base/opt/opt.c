/* Parses command lines; see opt.h. value.c converts arguments, help.c prints the help. */
#include "base/base.h"
#include "base/opt/opt.h"

#include <errno.h>

#include "base/opt/value.h"
#include "base/text/suggest.h"

void opt_args_release(struct opt_args *a)
{
	vec_foreach(l, &a->lists)
		vec_release(*l);
	vec_release(&a->lists);
	vec_release(&a->operands);
	*a = (struct opt_args){0};
}

bool opt_next(const struct opt_cmd *cmd, struct opt_at *at)
{
	const struct opt *next = at->opt ? at->opt + 1 : NULL;
	while (!next || !next->kind) {
		at->bind = at->bind ? at->bind + 1 : cmd->groups;
		if (at->bind == cmd->groups + OPT_GROUPS_MAX || !at->bind->group)
			return false;
		next = at->bind->group->opts;
	}
	at->opt = next;
	return true;
}

const char *opt_why_excluded(const struct opt_cmd *cmd, const struct opt *o, const char *choice)
{
	for (const struct opt_exclusion *e = cmd->excluded; e && e->long_name && o->long_name; e++)
		if (!strcmp(e->long_name, o->long_name) &&
		    (!e->choice || (choice && !strcmp(e->choice, choice))))
			return e->reason;
	return NULL;
}

bool opt_is_listed(const struct opt_cmd *cmd, const struct opt *o)
{
	return !(o->flags & OPT_HIDDEN) && !opt_why_excluded(cmd, o, NULL);
}

/* Stores the value, unless the command excludes the option or this choice of it. */
static int store(const struct opt_cmd *cmd, const struct opt_at *at, const char *arg,
		 struct err *err)
{
	const char *choice = at->opt->kind == OPT_KIND_ENUM ? arg : NULL;
	const char *reason = opt_why_excluded(cmd, at->opt, choice);
	if (!reason)
		return opt_set_value(cmd, at->opt, at->bind->to, arg, err);
	bool is_whole = opt_why_excluded(cmd, at->opt, NULL) != NULL;
	return err_set(err, -EINVAL, "option '--%s%s%s' does not apply: %s", at->opt->long_name,
		       is_whole ? "" : " ", is_whole ? "" : choice, reason);
}

/* By long name or by letter; the other one is empty or 0. */
static bool find_option(struct opt_at *ret_at, const struct opt_cmd *cmd, struct sv name,
			char letter)
{
	*ret_at = (struct opt_at){0};
	while (opt_next(cmd, ret_at)) {
		const struct opt *o = ret_at->opt;
		if (letter ? o->short_name == letter
			   : o->long_name && sv_eq_str(name, o->long_name))
			return true;
	}
	return false;
}

char opt_letter(const struct opt_cmd *cmd, const struct opt *o)
{
	struct opt_at first;
	bool is_own =
		o->short_name && find_option(&first, cmd, SV(""), o->short_name) && first.opt == o;
	return is_own ? o->short_name : 0;
}

static bool has_word(const char *list, const char *word)
{
	struct sv left = sv_from_str(list);
	while (left.n)
		if (sv_eq_str(sv_split(&left, ' '), word))
			return true;
	return false;
}

bool opt_hint_other(struct err *err, const struct opt_cmd *cmd, struct sv name, struct sv value)
{
	const struct opt_other *o = cmd->others;
	for (; o && o->word; o++) {
		struct sv word = sv_from_str(o->word);
		struct sv row_name = sv_split(&word, '=');
		if (sv_eq(row_name, name) && sv_eq(word, value) &&
		    (!o->commands || has_word(o->commands, cmd->name)))
			break;
	}
	if (!o || !o->word)
		return false;
	CLEANUP(buf_release) struct buf text = {0};
	for (const char *c = o->hint; *c; c++)
		if (*c == '@')
			buf_add_str(&text, cmd->name);
		else
			buf_add_ch(&text, *c);
	(void)err_hint(err, "%s", buf_str(&text));
	return true;
}

static int unknown_long(const struct opt_cmd *cmd, struct sv name, struct err *err)
{
	err_set(err, -EINVAL, "unknown option '--%.*s'", SV_ARGS(name));
	if (opt_hint_other(err, cmd, sv_from(name.p - 2, name.n + 2), SV("")))
		return -EINVAL;
	struct suggest s = suggest_for(name);
	for (struct opt_at at = {0}; opt_next(cmd, &at);)
		if (at.opt->long_name && opt_is_listed(cmd, at.opt))
			suggest_offer(&s, sv_from_str(at.opt->long_name));
	if (s.best.n)
		err_hint(err, "did you mean '--%.*s'?", SV_ARGS(s.best));
	return -EINVAL;
}

/* Returns how many words an option takes, with its argument; 0: an unknown option. */
static int words_of(const struct opt_cmd *cmd, const char *word)
{
	struct opt_at f;
	bool is_long = word[1] == '-';
	struct sv left = sv_from_str(word + (is_long ? 2 : 1));
	struct sv name = sv_split(&left, '=');
	if (!find_option(&f, cmd, is_long ? name : SV(""), is_long ? 0 : word[1]))
		return 0;
	bool has_rest = is_long ? strchr(word, '=') != NULL : word[2] != 0; /* --o=FILE, -oFILE */
	bool takes_next = opt_takes_arg(f.opt) && !(f.opt->flags & OPT_ARG_OPTIONAL);
	return takes_next && !has_rest ? 2 : 1;
}

/* Whether a word that follows an option is its argument, not "--" or another option. */
static bool is_argument(const struct opt_cmd *cmd, const char *word)
{
	return word &&
	       (word[0] != '-' || !word[1] || (strcmp(word, "--") != 0 && !words_of(cmd, word)));
}

static int missing_argument(const struct opt_cmd *cmd, const struct opt *o, const char *typed,
			    const char *next, struct err *err)
{
	const char *arg = o->arg ? o->arg : "ARG";
	if (next)
		(void)err_set(err, -EINVAL, "option '%s' needs an argument %s, not '%s'", typed,
			      arg, next);
	else
		(void)err_set(err, -EINVAL, "option '%s' needs an argument %s", typed, arg);
	if (opt_hint_other(err, cmd, sv_from_str(typed), SV("")))
		return -EINVAL;
	return err_hint(err, "%s %s: %s", typed, arg, o->help);
}

/* Parses argv[*i], and advances *i where the next word is its argument. */
static int parse_long(const struct opt_cmd *cmd, char **argv, int *i, struct err *err)
{
	struct sv rest = sv_from_str(argv[*i] + 2);
	const char *eq = strchr(argv[*i], '=');
	struct sv name = sv_split(&rest, '=');
	const char *arg = eq ? eq + 1 : NULL;
	struct opt_at f;
	if (!find_option(&f, cmd, name, 0))
		return unknown_long(cmd, name, err);
	if (!opt_takes_arg(f.opt)) {
		if (arg)
			return err_set(err, -EINVAL, "option '--%s' takes no argument",
				       f.opt->long_name);
	} else if (!arg && !(f.opt->flags & OPT_ARG_OPTIONAL)) {
		if (!is_argument(cmd, argv[*i + 1]))
			return missing_argument(cmd, f.opt, argv[*i], argv[*i + 1], err);
		arg = argv[++*i];
	}
	return store(cmd, &f, arg, err);
}

static bool takes_seconds(const struct opt_cmd *cmd)
{
	return cmd->usage[0] && strstr(cmd->usage[0], "SECONDS");
}

static bool takes_command(const struct opt_cmd *cmd)
{
	bool takes = false;
	for (size_t i = 0; i < ARRAY_LEN(cmd->usage) && cmd->usage[i]; i++)
		takes |= strstr(cmd->usage[i], "-- CMD") != NULL;
	return takes;
}

static int parse_shorts(const struct opt_cmd *cmd, char **argv, int *i, struct err *err)
{
	for (const char *s = argv[*i] + 1; *s; s++) {
		struct opt_at f;
		if (!find_option(&f, cmd, SV(""), *s)) {
			const char letter[] = {'-', *s, 0};
			bool is_number = *s >= '0' && *s <= '9' && takes_seconds(cmd);
			err_set(err, -EINVAL, "unknown option '-%c'", *s);
			if (opt_hint_other(err, cmd, sv_from(letter, 2), SV("")))
				return -EINVAL;
			if (s == argv[*i] + 1 && s[1] && find_option(&f, cmd, sv_from_str(s), 0))
				err_hint(err, "did you mean '--%s'?", s);
			else if (*i > 1 && argv[1][0] != '-' && takes_command(cmd))
				err_hint(err, "%sto run a command: assay %s -- %s %s",
					 is_number ? "SECONDS is a positive number; " : "",
					 cmd->name, argv[1], *i == 2 ? argv[2] : "...");
			else if (is_number)
				err_hint(err, "SECONDS is a positive number");
			return -EINVAL;
		}
		if (!opt_takes_arg(f.opt) || f.opt->flags & OPT_ARG_OPTIONAL) {
			TRY(store(cmd, &f, NULL, err));
			continue;
		}
		const char *arg = s[1] ? s + 1 : NULL;
		if (!arg) {
			const char typed[] = {'-', *s, 0};
			if (!is_argument(cmd, argv[*i + 1]))
				return missing_argument(cmd, f.opt, typed, argv[*i + 1], err);
			arg = argv[++*i];
		}
		return store(cmd, &f, arg, err);
	}
	return 0;
}

static int apply_presets(const struct opt_cmd *cmd, struct err *err)
{
	for (size_t i = 0; i < cmd->nr_presets; i++) {
		const struct opt_preset *p = &cmd->presets[i];
		for (struct opt_at at = {0}; opt_next(cmd, &at);) {
			if (at.bind->group != p->group || !at.opt->long_name ||
			    strcmp(at.opt->long_name, p->long_name) != 0 ||
			    opt_why_excluded(cmd, at.opt, p->value))
				continue;
			TRY(opt_set_preset(cmd, at.opt, at.bind->to, p, err));
		}
	}
	return 0;
}

static int parse_words(struct opt_args *args, const struct opt_cmd *cmd, int argc, char **argv,
		       struct err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		if (!strcmp(word, "--")) {
			args->command = argv + i + 1;
			args->nr_command = argc - i - 1;
			break;
		}
		if (!word[0])
			return opt_refuse_empty(err, "an argument");
		if (word[0] != '-' || !word[1])
			vec_push(&args->operands, argv[i]);
		else if (word[1] == '-')
			TRY(parse_long(cmd, argv, &i, err));
		else
			TRY(parse_shorts(cmd, argv, &i, err));
	}
	return 0;
}

int opt_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	      struct err *err)
{
	CLEANUP(opt_args_release) struct opt_args args = {.argc = argc, .argv = argv};
	for (struct opt_at at = {0}; opt_next(cmd, &at);)
		if (at.opt->kind == OPT_KIND_LIST)
			vec_push(&args.lists, (void *)((char *)at.bind->to + at.opt->at));
	CLEANUP(err_release) struct err unset = {0};
	int rc = apply_presets(cmd, &unset);
	TRY(parse_words(&args, cmd, argc, argv, err));
	if (rc)
		return err_move(err, &unset); /* after the words: --help has been seen */
	*ret_args = args;
	args = (struct opt_args){0};
	return 0;
}

int opt_first_operand(const struct opt_cmd *cmd, int argc, char **argv)
{
	int i = 1;
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		int nr = strcmp(argv[i], "--") != 0 ? words_of(cmd, argv[i]) : 0;
		if (!nr)
			return argc;
		i += nr;
	}
	return MIN(i, argc);
}
