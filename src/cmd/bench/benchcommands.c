/* The commands of a benchmark; see benchcommands.h. */
#include "base/base.h"
#include "cmd/bench/benchcommands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"

void bench_commands_release(struct bench_commands *c)
{
	vec_foreach(s, &c->subjects)
		bench_subject_release(s);
	vec_release(&c->subjects);
	vec_release(&c->parameters);
	arena_release(&c->arena);
}

/* ---- the command line ------------------------------------------------------------------------ */

int bench_join_words(struct arena *a, char **out, int argc, char **argv)
{
	int nr = 0;
	for (int i = 0; i < argc; i++) {
		bool is_list = !strcmp(argv[i], "-L") || !strcmp(argv[i], "--parameter-list");
		bool is_scan = !strcmp(argv[i], "-P") || !strcmp(argv[i], "--parameter-scan");
		if (!strcmp(argv[i], "--")) {
			while (i < argc)
				out[nr++] = argv[i++];
			break;
		}
		out[nr++] = argv[i];
		if (is_list && i + 2 < argc) {
			out[nr++] = arena_fmt(a, "%s %s", argv[i + 1], argv[i + 2]);
			i += 2;
		} else if (is_scan && i + 3 < argc) {
			out[nr++] = arena_fmt(a, "%s %s %s", argv[i + 1], argv[i + 2], argv[i + 3]);
			i += 3;
		}
	}
	out[nr] = NULL;
	return nr;
}

/* Splits a command as a shell does that knows only quotes and backslashes. */
static int split_words(char *const **ret, struct arena *a, const char *text, struct err *err)
{
	VEC(char *) words = {0};
	CLEANUP(buf_release) struct buf word = {0};
	bool has_word = false;
	char quote = 0;
	for (const char *p = text;; p++) {
		bool is_end = !*p;
		bool is_blank = !quote && (is_end || strchr(" \t\n", *p));
		if (is_blank && has_word) {
			vec_push(&words, arena_strndup(a, buf_str(&word), word.n));
			buf_clear(&word);
			has_word = false;
		}
		if (is_end)
			break;
		if (is_blank)
			continue;
		has_word = true;
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? 0 : *p;
		else if (*p == '\\' && quote != '\'' && p[1])
			buf_add_ch(&word, *++p);
		else
			buf_add_ch(&word, *p);
	}
	vec_push(&words, NULL);
	*ret = arena_dup(a, words.p, words.n * sizeof(*words.p));
	size_t nr = words.n - 1;
	vec_release(&words);
	if (quote)
		return err_set(err, -EINVAL, "'%s': missing closing %c", text, quote);
	return nr ? 0 : err_set(err, -EINVAL, "empty command");
}

int bench_command_words(char *const **ret, struct arena *a, char *const *argv, struct err *err)
{
	size_t nr = 0;
	while (argv[nr])
		nr++;
	*ret = argv;
	if (nr < 3 || strcmp(argv[nr - 2], "-c") != 0)
		return 0;
	char *text = arena_strdup(a, argv[nr - 1]);
	for (char *p = text; (p = strpbrk(p, ";&|()<>\n")) != NULL;)
		*p = ' ';
	return split_words(ret, a, text, err);
}

static char *const *shell_words(struct arena *a, char *const *shell, const char *text)
{
	size_t nr = 0;
	while (shell[nr])
		nr++;
	char **argv = arena_alloc(a, (nr + 3) * sizeof(*argv));
	memcpy(argv, shell, nr * sizeof(*argv));
	argv[nr] = arena_strdup(a, "-c");
	argv[nr + 1] = arena_strdup(a, text);
	argv[nr + 2] = NULL;
	return argv;
}

/* ---- parameters ------------------------------------------------------------------------------- */

struct values {
	const char *name;
	VEC(const char *) v;
};

struct value_lists {
	struct values *p;
	size_t n;
	size_t cap;
};

static void lists_release(struct value_lists *l)
{
	vec_foreach(v, l)
		vec_release(&v->v);
	vec_release(l);
}

static int add_list(struct value_lists *to, struct arena *a, const char *text, struct err *err)
{
	struct sv left = sv_from_str(text);
	struct sv name = sv_split(&left, ' ');
	if (!name.n || !left.n)
		return err_set(err, -EINVAL, "-L needs a name and values: -L VAR one,two");
	struct values *v = vec_add(to);
	v->name = arena_strndup(a, name.p, name.n);
	while (left.n) {
		struct sv value = sv_split(&left, ',');
		vec_push(&v->v, arena_strndup(a, value.p, value.n));
	}
	return 0;
}

