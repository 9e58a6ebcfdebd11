/*
 * Sends marks from `assay mark` to running captures, over Unix sockets (SOCK_SEQPACKET).
 *
 * A capture listens at the abstract name "assay-mark/UID/PID/NONCE": no file is left behind when it
 * is killed, /proc/net/unix lists the names, and nobody else can take the name first. The sender
 * sends the mark with a list of pids to every capture. A capture that records one of them adds the
 * mark; every capture replies whether it did.
 *
 * Anybody may bind a name of that form and connect to any. Both sides ask the kernel who the other
 * is (SO_PEERCRED) before they send or believe anything. A capture accepts marks from its own user,
 * from root and, under sudo, from the invoking user. The sender gives a mark to a process only if
 * its uid and pid are those in the name and it is run by the same users, or, if root sends, by the
 * owner of all processes that are named. Both must be in the same network and PID namespace.
 *
 *	capture:  marksocket_open, poll marksocket_fd, marksocket_drain, marksocket_free
 *	sender:   mark_send
 */
#ifndef ASSAY_SESSION_MARKSOCKET_H
#define ASSAY_SESSION_MARKSOCKET_H

#include "base/base.h"
#include "base/err.h"
#include "model/event.h"

#define MARK_PIDS_MAX       256
#define MARK_TEXT_BYTES_MAX 200
#define MARK_LATE_MAX       8

struct marksocket;
/* Returns whether a process is part of the capture. */
typedef bool (*marksocket_has_pid_fn)(void *ctx, int32_t pid);

int marksocket_open(struct marksocket **ret_m, struct err *err);
int marksocket_fd(const struct marksocket *m);
/* Whether a connection is open whose message has not arrived: to be drained again soon. */
bool marksocket_has_senders(const struct marksocket *m);
/*
 * Reads pending messages without waiting: each mark for this capture is delivered as EVENT_MARK
 * with the time at which it was sent, but not before @start_ns. Connections of other users and
 * malformed messages are dropped. A message that arrives after its connection was accepted does not
 * make marksocket_fd readable; see marksocket_has_senders.
 */
int marksocket_drain(struct marksocket *m, uint64_t start_ns, marksocket_has_pid_fn has_pid,
		     void *ctx, const struct event_sink *sink, struct err *err);
void marksocket_free(struct marksocket *m);

struct mark_request {
	const int32_t *pids;
	size_t nr_pids; /* at most MARK_PIDS_MAX; 0: for every capture */
	const char *text;
};

struct mark_answer {
	size_t nr_captures; /* captures that the mark was sent to */
	size_t nr_answers;  /* replies that came in time */
	size_t nr_taken;    /* captures that added it */
	size_t nr_refused;  /* sockets of other users, to which nothing was sent */
	/* Captures that have not answered yet; they add the mark later. The first nr_late of them. */
	int32_t late_pids[MARK_LATE_MAX];
	size_t nr_late;
};

/*
 * Waits until all captures have answered, but no more than a second, and no longer for those of other
 * users once one has added the mark. -EINVAL: the text is empty or too long, or there are too many
 * processes.
 */
int mark_send(struct mark_answer *ret_a, const struct mark_request *request, struct err *err);

#endif
