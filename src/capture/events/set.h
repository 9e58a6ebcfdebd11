/*
 * A set of named events: resolves the words that a user writes to events of this kernel. A word is
 * the name of a tracepoint (syscalls:sys_enter_futex) or of a software event (major-faults), or a
 * pattern (vmscan:*). Words come from lists (A,B), from files (one per line, # comments) and from
 * the predefined sets.
 *
 * A name that other kernels have but this one does not is skipped with a note. A tracepoint that
 * was renamed between kernels is used under its present name, with a note. A misspelt name is an
 * error that suggests similar names.
 *
 *	struct event_set set = {0};
 *	event_set_add_predefined(&set, "default", &err);
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

/* The cost of attaching to an event. */
enum event_cost {
	EVENT_COST_LOW = 0, /* rare, or expensive itself */
	/*
	 * A system call: attaching costs every system call of all processes about 25 ns, and the
	 * counted one more than that.
	 */
	EVENT_COST_CALL,
	EVENT_COST_HIGH, /* may occur hundreds of thousands of times per second */
};

/* A perf software event. */
struct software_event {
	const char *name;
	uint64_t config;        /* PERF_COUNT_SW_* */
	const char *other_name; /* perf's alias; NULL: none */
	const char *
		unprivileged; /* name of the source that counts it without privileges; NULL: none */
};

/* A resolved event. */
struct named_event {
	const char *name;
	const struct software_event *software; /* NULL: a tracepoint */
	uint64_t config;                       /* PERF_COUNT_SW_*, or the tracepoint's ID */
	enum event_cost cost;
	struct count_config count;  /* flags except COUNT_SINGLY and COUNT_NO_STACK */
	const char *amount;         /* unit of the amount: "bytes"; NULL = no amount */
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
	VEC(const char *) notes; /* texts for the user: events skipped or renamed */
};

void event_set_release(struct event_set *s);

/* Adds the words of "A,B"; empty parts are ignored. */
int event_set_add_list(struct event_set *s, const char *list, struct err *err);
int event_set_add_file(struct event_set *s, const char *path, struct err *err);
/* The same from memory; @name is used in messages. */
int event_set_add_text(struct event_set *s, struct sv text, const char *name, struct err *err);
/* Adds a predefined set. -ENOENT: no such set; the hint lists them. */
int event_set_add_predefined(struct event_set *s, const char *name, struct err *err);

/*
 * Resolves all words to events of this kernel. -EINVAL: a word is wrong. -ENOENT: this kernel has
 * none of the events. -EACCES: only tracepoints are requested, and the user may not use them; if
 * there are other events as well, a note lists what was skipped.
 */
int event_set_resolve(struct event_set *s, struct err *err);
/* The first step of event_set_resolve: finds events by name. @known: this kernel's tracepoints. */
int event_set_match(struct event_set *s, const struct tracefs_names *known, struct err *err);

/* Software event @i; NULL after the last. */
const struct software_event *event_software_at(size_t i);
/* The software event with this name or alias (faults, cs); NULL: there is none. */
const struct software_event *event_software_find(const char *name);
/* Reads a tracepoint's format and decides how it is counted. */
int event_open_tracepoint(struct named_event *ret_e, struct arena *a, int tracefs_fd,
			  struct sv name, struct err *err);
/* Returns the cost of a tracepoint, by its name. */
enum event_cost event_cost_of(struct sv name);

/* Appends an outcome as text: "EAGAIN", "WAIT", "blocked"; nothing if the event has no outcomes. */
void event_outcome_text(struct buf *to, const struct named_event *e, int32_t outcome);

#endif
