/* What assay doctor says about a program; see doctor_binary.h. */
#include "base/base.h"
#include "cmd/manage/doctor_binary.h"

#include <errno.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "capture/heap/planner.h"
#include "host/reader/hostfile.h"
#include "plan/binaries.h"
#include "plan/heapchoice.h"
#include "plan/jemallocenv.h"

#define NAMED_MAX 3 /* libraries named in a cell */

static const struct report_column program_columns[] = {
	{"what", "part", CELL_TEXT, NULL},
	{"is", "state", CELL_TEXT, .is_prose = true},
	{"note", "note", CELL_TEXT, .is_prose = true},
};

/* ---- build flags --------------------------------------------------------------------------- */

static const struct report_column flag_columns[] = {
	{"what", "to add", CELL_TEXT, NULL},
	{"tool", "with", CELL_TEXT, NULL},
	{"flags", "build flags", CELL_TEXT, .is_prose = true},
};

enum lack { LACKS_DEBUG, LACKS_SYMBOLS, LACKS_UNWIND, LACKS_PROF, LACK_NR };

static const struct {
	enum lack lack;
	const char *tool;
	const char *flags;
} flags[] = {
	{LACKS_DEBUG, "cargo", "[profile.release] debug = \"line-tables-only\""},
	{LACKS_DEBUG, "cmake", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"},
	{LACKS_DEBUG, "make", "CFLAGS='-O2 -g' CXXFLAGS='-O2 -g'"},
	{LACKS_DEBUG, "a package", "its -dbgsym or -debuginfo package"},
	{LACKS_SYMBOLS, "cargo", "[profile.release] strip = false"},
	{LACKS_SYMBOLS, "cmake", "'make install', not 'make install/strip'"},
	{LACKS_SYMBOLS, "make", "no 'strip', no -s in LDFLAGS"},
	{LACKS_UNWIND, "cargo",
	 "RUSTFLAGS='-C force-unwind-tables=yes -C force-frame-pointers=yes'"},
	{LACKS_UNWIND, "cmake",
	 "-DCMAKE_C_FLAGS='-fasynchronous-unwind-tables -fno-omit-frame-pointer'"},
	{LACKS_UNWIND, "make", "CFLAGS='-fasynchronous-unwind-tables -fno-omit-frame-pointer'"},
	{LACKS_PROF, "cargo", "tikv-jemallocator = { features = [\"profiling\"] }"},
	{LACKS_PROF, "make", "jemalloc: ./configure --enable-prof"},
};
static const char *const lack_names[LACK_NR] = {
	[LACKS_DEBUG] = "lines and inlining",
	[LACKS_SYMBOLS] = "function names",
	[LACKS_UNWIND] = "whole stacks",
	[LACKS_PROF] = "heap --dump",
};

static void add_flags(struct report *r, unsigned lacks)
{
	if (!lacks)
		return;
	struct report_table *t =
		report_add_table(r, "build", "build flags that add what is missing", flag_columns,
				 ARRAY_LEN(flag_columns));
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		bool is_first = !i || flags[i - 1].lack != flags[i].lack;
		if (lacks & (1u << flags[i].lack))
			report_add_texts(r, t, is_first ? lack_names[flags[i].lack] : "",
					 flags[i].tool, flags[i].flags);
	}
}

/* ---- binaries ------------------------------------------------------------------------------ */

static const char *symbols_text(const struct binary_facts *b)
{
	return !strcmp(b->symbols, "all")         ? "all functions"
	       : !strcmp(b->symbols, "functions") ? "stripped, names of functions left"
	       : !strcmp(b->symbols, "exported")  ? "stripped, exported ones left"
						  : "stripped, none left";
}

