/*
 * Recognizes waits below the poll function of a Rust future. A call that blocks there (a sleep, a
 * file read, a lock, a channel of threads) stops the executor's thread: no other task of that
 * thread runs meanwhile. The executor's own park, block_in_place and the threads of spawn_blocking
 * are not such waits.
 *
 * The names of the frames decide, from the root inwards: tokio, async-task (smol, async-std),
 * futures, and every executor that calls core::future::Future::poll where this is a frame of its
 * own. A future whose poll was inlined into an unknown executor is not recognized.
 *
 * Results are cached by stack. Lives in the caller's arena and borrows the profile.
 */
#ifndef ASSAY_ANALYZE_WAIT_ASYNCFRAMES_H
#define ASSAY_ANALYZE_WAIT_ASYNCFRAMES_H

#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

struct asyncframes;

struct asyncframes *asyncframes_new(struct arena *a, const struct profile *p);
/* True if @stack is that of a call within the poll of a future. */
bool asyncframes_is_in_poll(struct asyncframes *af, stack_id stack);

enum async_kind {
	ASYNC_NONE = 0,
	ASYNC_POLL,    /* the poll function of a future, or of a runtime that calls it */
	ASYNC_ALLOWED, /* runs code that may block */
	ASYNC_WORKER,  /* the loop of an executor's thread, which itself runs as a blocking task */
};

/* @function: the name as shown (demangled). */
enum async_kind asyncframes_kind_of(struct sv function);

#endif
