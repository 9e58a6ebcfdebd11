/* Processes that live for a moment; see shortlived.h. */
#include "base/base.h"
#include "analyze/stacks/shortlived.h"

#include "analyze/view.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/text/num.h"

#define NR_MIN     10 /* fewer are no load of short processes */
#define PER_S_MIN  50.0
#define LIFE_MAX_S 0.05
#define CAUSE_PCT  50.0 /* with such a share of the CPU time it is the answer */

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

void shortlived_report(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	if (is_filtered(sel) || !p->start_ns)
		return;
	CLEANUP(map_release) struct map index = {0};
	CLEANUP(free_p) struct life *lives = xcalloc(p->tasks.n + 1, sizeof(*lives));
	CLEANUP(free_p) double *seconds = xcalloc(p->tasks.n + 1, sizeof(*seconds));
	size_t nr_lives = fill_lives(lives, &index, p);
	size_t n = 0;
	for (size_t i = 0; i < nr_lives; i++) {
		struct life *one = &lives[i];
		if (one->from_ns <= p->start_ns || one->to_ns <= one->from_ns)
			continue;
		seconds[n] = (double)(one->to_ns - one->from_ns) / (double)NS_PER_SEC;
		one->is_short = seconds[n++] <= LIFE_MAX_S;
	}
	double window_s = (double)(p->end_ns - MIN(p->start_ns, p->end_ns)) / (double)NS_PER_SEC;
	if (n < NR_MIN || !(window_s > 0) || (double)n / window_s < PER_S_MIN)
		return;
	double life = stat_median(seconds, n);
	if (life > LIFE_MAX_S)
		return;
	double pct = short_pct(sel, lives, &index);
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text,
		 "short processes: %s %% of CPU time; at least %s started and ended, %s per "
		 "second; half of those that were sampled lived for less than %s",
		 num_double(pct, 0).s, num_count(n).s,
		 num_count((uint64_t)((double)n / window_s)).s,
		 num_ns((uint64_t)(life * (double)NS_PER_SEC)).s);
	if (pct >= CAUSE_PCT)
		report_finding(r, "%s", buf_str(&text));
	else
		report_note(r, "%s", buf_str(&text));
}