/* Adds what the program has and lacks. Returns the bits of enum lack. */
static unsigned add_program(struct report *r, struct report_table *t, const struct binary_facts *b)
{
	bool has_debug = strcmp(b->debug, "none") != 0;
	bool is_stripped = strcmp(b->symbols, "all") && strcmp(b->symbols, "functions");
	report_add_texts(r, t, "symbols", symbols_text(b), "");
	report_add_texts(r, t, "debug information",
			 !strcmp(b->debug, "inside") ? "in the binary"
			 : has_debug                 ? "in a separate file"
						     : "none",
			 has_debug ? "" : "no inlined functions, files and lines");
	report_add_texts(r, t, "unwind tables", b->has_unwind_tables ? "yes" : "no",
			 b->has_unwind_tables ? "" : "stacks by frame pointers only");
	report_add_texts(r, t, "frame pointers",
			 !strcmp(b->frames, "yes")    ? "yes"
			 : !strcmp(b->frames, "some") ? "in some functions"
			 : !strcmp(b->frames, "no")   ? "no"
						      : "not known",
			 b->has_unwind_tables ? "not needed: unwind tables" : "");
	if (!b->has_build_id)
		report_add_texts(r, t, "build-id", "none",
				 "its names can be taken only from this file");
	return (has_debug ? 0 : 1u << LACKS_DEBUG) | (is_stripped ? 1u << LACKS_SYMBOLS : 0) |
	       (b->has_unwind_tables ? 0 : 1u << LACKS_UNWIND);
}

/* Names up to NAMED_MAX libraries for which @is_named. */
static void add_libraries(struct report *r, struct report_table *t, const struct binaries *all,
			  const struct binary_facts *program)
{
	CLEANUP(buf_release) struct buf bad = {0};
	uint64_t nr = 0;
	uint64_t nr_bad = 0;
	uint64_t nr_unreadable = 0;
	vec_foreach(b, &all->list) {
		nr_unreadable += b->is_unreadable;
		if (b == program || !b->symbols)
			continue;
		nr++;
		if (b->has_unwind_tables)
			continue;
		if (++nr_bad <= NAMED_MAX)
			buf_addf(&bad, "%s%s", bad.n ? ", " : "", path_base(b->path));
	}
	if (nr)
		report_add_texts(r, t, "libraries", num_noun(nr, "files").s,
				 nr_bad ? arena_fmt(&r->arena, "no unwind tables: %s%s",
						    buf_str(&bad), nr_bad > NAMED_MAX ? ", .." : "")
					: "all have unwind tables");
	if (nr_unreadable)
		report_add_texts(r, t, "unreadable", num_noun(nr_unreadable, "files").s,
				 "run with sudo, or give assay CAP_SYS_PTRACE (in a container "
				 "--cap-add SYS_PTRACE)");
}

static const struct report_column binary_columns[] = {
	{"binary", "binary", CELL_TEXT, NULL},
	{"symbols", "symbols", CELL_TEXT, "all, functions, exported, none"},
	{"debug_info", "debug info", CELL_TEXT, "inside, separate, none"},
	{"unwind_tables", "unwind tables", CELL_TEXT, NULL},
	{"frame_pointers", "frame pointers", CELL_TEXT, "yes, some, no; assay does not need them"},
	{"build_id", "build-id", CELL_TEXT, NULL},
};

static void add_binaries(struct report *r, const struct binaries *all)
{
	struct report_table *t = report_add_table(r, "binaries", "binaries of the process",
						  binary_columns, ARRAY_LEN(binary_columns));
	vec_foreach(b, &all->list)
		if (b->symbols)
			report_add_texts(r, t, b->path, b->symbols, b->debug,
					 b->has_unwind_tables ? "yes" : "no", b->frames,
					 b->has_build_id ? "yes" : "no");
}

/* ---- allocators ---------------------------------------------------------------------------- */

/* Adds whether a jemalloc can write its own profile. Returns the bits of enum lack. */
static unsigned add_jemalloc(struct report *r, struct report_table *t,
			     const struct allocfind_jemalloc *j, int32_t pid)
{
	const char *variable = j->variable ? j->variable : "MALLOC_CONF";
	char *how CLEANUP(free_p) = xasprintf("start it with %s=prof:true (assay env)", variable);
	if (!j->has_prof) {
		report_add_texts(r, t, "jemalloc's profiler", "not built in",
				 "only `assay heap --dump` needs it");
		return 1u << LACKS_PROF;
	}
	enum jemallocenv_setting word =
		pid ? jemallocenv_prof_setting(pid, variable) : JEMALLOCENV_OFF;
	if (!pid)
		report_add_texts(r, t, "jemalloc's profiler", "built in", how);
	else if (word == JEMALLOCENV_ON)
		report_add_texts(r, t, "jemalloc's profiler", "on", "assay heap --dump works");
	else
		report_add_texts(r, t, "jemalloc's profiler",
				 word == JEMALLOCENV_OFF
					 ? "built in, not enabled"
					 : "built in; environment empty or unreadable",
				 how);
	if (pid)
		report_add_texts(r, t, "allocator's statistics", j->mallctl ? "yes" : "no",
				 j->mallctl ? "assay heap --stats" : "mallctl was not found");
	return 0;
}

