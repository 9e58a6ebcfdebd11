/*
 * assay env: a command with what profiling needs in its environment.
 *
 * jemalloc can profile only if it is told so when the process starts, by a variable whose name was
 * fixed when that jemalloc was built. So the binary is looked into for the name. Made for
 * entrypoints of containers: silent, and the command takes this process's place.
 */
#include "base/base.h"
#include "cmd/cmd.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "capture/heapplanner.h"

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127
#define VARIABLES_MAX       8
#define LG_SAMPLE_MAX       40

struct env_opts {
	bool is_jemalloc;
	uint64_t sample_bytes;
	const char *prefix;
};

static const struct opt env_opts[] = {
	OPT_FLAG(0, "jemalloc-prof", struct env_opts, is_jemalloc,
		 "jemalloc's profiling: prof:true and prof_active:true, beside what the variable "
		 "has already"),
	OPT_SIZE(0, "sample", struct env_opts, sample_bytes, "SIZE",
		 "bytes between its samples on average, rounded to a power of two (default "
		 "jemalloc's own, 512K)"),
	OPT_STR(0, "prefix", struct env_opts, prefix, "PREFIX",
		"the prefix of the command's jemalloc (`_rjem_`), where it cannot be found out"),
	OPT_END,
};
static const struct opt_group env_group = {"What to set", env_opts};

static const char details[] =
	"Executes CMD with jemalloc's profiling switched on, so that `assay heap --dump` and\n"
	"--dump-every work on it at any time. Which variable its jemalloc reads\n"
	"(_RJEM_MALLOC_CONF, JE_MALLOC_CONF, MALLOC_CONF) is read out of the binary; for a\n"
	"script, whose programs are not known, all of them are set. What a variable has already\n"
	"is kept.\n"
	"\n"
	"Fit for the entrypoint of a container: prints nothing unless something is wrong (or\n"
	"-v), and CMD takes its place: same process, same signals, its own exit status.";

static const char examples[] =
	"assay env --jemalloc-prof -- ./node --datadir /data\tsampling every 512 KiB\n"
	"assay env --jemalloc-prof --sample 2M -- ./node\tcheaper\n"
	"assay heap node --dump\tthen, while it runs\n";

/* ---- the binary ---------------------------------------------------------------------------- */

/* What is known about the jemalloc that the command will have. */
struct found {
	char *variables[VARIABLES_MAX]; /* owned */
	size_t nr_variables;
	bool is_known; /* by the binary itself */
	bool has_prof;
	bool is_secure; /* runs with more rights: its environment is not listened to */
	char *where;    /* owned: of the jemalloc */
};

static void found_release(struct found *f)
{
	for (size_t i = 0; i < f->nr_variables; i++)
		free(f->variables[i]);
	free(f->where);
}

static void add_variable(struct found *f, const char *name)
{
	for (size_t i = 0; i < f->nr_variables; i++)
		if (!strcmp(f->variables[i], name))
			return;
	if (f->nr_variables < VARIABLES_MAX)
		f->variables[f->nr_variables++] = xstrdup(name);
}

