/* Words of other tools and programs in place of commands; see otherwords.h. */
#include "base/base.h"
#include "cmd/otherwords.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/escape.h"
#include "host/target.h"

#define LAUNCH  "a program: assay cpu -- ./program ARG..."
#define ATTACH  "a running process, for 10 seconds: assay cpu NAME 10, or assay cpu -p PID 10"
#define HEAP    "allocations: assay heap -- ./program, or assay heap -p PID 10"
#define OFFCPU  "what threads wait for: assay offcpu -p PID 10, or assay offcpu -- ./program"
#define CALLS   "system calls: assay io -p PID 10, assay events -e 'syscalls:*' -p PID 10"
#define QUEUE   "time that runnable threads wait for a CPU: assay offcpu -p PID 10"
#define FILES   "reads, writes and syncs by file and function: assay io -p PID 10"
#define EVENTS  "events of the kernel: assay list events; assay events -e EVENT -p PID 10"
#define READ    "the newest recording: assay report, or assay report FILE"
#define SECONDS "SECONDS is a bare number behind the target: assay @ -p PID 10"
#define RATE    "samples per second: -F HZ"
#define FILE_IN "the file needs no option: assay @ FILE"
#define STACKS  "call stacks are always recorded, without frame pointers: omit it"
#define SAVED   "captures are always saved below ./profiling; -o FILE names the file: omit it"
#define THREADS "all threads and later children are recorded; running children: --children"

