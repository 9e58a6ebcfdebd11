/*
 * Patterns for names of functions as they are shown, for tables of what known functions mean.
 * '*' is any text, '?' any one byte. A pattern is anchored at the name's start and at its end,
 * where a parameter list, template arguments, "@version" and ".part.0" may follow. "a|b" is either.
 */
#ifndef ASSAY_ANALYZE_SELECT_FUNCGLOB_H
#define ASSAY_ANALYZE_SELECT_FUNCGLOB_H

#include "base/base.h"
#include "base/sv.h"

#define FUNCGLOB_NAME_MAX 512

/*
 * The name without what patterns do not speak of: "<" and "&" before it, "<Type as Trait>::f" is
 * "Type::f". Points into @name or into @to.
 */
struct sv funcglob_plain(struct sv name, char to[static FUNCGLOB_NAME_MAX]);
bool funcglob_is_like(const char *patterns, struct sv plain_name);

#endif
