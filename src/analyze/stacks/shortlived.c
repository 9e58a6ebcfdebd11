/* Processes that live for a moment; see shortlived.h. */
#include "base/base.h"
#include "analyze/stacks/shortlived.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/text/num.h"

#define PER_S_MIN  50.0
#define LIFE_MAX_S 0.05

struct life {
	uint64_t from_ns;
	uint64_t to_ns;
};

/* A process has a task for each name of each thread. Returns how many lives there are. */
static size_t fill_lives(struct life *lives, const struct profile *p)
{
	CLEANUP(map_release) struct map index = {0};
	size_t n = 0;
	for (size_t i = 0; i < p->tasks.n; i++) {
		const struct task *t = &p->tasks.p[i];
		bool is_new;
		if (t->pid <= 0 || !t->start_ns)
			continue;
		uint32_t *at = map_put(&index, (uint32_t)t->pid, &is_new);
		if (is_new) {
			*at = (uint32_t)n++;
			lives[*at] = (struct life){t->start_ns, t->end_ns};
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

void shortlived_note(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	if (is_filtered(sel) || !p->start_ns)
		return;
	CLEANUP(free_p) struct life *lives = xcalloc(p->tasks.n + 1, sizeof(*lives));
	CLEANUP(free_p) double *seconds = xcalloc(p->tasks.n + 1, sizeof(*seconds));
	size_t nr_lives = fill_lives(lives, p);
	size_t n = 0;
	for (size_t i = 0; i < nr_lives; i++)
		if (lives[i].from_ns > p->start_ns && lives[i].to_ns > lives[i].from_ns)
			seconds[n++] =
				(double)(lives[i].to_ns - lives[i].from_ns) / (double)NS_PER_SEC;
	double window_s = (double)(p->end_ns - MIN(p->start_ns, p->end_ns)) / (double)NS_PER_SEC;
	if (!(window_s > 0) || (double)n / window_s < PER_S_MIN)
		return;
	double life = stat_median(seconds, n);
	if (life > LIFE_MAX_S)
		return;
	report_note(r,
		    "short processes: at least %s started and ended, %s per second; half of those "
		    "that were sampled lived for less than %s",
		    num_count(n).s, num_count((uint64_t)((double)n / window_s)).s,
		    num_ns((uint64_t)(life * (double)NS_PER_SEC)).s);
}
