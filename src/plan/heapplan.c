/* See heapplan.h. */
#include "base/base.h"
#include "plan/heapplan.h"

#include "base/mem.h"

void heap_plan_release(struct heap_plan *p)
{
	vec_foreach(s, &p->sites) {
		free_p(&s->name);
		free_p(&s->path);
	}
	vec_release(&p->sites);
	vec_release(&p->allocator_code);
	free_p(&p->allocator_text);
	free_p(&p->reason);
	free_p(&p->must_say);
	free_p(&p->prefix);
	*p = (struct heap_plan){0};
}
