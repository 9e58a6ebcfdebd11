/*
 * Clocks, durations and time stamps.
 *
 * All measurements use CLOCK_MONOTONIC nanoseconds; wall-clock time is only for display and for
 * file names. Texts do not depend on the locale.
 */
#ifndef ASSAY_BASE_CLOCK_H
#define ASSAY_BASE_CLOCK_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

#define NS_PER_US  1000ull
#define NS_PER_MS  1000000ull
#define NS_PER_SEC 1000000000ull

uint64_t clock_mono_ns(void);
int64_t clock_real_ns(void); /* since 1970, UTC */
/* CPU time used by this process; by this thread. */
uint64_t clock_process_cpu_ns(void);
uint64_t clock_thread_cpu_ns(void);
/* The processor's time stamp counter, read after all earlier instructions. */
uint64_t clock_ticks(void);

/* The same moment by both clocks. */
struct clock_moment {
	uint64_t ticks; /* clock_ticks() */
	uint64_t ns;    /* clock_mono_ns() */
};

/* The closest of several readings: a thread that loses its CPU between the two clocks reads again. */
struct clock_moment clock_moment_now(void);

/*
 * Parses a duration: "10" (seconds), "0.5", "10s", "500ms", "250us", "40ns", "2m", "1h", "7d",
 * "1m30s". Each unit at most once, from large to small. Returns false and leaves *ret_ns untouched
 * for anything else and for more than 2^63 ns.
 */
bool clock_parse_duration(struct sv s, uint64_t *ret_ns);

/* Appends "2026-11-21T01:50:08Z"; @real_ns is a value of clock_real_ns. */
void clock_add_iso_utc(struct buf *to, int64_t real_ns);
/* Appends "2026-11-21 03:50:08", local time. */
void clock_add_local(struct buf *to, int64_t real_ns);
/* Appends "20261121-035008", local time, for file names. */
void clock_add_stamp(struct buf *to, int64_t real_ns);

#endif