static const struct other_command {
	const char *word;
	const char *command; /* what starts or attaches to a program; NULL: none */
	const char *hint;
} commands[] = {
	{"record", "cpu", LAUNCH "\n" ATTACH},
	{"profile", "cpu", LAUNCH "\n" ATTACH},
	{"run", "cpu", LAUNCH},
	{"exec", "cpu", LAUNCH},
	{"start", "cpu", LAUNCH},
	{"launch", "cpu", LAUNCH},
	{"attach", "cpu", ATTACH},
	{"pid", NULL, ATTACH},
	{"sample", "cpu", ATTACH},
	{"count", "stat", "counts of events: assay stat -- ./program, or assay stat -p PID 10"},
	{"trace", "io", CALLS},
	{"strace", "io", CALLS},
	{"syscalls", "io", CALLS},
	{"ftrace", NULL, EVENTS},
	{"tracepoint", NULL, EVENTS},
	{"probe", NULL, "calls of a function: assay latency --span FUNCTION -p PID 10"},
	{"uprobe", NULL, "calls of a function: assay latency --span FUNCTION -p PID 10"},
	{"funclatency", NULL, "calls of a function: assay latency --span FUNCTION -p PID 10"},
	{"sched", "offcpu", OFFCPU},
	{"lock", "offcpu", OFFCPU "; then assay report --blame"},
	{"wait", "offcpu", OFFCPU},
	{"block", "offcpu", OFFCPU},
	{"off-cpu", "offcpu", OFFCPU},
	{"offcputime", "offcpu", OFFCPU},
	/* the tools of bcc and bpftrace; -bpfcc and .bt behind their names are ignored */
	{"runqlat", "offcpu", QUEUE},
	{"runqlen", "offcpu", QUEUE},
	{"runqslower", "offcpu", QUEUE},
	{"cpudist", "offcpu", QUEUE},
	{"wakeuptime", "offcpu", OFFCPU "; who woke them: assay report --blame"},
	{"offwaketime", "offcpu", OFFCPU "; who woke them: assay report --blame"},
	{"klockstat", "offcpu", OFFCPU "; then assay report --blame"},
	{"biosnoop", "io", FILES},
	{"biolatency", "io", FILES},
	{"biotop", "io", FILES},
	{"fileslower", "io", FILES},
	{"filetop", "io", FILES},
	{"ext4slower", "io", FILES},
	{"xfsslower", "io", FILES},
	{"opensnoop", NULL, "assay events -e 'syscalls:sys_enter_open*' -p PID 10"},
	{"syscount", "io", CALLS},
	{"funccount", NULL, "calls of a function: assay latency --span FUNCTION -p PID 10"},
	{"argdist", NULL, "calls of a function: assay latency --span FUNCTION -p PID 10"},
	{"bpftrace", NULL, EVENTS},
	{"mem", "heap",
	 HEAP "\nits size over time: assay watch -p PID; page faults: assay faults -p PID"},
	{"memory", "heap", HEAP "\nits size over time: assay watch -p PID"},
	{"rss", "watch", "its size over time: assay watch -p PID"},
	{"alloc", "heap", HEAP},
	{"malloc", "heap", HEAP},
	{"leak", "heap", HEAP},
	{"leaks", "heap", HEAP},
	{"memleak", "heap", HEAP},
	{"massif", "heap", HEAP},
	{"memcheck", "heap", HEAP},
	{"heaptrack", "heap", HEAP},
	{"valgrind", "heap", HEAP},
	{"jeprof", NULL,
	 "allocations of a running process: assay heap -p PID 10; a profile of jemalloc: assay report FILE"},
	{"pmap", "watch", "its mappings and their growth: assay watch -p PID"},
	{"smem", "watch", "its mappings and their growth: assay watch -p PID"},
	{"heap-profile", "heap", HEAP},
	{"kmem", NULL, "allocations of the kernel: assay events -e 'kmem:*' -a 10"},
	{"annotate", NULL,
	 "by instruction: assay report --annotate FUNCTION; by source line: --by line"},
	{"flamegraph", "cpu", "the newest recording: assay flame, or assay flame FILE"},
	{"flame-graph", NULL, "the newest recording: assay flame, or assay flame FILE"},
	{"svg", NULL, "the newest recording: assay flame, or assay flame FILE"},
	{"folded", NULL, "folded stacks: assay convert --to folded"},
	{"collapse", NULL, "folded stacks: assay convert --to folded FILE"},
	{"speedscope", "cpu", "assay convert --to speedscope -o FILE.json"},
	{"firefox", NULL, "assay convert -o FILE.firefox.json.gz"},
	{"pprof", NULL, "assay convert -o FILE.pb.gz; a profile of pprof: assay report FILE"},
	{"load", NULL, READ},
	{"show", NULL, READ},
	{"view", NULL, READ},
	{"open", NULL, READ},
	{"print", NULL, READ},
	{"analyze", NULL, READ},
	{"compare", NULL, "assay diff BEFORE AFTER"},
	{"dump", "cpu",
	 "call stacks of a second: assay cpu -p PID 1, then assay script\n"
	 "the heap: assay heap -p PID 10"},
	{"export", NULL, "assay convert --to FORMAT; the formats: assay convert --list"},
	{"import", NULL, "assay convert -o FILE.assay INPUT"},
	{"hyperfine", NULL, "repeated runs: assay bench './program ARG...' ['./other ARG...']"},
	{"perf", NULL,
	 "the commands: assay help; of perf record: assay cpu, of perf stat: assay stat"},
	{"time", "stat", "time, memory and counts of a command: assay stat -- ./program"},
	{"callgrind", "cpu", LAUNCH "\n" ATTACH},
	{"gprof", "cpu", LAUNCH "\n" ATTACH},
	{"vtune", "cpu", LAUNCH "\n" ATTACH},
	{"rm", NULL, "assay clean --older-than 7d"},
	{"remove", NULL, "assay clean --older-than 7d"},
	{"delete", NULL, "assay clean --older-than 7d"},
	{"prune", NULL, "assay clean --older-than 7d"},
	{"history", NULL, "assay ls"},
	{"recordings", NULL, "assay ls"},
	{"check", NULL, "assay doctor"},
	{"info", NULL, "assay doctor"},
	{"setup", NULL, "assay doctor"},
	{"status", NULL, "assay doctor"},
	{"version", NULL, "assay --version"},
	{"man", NULL, "assay help COMMAND"},
};

#define CAPTURES "cpu offcpu latency io events heap faults watch"
#define READERS  "report flame script diff"

