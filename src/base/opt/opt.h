/*
 * Parses command lines from tables of options. The same table gives --help, the OPTIONS section of
 * the man page and the word list for shell completion, so these always agree with the parser.
 *
 *	struct out_opts { const char *file; bool is_json; uint64_t limit; };
 *	static const struct opt out_opts[] = {
 *		OPT_STR('o', "output", struct out_opts, file, "FILE", "write to FILE"),
 *		OPT_FLAG('j', "json", struct out_opts, is_json, "JSON instead of text"),
 *		OPT_U64('n', "limit", struct out_opts, limit, "N", "at most N rows (default 20)"),
 *		OPT_END,
 *	};
 *	const struct opt_group out_group = {"Output", out_opts};
 *
 * A group is const and may be shared by commands. Each command binds it to a structure that
 * receives the values:
 *
 *	struct out_opts out = {.limit = 20};
 *	const struct opt_cmd cmd = {.name = "report", .usage = {"[OPTION...] [FILE]"},
 *		.summary = "...", .groups = {{&out_group, &out}}};
 *	CLEANUP(opt_args_release) struct opt_args args = {0};
 *	int rc = opt_parse(&args, &cmd, argc, argv, &err);
 *
 * Commands of assay call cmd_parse (cmd/cmd.h), which adds the common options and prints errors.
 *
 * Where a command cannot honour an option of a shared group, it lists the option in `excluded` with
 * the reason: opt_parse then returns an error with that reason, and help, man page and completion
 * omit the option.
 *
 * Syntax: options and operands in any order up to "--"; -oFILE, -o FILE, --output=FILE,
 * --output FILE, clusters -jq. Long names are not abbreviated; an unknown name gets a suggestion.
 * Words after "--" are the command to run. A lone "-" is an operand.
 * Values: durations are seconds, or have the suffix ns, us, ms, s, m, h or d (1.5s, 7d), which is
 * required where other programs count in other units (OPT_DURATION_UNIT); sizes are bytes, or have a
 * suffix (num.h).
 * Empty arguments and operands are errors: mostly a variable of the shell was not set.
 * Strings are borrowed from argv. Lists in the bound structures are valid until opt_args_release.
 */
#ifndef ASSAY_BASE_OPT_OPT_H
#define ASSAY_BASE_OPT_OPT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"

enum opt_kind {
	OPT_KIND_END = 0,
	OPT_KIND_FLAG,     /* bool = true */
	OPT_KIND_COUNT,    /* int++ */
	OPT_KIND_SET,      /* int = value */
	OPT_KIND_BITS,     /* unsigned |= value */
	OPT_KIND_STR,      /* const char *; this kind and those below take an argument */
	OPT_KIND_U64,      /* uint64_t, decimal or 0x */
	OPT_KIND_DOUBLE,   /* double */
	OPT_KIND_DURATION, /* uint64_t, ns */
	OPT_KIND_SIZE,     /* uint64_t, bytes */
	OPT_KIND_LIST,     /* struct opt_list, one entry for each use */
	OPT_KIND_ENUM,     /* int, one of choices */
	OPT_KIND_CALL,     /* call(bound structure, argument) */
};

struct opt_list {
	const char **p;
	size_t n;
	size_t cap;
};

struct opt_choice {
	const char *name;
	int value;
	const char *help; /* may be NULL */
};

/* Returns 0 or negative with err filled. @arg is NULL only where the argument is optional. */
typedef int (*opt_call_fn)(void *to, const char *arg, struct err *err);

enum opt_flags {
	/*
	 * --name[=ARG], STR and CALL only; the short form takes no argument. Without ARG, STR
	 * stores `absent` and CALL gets NULL.
	 */
	OPT_ARG_OPTIONAL = 1 << 0,
	OPT_HIDDEN = 1 << 1,   /* accepted, omitted from help, man page and completion */
	OPT_NO_ARG = 1 << 2,   /* CALL without an argument */
	OPT_EMPTY_OK = 1 << 3, /* the argument may be an empty string, which is otherwise refused */
	/* DURATION: a bare number is refused, since other programs count it in other units. */
	OPT_NEEDS_UNIT = 1 << 4,
};

