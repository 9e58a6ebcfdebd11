/* Columns of numbers; see numcolumn.h. */
#include "base/base.h"
#include "base/numcolumn.h"

void numcolumn_release(struct numcolumn *c)
{
	buf_release(&c->b);
	*c = (struct numcolumn){0};
}

void numcolumn_add_varied(struct numcolumn *c, uint64_t v)
{
	if (!c->is_varied)
		for (size_t i = 0; i < c->n; i++)
			buf_add_uleb(&c->b, c->first);
	c->is_varied = true;
	buf_add_uleb(&c->b, v);
}

void numcolumn_end(struct buf *to, struct numcolumn *c)
{
	if (c->n && !c->is_varied)
		buf_add_uleb(&c->b, c->first);
	buf_add_uleb(to, c->b.n);
	buf_add_sv(to, buf_sv(&c->b));
	buf_clear(&c->b);
	c->n = 0;
	c->is_varied = false;
}
