/*
 * Glob patterns for function names as shown, used by the tables of known functions. '*' is any
 * text, '?' any one byte. A pattern is anchored at the start of the name, and at its end, where a
 * parameter list, template arguments, "@version" and ".part.0" may follow. "a|b" matches either.
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
bool funcglob_is_like(const char *patterns, struct sv plain_name);

#endif
