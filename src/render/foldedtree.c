/* A tree as folded stacks; see foldedtree.h. */
#include "base/base.h"
#include "render/foldedtree.h"

static void add_name(struct buf *to, const char *name)
{
	for (; *name; name++) /* these end a frame, and a line */
		buf_add_ch(to, *name == ';' ? ':' : *name == '\n' ? ' ' : *name);
}

void foldedtree_write(struct buf *to, const struct report *r, const struct report_tree *t)
{
	CLEANUP(buf_release) struct buf path = {0};
	VEC(size_t) ends = {0}; /* of the path, by depth */
	for (size_t i = 1; i < t->nr_nodes; i++) {
		const struct tree_node *n = &t->nodes[i];
		ends.n = n->depth - 1;
		path.n = ends.n ? ends.p[ends.n - 1] : 0;
		if (path.n)
			buf_add_ch(&path, ';');
		add_name(&path, intern_str(&r->names, n->name));
		vec_push(&ends, path.n);
		if (!n->self)
			continue;
		buf_add(to, buf_str(&path), path.n);
		buf_addf(to, " %" PRIu64 "\n", n->self);
	}
	vec_release(&ends);
}