struct opt {
	enum opt_kind kind;
	char short_name;       /* 0 = none */
	const char *long_name; /* NULL = none */
	size_t at;             /* offset of the value in the bound structure */
	const char *arg;       /* the argument's name in the help */
	const char *help;      /* lower case, no full stop; states default and unit */
	unsigned flags;        /* enum opt_flags */
	uint64_t min;          /* U64, DURATION, SIZE: smallest and largest value; max 0 = any */
	uint64_t max;
	int value;                        /* SET, BITS */
	const char *absent;               /* see OPT_ARG_OPTIONAL */
	const struct opt_choice *choices; /* ends with a NULL name */
	opt_call_fn call;
};

#define OPT_END                      \
	{                            \
		.kind = OPT_KIND_END \
	}
#define OPT_FIELD_(type, field, want)                                                       \
	(offsetof(type, field) +                                                            \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), want) \
				 ? 1                                                        \
				 : -1]))
#define OPT_(which, s, l, text, ...)                                                           \
	{                                                                                      \
		.kind = OPT_KIND_##which, .short_name = (s), .long_name = (l), .help = (text), \
		__VA_ARGS__                                                                    \
	}
#define OPT_AT_(which, s, l, type, field, want, text, ...) \
	OPT_(which, s, l, text, .at = OPT_FIELD_(type, field, want), __VA_ARGS__)
#define OPT_FLAG(s, l, type, field, text) \
	OPT_(FLAG, s, l, text, .at = OPT_FIELD_(type, field, bool))
#define OPT_COUNT(s, l, type, field, text) \
	OPT_(COUNT, s, l, text, .at = OPT_FIELD_(type, field, int))
#define OPT_SET(s, l, type, field, v, text) OPT_AT_(SET, s, l, type, field, int, text, .value = (v))
#define OPT_BITS(s, l, type, field, v, text) \
	OPT_AT_(BITS, s, l, type, field, unsigned, text, .value = (v))
#define OPT_STR(s, l, type, field, a, text) \
	OPT_AT_(STR, s, l, type, field, const char *, text, .arg = (a))
#define OPT_STR_OPTIONAL(s, l, type, field, a, without, text)                                      \
	OPT_AT_(STR, s, l, type, field, const char *, text, .arg = (a), .flags = OPT_ARG_OPTIONAL, \
		.absent = (without))
#define OPT_U64(s, l, type, field, a, text) OPT_U64_IN(s, l, type, field, 0, 0, a, text)
#define OPT_U64_IN(s, l, type, field, lo, hi, a, text) \
	OPT_AT_(U64, s, l, type, field, uint64_t, text, .arg = (a), .min = (lo), .max = (hi))
#define OPT_DOUBLE(s, l, type, field, a, text) \
	OPT_AT_(DOUBLE, s, l, type, field, double, text, .arg = (a))
#define OPT_DURATION(s, l, type, field, a, text) \
	OPT_AT_(DURATION, s, l, type, field, uint64_t, text, .arg = (a))
#define OPT_DURATION_UNIT(s, l, type, field, a, text) \
	OPT_AT_(DURATION, s, l, type, field, uint64_t, text, .arg = (a), .flags = OPT_NEEDS_UNIT)
#define OPT_SIZE(s, l, type, field, a, text) OPT_SIZE_FROM(s, l, type, field, 0, a, text)
#define OPT_SIZE_FROM(s, l, type, field, lo, a, text) \
	OPT_AT_(SIZE, s, l, type, field, uint64_t, text, .arg = (a), .min = (lo))
#define OPT_LIST(s, l, type, field, a, text) \
	OPT_AT_(LIST, s, l, type, field, struct opt_list, text, .arg = (a))
#define OPT_ENUM(s, l, type, field, table, a, text) \
	OPT_AT_(ENUM, s, l, type, field, int, text, .arg = (a), .choices = (table))
#define OPT_CALL(s, l, fn, a, text)     OPT_(CALL, s, l, text, .call = (fn), .arg = (a))
#define OPT_CALL_NO_ARG(s, l, fn, text) OPT_(CALL, s, l, text, .call = (fn), .flags = OPT_NO_ARG)

struct opt_group {
	const char *title;
	const struct opt *opts; /* ends with OPT_END */
};

struct opt_bind {
	const struct opt_group *group;
	void *to; /* the structure that receives the values; opt.at is an offset in it */
};

