/*
 * What a recording says about itself: texts by key, one a key, in the order in which they came. For
 * those that have something to say of a profile and need not know what it is made of.
 */
#ifndef ASSAY_MODEL_FACTS_H
#define ASSAY_MODEL_FACTS_H

#include "base/base.h"

struct profile;

void profile_fact(struct profile *p, const char *key, const char *value); /* replaces */
const char *profile_get_fact(const struct profile *p, const char *key);   /* or NULL */

void profile_factf(struct profile *p, const char *key, const char *fmt, ...) PRINTF(3, 4);
/* A number, unless it is 0; a time in words. */
void profile_fact_nr(struct profile *p, const char *key, uint64_t nr);
void profile_fact_ns(struct profile *p, const char *key, uint64_t ns);

#endif
