/*
 * Growth of memory (capture/heapgrowth.h) for a process of which it is found out during the
 * capture that nothing else can be recorded: a launched command or the program after an exec that
 * has its own runtime. The programs in the kernel are loaded then, which takes a fifth of a second
 * that captures which do without need not spend.
 */
#ifndef ASSAY_SESSION_GROWLATER_H
#define ASSAY_SESSION_GROWLATER_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "host/target.h"
#include "ingest/builder.h"
#include "model/profile.h"
#include "session/sources.h"

struct growlater {
	struct target first;
	bool has_failed; /* said once; not tried again */
};

void growlater_release(struct growlater *g);
/* Whether the options leave it for later: rights to load programs are to be kept until then. */
bool growlater_is_possible(const struct capture_options *o);
/*
 * Counts @pid and what it forks from now on. *e: the capture's engine, opened if there is none.
 * @sp: its mappings as they are known, may be NULL. Borrowed until the end.
 */
int growlater_add(struct growlater *g, struct engine **e, struct sources *s, struct profile *p,
		  struct builder *b, int32_t pid, const struct space *sp, struct err *err);

#endif
