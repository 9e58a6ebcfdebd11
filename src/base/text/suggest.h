/*
 * "did you mean": the nearest of some names to a misspelt word. Edit distance with swapped
 * neighbours counted as one (optimal string alignment), limited so that only near ones count.
 */
#ifndef ASSAY_BASE_TEXT_SUGGEST_H
#define ASSAY_BASE_TEXT_SUGGEST_H

#include "base/base.h"
#include "base/sv.h"

/* Capped: strings over 64 bytes are cut for the comparison. */
size_t suggest_distance(struct sv a, struct sv b);

/* Feed every candidate; best stays NULL-like (n == 0) when none is near. Candidates are kept by
 * reference. */
struct suggest {
	struct sv word;
	struct sv best;
	size_t best_distance;
};
struct suggest suggest_for(struct sv word);
void suggest_offer(struct suggest *s, struct sv candidate);

#endif
