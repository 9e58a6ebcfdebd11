/* The allocator of a process, for assay doctor; see doctor_heap.h. */
#include "base/base.h"
#include "cmd/doctor_heap.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "plan/heapchoice.h"
#include "capture/heapplanner.h"

#define ENVIRON_BYTES_MAX ((size_t)4 << 20)

static const struct report_column columns[] = {
	{"what", "memory", CELL_TEXT, NULL},
	{"is", "is", CELL_TEXT, NULL},
	{"remark", "remark", CELL_TEXT, NULL},
};

static void add(struct report *r, struct report_table *t, const char *what, const char *is,
		const char *remark)
{
	report_add_row(r, t, (union cell[]){{.text = what}, {.text = is}, {.text = remark}});
}

enum prof_word { PROF_UNKNOWN, PROF_OFF, PROF_ON };

/* The last word counts. */
static enum prof_word word_in(struct sv value)
{
	enum prof_word is = PROF_OFF;
	while (value.n) {
		struct sv word = sv_split(&value, ',');
		if (sv_has_prefix(word, SV("prof:")))
			is = sv_eq(word, SV("prof:true")) ? PROF_ON : PROF_OFF;
	}
	return is;
}

/* Whether the process was started with prof:true; unknown where it wrote over its environment. */
static enum prof_word word_of(int32_t pid, const char *variable)
{
	char *path CLEANUP(free_p) = xasprintf("/proc/%d/environ", pid);
	CLEANUP(buf_release) struct buf text = {0};
	if (file_read(&text, path, ENVIRON_BYTES_MAX, NULL))
		return PROF_UNKNOWN;
	struct sv left = buf_sv(&text);
	bool has_any = false;
	while (left.n) {
		struct sv value = sv_split(&left, 0);
		struct sv name = sv_split(&value, '=');
		has_any |= value.n > 0;
		if (sv_eq_str(name, variable))
			return word_in(value);
	}
	return has_any ? PROF_OFF : PROF_UNKNOWN;
}

static void add_jemalloc(struct report *r, struct report_table *t, const struct heaptarget *h)
{
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (!m)
		return;
	const struct allocfind_jemalloc *j = &m->found->jemalloc;
	const char *variable = j->variable ? j->variable : "MALLOC_CONF";
	enum prof_word word = word_of(h->pid, variable);
	if (!j->has_prof) {
		add(r, t, "jemalloc's own profiling", "not built in",
		    "--enable-prof; tikv-jemallocator: features = [\"profiling\"]. `assay heap` "
		    "does not need it, --dump does");
	} else if (word == PROF_ON) {
		add(r, t, "jemalloc's own profiling", "on",
		    "`assay heap --dump` and --dump-every work");
	} else {
		char *how CLEANUP(free_p) =
			xasprintf("for --dump start it with %s=prof:true, as `assay env "
				  "--jemalloc-prof -- CMD` does; not needed by `assay heap`",
				  variable);
		add(r, t, "jemalloc's own profiling",
		    word == PROF_OFF ? "built in, not in its environment"
				     : "built in; it hides its environment",
		    how);
	}
	add(r, t, "allocator's statistics", j->mallctl ? "yes" : "no",
	    j->mallctl ? "`assay heap --stats`" : "the functions of its jemalloc were not found");
}

void doctor_add_allocator(struct report *r, int32_t pid)
{
	CLEANUP(err_release) struct err err = {0};
	struct heaptargets *known CLEANUP(heaptargets_free_p) = heapplanner_new();
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	if (heaptargets_look(known, pid, &h, &err) ||
	    heapchoice_plan(&h, HEAP_TIER_NONE, NULL, &plan, &err)) {
		report_note(r, "its allocator cannot be told: %s", err_msg(&err));
		return;
	}
	struct report_table *t =
		report_add_table(r, "allocator", "its allocator", columns, ARRAY_LEN(columns));
	add(r, t, "allocator", plan.allocator_text, "");
	add(r, t, "assay heap", heapchoice_tier_name(plan.tier), plan.reason);
	add_jemalloc(r, t, &h);
}
