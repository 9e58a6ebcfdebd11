/*
 * Judges what commands can do with the current privileges: compares what each needs (struct
 * rights_needs) with what was tested (struct features). Each result has a reason and remedies, of
 * which few kinds exist, so that a page can state each one once for all commands.
 *
 *	struct rights_result res;
 *	rights_judge(&res, rows, nr_rows, &rows[i], RIGHTS_OWN, &features);
 *	... verdict, buf_str(&res.why), res.remedies ...
 *	rights_result_release(&res);
 */
#ifndef ASSAY_ANALYZE_RIGHTSJUDGE_H
#define ASSAY_ANALYZE_RIGHTSJUDGE_H

#include "base/base.h"
#include "base/buf.h"
#include "model/rights.h"

/* A use of a command. */
struct rights_row {
	const char *command;
	const struct rights_needs *needs;
};

enum rights_verdict {
	RIGHTS_WORKS,
	RIGHTS_DEGRADES,
	RIGHTS_REFUSED,
	RIGHTS_NOT_TRIED,
	RIGHTS_VERDICT_NR
};

/* Whose processes a command is used on. */
enum rights_whose { RIGHTS_OWN, RIGHTS_OTHERS, RIGHTS_SYSTEM, RIGHTS_WHOSE_NR };

enum rights_remedy {
	RIGHTS_GET_CAPS,      /* capabilities are missing */
	RIGHTS_SECCOMP,       /* the container's filter refuses */
	RIGHTS_SHARE_PIDS,    /* run outside of the container's PID namespace */
	RIGHTS_MOUNT_TRACEFS, /* or show it to the container */
	RIGHTS_DELEGATE,      /* a memory cgroup that may be written */
	RIGHTS_PARANOID,      /* lower kernel.perf_event_paranoid */
	RIGHTS_KERNEL,        /* this kernel cannot do it */
	RIGHTS_REMEDY_NR
};

struct rights_result {
	enum rights_verdict verdict;
	struct buf why;
	unsigned remedies; /* bits of enum rights_remedy */
	uint64_t caps;     /* for RIGHTS_GET_CAPS: all that this use needs */
};

/* @rows: all commands, among them the parts of RIGHTS_PARTS. */
void rights_judge(struct rights_result *ret_r, const struct rights_row *rows, size_t nr_rows,
		  const struct rights_row *row, enum rights_whose whose, const struct features *f);
void rights_result_release(struct rights_result *r);

/* The kinds of targets that a command has: 1 for those that need none. */
unsigned rights_nr_whose(const struct rights_needs *n);
/* Least capabilities, with those for the processes of other users. */
uint64_t rights_least_caps(const struct rights_needs *n, enum rights_whose whose);
/* Whether assay runs in a container. */
bool rights_is_contained(const struct features *f);
/* Appends "BPF, PERFMON", or "none": those that assay uses. */
void rights_add_caps(struct buf *to, uint64_t caps);
/* Appends the flags of docker and podman: " --cap-add BPF --cap-add PERFMON". */
void rights_add_cap_flags(struct buf *to, uint64_t caps);
/* Appends one remedy, as something to type or to do. @caps: for RIGHTS_GET_CAPS. */
void rights_add_remedy(struct buf *to, enum rights_remedy kind, uint64_t caps,
		       const struct features *f);

#endif
