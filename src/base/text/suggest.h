/*
 * "did you mean": finds the name that is most similar to a misspelt word. The measure is the edit
 * distance in which swapped neighbours count as one edit (optimal string alignment).
 */
#ifndef ASSAY_BASE_TEXT_SUGGEST_H
#define ASSAY_BASE_TEXT_SUGGEST_H

#include "base/base.h"
#include "base/sv.h"

/* Edit distance; strings are truncated to 64 bytes. */
size_t suggest_distance(struct sv a, struct sv b);

/*
 * Call suggest_offer with each candidate; `best` is the most similar one, borrowed, or empty
 * (n == 0) if none is similar enough.
 */
struct suggest {
	struct sv word;
	struct sv best;
	size_t best_distance;
};
struct suggest suggest_for(struct sv word);
void suggest_offer(struct suggest *s, struct sv candidate);

#endif
