/*
 * Clocks, durations and time stamps.
 *
 * Everything that is measured carries CLOCK_MONOTONIC nanoseconds; wall time is for people and
 * for file names only. Texts do not depend on the locale.
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
/* CPU time that this process, this thread has had. */
uint64_t clock_process_cpu_ns(void);
uint64_t clock_thread_cpu_ns(void);

/*
 * "10" (seconds), "0.5", "10s", "500ms", "250us", "40ns", "2m", "1h", "7d", "1m30s": units once
 * each, from large to small. False, and *ret_ns untouched, for anything else and past 2^63 ns.
 */
bool clock_parse_duration(struct sv s, uint64_t *ret_ns);

/* @real_ns as clock_real_ns gives it. "2026-11-21T01:50:08Z" */
void clock_add_iso_utc(struct buf *to, int64_t real_ns);
/* "2026-11-21 03:50:08", local time. */
void clock_add_local(struct buf *to, int64_t real_ns);
/* "20261121-035008", local time: for names of files. */
void clock_add_stamp(struct buf *to, int64_t real_ns);

#endif