/* Of a prefix: "_rjem_" is asked by _RJEM_MALLOC_CONF. */
static char *variable_of(const char *prefix)
{
	CLEANUP(buf_release) struct buf name = {0};
	for (const char *p = prefix; *p; p++)
		buf_add_ch(&name, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
	buf_add_str(&name, "MALLOC_CONF");
	return buf_detach(&name);
}

/* As execvp looks for it; "" = not found. */
static int open_command(const char *name, struct buf *path)
{
	if (strchr(name, '/')) {
		buf_add_str(path, name);
		return open(name, O_RDONLY | O_CLOEXEC);
	}
	const char *dirs = getenv("PATH");
	struct sv left = sv_from_str(dirs ? dirs : "/bin:/usr/bin");
	while (left.n) {
		struct sv dir = sv_split(&left, ':');
		buf_clear(path);
		buf_addf(path, "%.*s/%s", SV_ARGS(dir.n ? dir : SV(".")), name);
		if (!access(buf_str(path), X_OK)) {
			int fd = open(buf_str(path), O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
	}
	return -1;
}

static bool take_jemalloc(struct found *f, struct heaptargets *t, int fd, const char *path)
{
	const struct allocfind *a;
	CLEANUP(err_release) struct err hidden = {0}; /* what is no ELF file is a script */
	if (heaptargets_file(t, fd, path, &a, &hidden) || !a->jemalloc.version_text)
		return false;
	if (!f->is_known)
		f->where = xstrdup(path);
	f->is_known = true;
	f->has_prof |= a->jemalloc.has_prof;
	if (a->jemalloc.variable)
		add_variable(f, a->jemalloc.variable);
	else
		add_variable(f, "MALLOC_CONF");
	return true;
}

/* A library by name, where the dynamic linker looks on the systems we know. */
static void take_library(struct found *f, struct heaptargets *t, struct sv name)
{
	static const char *const dirs[] = {"/usr/local/lib",
					   "/usr/lib/x86_64-linux-gnu",
					   "/lib/x86_64-linux-gnu",
					   "/usr/lib/aarch64-linux-gnu",
					   "/lib/aarch64-linux-gnu",
					   "/usr/lib64",
					   "/lib64",
					   "/usr/lib",
					   "/lib"};
	if (!memmem(name.p, name.n, "jemalloc", 8))
		return;
	bool is_path = memchr(name.p, '/', name.n) != NULL;
	for (size_t i = 0; i < (is_path ? 1 : ARRAY_LEN(dirs)); i++) {
		char *path CLEANUP(free_p) = is_path ? xstrndup(name.p, name.n)
						     : xasprintf("%s/%.*s", dirs[i], SV_ARGS(name));
		int fd CLEANUP(close_p) = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && take_jemalloc(f, t, fd, path))
			return;
	}
}

/* DT_NEEDED of the command; what those need in turn is passed over. */
static void take_needed(struct found *f, struct heaptargets *t, int fd)
{
	struct elf *e CLEANUP(elf_free_p) = NULL;
	CLEANUP(err_release) struct err hidden = {0};
	struct sv dynamic;
	struct sv names;
	if (elf_open_fd(&e, fd, &hidden) || elf_named_bytes(e, ".dynamic", &dynamic, &hidden) ||
	    elf_named_bytes(e, ".dynstr", &names, &hidden))
		return;
	for (size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.n; at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, dynamic.p + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_NEEDED && d.d_un.d_val < names.n) {
			const char *p = names.p + d.d_un.d_val;
			take_library(f, t, sv_from(p, strnlen(p, names.n - d.d_un.d_val)));
		}
	}
}

static void take_preloaded(struct found *f, struct heaptargets *t)
{
	const char *text = getenv("LD_PRELOAD");
	struct sv left = sv_from_str(text ? text : "");
	while (left.n) {
		struct sv part = sv_split(&left, ' ');
		while (part.n)
			take_library(f, t, sv_split(&part, ':'));
	}
}

static void look_into(struct found *f, int fd, const char *path)
{
	struct heaptargets *t CLEANUP(heaptargets_free_p) = heapplanner_new();
	struct stat st;
	f->is_secure = (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID)) ||
		       fgetxattr(fd, "security.capability", NULL, 0) > 0;
	take_preloaded(f, t);
	take_jemalloc(f, t, fd, path);
	take_needed(f, t, fd);
}

static void find_variables(struct found *f, const struct env_opts *o, const char *command)
{
	static const char *const usual[] = {"MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF"};
	CLEANUP(buf_release) struct buf path = {0};
	int fd CLEANUP(close_p) = open_command(command, &path);
	if (fd >= 0)
		look_into(f, fd, buf_str(&path));
	if (o->prefix) {
		char *name CLEANUP(free_p) = variable_of(o->prefix);
		add_variable(f, name);
	}
	if (f->nr_variables)
		return;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		add_variable(f, usual[i]);
}

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

/* The nearest power of two. */
static unsigned lg_of(uint64_t bytes)
{
	unsigned lg = 63 - (unsigned)__builtin_clzll(bytes);
	if (lg < LG_SAMPLE_MAX && bytes - (1ull << lg) > (1ull << lg) / 2)
		lg++;
	return MIN(lg, LG_SAMPLE_MAX);
}

/* jemalloc takes the last of several values, so ours go behind; what is not ours stays. */
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

static void warn(const struct found *f, const char *command)
{
	if (f->is_known && !f->has_prof) {
		log_warn("the jemalloc in '%s' was built without profiling: nothing is set",
			 f->where);
		log_hint("build it with --enable-prof (tikv-jemallocator: features = "
			 "[\"profiling\"]); `assay heap` needs neither");
	} else if (f->is_known && f->is_secure) {
		log_warn("'%s' runs with raised rights (setuid, setgid or capabilities), and "
			 "jemalloc then ignores its environment",
			 command);
	} else if (!f->is_known) {
		log_info("'%s' has no jemalloc of its own that could be found: all usual variables "
			 "are set",
			 command);
	}
}

static int run(const struct env_opts *o, char **command)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(found_release) struct found f = {0};
	find_variables(&f, o, command[0]);
	warn(&f, command[0]);
	bool is_in_vain = f.is_known && !f.has_prof; /* jemalloc would complain of each word */
	for (size_t i = 0; !is_in_vain && i < f.nr_variables; i++) {
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
		.summary = "run a command with jemalloc's profiling switched on",
		.details = details,
		.examples = examples,
		.groups = {{&env_group, &o}},
	};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status == EXIT_OK ? EXIT_OK : EXIT_ASSAY_FAILED;
	if (args.operands.n)
		return usage("the command goes behind --");
	if (!args.command || !args.nr_command)
		return usage("no command: assay env --jemalloc-prof -- CMD");
	if (!o.is_jemalloc)
		return usage("nothing to set: --jemalloc-prof is missing");
	return run(&o, args.command);
}
