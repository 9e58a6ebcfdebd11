/*
 * Events by name: from the words that users write to what the kernel has. A word is the name of a
 * tracepoint (syscalls:sys_enter_futex), of an event that the kernel counts itself (major-faults),
 * or a pattern (vmscan:*). Words come from lists (A,B), from files (one a line, # comments) and
 * from the ready sets.
 *
 * A name that this kernel lacks but others have is left out with a note, one that has moved is
 * taken under its new name with a note, and a misspelt one is an error with near names.
 *
 *	struct event_set set = {0};
 *	event_set_add_ready(&set, "default", &err);
 *	event_set_resolve(&set, &err);
 *	... set.events.p[i]
 *	event_set_release(&set);
 */
#ifndef ASSAY_CAPTURE_EVENTS_SET_H
#define ASSAY_CAPTURE_EVENTS_SET_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/events/tracefmt.h"
#include "host/tracefs.h"
#include "kernel_event.h"

/* What having an event attached costs. */
enum event_cost {
	EVENT_COST_LOW = 0, /* rare, or dear in itself */
	EVENT_COST_CALL,    /* some 25 ns of each system call of every process, more of this one */
	EVENT_COST_HIGH,    /* can come hundreds of thousands of times a second */
};

/* An event that the kernel counts itself. */
struct software_event {
	const char *name;
	uint64_t config;          /* PERF_COUNT_SW_* */
	const char *other_name;   /* that perf knows for it; NULL: none */
	const char *unprivileged; /* the source that counts it without rights; NULL: none */
};

struct named_event {
	const char *name;
	const struct software_event *software; /* NULL: a tracepoint */
	uint64_t config;                       /* PERF_COUNT_SW_*, or the tracepoint's ID */
	enum event_cost cost;
	struct count_config count;  /* flags but for COUNT_SINGLY and COUNT_NO_STACK */
	const char *amount;         /* what is added up: "bytes"; NULL = nothing */
	struct trace_format format; /* of a tracepoint */
};

struct event_word {
	const char *text;
	const char *where; /* "events.conf:12", NULL: from a list */
};

struct event_set {
	struct arena arena;
	VEC(struct event_word) words;
	VEC(struct named_event) events;
	VEC(const char *) notes; /* what was left out or renamed, for the user */
};

void event_set_release(struct event_set *s);

/* "A,B". Blank parts are passed over. */
int event_set_add_list(struct event_set *s, const char *list, struct err *err);
int event_set_add_file(struct event_set *s, const char *path, struct err *err);
/* The same from memory; @name stands in messages. */
int event_set_add_text(struct event_set *s, struct sv text, const char *name, struct err *err);
/* -ENOENT: no such set; the hint names them. */
int event_set_add_ready(struct event_set *s, const char *name, struct err *err);

/*
 * Finds out what the words mean here. -EINVAL: a word is wrong. -ENOENT: none of them is there.
 * -EACCES: only tracepoints are asked for, and they are closed to this user; where there are other
 * events as well, a note says what was left out.
 */
int event_set_resolve(struct event_set *s, struct err *err);
int event_set_match(struct event_set *s, const struct tracefs_names *known, struct err *err);

/* NULL after the last. */
const struct software_event *event_software_at(size_t i);
/* Also by its other name (faults, cs); NULL: there is none. */
const struct software_event *event_software_find(const char *name);
/* Reads a tracepoint's format and decides how it is counted. */
int event_open_tracepoint(struct named_event *ret_e, struct arena *a, int tracefs_fd,
			  struct sv name, struct err *err);
enum event_cost event_cost_of(struct sv name);

/* "EAGAIN", "WAIT", "blocked": appended; nothing where hits are not told apart. */
void event_outcome_text(struct buf *to, const struct named_event *e, int32_t outcome);

#endif
