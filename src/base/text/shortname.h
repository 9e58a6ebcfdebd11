/*
 * Short forms of function names and paths, for text, SVG files and the HTML page (whose names.js
 * has the same rules). What says least is left out first: call arguments, template and generic arguments,
 * hashes, then the middle of a path.
 *
 *	0  <alloc::vec::Vec<T, A> as core::Extend<T>>::extend_one::<u8>   void ns::f<int>(int) const
 *	1  the same                                                       ns::f<int>
 *	2  <alloc::vec::Vec as core::Extend>::extend_one                  ns::f
 *	3  alloc::vec::Vec::extend_one                                    ns::f
 *	4  without hashes and the suffixes of compilers (.llvm.123, .isra.0)
 *	5  alloc::..::Vec::extend_one, then Vec::extend_one, then extend_one
 */
#ifndef ASSAY_BASE_TEXT_SHORTNAME_H
#define ASSAY_BASE_TEXT_SHORTNAME_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

/*
 * Appends form @step of a name; a form may equal the one before. False, and nothing appended, if
 * there is no further form: the one before is the shortest.
 */
bool shortname_form(struct buf *to, struct sv name, unsigned step);

/* Appends the longest form of at most @columns code points; the shortest is cut in the middle. */
void shortname_add(struct buf *to, struct sv name, size_t columns);

/* Appends a text cut in the middle, "pthread_..._timedwait", to @columns; its ends remain. */
void shortname_cut(struct buf *to, struct sv text, size_t columns);

/* Appends a text that is no name, "e = cpu_ms() + ..", cut at its end to @columns. */
void shortname_cut_end(struct buf *to, struct sv text, size_t columns);

/* As shortname_cut_end, after a whole item or word if there is one: "fsync 90 %, .." */
void shortname_cut_list(struct buf *to, struct sv text, size_t columns);

/*
 * Short forms of a list of names, in a table or below a tree's node. Names that differ have forms
 * that differ: where two would be equal, the part in which the names differ is kept.
 */
struct shortnames {
	struct buf text; /* each form ends in '\0' */
	size_t *at;      /* offsets of the forms */
};

void shortnames_make(struct shortnames *ret_s, const struct sv *names, size_t n, size_t columns);
void shortnames_release(struct shortnames *s);
static inline const char *shortnames_at(const struct shortnames *s, size_t i)
{
	return s->text.p + s->at[i];
}

#endif
