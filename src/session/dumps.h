/*
 * Makes jemalloc heap profile dumps (prof.dump) of running processes: once, or as a series (each
 * time interval, each N bytes allocated, each N bytes of RSS growth) of which the newest are kept.
 * session/dumpset.h reads them.
 *
 *	struct dumps d = {.name = "redis-server", .keep = 5};
 *	dump_trigger_parse(&d.trigger, "10s", &err);
 *	dumps_add(&d, pid, "dumps", &err);
 *	while ((event = dumps_next(&d, end_ns, &p, &err)) != DUMPS_OVER) ...
 *	dumps_release(&d);
 */
#ifndef ASSAY_SESSION_DUMPS_H
#define ASSAY_SESSION_DUMPS_H

#include "base/base.h"
#include "base/err.h"
#include "base/process/cleanup.h"
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

struct dump_process {
	int32_t pid;
	struct heap_plan plan;
	char *variable; /* environment variable that its jemalloc reads (MALLOC_CONF); NULL = unknown */
	char *label; /* "redis-server (4242)" */
	int root_fd; /* root of its mount namespace, if that differs from assay's; -1 = none */
	/* The newest dump. */
	char *newest; /* path */
	uint64_t nr_bytes;
	uint64_t stopped_ns;  /* how long a thread was stopped to make the newest dump */
	bool is_sampling_off; /* prof.active is off: only older samples are in the dump */
	/* Of a series. */
	bool has_enabled_sampling; /* assay set prof.active */
	struct cleanup cleanup;    /* unsets it if assay is killed */
	bool is_done;              /* the process has exited or a dump failed: no more dumps */
	uint64_t last;             /* the trigger's value at the last dump: ns or bytes */
	uint64_t next_check_ns;
	size_t nr_dumps;
	VEC(struct store_place) kept; /* oldest first */
};

struct dumps {
	const char *name; /* of the target, for folders */
	const char *path; /* of -o: of the only dump; NULL = in the store */
	struct dump_trigger trigger;
	uint64_t keep; /* number of the newest dumps of a series that are kept */
	struct heaptargets *targets;
	VEC(struct dump_process) list;
	size_t next; /* index of the process to check next */
};

void dumps_release(struct dumps *d);
/*
 * Adds a process to the list. -ENOTSUP: it has no usable jemalloc, but is added as well. @what
 * ("dumps") is the feature that the message names.
 */
int dumps_add(struct dumps *d, int32_t pid, const char *what, struct err *err);
/* Makes a dump of one process now. For a series it also enables sampling. */
int dumps_make(struct dumps *d, struct dump_process *p, struct err *err);
/* Opens root_fd of each process. Call before capabilities are dropped. */
void dumps_open_roots(struct dumps *d);

enum dumps_event {
	DUMPS_OVER,   /* the time is up, a signal stopped it, or no process is left to dump */
	DUMPS_MADE,   /* a dump was made */
	DUMPS_EXITED, /* the process has exited */
	DUMPS_FAILED, /* a dump failed, see @err; the process gets no more dumps */
};
/* Waits for the next event of a series, at most until @end_ns. */
enum dumps_event dumps_next(struct dumps *d, uint64_t end_ns, struct dump_process **ret_p,
			    struct err *err);
/* Disables sampling if assay enabled it; an error if it could not be disabled. */
int dumps_disable_sampling(struct dump_process *p, struct err *err);

/* Returns the RSS in bytes; 0 = the process has exited. */
uint64_t dumps_rss(int32_t pid);

#endif
