/*
 * Finds the frame to show for a wait: the program's innermost function, and the function of libc, a
 * runtime or a locking library that it called.
 */
#ifndef ASSAY_ANALYZE_WAIT_FRAMES_H
#define ASSAY_ANALYZE_WAIT_FRAMES_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "model/profile.h"

struct waitframe {
	str_id own; /* the program's function: name in the profile's strings; 0: see waitframe_name */
	/* Of a function of Python, whose name has the line of its definition: with the line that runs; or NULL. */
	const char *text;
	str_id via;       /* what it called: "fsync", "pthread_mutex_lock"; 0: nothing */
	module_id module; /* of the program's function */
	bool is_kernel;   /* no user frames */
	bool is_empty;    /* no frames */
};

struct waitframes;
struct waitframes *waitframes_new(struct arena *a, const struct profile *p);
struct waitframe waitframe_of(struct waitframes *wf, stack_id stack);
/* Returns the name of the program's innermost function, also if it is unsymbolized; 0: none. */
str_id waitframes_innermost(struct waitframes *wf, stack_id stack);
/* Returns the function's name, or "[no stack]", "[kernel]", "[unknown]". */
const char *waitframe_name(const struct profile *p, const struct waitframe *f);
/* Appends all frames, leaf first, separated by " < "; kernel and inlined frames included. */
void waitframes_add_stack(struct buf *to, const struct profile *p, stack_id stack);
/* The same with the user frames first: "fsync < commit < main [kernel: do_fsync < ...]". */
void waitframes_add_user_first(struct buf *to, const struct profile *p, stack_id stack);
/* A write to a pipe or socket: it waits until the other end has taken data out. */
bool wait_is_send(const struct tag *tag);
/* What ended a wait that no thread ended: "[device or timer]" ... */
const char *wait_ended_by(const struct tag *tag);
/* Returns the stack without its kernel frames. */
stack_id waitframes_user_part(const struct profile *p, stack_id stack);

#endif