const struct opt_other other_options[] = {
	/* how long */
	{CAPTURES, "--duration", SECONDS},
	{CAPTURES, "--seconds", SECONDS},
	{CAPTURES, "--time", SECONDS},
	{CAPTURES, "--timeout", SECONDS},
	{CAPTURES, "--sleep", SECONDS},
	{CAPTURES, "-d", SECONDS},
	{CAPTURES, "-T", SECONDS},
	{CAPTURES, "-s", SECONDS},
	{"watch", "--interval", "time between readings: --every TIME"},
	{"heap", "--interval",
	 "bytes between samples: --sample SIZE; time between readings: --every"},
	{CAPTURES, "--interval",
	 "readings by second are in the recording: assay report --time 2..5"},
	{CAPTURES, "-I", "readings by second are in the recording: assay report --time 2..5"},
	/* how often */
	{"cpu", "--frequency", RATE},
	{"cpu", "--rate", RATE},
	{"cpu", "--hz", RATE},
	{"cpu", "-r", RATE "; repeated runs: --runs N"},
	{"cpu", "-f", RATE},
	{"cpu", "-c", RATE " (a period in events cannot be set)"},
	{"cpu", "--count", RATE " (a period in events cannot be set)"},
	{"cpu", "--period", RATE " (a period in events cannot be set)"},
	{"cpu", "--repeat", "repeated runs: --runs N"},
	{"offcpu events io faults latency", "--rate", "nothing is sampled: omit it"},
	{"heap", "--rate", "bytes between samples: --sample SIZE"},
	{"cpu", "--warmup", "start the command, then profile it by name: assay cpu NAME 10"},
	/* whom */
	{CAPTURES, "--process", "-p PID, or the name of the process as a bare word"},
	{CAPTURES, "-P", "-p PID, or the name of the process as a bare word"},
	{CAPTURES, "--attach", "-p PID, or the name of the process as a bare word"},
	{CAPTURES, "--all-cpus", "the whole system: assay cpu -a, offcpu, io, events or faults"},
	{CAPTURES, "--system-wide", "the whole system: assay cpu -a, offcpu, io, events or faults"},
	{CAPTURES, "-C", "all CPUs are recorded: omit it"},
	{CAPTURES, "--cpu", "all CPUs are recorded: omit it"},
	{CAPTURES, "--subprocesses", "--children"},
	{CAPTURES, "--follow", THREADS},
	{CAPTURES, "--no-children", "running children are not included: omit it"},
	{CAPTURES, "--inherit", THREADS},
	{CAPTURES, "-i", THREADS},
	{CAPTURES, "--per-thread", "every thread is recorded; later: assay report --by thread"},
	{CAPTURES, "--threads", "every thread is recorded; later: assay report --by thread"},
	{CAPTURES, "-G", "a control group: --cgroup PATH; a container: --container NAME"},
	/* what */
	{CAPTURES, "--call-graph", STACKS},
	{CAPTURES, "-g", STACKS},
	{CAPTURES, "--stacks", STACKS},
	{CAPTURES, "--native", STACKS},
	{"cpu", "--call-graph=dwarf",
	 "the default unwinds by DWARF tables, without copies of stacks: omit --call-graph"},
	{"cpu", "--call-graph=lbr",
	 "the default unwinds by DWARF tables, without copies of stacks: omit --call-graph"},
	{"cpu", "--event=page-faults", "assay faults, or assay events -e page-faults"},
	{"cpu", "--event=context-switches", "assay offcpu, or assay events -e context-switches"},
	{"cpu", "--event=cs", "assay offcpu, or assay events -e context-switches"},
	{"cpu", "--event=faults", "assay faults, or assay events -e page-faults"},
	{"cpu", "--all-user", "user mode only: -u"},
	{"cpu", "--no-kernel", "user mode only: -u"},
	{"cpu", "--user-callchains", "user mode only: -u"},
	{"cpu", "--all-kernel", "later: assay report --kernel"},
	{"cpu", "-K", "later: assay report --kernel"},
	{"cpu", "--kernel", "kernel frames are always recorded; later: assay report --kernel"},
	{"cpu", "--off-cpu", "--offcpu"},
	{"cpu", "--gil", "Python functions are in the stacks; waits for locks: assay offcpu"},
	{"cpu", "--idle", "time without CPU: assay cpu --offcpu, or assay offcpu"},
	{"cpu", "--nonblocking", "the target is never stopped: omit it"},
	{"heap", "--leak-check", "leaks are always searched; their age: --older-than TIME"},
	{"heap", "--tool", "allocations are always recorded: omit it"},
	{"heap", "--every-allocation", "--all-allocations"},
	{"heap limit", "--every",
	 "to record every allocation: --all-allocations; time between readings: --every 1s"},
	{"heap", "--full", "--all-allocations"},
	{"heap", "--use-inject", "the method is chosen by assay: omit it, or --method NAME"},
	{"events", "--expr", "assay events -e EVENT"},
	/* output */
	{CAPTURES, "--format", "the recording has all; assay flame, assay convert --to FORMAT"},
	{CAPTURES, "--output-format", "assay flame, assay convert --to FORMAT"},
	{CAPTURES, "--flamegraph",
	 "it is in the page that every capture writes; a file of its own: --svg"},
	{CAPTURES, "--save-only", SAVED},
	{CAPTURES, "--no-open", SAVED},
	{CAPTURES, "--record-only", SAVED},
	{CAPTURES, "--file", "-o FILE"},
	{CAPTURES, "--out", "-o FILE"},
	{CAPTURES, "--output-file", "-o FILE"},
	{CAPTURES, "--timestamp", "times are always recorded: omit it"},
	{CAPTURES, "--data", "only stacks and times are recorded: omit it"},
	{CAPTURES, "-m", "buffers are sized by assay: omit it"},
	{CAPTURES, "--mmap-pages", "buffers are sized by assay: omit it"},
	{CAPTURES, "-z", "recordings are always compressed: omit it"},
	{CAPTURES, "--compression-level", "recordings are always compressed: omit it"},
	{CAPTURES, "--export-json", "--json"},
	/* reading */
	{READERS, "-i", FILE_IN},
	{READERS, "--input", FILE_IN},
	{READERS, "--tui", "assay report opens it on a terminal: omit it"},
	{READERS, "--gtk", "a page for a browser: assay view FILE"},
	{"report", "-g", "the call tree: --tree; the callers of a function: --callers REGEX"},
	{"report", "--call-graph",
	 "the call tree: --tree; the callers of a function: --callers REGEX"},
	{"report", "-G", "from the leaf: --reverse; the callers of a function: --callers REGEX"},
	{"report", "-s", "group rows: --by function, module, process, thread, line"},
	{"report", "--children", "time with callees: --sort total; the default is self time"},
	{"report", "--no-children", "self time is the default: omit it"},
	{"report", "--dso", "--module REGEX"},
	{"report", "--dsos", "--module REGEX"},
	{"report", "--comms", "--comm REGEX"},
	{"report", "--symbols", "--function REGEX"},
	{"report", "--symbol-filter", "--function REGEX"},
	{"report", "-S", "--function REGEX"},
	{"report", "--no-inline", "record without them: assay cpu --no-inlines"},
	{"report", "--top", "rows of each table: --limit N"},
	{"report", "--header", "the header is on the first page: omit it"},
	{"report", "--flat", "the default: omit it"},
	{"report", "--cum", "--sort total"},
	{"script", "-F", "the fields are those of perf script; JSON: assay report --json"},
	{"script", "--fields", "the fields are those of perf script; JSON: assay report --json"},
	{"convert", "--format", "--to FORMAT; the formats: assay convert --list"},
	{"convert", "-f", "--to FORMAT; the formats: assay convert --list"},
	{"convert", "-i", FILE_IN},
	{"convert", "--input", FILE_IN},
	{"flame", "--minwidth", "--min-width PX"},
	{"flame", "--hash", "--colors, see assay flame --help"},
	{"flame", "--flamegraph", "omit it"},
	{"diff", "-c", "amounts: --absolute; shares: --shares"},
	{"limit", "--max", "the memory limit: --memory SIZE"},
	{"limit", "-p", "only a command can be limited: assay limit --memory SIZE -- CMD"},
	{"clean", "-f", "without a question: --yes"},
	{"clean", "--force", "without a question: --yes"},
	{"clean", "--days", "--older-than 7d"},
	{"clean", "-a", "--all"},
	{NULL, "--version", "assay --version"},
	{NULL, "-V", "assay --version"},
	{NULL, "--silent", "-q"},
	{NULL, "-?", "assay @ --help"},
	{NULL, "--usage", "assay @ --help"},
	{0},
};