static unsigned add_allocator(struct report *r, struct report_table *t, int32_t pid,
			      bool has_details)
{
	CLEANUP(err_release) struct err err = {0};
	struct heaptargets *known CLEANUP(heaptargets_free_p) = heapplanner_new();
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	if (heaptargets_inspect(known, pid, &h, &err) ||
	    heapchoice_plan(&h, HEAP_METHOD_NONE, NULL, &plan, &err)) {
		report_add_texts(r, t, "allocator", "not found", err_msg(&err));
		return 0;
	}
	const struct heaptarget_image *m = heaptarget_jemalloc(&h);
	report_add_texts(r, t, "allocator", plan.allocator_text, "");
	report_add_texts(r, t, "assay heap",
			 arena_fmt(&r->arena, "method %s", heapchoice_method_name(plan.method)),
			 has_details ? plan.reason : "");
	return m ? add_jemalloc(r, t, &m->found->jemalloc, pid) : 0;
}

static unsigned add_allocator_of_file(struct report *r, struct report_table *t, const char *path)
{
	CLEANUP(err_release) struct err err = {0};
	struct heaptargets *known CLEANUP(heaptargets_free_p) = heapplanner_new();
	const struct allocfind *found;
	struct byte_source source;
	if (hostfile_open_path(&source, -1, path) ||
	    heaptargets_file(known, source, path, &found, &err)) {
		report_add_texts(r, t, "allocator", "not known", err_msg(&err));
		return 0;
	}
	const struct allocfind_jemalloc *j = &found->jemalloc;
	const char *own = found->is_go            ? "Go's"
			  : found->exports_malloc ? "its own malloc"
						  : "of a library";
	report_add_texts(r, t, "allocator",
			 !j->prefix ? own
				    : arena_fmt(&r->arena, "jemalloc %s%s%s",
						j->version_text ? j->version_text : "",
						*j->prefix ? ", prefix " : "", j->prefix),
			 j->prefix || found->exports_malloc || found->is_go
				 ? ""
				 : "known while it runs: -p PID");
	return j->prefix ? add_jemalloc(r, t, j, 0) : 0;
}

/* ---- the tables ---------------------------------------------------------------------------- */

void doctor_add_process(struct report *r, int32_t pid, bool has_details)
{
	CLEANUP(binaries_release) struct binaries all;
	const struct binary_facts *program = NULL;
	if (binaries_read(&all, pid, NULL))
		report_note(r,
			    "cannot read the mappings of process %d: run with sudo, or give "
			    "assay CAP_SYS_PTRACE",
			    pid);
	vec_foreach(b, &all.list)
		if (!program && (b->is_unreadable || b->symbols))
			program = b;
	if (!program)
		return;
	CLEANUP(buf_release) struct buf title = {0};
	buf_addf(&title, "program %s", program->path);
	struct report_table *t = report_add_table(r, "program", buf_str(&title), program_columns,
						  ARRAY_LEN(program_columns));
	unsigned lacks = program->symbols ? add_program(r, t, program) : 0;
	add_libraries(r, t, &all, program);
	lacks |= add_allocator(r, t, pid, has_details);
	add_flags(r, lacks);
	if (has_details)
		add_binaries(r, &all);
}

int doctor_add_file(struct report *r, const char *path, struct err *err)
{
	CLEANUP(binaries_release) struct binaries one;
	TRY(binaries_read_file(&one, path, err));
	CLEANUP(buf_release) struct buf title = {0};
	buf_addf(&title, "program %s", path);
	struct report_table *t = report_add_table(r, "program", buf_str(&title), program_columns,
						  ARRAY_LEN(program_columns));
	unsigned lacks = add_program(r, t, &one.list.p[0]);
	lacks |= add_allocator_of_file(r, t, path);
	add_flags(r, lacks);
	return 0;
}
