/*
 * Dumps of jemalloc's own profile, of running processes: once, or as a series (by time, by what was
 * allocated, by growth of RSS) of which the newest are kept. session/dumpset.h reads them back.
 *
 *	struct dumps d = {.name = "redis-server"};
 *	dumps_add(&d, pid, "dumps", &err);
 *	while ((event = dumps_next(&d, end_ns, &p, &err)) != DUMPS_OVER) ...
 *	dumps_release(&d);
 */
#ifndef ASSAY_SESSION_DUMPS_H
#define ASSAY_SESSION_DUMPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "plan/heapplan.h"
#include "plan/heaptargets.h"
#include "session/store.h"

/* When the next dump of a series is due. */
enum dump_trigger_kind { DUMP_NO_SERIES, DUMP_BY_TIME, DUMP_BY_ALLOCATED, DUMP_BY_RSS };
struct dump_trigger {
	enum dump_trigger_kind kind;
	uint64_t step; /* ns, or bytes */
};
/* "10s", "8GiB-allocated", "+1GiB-rss"; -EINVAL. */
int dump_trigger_parse(struct dump_trigger *ret_t, const char *text, struct err *err);

struct dumped {
	int32_t pid;
	struct heap_plan plan;
	char *variable; /* that its jemalloc reads; NULL = not known */
	char *label;    /* "redis-server (4242)" */
	int root_fd;    /* of its mount namespace, if that is another; -1 = none */
	/* The newest dump. */
	char *newest; /* path */
	uint64_t nr_bytes;
	uint64_t stopped_ns; /* how long one thread was held for it */
	bool is_off;         /* sampling is: it has only what was sampled before that */
	/* Of a series. */
	bool was_off; /* sampling was switched on by us */
	bool is_gone;
	uint64_t last; /* what the trigger counts, at the last dump */
	uint64_t next_look_ns;
	size_t nr_dumps;
	VEC(struct store_place) kept; /* oldest first */
};

struct dumps {
	const char *name; /* of the target, for folders */
	const char *path; /* of -o: of the only dump; NULL = in the store */
	struct dump_trigger trigger;
	uint64_t keep; /* newest dumps of a series that stay */
	struct heaptargets *targets;
	VEC(struct dumped) list;
	size_t next; /* process that is looked at next */
};

void dumps_release(struct dumps *d);
/*
 * -ENOTSUP: it has no jemalloc that could be asked for @what ("dumps"). It is in the list then,
 * too.
 */
int dumps_add(struct dumps *d, int32_t pid, const char *what, struct err *err);
/* A dump of one process, now. A series switches sampling on. */
int dumps_make(struct dumps *d, struct dumped *p, struct err *err);
/* Opens root_fd of each process; what may be looked up below /proc/PID goes with privileges. */
void dumps_open_roots(struct dumps *d);

enum dumps_event {
	DUMPS_OVER, /* the time is up, somebody stopped it, or all have ended */
	DUMPS_MADE,
	DUMPS_ENDED,  /* the process has */
	DUMPS_FAILED, /* @err says why; it is left out from now on */
};
/* Waits for the next event of a series. */
enum dumps_event dumps_next(struct dumps *d, uint64_t end_ns, struct dumped **ret_p,
			    struct err *err);
/* Switches sampling off where the series switched it on; an error if it stays on. */
int dumps_switch_off(struct dumped *p, struct err *err);

uint64_t dumps_rss(int32_t pid); /* 0 = it has ended */

#endif
