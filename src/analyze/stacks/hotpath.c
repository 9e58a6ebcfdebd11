/* The path of calls with most of the time; see hotpath.h. */
#include "base/base.h"
#include "analyze/stacks/hotpath.h"

#include "analyze/select/funcglob.h"
#include "analyze/stacks/calltree.h"
#include "analyze/view.h"
#include "base/buf.h"
#include "base/stat.h"
#include "base/text/num.h"
#include "base/text/shortname.h"

#define HALF_PCT    50.0
#define PART_PCT    10.0 /* callees of the path's end that are named */
#define PARTS_SHOWN 3
#define USER_SHOWN  4 /* the innermost user functions of the path */

#define NAME_COLUMNS 40 /* of a name in the sentence */

struct path {
	const struct report *names;
	const struct report_tree *t;
	uint32_t end;       /* last node; 0: no path */
	uint32_t last_user; /* last node that is no kernel function */
};

/* Returns the child with the largest total that is smaller than that of @after (0: any). */
static uint32_t next_child(const struct report_tree *t, uint32_t node, uint32_t after)
{
	uint32_t best = 0;
	for (uint32_t c = t->nodes[node].first_child; c; c = t->nodes[c].next) {
		bool is_later = !after || t->nodes[c].total < t->nodes[after].total ||
				(t->nodes[c].total == t->nodes[after].total && c > after);
		if (is_later && (!best || t->nodes[c].total > t->nodes[best].total))
			best = c;
	}
	return best;
}

static double pct_of(const struct report_tree *t, uint64_t weight)
{
	return view_pct(weight, t->nodes[0].total);
}

static struct sv name_of(const struct path *path, uint32_t node)
{
	return intern_get(&path->names->names, path->t->nodes[node].name);
}

/* How threads begin and system calls enter the kernel is the same in every program. */
static bool is_entry(const struct path *path, uint32_t node)
{
	struct sv name = name_of(path, node);
	if (path->t->nodes[node].flags & TREE_KERNEL)
		return funcglob_is_like("entry_SYSCALL*|do_syscall_64|x64_sys_call|el0*|do_el0*|"
					"invoke_syscall*",
					name);
	return funcglob_is_start(name);
}

/*
 * Returns whether the callee with most has enough more than the second to be the path: below a function of the
 * program twice as much, else the two share the time; a start of threads has all threads below it.
 */
static bool is_most(const struct path *path, uint32_t most, uint32_t second)
{
	const struct report_tree *t = path->t;
	uint64_t n = t->nodes[most].total;
	if (pct_of(t, n) < HALF_PCT)
		return false;
	if (!second)
		return true;
	bool is_start = !path->end || is_entry(path, path->end);
	return n >= 2 * t->nodes[second].total || (is_start && pct_of(t, n) > HALF_PCT);
}

static struct path path_of(const struct report *names, const struct report_tree *t)
{
	struct path path = {.names = names, .t = t};
	for (;;) {
		uint32_t n = next_child(t, path.end, 0);
		if (!n || !is_most(&path, n, next_child(t, path.end, n)))
			return path;
		path.end = n;
		if (!(t->nodes[n].flags & TREE_KERNEL))
			path.last_user = n;
	}
}

static void add_name(struct buf *to, const struct path *path, uint32_t node)
{
	buf_add_str(to, to->n ? " > " : "");
	shortname_add(to, name_of(path, node), NAME_COLUMNS);
}

/* The innermost user functions from main on, and where the path ends in the kernel. */
static void add_path(struct buf *to, const struct path *path)
{
	uint32_t shown[USER_SHOWN];
	size_t n = 0;
	for (uint32_t at = path->last_user; at && n < USER_SHOWN; at = path->t->nodes[at].parent) {
		if (!is_entry(path, at))
			shown[n++] = at;
		if (sv_eq(name_of(path, at), SV("main")))
			break; /* above it is how the C library starts it, which may have no name */
	}
	while (n > 0)
		add_name(to, path, shown[--n]);
	if (path->end == path->last_user || is_entry(path, path->end))
		return;
	if (path->t->nodes[path->end].parent != path->last_user)
		buf_add_str(to, to->n ? " > ..." : "...");
	add_name(to, path, path->end);
}

static void add_parts(struct buf *to, const struct path *path)
{
	uint32_t n = 0;
	for (size_t i = 0; i < PARTS_SHOWN; i++) {
		n = next_child(path->t, path->end, n);
		double pct = n ? pct_of(path->t, path->t->nodes[n].total) : 0;
		if (pct < PART_PCT)
			return;
		buf_addf(to, "%s%s %% in ", i ? ", " : ": ", num_double(pct, 0).s);
		shortname_add(to, intern_get(&path->names->names, path->t->nodes[n].name),
			      NAME_COLUMNS);
	}
}

/* Whether most of the stacks do not reach their thread's start: no path is known then. */
static bool is_truncated(const struct report *scratch, const struct report_tree *t)
{
	uint32_t first = next_child(t, 0, 0);
	return first && sv_eq(intern_get(&scratch->names, t->nodes[first].name), SV("[truncated]"));
}

void hotpath_find(struct hotpath *ret_path, struct arena *a, const struct selection *sel)
{
	double effective = view_effective(sel, view_all(sel));
	*ret_path = (struct hotpath){.names = "", .parts = ""};
	CLEANUP(report_free_p) struct report *scratch = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(scratch, 0);
	CLEANUP(buf_release) struct buf names = {0};
	CLEANUP(buf_release) struct buf parts = {0};
	calltree_add(ct, sel);
	const struct report_tree *t = calltree_finish(ct, "hotpath", "hottest path");
	struct path path = path_of(scratch, t);
	if (!path.end || is_truncated(scratch, t))
		return;
	add_path(&names, &path);
	add_parts(&parts, &path);
	ret_path->pct = pct_of(t, t->nodes[path.end].total);
	ret_path->error_pct = stat_share_pct_error(ret_path->pct / 100 * effective, effective);
	ret_path->names = arena_strdup(a, buf_str(&names));
	ret_path->parts = arena_strdup(a, buf_str(&parts));
}
