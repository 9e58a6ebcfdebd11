/*
 * A process that undoes something if assay is killed before it could do that itself: the cleanup
 * process.
 *
 *	cleanup_start    forks it; it waits for end of file on a socket whose other end only assay has
 *	cleanup_cancel   it exits and does nothing
 *	cleanup_run      it does its work now
 *
 * It is forked without exec, so it has everything that assay knows at that time. It keeps of assay's
 * capabilities those that it needs. It has its own session and ignores the signals that end
 * programs, so a signal to assay's process group does not reach it. It holds none of assay's
 * descriptors open but those in `keep`.
 */
#ifndef ASSAY_BASE_PROCESS_CLEANUP_H
#define ASSAY_BASE_PROCESS_CLEANUP_H

#include "base/base.h"
#include "base/err.h"

struct cleanup {
	int32_t pid; /* 0 = none */
	int fd;      /* assay's end of the sockets */
};

/*
 * Its work. @fd: a socket to assay, for a reply to cleanup_run; if assay has ended, nobody is there.
 */
typedef void (*cleanup_fn)(void *ctx, int fd);

struct cleanup_spec {
	const int *keep; /* descriptors that stay open in it, at most 8, besides its socket */
	size_t nr_keep;
	void (*begin)(void); /* called before it closes descriptors: drops rights */
	cleanup_fn fn;
	void *ctx;
};

/*
 * Starts the process. It calls fn after cleanup_run or cleanup_release, or when assay and all its
 * threads have ended (at the latest 10 s after assay closed the socket).
 */
int cleanup_start(struct cleanup *ret_c, const struct cleanup_spec *spec, struct err *err);
/* These two wait until it has exited. Without a process cleanup_cancel does nothing. */
void cleanup_cancel(struct cleanup *c);
/* Reads @fn's reply of @n bytes. -ECHILD: there is none, as the process was killed. */
int cleanup_run(struct cleanup *c, void *ret_reply, size_t n);
/* Lets it do its work, without waiting. */
void cleanup_release(struct cleanup *c);

#endif
