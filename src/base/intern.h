/*
 * String interning: stores each distinct byte string once and maps it to a dense id. Id 0 is the
 * empty string; other ids are assigned from 1 in order of first insertion. Stored strings are
 * NUL-terminated and do not move until intern_release.
 */
#ifndef ASSAY_BASE_INTERN_H
#define ASSAY_BASE_INTERN_H

#include "base/arena.h"
#include "base/base.h"
#include "base/sv.h"
#include "base/vec.h"

struct intern {
	struct arena text;
	VEC(struct sv) strings; /* by id */
	uint32_t *slots;        /* id + 1, 0 = free */
	size_t cap;
};

void intern_release(struct intern *t);
uint32_t intern_add(struct intern *t, const char *p, size_t n);
uint32_t intern_add_str(struct intern *t, const char *s); /* NULL is the empty string */
/* Returns the string of an id, borrowed; an id that does not exist is a BUG. */
struct sv intern_get(const struct intern *t, uint32_t id);
const char *intern_str(const struct intern *t, uint32_t id);
size_t intern_count(const struct intern *t); /* including id 0 */

#endif
