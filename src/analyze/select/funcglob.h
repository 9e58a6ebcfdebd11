/*
 * Glob patterns for function names in the form that reports show, used by the tables of known
 * functions. '*' is any text, '?' any one byte. A pattern must match the whole name. After the
 * match, the name may continue with a parameter list, template arguments, "@version" or ".part.0".
 * "a|b" matches a or b.
 */
#ifndef ASSAY_ANALYZE_SELECT_FUNCGLOB_H
#define ASSAY_ANALYZE_SELECT_FUNCGLOB_H

#include "base/base.h"
#include "base/sv.h"

#define FUNCGLOB_NAME_MAX 512

/*
 * Returns the name in the form that patterns are matched against: without leading "<" and "&", and
 * "<Type as Trait>::f" as "Type::f". Points into @name or into @to.
 */
struct sv funcglob_plain(struct sv name, char to[static FUNCGLOB_NAME_MAX]);
/*
 * Returns a plain name without template and generic arguments: "f::<A>::g" and "f<A>::g" are
 * "f::g". Points into @name or into @to.
 */
struct sv funcglob_without_args(struct sv plain_name, char to[static FUNCGLOB_NAME_MAX]);
bool funcglob_is_like(const char *patterns, struct sv plain_name);
/* Whether it is a function in which every program, or each of its threads, begins. */
bool funcglob_is_start(struct sv plain_name);

#endif