/* Whether @word is @name, or @name with a suffix of a package or a language. */
static bool has_name(const char *word, const char *name)
{
	static const char *const suffixes[] = {"", "-bpfcc", ".bt", ".py", ".pl"};
	size_t n = strlen(name);
	if (strncmp(word, name, n) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
		if (!strcmp(word + n, suffixes[i]))
			return true;
	return false;
}

static const struct other_command *find_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (has_name(word, commands[i].word))
			return &commands[i];
	return NULL;
}

/* ---- programs, processes and files in place of a command ------------------------------------ */

static bool is_executable(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

bool word_is_program(const char *word)
{
	if (!*word || *word == '-')
		return false;
	if (strchr(word, '/'))
		return is_executable(word);
	struct sv left = sv_from_str(getenv("PATH"));
	while (left.n) {
		struct sv dir = sv_split(&left, ':');
		CLEANUP(free_p) char *path = xasprintf("%.*s/%s", SV_ARGS(dir), word);
		if (dir.n && is_executable(path))
			return true;
	}
	return false;
}

static void add_words(struct buf *to, char *const *words, int nr)
{
	for (int i = 0; i < nr; i++) {
		buf_add_ch(to, ' ');
		escape_shell(to, sv_from_str(words[i]));
	}
}

bool hint_launch(struct err *err, const char *command, int argc, char **argv, int first)
{
	if (first >= argc || !word_is_program(argv[first]))
		return false;
	CLEANUP(buf_release) struct buf line = {0};
	add_words(&line, argv + 1, first - 1);
	buf_add_str(&line, " --");
	add_words(&line, argv + first, argc - first);
	(void)err_hint(err, "to start it: assay %s%s", command, buf_str(&line));
	return true;
}

/* Returns the word after @before, or @otherwise. */
static const char *word_after(const char *before, const char *otherwise, int argc, char **argv)
{
	for (int i = 2; i + 1 < argc; i++)
		if (!strcmp(argv[i], before))
			return argv[i + 1];
	return otherwise;
}

/*
 * Adds the command line for the program or process that follows a word of another tool. "sleep N"
 * after -a or -p is a duration.
 */
static bool add_rest(struct buf *to, const char *command, int argc, char **argv)
{
	char *seconds[] = {(char *)word_after("sleep", "10", argc, argv)};
	for (int i = 2; command && i < argc; i++) {
		bool is_all = !strcmp(argv[i], "-a");
		bool is_pid = !strcmp(argv[i - 1], "-p") || !strcmp(argv[i - 1], "--pid");
		bool is_program = strcmp(argv[i - 1], "-o") != 0 && word_is_program(argv[i]);
		if (!is_all && !is_pid && !is_program)
			continue;
		buf_addf(to, "assay %s %s", command, is_all ? "-a" : is_pid ? "-p" : "--");
		if (!is_all)
			add_words(to, argv + i, is_pid ? 1 : argc - i);
		if (is_all || is_pid)
			add_words(to, seconds, 1);
		return true;
	}
	return false;
}

/* Whether processes with this name, or with this id, are running. */
static bool is_running(const char *word, bool is_pid)
{
	CLEANUP(target_spec_release) struct target_spec spec = {.takes_all = true};
	CLEANUP(target_candidates_release) struct target_candidates none = {0};
	CLEANUP(target_release) struct target t = {0};
	uint64_t pid;
	if (!is_pid)
		vec_push(&spec.words, word);
	else if (sv_to_u64(sv_from_str(word), &pid) && pid && pid < INT32_MAX)
		vec_push(&spec.pids, (int32_t)pid);
	else
		return false;
	return !target_resolve(&t, &spec, &none, NULL);
}

/* Programs whose own subcommand follows: "perf record" is like "record". */
static bool is_tool(const char *word)
{
	return !strcmp(word, "perf") || !strcmp(word, "samply") || !strcmp(word, "py-spy");
}

bool word_is_of_other_tool(const char *word)
{
	return find_command(word) || is_tool(word);
}

bool word_is_running(const char *word)
{
	return is_running(word, false);
}

/* Adds the command line for the running process with this id. */
static void add_running(struct buf *to, const char *word)
{
	if (is_running(word, true))
		buf_addf(to, "the running process, for 10 seconds: assay -p %s 10", word);
}

void other_offer(struct suggest *s)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		suggest_offer(s, sv_from_str(commands[i].word));
}