static bool parse_number(double *ret, unsigned *decimals, struct sv s)
{
	CLEANUP(free_p) char *text = xstrndup(s.p, s.n);
	char *end;
	*ret = strtod(text, &end);
	ssize_t point = sv_rindex(s, '.');
	*decimals = MAX(*decimals, point < 0 ? 0 : (unsigned)(s.n - (size_t)point - 1));
	return end != text && !*end && isfinite(*ret);
}

static unsigned decimals_of(double step)
{
	unsigned n = 0;
	while (n < 9 && fabs(step - round(step)) > 1e-9) {
		step *= 10;
		n++;
	}
	return n;
}

static int add_scan(struct value_lists *to, struct arena *a, const char *text, double step,
		    struct err *err)
{
	struct sv left = sv_from_str(text);
	struct sv name = sv_split(&left, ' ');
	struct sv min = sv_split(&left, ' ');
	unsigned decimals = 0;
	double low;
	double high;
	if (!name.n || !parse_number(&low, &decimals, min) || !parse_number(&high, &decimals, left))
		return err_set(err, -EINVAL, "-P needs a name and two numbers: -P VAR 1 8");
	step = step > 0 ? step : 1;
	decimals = MIN(MAX(decimals, decimals_of(step)), 9u);
	if (high < low || (high - low) / step >= BENCH_COMMANDS_MAX)
		return err_set(err, -EINVAL, "-P %s: %s", text,
			       high < low ? "the first number is the larger one"
					  : "too many values");
	struct values *v = vec_add(to);
	v->name = arena_strndup(a, name.p, name.n);
	for (size_t i = 0; low + (double)i * step <= high + step * 1e-9; i++)
		vec_push(&v->v,
			 arena_strdup(a, num_double(low + (double)i * step, (int)decimals).s));
	return 0;
}

/* @text with {VAR} replaced. */
static const char *expand(struct arena *a, const char *text,
			  const struct bench_export_parameter *parameters, size_t nr)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (const char *p = text; *p;) {
		size_t i = 0;
		size_t n = 0;
		for (; i < nr && !n; i++) {
			size_t len = strlen(parameters[i].name);
			if (*p == '{' && !strncmp(p + 1, parameters[i].name, len) &&
			    p[len + 1] == '}')
				n = len + 2;
		}
		if (n)
			buf_add_str(&b, parameters[i - 1].value);
		else
			buf_add_ch(&b, *p);
		p += n ? n : 1;
	}
	return arena_strndup(a, buf_str(&b), b.n);
}

/* ---- commands --------------------------------------------------------------------------------- */

struct build {
	struct bench_commands *to;
	const struct bench_words *w;
	char *const *shell;    /* for the commands that prepare, too */
	char *const *own_argv; /* the words after "--"; NULL: none */
	const char *own_text;
	size_t nr_texts; /* commands without their parameters */
};

static const char *joined(struct arena *a, char **words)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; words[i]; i++) {
		buf_add_str(&b, i ? " " : "");
		escape_shell(&b, sv_from_str(words[i]));
	}
	return arena_strndup(a, buf_str(&b), b.n);
}

/* The words after "--" are expanded one by one. */
static char *const *expand_words(struct arena *a, char *const *words,
				 const struct bench_export_parameter *p, size_t nr)
{
	size_t n = 0;
	while (words[n])
		n++;
	char **argv = arena_calloc(a, n + 1, sizeof(*argv));
	for (size_t i = 0; i < n; i++)
		argv[i] = arena_strdup(a, expand(a, words[i], p, nr));
	return argv;
}

static int add_subject(struct build *b, const char *text,
		       const struct bench_export_parameter *parameters, struct err *err)
{
	struct bench_commands *c = b->to;
	struct arena *a = &c->arena;
	const struct bench_words *w = b->w;
	size_t nr = c->nr_parameters;
	size_t at = c->subjects.n;
	if (at >= BENCH_COMMANDS_MAX)
		return err_set(err, -EINVAL, "more than %d commands", BENCH_COMMANDS_MAX);
	const char *command = expand(a, text, parameters, nr);
	struct bench_subject s = {.name = command};
	if (w->names.n == 1 && b->nr_texts == 1)
		s.name = expand(a, w->names.p[0], parameters, nr);
	else if (at < w->names.n)
		s.name = expand(a, w->names.p[at], parameters, nr);
	if (b->own_argv && text == b->own_text)
		s.argv = expand_words(a, b->own_argv, parameters, nr);
	else if (c->has_shell)
		s.argv = shell_words(a, b->shell, command);
	else
		TRY(split_words(&s.argv, a, command, err));
	if (w->prepare.n) {
		const char *prepare = w->prepare.p[w->prepare.n > 1 ? at : 0];
		s.prepare = shell_words(a, b->shell, expand(a, prepare, parameters, nr));
	}
	if (w->setup)
		s.setup = shell_words(a, b->shell, expand(a, w->setup, parameters, nr));
	if (w->cleanup)
		s.cleanup = shell_words(a, b->shell, expand(a, w->cleanup, parameters, nr));
	vec_push(&c->subjects, s);
	vec_push(&c->parameters, parameters);
	return 0;
}

