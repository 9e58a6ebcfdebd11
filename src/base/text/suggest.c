/* The nearest name to a misspelt one; see suggest.h. */
#include "base/base.h"
#include "base/text/suggest.h"

#define LEN_MAX 64

size_t suggest_distance(struct sv a, struct sv b)
{
	size_t na = MIN(a.n, LEN_MAX);
	size_t nb = MIN(b.n, LEN_MAX);
	size_t rows[3][LEN_MAX + 1]; /* row of the matrix and the two before it, rotating */
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *row = rows[i % 3];
		const size_t *up = rows[(i - 1) % 3];
		const size_t *up2 = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t best = MIN(up[j], row[j - 1]) + 1;
			best = MIN(best, up[j - 1] + (a.p[i - 1] != b.p[j - 1]));
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				best = MIN(best, up2[j - 2] + 1);
			row[j] = best;
		}
	}
	return rows[na % 3][nb];
}

struct suggest suggest_for(struct sv word)
{
	/* No suggestion is better than a silly one: of two letters none may differ, of 3 to 5 one. */
	return (struct suggest){.word = word, .best_distance = word.n / 3 + 1};
}

void suggest_offer(struct suggest *s, struct sv candidate)
{
	size_t d = suggest_distance(s->word, candidate);
	/* A prefix counts as similar, too: "--thr" for "--thread". */
	if (s->word.n >= 3 && sv_has_prefix(candidate, s->word))
		d = MIN(d, (size_t)1);
	if (d < s->best_distance) {
		s->best = candidate;
		s->best_distance = d;
	}
}