bool hint_first_word(struct err *err, int argc, char **argv)
{
	const char *word = argv[1];
	if (argc > 2 && is_tool(word) && find_command(argv[2]))
		return hint_first_word(err, argc - 1, argv + 1);
	const struct other_command *other = find_command(word);
	struct stat st;
	CLEANUP(buf_release) struct buf hint = {0};
	if (other) {
		bool has_rest = add_rest(&hint, other->command, argc, argv);
		(void)err_hint(err, "%s", has_rest ? buf_str(&hint) : other->hint);
		return true;
	}
	add_running(&hint, word);
	if (word_is_program(word)) {
		buf_addf(&hint, "%sto start it: assay cpu --", hint.n ? "\n" : "");
		add_words(&hint, argv + 1, argc - 1);
	} else if (!strchr(word, '/') && is_executable(word)) {
		buf_addf(&hint, "%sto start it: assay cpu -- ./%s", hint.n ? "\n" : "", word);
	} else if (!stat(word, &st) && S_ISREG(st.st_mode)) {
		buf_addf(&hint, "%sto read a profile: assay report", hint.n ? "\n" : "");
		add_words(&hint, argv + 1, 1);
		buf_add_str(&hint, "\nthe process that runs it: assay --match");
		add_words(&hint, argv + 1, argc - 1);
	} else if (strchr(word, '/')) {
		buf_addf(&hint,
			 "there is no program '%s'; a program is started by assay cpu -- CMD",
			 word);
	}
	if (hint.n)
		(void)err_hint(err, "%s", buf_str(&hint));
	return hint.n != 0;
}
