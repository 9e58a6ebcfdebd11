/* Windows of time; see window.h. */
#include "base/base.h"
#include "analyze/select/window.h"

#include <errno.h>

#include "base/clock.h"
#include "base/sv.h"

struct window window_of_profile(const struct profile *p)
{
	struct window w = {p->start_ns, p->end_ns};
	if (w.from_ns && w.to_ns)
		return w;
	uint64_t first = UINT64_MAX;
	uint64_t last = 0;
	vec_foreach(t, &p->tables) {
		for (size_t i = 0; i < t->n; i++) {
			if (!t->time_ns[i])
				continue;
			first = MIN(first, t->time_ns[i]);
			last = MAX(last, t->time_ns[i]);
		}
	}
	if (!last)
		return (struct window){0, 0};
	if (!w.from_ns)
		w.from_ns = first;
	if (!w.to_ns)
		w.to_ns = last;
	return w;
}

uint64_t window_recorded_ns(const struct profile *p, struct window w)
{
	uint64_t sum = 0;
	if (!p->pieces.n)
		return w.to_ns > w.from_ns ? w.to_ns - w.from_ns : 0;
	vec_foreach(piece, &p->pieces) {
		uint64_t from_ns = MAX(piece->from_ns, w.from_ns);
		uint64_t to_ns = MIN(piece->to_ns, w.to_ns);
		sum += to_ns > from_ns ? to_ns - from_ns : 0;
	}
	return sum;
}

uint64_t window_piece_end(const struct profile *p, uint64_t ns)
{
	vec_foreach(piece, &p->pieces)
		if (ns < piece->to_ns)
			return piece->to_ns;
	return UINT64_MAX;
}

/* Seconds begin with the capture; in merged recordings with each of them. */
static struct window second_of(const struct profile *p, uint64_t ns)
{
	uint64_t begin_ns = window_of_profile(p).from_ns;
	vec_foreach(piece, &p->pieces)
		if (piece->from_ns <= ns)
			begin_ns = MAX(begin_ns, piece->from_ns);
	if (ns <= begin_ns)
		return (struct window){ns, ns};
	uint64_t past_ns = (ns - begin_ns) % NS_PER_SEC;
	return (struct window){ns - past_ns, past_ns ? ns - past_ns + NS_PER_SEC : ns};
}

bool window_widen(const struct profile *p, struct window *w)
{
	struct window was = *w;
	uint64_t end_ns = window_of_profile(p).to_ns;
	w->from_ns = second_of(p, w->from_ns).from_ns;
	if (w->to_ns < end_ns)
		w->to_ns = MIN(second_of(p, w->to_ns).to_ns, window_piece_end(p, w->to_ns - 1));
	return w->from_ns != was.from_ns || w->to_ns != was.to_ns;
}

static bool parse_moment(struct sv s, const struct window *all, uint64_t *ret_ns)
{
	s = sv_trim(s);
	uint64_t len_ns = all->to_ns - all->from_ns;
	if (s.n && s.p[s.n - 1] == '%') {
		double pct;
		if (!sv_to_double(sv_from(s.p, s.n - 1), &pct) || !(pct >= 0 && pct <= 100))
			return false;
		/* 100 % is after the last sample, so that it is included */
		*ret_ns = pct >= 100 ? all->to_ns + 1
				     : all->from_ns + (uint64_t)((double)len_ns * pct / 100);
		return true;
	}
	uint64_t ns;
	if (!clock_parse_duration(s, &ns) || ns > UINT64_MAX / 2)
		return false;
	*ret_ns = all->from_ns + ns;
	return true;
}

static bool split_window(struct sv s, struct sv *ret_from, struct sv *ret_to)
{
	static const struct sv marks[] = {{"..", 2}, {",", 1}, {"-", 1}};
	for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
		const char *at = memmem(s.p, s.n, marks[m].p, marks[m].n);
		if (!at)
			continue;
		*ret_from = sv_from(s.p, (size_t)(at - s.p));
		*ret_to = sv_from_idx(s, (size_t)(at - s.p) + marks[m].n);
		return true;
	}
	return false;
}

int window_parse(const struct profile *p, const char *text, struct window *ret_w, struct err *err)
{
	struct window all = window_of_profile(p);
	struct window w = {0, UINT64_MAX};
	struct sv from;
	struct sv to;
	bool is_good = split_window(sv_from_str(text), &from, &to) && (from.n || to.n) &&
		       (!from.n || parse_moment(from, &all, &w.from_ns)) &&
		       (!to.n || parse_moment(to, &all, &w.to_ns)) && w.from_ns < w.to_ns;
	if (!is_good) {
		err_set(err, -EINVAL, "'%s' is not a time window", text);
		return err_hint(err, "write FROM..TO counted from the start: 2..5 (seconds), "
				     "500ms..2s, ..3s, 10%%..20%%");
	}
	if (!all.to_ns)
		return err_set(err, -ENOENT,
			       "this profile has no timestamps, so it has no time windows");
	*ret_w = w;
	return 0;
}
