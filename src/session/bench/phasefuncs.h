/*
 * Phases of commands from the entry of a function to its return, or from one function to another.
 *
 * Uprobes are opened on each CPU for all processes that run the commands' programs, once, before assay
 * gives up the privileges that this needs. Each hit is a record with its time in the ring of its CPU.
 * What other processes than the run's do is dropped by the caller's filter.
 *
 * A phase by a function lasts from its first call to the return of the last one: calls that overlap, of a
 * recursion or of several threads, are one phase. Hits come out as marks, "NAME begin 12345.678901234"
 * (benchlines.h).
 */
#ifndef ASSAY_SESSION_BENCH_PHASEFUNCS_H
#define ASSAY_SESSION_BENCH_PHASEFUNCS_H

#include "base/base.h"
#include "base/err.h"

struct phasefuncs;

struct phasefuncs *phasefuncs_new(void);
void phasefuncs_free(struct phasefuncs *f);
DEFINE_FREE_P(phasefuncs, struct phasefuncs)

/*
 * Adds the phase @name, borrowed: @span is FUNCTION, a pattern, or FROM..TO (plan/spanprobes.h), in the
 * program of a command. The program is the first of @words that has the function. -ENOENT: none has.
 */
int phasefuncs_add(struct phasefuncs *f, const char *name, const char *span, char *const *words,
		   struct err *err);
/* Opens the probes. -EPERM, -EACCES: the hint has the remedy. */
int phasefuncs_open(struct phasefuncs *f, struct err *err);
/* Readable when there are hits. */
int phasefuncs_fd(const struct phasefuncs *f);

/* Drops all hits so far: a run begins. */
void phasefuncs_reset(struct phasefuncs *f);

struct phasefuncs_sink {
	bool (*has_pid)(void *ctx, int32_t pid); /* whether it belongs to the run */
	void (*mark)(void *ctx, const char *line, uint64_t at_ns); /* with its newline */
	void *ctx;
};
/* Passes on the hits so far in the order of their times. */
void phasefuncs_drain(struct phasefuncs *f, const struct phasefuncs_sink *sink);
/* Hits for which the rings had no room, in all runs. */
uint64_t phasefuncs_nr_lost(const struct phasefuncs *f);

#endif
