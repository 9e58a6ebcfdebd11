/* Lines of a text; see lines.h. */
#include "base/base.h"
#include "base/text/lines.h"

bool lines_next(struct lines *l, struct sv *ret_line)
{
	if (l->p == l->end)
		return false;
	size_t left = (size_t)(l->end - l->p);
	const char *nl = memchr(l->p, '\n', left);
	size_t n = nl ? (size_t)(nl - l->p) : left;
	struct sv line = sv_from(l->p, n);
	l->p = nl ? nl + 1 : l->end;
	l->nr++;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	*ret_line = line;
	return true;
}
