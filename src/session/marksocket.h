/*
 * Marks from outside: how `assay mark` reaches the captures that run.
 *
 * A capture has a datagram socket under an abstract name, "assay-mark/UID/PID": no file is left
 * behind when it is killed, and /proc/net/unix lists the names. The sender asks every capture,
 * naming processes; a capture that watches one of them takes the mark and answers. The kernel
 * vouches for who sent (SCM_CREDENTIALS): a capture listens to its own user, to root, and, run
 * under sudo, to the user who did; the sender believes root and its own user. Both sides must be
 * in one network namespace.
 *
 *	capture:  marksocket_open(&m, &err); poll(marksocket_fd(m)); marksocket_drain(m, is_mine, ctx, &sink)
 *	sender:   mark_send(&answer, &request, &err)
 */
#ifndef ASSAY_SESSION_MARKSOCKET_H
#define ASSAY_SESSION_MARKSOCKET_H

#include "base/base.h"
#include "base/err.h"
#include "model/event.h"

#define MARK_PIDS_MAX       256
#define MARK_TEXT_BYTES_MAX 200

struct marksocket;
/* Whether a process is part of the capture. */
typedef bool (*marksocket_has_pid_fn)(void *ctx, int32_t pid);

int marksocket_open(struct marksocket **ret_m, struct err *err);
int marksocket_fd(const struct marksocket *m);
/*
 * Takes what has come, without waiting: each mark for us becomes an EVENT_MARK at the time at
 * which it was sent, but not before @start_ns. Messages of strangers and nonsense are dropped.
 */
int marksocket_drain(struct marksocket *m, uint64_t start_ns, marksocket_has_pid_fn has_pid,
		     void *ctx, const struct event_sink *sink, struct err *err);
void marksocket_free(struct marksocket *m);

struct mark_request {
	const int32_t *pids;
	size_t nr_pids; /* at most MARK_PIDS_MAX; 0: every capture takes it */
	const char *text;
};

struct mark_answer {
	size_t nr_captures; /* asked */
	size_t nr_answers;  /* in time; a busy capture may take the mark later */
	size_t nr_taken;
};

/* -EINVAL: the text is empty or too long, or there are too many processes. */
int mark_send(struct mark_answer *ret_a, const struct mark_request *request, struct err *err);

#endif
