/*
 * Synthetic off-CPU recordings, for tests in which every number is known. Stacks as in made.h.
 *
 *	CLEANUP(profile_free_p) struct profile *p = madewaits_new(3);
 *	madewait(p, &(struct madewait){.comm = "worker", .tid = 2, .stack = "main;read libc.so.6",
 *				       .reason = WAIT_FILE_READ, .nr = 10, .ms = 250});
 *	profile_seal(p);
 */
#ifndef ASSAY_TESTS_LIB_MADEWAITS_H
#define ASSAY_TESTS_LIB_MADEWAITS_H

#include "model/profile.h"

#define MADEWAITS_START_NS 5000000000000ull

struct madewait {
	const char *table; /* "off-cpu" when NULL; WAIT_ON_CPU without a table: "on-cpu" */
	unsigned second;   /* of the capture */
	const char *comm;
	int32_t tid;
	int32_t pid; /* 1 when 0 */
	const char *stack;
	enum wait_reason reason;
	unsigned evidence;
	const char *object;
	const char *detail;
	const char *other; /* thread's name; other_tid is its number */
	int32_t other_tid;
	const char *other_stack;
	const char *direct; /* thread's name, direct_tid is its number */
	int32_t direct_tid;
	const char *direct_stack;
	int64_t nr;
	int64_t ms; /* total of all nr waits */
	int64_t us; /* added to ms */
};

/* Returns an empty recording of this duration. */
struct profile *madewaits_new(unsigned seconds);
void madewait(struct profile *p, const struct madewait *w);
/* Adds CPU samples of 1 ms to table "cpu-clock", spread over the second. */
void madewaits_samples(struct profile *p, unsigned second, const char *comm, int32_t tid,
		       const char *stack, unsigned nr);

/*
 * A small service, recorded for two seconds, whose thread time breakdown adds up: three workers
 * contend for a lock whose holder syncs a file; a logger that they wake; four idle pool threads;
 * one reader. @has_samples: with CPU samples.
 */
struct profile *madewaits_service(bool has_samples);

#endif
