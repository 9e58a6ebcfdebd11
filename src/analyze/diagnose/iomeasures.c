/* Measures of I/O, block devices, page faults and reclaim; see measures.h. */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/io/faultsum.h"
#include "analyze/io/iosum.h"
#include "base/text/num.h"

struct iomeasures {
	bool has_io; /* looked for */
	const struct io_figures *io;
	struct io_figures own_io;
	bool has_faults;
	const struct fault_figures *faults;
	struct fault_figures own_faults;
};

static struct iomeasures *new_io(struct measures *m)
{
	return m->io ? m->io : (m->io = arena_calloc(&m->a, 1, sizeof(*m->io)));
}

void measures_give_io(struct measures *m, const struct io_figures *f)
{
	new_io(m)->io = f;
}

void measures_give_faults(struct measures *m, const struct fault_figures *f)
{
	new_io(m)->faults = f;
}

static const struct io_figures *io_of(struct measures *m)
{
	struct iomeasures *x = new_io(m);
	if (!x->io && !x->has_io && !iosum_figures(&x->own_io, &m->a, m->p, &m->spec, NULL))
		x->io = &x->own_io;
	x->has_io = true;
	return x->io;
}

static const struct fault_figures *faults_of(struct measures *m)
{
	struct iomeasures *x = new_io(m);
	if (!x->faults && !x->has_faults &&
	    !faultsum_figures(&x->own_faults, &m->a, m->p, &m->spec, NULL))
		x->faults = &x->own_faults;
	x->has_faults = true;
	return x->faults;
}

#define IO(name, value)                                   \
	static double name(struct measures *m)            \
	{                                                 \
		const struct io_figures *f = io_of(m);    \
		return f ? (double)(value) : (double)NAN; \
	}
#define IO_TEXT(name, value)                           \
	static const char *name(struct measures *m)    \
	{                                              \
		const struct io_figures *f = io_of(m); \
		return f ? (value) : NULL;             \
	}
#define FAULT(name, value)                                                 \
	static double name(struct measures *m)                             \
	{                                                                  \
		const struct fault_figures *f = faults_of(m);              \
		return f && f->has_faults ? (double)(value) : (double)NAN; \
	}
#define FAULT_TEXT(name, value)                               \
	static const char *name(struct measures *m)           \
	{                                                     \
		const struct fault_figures *f = faults_of(m); \
		return f && f->has_faults ? (value) : NULL;   \
	}
#define PER(a, b) ((b) > 0 ? (double)(a) / (double)(b) : (double)NAN)

IO(io_time, f->ns)
IO(io_time_pct, PER(f->ns, f->seconds) / 1e7)
IO(io_seconds, f->seconds)
IO_TEXT(io_kind, f->has_syncs_only ? "sync" : "I/O")
IO_TEXT(io_blocked, f->blocked)
IO_TEXT(io_call, f->call)
IO_TEXT(io_call_nr, arena_strdup(&m->a, num_noun(f->call_nr, "calls").s))
IO(io_call_pct, view_pct(f->call_ns, f->ns))
IO(io_call_mean, PER(f->call_ns, f->call_nr))
IO_TEXT(io_file, measures_name(m, f->file))
IO(io_file_pct, view_pct(f->file_ns, f->ns))
IO_TEXT(io_file_most, view_most(view_pct(f->file_ns, f->ns)))
IO(io_bytes, f->read_bytes + f->write_bytes)
IO_TEXT(io_bytes_file, measures_name(m, f->bytes_file))
IO(io_read_rate, PER(f->read_bytes, f->seconds))
IO(io_write_rate, PER(f->write_bytes, f->seconds))
IO(io_reads, f->has_syncs_only ? (double)NAN : (double)f->nr_reads)
IO(io_read_mean, PER(f->read_bytes, f->nr_reads))
IO(io_syncs, f->nr_syncs)
IO(io_sync_time, f->sync_ns)
IO(io_sync_pct, PER(f->sync_ns, f->seconds) / 1e7)
IO(io_sync_p99, f->sync_p99_ns)
IO(io_sync_bytes, f->has_syncs_only ? (double)NAN : PER(f->write_bytes, f->nr_syncs))
IO(block_requests, f->nr_requests)
IO(block_in_flight, PER(f->request_ns, f->seconds) / 1e9)
IO(block_p50, f->request_p50_ns)
IO(block_p99, f->request_p99_ns)

FAULT(faults_seconds, f->seconds)
FAULT(faults_major, f->nr_major)
FAULT_TEXT(faults_major_text, arena_strdup(&m->a, num_noun(f->nr_major, "major faults").s))
FAULT(faults_major_time, f->major_ns)
FAULT(faults_major_anon, view_pct(f->nr_major_anon, f->nr_major))
FAULT_TEXT(faults_major_objects, f->major_objects)
FAULT_TEXT(faults_major_functions, f->major_functions)
FAULT(faults_minor, f->nr_minor)
FAULT_TEXT(faults_minor_text, arena_strdup(&m->a, num_noun(f->nr_minor, "minor faults").s))
FAULT(faults_minor_time, f->minor_ns)
FAULT(faults_minor_pct, PER(f->minor_ns, f->seconds) / 1e7)
FAULT_TEXT(faults_minor_objects, f->minor_objects)
FAULT_TEXT(faults_minor_functions, f->minor_functions)

static double reclaims(struct measures *m)
{
	const struct fault_figures *f = faults_of(m);
	return f ? (double)f->nr_reclaims : (double)NAN;
}

static double reclaim_time(struct measures *m)
{
	const struct fault_figures *f = faults_of(m);
	return f ? (double)f->reclaim_ns : (double)NAN;
}