/* Every combination of the parameters' values, the last one varying fastest. */
static int add_combinations(struct build *b, const char *text, const struct value_lists *lists,
			    struct err *err)
{
	size_t nr = 1;
	vec_foreach(v, lists) {
		nr *= v->v.n;
		if (nr > BENCH_COMMANDS_MAX)
			return err_set(err, -EINVAL, "more than %d commands", BENCH_COMMANDS_MAX);
	}
	for (size_t i = 0; i < nr; i++) {
		struct bench_export_parameter *p =
			arena_calloc(&b->to->arena, lists->n + 1, sizeof(*p));
		size_t left = i;
		for (size_t k = lists->n; k-- > 0;) {
			const struct values *v = &lists->p[k];
			p[k] = (struct bench_export_parameter){v->name, v->v.p[left % v->v.n]};
			left /= v->v.n;
		}
		TRY(add_subject(b, text, p, err));
	}
	return 0;
}

static int check_counts(const struct bench_commands *c, const struct bench_words *w,
			struct err *err)
{
	size_t nr = c->subjects.n;
	if (w->prepare.n > 1 && w->prepare.n != nr)
		return err_set(err, -EINVAL, "%zu times --prepare for %zu commands", w->prepare.n,
			       nr);
	if (w->names.n > nr)
		return err_set(err, -EINVAL, "%zu times --command-name for %zu commands",
			       w->names.n, nr);
	return 0;
}

static int refuse_versus(const struct bench_words *w, const struct opt_args *args, struct err *err)
{
	CLEANUP(buf_release) struct buf vs = {0};
	CLEANUP(buf_release) struct buf base = {0};
	escape_shell(&vs, sv_from_str(w->versus));
	for (size_t i = 0; i < args->operands.n; i++)
		buf_addf(&base, "%s%s", i ? " " : "", args->operands.p[i]);
	err_set(err, -EINVAL, "--vs compares with the command after --, and there is none");
	return err_hint(err, "assay bench --vs %s -- %s", buf_str(&vs), buf_str(&base));
}

int bench_commands_init(struct bench_commands *ret, const struct bench_words *w,
			const struct opt_args *args, struct err *err)
{
	CLEANUP(lists_release) struct value_lists lists = {0};
	struct bench_commands *c = ret;
	bool has_words = args->nr_command > 0;
	if (has_words && args->operands.n)
		return err_set(err, -EINVAL, "both a quoted command and one after '--'");
	if (!has_words && !args->operands.n)
		return err_set(err, -EINVAL, "missing command");
	if (w->versus && !has_words)
		return refuse_versus(w, args, err);
	for (size_t i = 0; i < w->lists.n; i++)
		TRY(add_list(&lists, &c->arena, w->lists.p[i], err));
	for (size_t i = 0; i < w->scans.n; i++)
		TRY(add_scan(&lists, &c->arena, w->scans.p[i], w->step, err));
	struct build b = {.to = c, .w = w, .nr_texts = args->operands.n + (w->versus ? 1 : 0)};
	const char *shell = w->shell && strcmp(w->shell, "none") != 0 ? w->shell : "sh";
	TRY(split_words(&b.shell, &c->arena, shell, err));
	bool is_none = w->has_no_shell || (w->shell && !strcmp(w->shell, "none"));
	c->has_shell = !has_words && !is_none;
	c->shell_argv = shell_words(&c->arena, b.shell, "");
	c->nr_parameters = lists.n;
	if (has_words) {
		b.own_argv = args->command;
		b.own_text = joined(&c->arena, args->command);
		b.nr_texts++;
		TRY(add_combinations(&b, b.own_text, &lists, err));
	}
	vec_foreach(text, &args->operands)
		TRY(add_combinations(&b, *text, &lists, err));
	if (w->versus)
		TRY(add_combinations(&b, w->versus, &lists, err));
	return check_counts(c, w, err);
}
