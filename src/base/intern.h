/*
 * Byte strings -> dense ids, stored once. Id 0 is the empty string; ids count up from 1 in order
 * of first sight. Strings are NUL-terminated in storage and stay put for the table's life.
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
/* Borrowed; an id that does not exist is a BUG. */
struct sv intern_get(const struct intern *t, uint32_t id);
const char *intern_str(const struct intern *t, uint32_t id);
size_t intern_count(const struct intern *t); /* including id 0 */

#endif