static double reclaim_pct(struct measures *m)
{
	const struct fault_figures *f = faults_of(m);
	return f ? PER(f->reclaim_ns, f->seconds) / 1e7 : (double)NAN;
}

#define DURATION "the duration"

static const struct measure io_rows[] = {
	{"io.time", FORMULA_NS, NULL, "time in I/O calls, of all threads", .number = io_time},
	{"io.time.pct", FORMULA_PERCENT, DURATION, "time in I/O calls, of all threads",
	 .number = io_time_pct},
	{"io.seconds", FORMULA_PLAIN, NULL, "seconds selected", .number = io_seconds},
	{"io.kind", FORMULA_TEXT, NULL, "\"I/O\", or \"sync\": only these were recorded",
	 .text = io_kind},
	{"io.blocked", FORMULA_TEXT, NULL, "of sync calls: for how much of it they were blocked",
	 .text = io_blocked},
	{"io.call", FORMULA_TEXT, NULL, "the system call with most time", .text = io_call},
	{"io.call.calls", FORMULA_TEXT, NULL, "its number: \"12 calls\"", .text = io_call_nr},
	{"io.call.pct", FORMULA_PERCENT, "time in calls of I/O",
	 "in the system call with most time", .number = io_call_pct},
	{"io.call.mean", FORMULA_NS, NULL, "mean time of the system call with most time",
	 .number = io_call_mean},
	{"io.file", FORMULA_TEXT, NULL, "file or socket with most time", .text = io_file},
	{"io.file.pct", FORMULA_PERCENT, "time in calls of I/O",
	 "with the file or socket with most time", .number = io_file_pct},
	{"io.file.most", FORMULA_TEXT, NULL, "\"most\" or \"the largest part\"",
	 .text = io_file_most},
	{"io.bytes", FORMULA_BYTES, NULL, "bytes read and written", .number = io_bytes},
	{"io.bytes.file", FORMULA_TEXT, NULL, "file or socket with most bytes",
	 .text = io_bytes_file},
	{"io.read.rate", FORMULA_BYTES, NULL, "bytes read a second", .number = io_read_rate},
	{"io.write.rate", FORMULA_BYTES, NULL, "bytes written a second", .number = io_write_rate},
	{"io.reads", FORMULA_COUNT, NULL, "read calls", .number = io_reads},
	{"io.read.mean", FORMULA_BYTES, NULL, "mean size of a read", .number = io_read_mean},
	{"io.syncs", FORMULA_COUNT, NULL, "fsync calls and similar", .number = io_syncs},
	{"io.sync.time", FORMULA_NS, NULL, "time in fsync calls and similar",
	 .number = io_sync_time},
	{"io.sync.pct", FORMULA_PERCENT, DURATION, "time in fsync calls and similar",
	 .number = io_sync_pct},
	{"io.sync.p99", FORMULA_NS, NULL, "99th percentile of fsync calls and similar",
	 .number = io_sync_p99},
	{"io.sync.bytes", FORMULA_BYTES, NULL, "bytes written for each fsync call",
	 .number = io_sync_bytes},
	{"block.requests", FORMULA_COUNT, NULL, "block device requests", .number = block_requests},
	{"block.in-flight", FORMULA_PLAIN, NULL, "requests in flight on average",
	 .number = block_in_flight},
	{"block.p50", FORMULA_NS, NULL, "median time of a block device request",
	 .number = block_p50},
	{"block.p99", FORMULA_NS, NULL, "99th percentile of block device requests",
	 .number = block_p99},
};

static const struct measure fault_rows[] = {
	{"faults.seconds", FORMULA_PLAIN, NULL, "seconds selected", .number = faults_seconds},
	{"faults.major", FORMULA_COUNT, NULL, "major page faults (read from disk)",
	 .number = faults_major},
	{"faults.major.text", FORMULA_TEXT, NULL, "\"1 major fault\"", .text = faults_major_text},
	{"faults.major.time", FORMULA_NS, NULL, "time in major page faults",
	 .number = faults_major_time},
	{"faults.major.anon.pct", FORMULA_PERCENT, "major faults",
	 "major page faults of anonymous memory: read from swap", .number = faults_major_anon},
	{"faults.major.objects", FORMULA_TEXT, NULL, "\"most (84 %) in data.db\"",
	 .text = faults_major_objects},
	{"faults.major.functions", FORMULA_TEXT, NULL, "\"most (84 %) by look_up\"",
	 .text = faults_major_functions},
	{"faults.minor", FORMULA_COUNT, NULL, "minor page faults (page new or in memory)",
	 .number = faults_minor},
	{"faults.minor.text", FORMULA_TEXT, NULL, "\"1 minor fault\"", .text = faults_minor_text},
	{"faults.minor.time", FORMULA_NS, NULL, "time in minor page faults",
	 .number = faults_minor_time},
	{"faults.minor.pct", FORMULA_PERCENT, DURATION, "time in minor page faults",
	 .number = faults_minor_pct},
	{"faults.minor.objects", FORMULA_TEXT, NULL, "as of major ones",
	 .text = faults_minor_objects},
	{"faults.minor.functions", FORMULA_TEXT, NULL, "as of major ones",
	 .text = faults_minor_functions},
	{"reclaim.direct", FORMULA_COUNT, NULL, "times that its threads reclaimed memory",
	 .number = reclaims},
	{"reclaim.direct.time", FORMULA_NS, NULL, "time in which its threads reclaimed memory",
	 .number = reclaim_time},
	{"reclaim.direct.pct", FORMULA_PERCENT, DURATION,
	 "time in which its threads reclaimed memory", .number = reclaim_pct},
};

const struct measure *io_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(io_rows);
	return io_rows;
}

const struct measure *fault_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(fault_rows);
	return fault_rows;
}
