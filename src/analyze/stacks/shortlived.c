/* Processes that live for a moment; see shortlived.h. */
#include "base/base.h"
#include "analyze/stacks/shortlived.h"

#include "analyze/view.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stat.h"

#define LIFE_MAX_NS (50.0 * (double)NS_PER_MS)

struct life {
	uint64_t from_ns;
	uint64_t to_ns;
	bool is_short;
};

/* A process has a task for each name of each thread. Returns how many lives there are. */
static size_t fill_lives(struct life *lives, struct map *index, const struct profile *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->tasks.n; i++) {
		const struct task *t = &p->tasks.p[i];
		bool is_new;
		if (t->pid <= 0 || !t->start_ns)
			continue;
		uint32_t *at = map_put(index, (uint32_t)t->pid, &is_new);
		if (is_new) {
			*at = (uint32_t)n++;
			lives[*at] = (struct life){.from_ns = t->start_ns, .to_ns = t->end_ns};
		}
		struct life *one = &lives[*at];
		one->from_ns = MIN(one->from_ns, t->start_ns);
		one->to_ns = MAX(one->to_ns, t->end_ns);
	}
	return n;
}

static bool is_filtered(const struct selection *sel)
{
	uint64_t nr = 0;
	for (size_t i = 0; i < SELECT_OUT_NR; i++)
		nr += sel->nr_out[i];
	return nr > 0;
}

/* The share of the weight that short processes have. */
static double short_pct(const struct selection *sel, const struct life *lives,
			const struct map *index)
{
	uint64_t weight = 0;
	for (size_t i = 0; i < sel->nr_rows; i++) {
		uint32_t pid = (uint32_t)sel->p->tasks.p[sel->rows[i].task].pid;
		const uint32_t *at = map_get(index, pid);
		weight += at && lives[*at].is_short ? sel->rows[i].weight : 0;
	}
	return view_pct(weight, sel->weight);
}

void shortlived_find(struct shortlived *ret_s, const struct selection *sel)
{
	const struct profile *p = sel->p;
	*ret_s = (struct shortlived){0};
	if (is_filtered(sel) || !p->start_ns)
		return;
	CLEANUP(map_release) struct map index = {0};
	CLEANUP(free_p) struct life *lives = xcalloc(p->tasks.n + 1, sizeof(*lives));
	CLEANUP(free_p) double *ns = xcalloc(p->tasks.n + 1, sizeof(*ns));
	size_t nr_lives = fill_lives(lives, &index, p);
	double window_ns = (double)(p->end_ns - MIN(p->start_ns, p->end_ns));
	size_t n = 0;
	for (size_t i = 0; i < nr_lives; i++) {
		struct life *one = &lives[i];
		if (one->from_ns <= p->start_ns || one->to_ns <= one->from_ns)
			continue;
		ns[n] = (double)(one->to_ns - one->from_ns);
		one->is_short = ns[n++] <= LIFE_MAX_NS;
	}
	if (!n || !(window_ns > 0))
		return;
	*ret_s = (struct shortlived){.is_known = true,
				     .nr = n,
				     .per_s = (double)n / window_ns * (double)NS_PER_SEC,
				     .median_ns = stat_median(ns, n),
				     .pct = short_pct(sel, lives, &index)};
}