/* An option of a shared group that a command refuses, or one choice of an ENUM option. */
struct opt_exclusion {
	const char *long_name;
	const char *choice; /* NULL: the whole option */
	const char *reason; /* for the error message */
};

/* An option of another program, or one of its values ("--call-graph=dwarf"), as users type it. */
struct opt_other {
	const char *commands; /* names of the commands that the row is for, by blanks; NULL: all */
	const char *word;     /* as typed: "--duration", "-d" */
	const char *hint;     /* what to type here; @ is replaced by the command's name */
};

/*
 * A value that an option has without being on the command line, from a file or a variable. Flags take
 * yes or no. Options of the command line are parsed after it, so they win; a list has both.
 */
struct opt_preset {
	const struct opt_group
		*group; /* commands without this group, or which refuse the option, ignore it */
	const char *long_name;
	const char *value;
	const char *origin; /* for messages: "ASSAY_RATE", "/etc/assay/config:3" */
};

#define OPT_GROUPS_MAX 16
#define OPT_USAGE_MAX  4

struct opt_cmd {
	const char *name;                     /* "cpu"; NULL: the program itself */
	const char *usage[OPT_USAGE_MAX];     /* what follows the name, one line each */
	const char *summary;                  /* one line */
	const char *details;                  /* one paragraph per line; may be NULL */
	const char *examples;                 /* lines "command\tcomment\n"; may be NULL */
	const struct opt_exclusion *excluded; /* ends with a NULL long_name; may be NULL */
	const struct opt_other *others;       /* ends with a NULL word; may be NULL */
	const struct opt_preset *presets;     /* nr_presets */
	size_t nr_presets;
	struct opt_bind groups[OPT_GROUPS_MAX]; /* ends with a NULL group */
};

struct opt_args {
	VEC(char *) operands; /* borrowed from argv */
	int argc;             /* the whole command line, for messages */
	char **argv;
	char **command; /* what follows "--", NULL-terminated; NULL = there was no "--" */
	int nr_command;
	VEC(struct opt_list *) lists; /* in the bound structures */
};
/* Also frees the lists in the bound structures, so these must still be valid. */
void opt_args_release(struct opt_args *a);

/* Skips argv[0]. Returns 0, or -EINVAL with a message for a usage error. */
int opt_parse(struct opt_args *ret_args, const struct opt_cmd *cmd, int argc, char **argv,
	      struct err *err);

/*
 * Sets the hint for an option of another program, for a value of an option, or (@value empty) for an
 * option without its argument. False: there is no row.
 */
bool opt_hint_other(struct err *err, const struct opt_cmd *cmd, struct sv name, struct sv value);

/* Sets the error "WHAT is empty": mostly a variable of the shell was not set. Returns -EINVAL. */
int opt_refuse_empty(struct err *err, const char *what);

/* Returns the index of the first operand in argv; argc: none, or an unknown option is before it. */
int opt_first_operand(const struct opt_cmd *cmd, int argc, char **argv);

/* Appends the text of --help, 80 columns wide. */
void opt_help(struct buf *to, const struct opt_cmd *cmd);
/* Appends the examples, the last section of --help, from lines "command\tcomment\n". */
void opt_add_examples(struct buf *to, const char *examples);
/* Appends the options as sections of a man page in Markdown. */
void opt_man(struct buf *to, const struct opt_cmd *cmd);
/*
 * Appends what shell completion needs, one per line: "-o FILE<tab>HELP", "--output FILE<tab>HELP",
 * "--help[=FORM]<tab>HELP", for each value of an ENUM "--color=auto<tab>HELP"; "usage: " and the operands.
 */
void opt_words(struct buf *to, const struct opt_cmd *cmd);

/* Returns the option of the group; a name that it does not have is a bug. */
const struct opt *opt_of_group(const struct opt_group *g, const char *long_name);
/* Checks the value of a preset. -EINVAL with a message that begins with its origin. */
int opt_check_preset(const struct opt_preset *p, struct err *err);

/* Parse an operand as the value of an option. -EINVAL with a message: malformed, or too large. */
int opt_to_duration(uint64_t *ret_ns, const char *text, struct err *err);
int opt_to_size(uint64_t *ret_bytes, const char *text, struct err *err);

#endif
