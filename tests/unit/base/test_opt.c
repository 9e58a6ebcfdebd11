/* base/opt, base/suggest, base/stop: command lines in, values or clear errors out. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/opt/opt.h"
#include "base/process/stop.h"
#include "base/text/suggest.h"

enum fmt { FMT_TEXT, FMT_JSON };
static const struct opt_choice fmts[] = {{"text", FMT_TEXT, NULL}, {"json", FMT_JSON, NULL}, {0}};

struct o {
	bool is_all;
	int nr_verbose;
	const char *file;
	const char *maybe;
	uint64_t freq;
	double ratio;
	uint64_t wait_ns;
	uint64_t max_bytes;
	struct opt_list threads;
	int fmt;
	int seen;
};

static int on_call(void *to, const char *arg, struct err *err)
{
	if (!strcmp(arg, "bad"))
		return err_set(err, -EINVAL, "bad is bad");
	((struct o *)to)->seen++;
	return 0;
}

static const struct opt opts[] = {
	OPT_FLAG('a', "all", struct o, is_all, "everything"),
	OPT_COUNT('v', "verbose", struct o, nr_verbose, "say more"),
	OPT_STR('o', "output", struct o, file, "FILE", "where to"),
	OPT_STR_OPTIONAL(0, "maybe", struct o, maybe, "X", "without", "perhaps"),
	OPT_U64_IN('F', "freq", struct o, freq, 1, 100000, "HZ", "rate"),
	OPT_DOUBLE(0, "ratio", struct o, ratio, "R", "a ratio"),
	OPT_DURATION('d', "delay", struct o, wait_ns, "TIME", "wait"),
	OPT_SIZE('m', "max-size", struct o, max_bytes, "SIZE", "limit"),
	OPT_LIST('t', "thread", struct o, threads, "NAME", "only these"),
	OPT_ENUM(0, "format", struct o, fmt, fmts, "FORMAT", "how"),
	OPT_CALL(0, "call", on_call, "WHAT", "calls"),
	OPT_END,
};
static const struct opt_group group = {"Test options", opts};

static int parse(struct o *o, struct opt_args *args, struct err *err, char **argv)
{
	const struct opt_cmd cmd = {.name = "x", .usage = {"[OPTION...]"}, .groups = {{&group, o}}};
	int argc = 0;
	while (argv[argc])
		argc++;
	return opt_parse(args, &cmd, argc, argv, err);
}

#define PARSE(...)                                            \
	struct o o = {0};                                     \
	CLEANUP(opt_args_release) struct opt_args args = {0}; \
	CLEANUP(err_release) struct err err = {0};            \
	char *argv[] = {(char *)"x", __VA_ARGS__, NULL};      \
	int rc = parse(&o, &args, &err, argv)
#define A (char *)

TEST(options_and_operands_mix_until_the_double_dash)
{
	PARSE(A "redis", A "-av", A "-o", A "f", A "60", A "-vF999", A "-", A "--", A "ls", A "-l");
	CHECK_U64(rc, 0);
	CHECK(o.is_all);
	CHECK_U64(o.nr_verbose, 2);
	CHECK_STR(o.file, "f");
	CHECK_U64(o.freq, 999);
	CHECK_U64(args.operands.n, 3);
	CHECK_STR(args.operands.p[0], "redis");
	CHECK_STR(args.operands.p[1], "60");
	CHECK_STR(args.operands.p[2], "-");
	CHECK_U64(args.nr_command, 2);
	CHECK_STR(args.command[1], "-l");
}

TEST(every_kind_of_option_is_stored)
{
	PARSE(A "--output=a=b", A "--maybe", A "--ratio", A "0.25", A "--delay=1.5m", A "-m64k",
	      A "-t", A "a", A "-tb", A "--format", A "json", A "--call=x", A "--freq=0x10");
	CHECK_U64(rc, 0);
	CHECK_STR(o.file, "a=b");
	CHECK_STR(o.maybe, "without");
	CHECK(o.ratio == 0.25);
	CHECK_U64(o.wait_ns, 90000000000);
	CHECK_U64(o.max_bytes, 65536);
	CHECK_U64(o.threads.n, 2);
	CHECK_STR(o.threads.p[1], "b");
	CHECK_U64(o.fmt, FMT_JSON);
	CHECK_U64(o.seen, 1);
	CHECK_U64(o.freq, 16);
}

TEST(an_empty_command_after_the_double_dash_is_seen)
{
	PARSE(A "--");
	CHECK_U64(rc, 0);
	CHECK(args.command != NULL);
	CHECK_U64(args.nr_command, 0);
}

static void check_bad(char *word, char *next, const char *msg, const char *hint)
{
	PARSE(word, next);
	CHECK(rc == -EINVAL);
	CHECK_STR(err_msg(&err), msg);
	CHECK_STR(err.hint ? err.hint : "", hint);
}

TEST(usage_errors_name_the_option_and_the_remedy)
{
	check_bad(A "--ouput", NULL, "unknown option '--ouput'", "did you mean '--output'?");
	check_bad(A "--thr", A "1", "unknown option '--thr'", "did you mean '--thread'?");
	check_bad(A "-all", NULL, "unknown option '-l'", "");
	check_bad(A "-freq", NULL, "unknown option '-f'", "did you mean '--freq'?");
	check_bad(A "-Z", NULL, "unknown option '-Z'", "");
	check_bad(A "--output", NULL, "option '--output' needs an argument FILE",
		  "--output FILE: where to");
	check_bad(A "-o", NULL, "option '-o' needs an argument FILE", "-o FILE: where to");
	check_bad(A "-o", A "--all", "option '-o' needs an argument FILE, not '--all'",
		  "-o FILE: where to");
	check_bad(A "--all=1", NULL, "option '--all' takes no argument", "");
	check_bad(A "-F", A "0", "option '--freq': 0 is below 1", "");
	check_bad(A "-F", A "-1", "option '--freq': '-1' is not a whole number", "");
	check_bad(A "-F", A "100001", "option '--freq': 100001 is over 100000", "");
	check_bad(A "--format", A "jsn", "option '--format': 'jsn' is not one of text, json",
		  "did you mean 'json'?");
	check_bad(A "--call", A "bad", "option '--call': bad is bad", "");
	check_bad(A "--output=", NULL, "option '--output': its argument is empty",
		  "is a variable of the shell not set?");
	check_bad(A "-a", A "", "an argument is empty", "is a variable of the shell not set?");
}

TEST(durations_and_sizes_are_exact_and_overflow_is_an_error)
{
	uint64_t v = 7;
	CHECK(!opt_to_duration(&v, "10", NULL) && v == 10000000000);
	CHECK(!opt_to_duration(&v, "0.1", NULL) && v == 100000000);
	CHECK(!opt_to_duration(&v, "1.000000001s", NULL) && v == 1000000001);
	CHECK(!opt_to_duration(&v, "7d", NULL) && v == 604800000000000);
	CHECK(!opt_to_duration(&v, ".5ms", NULL) && v == 500000);
	CHECK(!opt_to_duration(&v, "3ns", NULL) && v == 3);
	CHECK(!opt_to_size(&v, "1.5G", NULL) && v == 3ull << 29);
	CHECK(!opt_to_size(&v, "2kB", NULL) && v == 2000);
	v = 7;
	const char *bad[] = {"",    "s",           ".",   "-1",           "1x",
			     "1 s", "20000000000", "1e3", "584542046090y"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (opt_to_duration(&v, bad[i], NULL) != -EINVAL)
			tap_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
	CHECK(opt_to_size(&v, "17179869184G", NULL) == -EINVAL);
	CHECK_U64(v, 7);
}

TEST(help_shows_each_option_once_and_man_and_words_agree)
{
	struct o o = {0};
	const struct opt_cmd cmd = {.name = "x",
				    .usage = {"[OPTION...] TARGET", "-- CMD"},
				    .summary = "does x",
				    .examples = "assay x 1\tfirst\nassay x 22\tsecond\n",
				    .groups = {{&group, &o}}};
	CLEANUP(buf_release) struct buf b = {0};
	opt_help(&b, &cmd);
	CHECK(sv_has_prefix(buf_sv(&b), SV("assay x: does x\n\nusage: ")));
	CHECK(strstr(buf_str(&b), "usage: assay x [OPTION...] TARGET\n       assay x -- CMD\n") !=
	      NULL);
	CHECK(strstr(buf_str(&b), "  -o, --output FILE        where to\n") != NULL);
	CHECK(strstr(buf_str(&b), "      --maybe[=X]          perhaps\n") != NULL);
	CHECK(strstr(buf_str(&b), "how: text, json\n") != NULL);
	CHECK(strstr(buf_str(&b), "  assay x 1   # first\n") != NULL);
	buf_clear(&b);
	opt_man(&b, &cmd);
	CHECK(strstr(buf_str(&b), "**-o**, **--output** *FILE*\n: where to\n") != NULL);
	buf_clear(&b);
	opt_words(&b, &cmd);
	CHECK(strstr(buf_str(&b), "-o FILE\twhere to\n--output FILE\twhere to\n") != NULL);
	CHECK(strstr(buf_str(&b), "\n--maybe[=X]\tperhaps\n") != NULL);
	CHECK(strstr(buf_str(&b), "\n--format=text\t\n--format=json\t\n") != NULL);
	CHECK(strstr(buf_str(&b), "\nusage: [OPTION...] TARGET\nusage: -- CMD\n") != NULL);
}

TEST(an_excluded_option_is_refused_with_its_reason_and_not_listed)
{
	struct o o = {0};
	static const struct opt_exclusion excluded[] = {
		{"freq", NULL, "nothing is sampled"}, {"format", "json", "text only"}, {0}};
	const struct opt_cmd cmd = {
		.name = "x", .usage = {"A"}, .excluded = excluded, .groups = {{&group, &o}}};
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	char *freq[] = {A "x", A "-F9", NULL};
	char *json[] = {A "x", A "--format", A "json", NULL};
	char *text[] = {A "x", A "--format", A "text", NULL};
	CHECK(opt_parse(&args, &cmd, 2, freq, &err) == -EINVAL);
	CHECK_STR(err_msg(&err), "option '--freq' does not apply: nothing is sampled");
	err_release(&err);
	CHECK(opt_parse(&args, &cmd, 3, json, &err) == -EINVAL);
	CHECK_STR(err_msg(&err), "option '--format json' does not apply: text only");
	CHECK(!opt_parse(&args, &cmd, 3, text, &err));
	CLEANUP(buf_release) struct buf b = {0};
	opt_help(&b, &cmd);
	opt_man(&b, &cmd);
	opt_words(&b, &cmd);
	CHECK(strstr(buf_str(&b), "freq") == NULL);
	CHECK(strstr(buf_str(&b), "json") == NULL);
}

TEST(help_is_at_most_80_columns_wide)
{
	struct o o = {0};
	const struct opt_cmd cmd = {
		.name = "x",
		.usage = {"A"},
		.details =
			"one two three four five six seven eight nine ten eleven twelve thirteen "
			"fourteen fifteen\n\nlast",
		.examples = "assay x --output=a-file-with-a-long-name\ta comment that does not fit "
			    "behind the command\n",
		.groups = {{&group, &o}}};
	CLEANUP(buf_release) struct buf b = {0};
	opt_help(&b, &cmd);
	CHECK(strstr(buf_str(&b), "fourteen\nfifteen\n\nlast\n") != NULL);
	CHECK(strstr(buf_str(&b), "  # a comment that does not fit behind the command\n"
				  "  assay x --output=a-file-with-a-long-name\n") != NULL);
	for (struct sv left = buf_sv(&b); left.n;)
		CHECK(sv_split(&left, '\n').n <= 80);
}

TEST(presets_are_values_that_the_command_line_overrules)
{
	static const struct opt_group other = {"Other options", opts};
	const struct opt_preset presets[] = {
		{&group, "freq", "499", "ASSAY_RATE"}, {&group, "all", "yes", "f:1"},
		{&group, "thread", "a", "f:2"},        {&group, "delay", "5s", "f:3"},
		{&other, "ratio", "nonsense", "f:4"},  {&group, "output", "no", "f:5"},
	};
	const struct opt_exclusion excluded[] = {{"output", NULL, "there is none"}, {0}};
	struct o o = {0};
	struct opt_cmd cmd = {.name = "x",
			      .groups = {{&group, &o}},
			      .excluded = excluded,
			      .presets = presets,
			      .nr_presets = ARRAY_LEN(presets)};
	char *argv[] = {(char *)"x", (char *)"-F", (char *)"7", (char *)"-t", (char *)"b", NULL};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	CHECK_U64(opt_parse(&args, &cmd, 5, argv, &err), 0);
	CHECK_U64(o.freq, 7);
	CHECK(o.is_all && !o.file);
	CHECK_U64(o.wait_ns, 5000000000);
	CHECK_U64(o.threads.n, 2);
	CHECK_STR(o.threads.p[0], "a");

	const struct opt_preset wrong[] = {{&group, "freq", "fast", "ASSAY_RATE"},
					   {&group, "all", "2", "f:9"}};
	cmd.presets = wrong;
	CLEANUP(opt_args_release) struct opt_args none = {0};
	CHECK(opt_parse(&none, &cmd, 1, argv, &err) == -EINVAL);
	CHECK_STR(err_msg(&err), "ASSAY_RATE: 'fast' is not a whole number");
	CHECK(opt_check_preset(&wrong[1], &err) == -EINVAL);
	CHECK_STR(err_msg(&err), "f:9: '2' is neither yes nor no");
}

TEST(suggestions_are_near_or_none)
{
	CHECK_U64(suggest_distance(SV("report"), SV("reprot")), 1);
	CHECK_U64(suggest_distance(SV("abc"), SV("")), 3);
	CHECK_U64(suggest_distance(SV("kitten"), SV("sitting")), 3);
	struct suggest s = suggest_for(SV("flmae"));
	suggest_offer(&s, SV("report"));
	CHECK_U64(s.best.n, 0);
	suggest_offer(&s, SV("flame"));
	CHECK(sv_eq_str(s.best, "flame"));
}

TEST(stop_signals_are_counted_and_wake_poll)
{
	CLEANUP(err_release) struct err err = {0};
	CHECK_U64(stop_install(&err), 0);
	struct pollfd p = {.fd = stop_fd(), .events = POLLIN};
	CHECK_U64(poll(&p, 1, 0), 0);
	raise(SIGTERM);
	CHECK_U64(poll(&p, 1, 0), 1);
	stop_drain();
	CHECK_U64(poll(&p, 1, 0), 0);
	raise(SIGINT);
	raise(SIGPIPE);
	CHECK_U64(stop_count(), 1); /* within a moment: timeout(1) signals twice */
	struct timespec later = {.tv_nsec = 300000000};
	while (nanosleep(&later, &later))
		;
	raise(SIGINT);
	CHECK_U64(stop_count(), 2);
	CHECK_U64(stop_signal(), SIGTERM);
	stop_drain();
	raise(SIGCHLD);
	CHECK_U64(poll(&p, 1, 0), 1);
	CHECK_U64(stop_count(), 2);
	stop_uninstall();
	CHECK_U64(stop_count(), 0);
}
