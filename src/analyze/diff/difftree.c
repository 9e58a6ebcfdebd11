/* Marked nodes of differential trees; see difftree.h. */
#include "base/base.h"
#include "analyze/diff/difftree.h"

#include <stdlib.h>

#include "base/mem.h"

/* The name of a function without a mark as "_[k]", which flame graphs may append. */
static struct sv without_mark(struct sv s)
{
	if (s.n > 4 && s.p[s.n - 4] == '_' && s.p[s.n - 3] == '[' && s.p[s.n - 1] == ']')
		s.n -= 4;
	return s;
}

size_t difftree_mark(struct report *r, struct report_tree *t, const struct diff *d)
{
	struct intern marked = {0};
	size_t nr = 0;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_item *it = &d->items[i];
		if (!diff_is_significant(&it->self) && !diff_is_significant(&it->total))
			continue;
		(void)intern_add_str(&marked, it->name);
		nr++;
	}
	uint32_t end = (uint32_t)intern_count(&marked); /* ids from here on are other names */
	for (size_t i = 1; i < t->nr_nodes; i++) {
		struct sv name = without_mark(intern_get(&r->names, t->nodes[i].name));
		bool is_function = !(t->nodes[i].flags & TREE_PSEUDO);
		if (is_function && intern_add(&marked, name.p, name.n) < end)
			t->nodes[i].flags |= TREE_CHANGED;
	}
	intern_release(&marked);
	return nr;
}
