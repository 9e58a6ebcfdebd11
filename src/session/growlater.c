/* Growth that is switched on during a capture; see growlater.h. */
#include "base/base.h"
#include "session/growlater.h"

#include <errno.h>

#include "capture/io.h"
#include "model/heap.h"
#include "model/tables.h"
#include "model/tables.h"

void growlater_release(struct growlater *g)
{
	target_release(&g->first);
}

bool growlater_is_possible(const struct capture_options *o)
{
	return o->programs & ENGINE_HEAP && o->io_parts & IO_PART_GROWTH &&
	       !(o->flags & CAPTURE_NO_BPF);
}

static int open_engine(struct growlater *g, struct engine **ret_e, struct sources *s,
		       struct profile *p, struct builder *b, int32_t pid, struct err *err)
{
	CLEANUP(engine_free_p) struct engine *e = NULL;
	vec_push(&g->first.pids.pids, pid);
	const struct engine_spec spec = {.target = &g->first, .programs = ENGINE_IO};
	TRY(engine_open(&e, &spec, err));
	struct engine *before = s->env.engine;
	s->env.engine = e;
	int rc = sources_add(s, ENGINE_IO, err);
	if (rc) {
		s->env.engine = before;
		return rc;
	}
	*ret_e = TAKE(e);
	builder_set_table(b, TABLE_GROWTH, tables_add(p, TABLE_GROWTH, 0));
	return 0;
}

int growlater_add(struct growlater *g, struct engine **e, struct sources *s, struct profile *p,
		  struct builder *b, int32_t pid, const struct space *sp, struct err *err)
{
	if (g->has_failed || !s->env.has_sampler) /* who else would tell mappings and deliver */
		return err_set(err, -ENOTSUP, "the kernel takes no programs for it");
	bool is_first = !*e;
	int rc = is_first ? open_engine(g, e, s, p, b, pid, err) : engine_add(*e, pid, err);
	g->has_failed = is_first && rc;
	if (rc)
		return rc;
	if (sp)
		engine_publish(*e, pid, sp);
	return 0;
}
