/*
 * assay env: runs a command with jemalloc's profiler enabled.
 *
 * jemalloc reads its options once, at process start, from an environment variable whose name depends
 * on how it was built; the name is searched in the binary. Suitable as a container entrypoint: prints
 * nothing, and replaces itself with the command (exec).
 */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "plan/jemallocenv.h"

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127
#define LG_SAMPLE_MAX       40

struct env_opts {
	bool is_jemalloc;
	uint64_t sample_bytes;
	const char *prefix;
};

static const struct opt env_opts[] = {
	OPT_FLAG(0, "jemalloc-prof", struct env_opts, is_jemalloc,
		 "add prof:true and prof_active:true to jemalloc's variable; values that it has "
		 "are kept"),
	OPT_SIZE(0, "sample", struct env_opts, sample_bytes, "SIZE",
		 "mean number of bytes between jemalloc's samples, rounded to a power of two "
		 "(default 512K, jemalloc's own)"),
	OPT_AT_(STR, 0, "prefix", struct env_opts, prefix, const char *,
		"function prefix of the command's jemalloc (_rjem_), if it is not found in the "
		"binary",
		.arg = "PREFIX", .flags = OPT_EMPTY_OK),
	OPT_END,
};
static const struct opt_group env_group = {"Variables", env_opts};

static const char details[] =
	"Runs CMD with jemalloc's profiler enabled, so that assay heap --dump and --dump-every "
	"work on it at any time. The name of the variable that its jemalloc reads "
	"(_RJEM_MALLOC_CONF, JE_MALLOC_CONF, MALLOC_CONF) is read from the binary. For a "
	"script, whose programs are not known, all of them are set. Existing values of a "
	"variable are kept.\n"
	"\n"
	"Suitable as the entrypoint of a container: prints nothing unless something is wrong "
	"(or -v), and CMD replaces assay by exec: same process, same signals, its own exit "
	"status.";

static const char examples[] =
	"assay env --jemalloc-prof -- ./node --datadir /data\ta sample per 512 KiB\n"
	"assay env --jemalloc-prof --sample 2M -- ./node\tfewer samples\n"
	"assay heap node --dump\tthen, while it runs\n";

/* ---- the environment ----------------------------------------------------------------------- */

static bool has_key(const char *value, const char *key)
{
	struct sv left = sv_from_str(value);
	while (left.n) {
		struct sv pair = sv_split(&left, ',');
		if (sv_eq_str(sv_split(&pair, ':'), key))
			return true;
	}
	return false;
}

/* Returns the binary logarithm of the nearest power of two. */
static unsigned lg_of(uint64_t bytes)
{
	unsigned lg = 63 - (unsigned)__builtin_clzll(bytes);
	if (lg < LG_SAMPLE_MAX && bytes - (1ull << lg) > (1ull << lg) / 2)
		lg++;
	return MIN(lg, LG_SAMPLE_MAX);
}

/* Appends our values: jemalloc uses the last of several values of an option. */
static int set_variable(const char *name, const struct env_opts *o, struct err *err)
{
	const char *had = getenv(name);
	CLEANUP(buf_release) struct buf value = {0};
	if (had && *had)
		buf_addf(&value, "%s,", had);
	buf_add_str(&value, "prof:true");
	if (!had || !has_key(had, "prof_active"))
		buf_add_str(&value, ",prof_active:true");
	if (o->sample_bytes)
		buf_addf(&value, ",lg_prof_sample:%u", lg_of(o->sample_bytes));
	if (setenv(name, buf_str(&value), 1))
		return err_sys(err, "cannot set %s", name);
	log_info("%s=%s", name, buf_str(&value));
	return 0;
}

static void warn(const struct jemallocenv *f, const char *command)
{
	if (f->is_known && !f->has_prof) {
		log_warn("the jemalloc in '%s' was built without profiling: no variable is set",
			 f->where);
		log_hint("build it with --enable-prof (tikv-jemallocator: features = "
			 "[\"profiling\"]); `assay heap` needs neither");
	} else if (f->is_known && f->is_secure) {
		log_warn("'%s' runs with raised rights (setuid, setgid or capabilities), and "
			 "jemalloc then ignores its environment",
			 command);
	} else if (!f->is_known) {
		log_info("no jemalloc was found in '%s': all usual variables are set", command);
	}
}

static int run(const struct env_opts *o, char **command)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(jemallocenv_release) struct jemallocenv f = {0};
	jemallocenv_find(&f, command[0], o->prefix);
	warn(&f, command[0]);
	bool is_unsupported =
		f.is_known && !f.has_prof; /* jemalloc would print a warning for each option */
	for (size_t i = 0; !is_unsupported && i < f.nr_variables; i++) {
		if (set_variable(f.variables[i], o, &err)) {
			(void)cmd_fail(&err);
			return EXIT_ASSAY_FAILED;
		}
	}
	(void)execvp(command[0], command);
	int code = errno;
	(void)err_sys(&err, "cannot execute '%s'", command[0]);
	(void)cmd_fail(&err);
	return code == ENOENT || code == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int usage(const char *text)
{
	(void)cmd_usage("env", "%s", text);
	return EXIT_ASSAY_FAILED;
}

int cmd_env(int argc, char **argv)
{
	struct env_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "env",
		.usage = {"--jemalloc-prof [OPTION...] -- CMD [ARG...]"},
		.details = details,
		.examples = examples,
		.groups = {{&env_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status == EXIT_OK ? EXIT_OK : EXIT_ASSAY_FAILED;
	if (args.operands.n) {
		CLEANUP(err_release) struct err err = {0};
		err_set(&err, -EINVAL, "unexpected '%s': put the command after --",
			args.operands.p[0]);
		cmd_hint_launch(&err, &args);
		(void)cmd_refuse(&err);
		return EXIT_ASSAY_FAILED;
	}
	if (!args.command)
		return usage("missing command: -- CMD");
	if (!o.is_jemalloc)
		return usage("missing option: --jemalloc-prof");
	return run(&o, args.command);
}
