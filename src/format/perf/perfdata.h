/*
 * perf.data, the recording of perf(1): its reader and its writer.
 *
 * Reading turns bytes into struct event for a sink, in the order of time. Accepted are files of
 * `perf record` (with and without -z, and of a perf that was killed) and its pipe mode, from a
 * file or a pipe. Memory stays bounded by the distance between two FINISHED_ROUND records; a
 * file that has none is held and sorted as a whole, as perf does.
 *
 * A damaged file gives the events before the damage and says so in the info (is_incomplete,
 * problem, nr_unparsed); an error is returned only when nothing could be read at all, or when the
 * sink returned one. Bytes are read with read/pread, never mapped, so that a file that shrinks
 * while it is read is an incomplete file and not a SIGBUS; chunks of 256 kB stay in the cache,
 * which costs no more than page faults would.
 *
 * Formats: tools/perf/Documentation/perf.data-file-format.txt for the file, its header and
 * features, <linux/perf_event.h> for the records. Little-endian files only.
 *
 * Not delivered: hardware traces (AUX, Intel PT: their bytes are skipped), guests' maps,
 * directories of `perf record --threads` (an error with the remedy).
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_H
#define ASSAY_FORMAT_PERF_PERFDATA_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/event.h"

/* One recorded event; event_sample.spec is an index into perfdata_info.specs. */
struct perfdata_spec {
	const char *name; /* as given to perf: "cycles:u", "sched:sched_switch"; never NULL */
	uint32_t type;    /* PERF_TYPE_* */
	uint64_t config;
	uint64_t sample_type; /* PERF_SAMPLE_* bits */
	uint64_t freq_hz;     /* asked for; 0 = a fixed period */
	uint64_t period;      /* when freq_hz is 0 */
	bool is_period_ns;    /* a clock: periods are nanoseconds */
	uint64_t nr_samples;  /* delivered so far */
};

struct perfdata_build_id {
	const char *path; /* "[kernel.kallsyms]" for the kernel */
	int32_t pid;
	bool is_kernel;
	uint8_t nr_bytes;
	uint8_t bytes[EVENT_BUILD_ID_MAX];
};

/*
 * What the file says about itself. Owned by the caller, who may look at it from within the sink:
 * a file's header is complete before the first event; in pipe mode a spec is there before its
 * first sample, the rest comes when it comes. Strings are NULL where the file does not say.
 */
struct perfdata_info {
	VEC(struct perfdata_spec) specs;
	VEC(struct perfdata_build_id) build_ids;
	const char *hostname;
	const char *os_release;
	const char *arch; /* "x86_64" */
	const char *cpu_desc;
	const char *cmdline; /* arguments joined by blanks */
	int64_t wall_ns;     /* CLOCK_REALTIME at clock_ns; both 0 = unknown */
	uint64_t clock_ns;
	uint64_t first_ns; /* of the samples; 0 = none or unknown */
	uint64_t last_ns;
	bool is_pipe;
	bool is_incomplete;   /* perf was killed or the file was cut */
	const char *problem;  /* one phrase why the rest could not be read, or NULL */
	uint64_t nr_unparsed; /* records that made no sense, samples or not */
	uint64_t nr_late;     /* delivered after a later one: the file's rounds do not hold */
	/*
	 * Lost as the kernel counted: records (LOST: any kind, as they happen) and, by kernels of
	 * 6.0 and later, samples (LOST_SAMPLES, at the end). Both describe the same drops and must
	 * not be added; the LOST events that are delivered add up to the larger one.
	 */
	uint64_t nr_lost_records;
	uint64_t nr_lost_samples;

	struct arena text;         /* of the strings above */
	struct map build_id_index; /* hash of the path -> index + 1 */
};

void perfdata_info_release(struct perfdata_info *info);

/*
 * Reads everything and hands it to the sink. *info starts as {0} and must outlive the call.
 * _fd: from the start of a regular file, or from where a pipe stands; the descriptor stays open.
 */
int perfdata_read(const void *p, size_t n, const struct event_sink *sink,
		  struct perfdata_info *info, struct err *err);
int perfdata_read_fd(int fd, const struct event_sink *sink, struct perfdata_info *info,
		     struct err *err);

/*
 * Writing: a profile as a recording that perf report, perf script and Hotspot open.
 *
 * One attribute a table, one sample record a sample; rows that stand for several samples become
 * as many records, which share the row's weight as their periods. Addresses are those that were
 * recorded: module offsets through the process's mappings; code addresses of processes whose
 * mappings are not known (children of a fork, imported profiles) are placed through another
 * process's mapping of the module or in a range of the module's own.
 *
 * Lost on the way: inlined frames and lines (perf works them out again from the binaries), names
 * that only we know of stripped code, columns beyond count and weight, marks. Frames that have no
 * address at all (named by a text format, "[truncated]") are written as symbols of kernel code
 * (KSYMBOL), which is the one record that carries a name: perf shows them with it, as kernel
 * frames; Hotspot as unknown ones.
 *
 * An output that is a new file is written as it goes; a pipe is held in memory until the end, for
 * the header has to say what follows.
 */
struct perfdata_written {
	uint64_t nr_samples; /* records */
	uint64_t nr_bytes;
	uint64_t nr_cut_stacks;   /* deeper than a record can hold: their roots are missing */
	uint64_t nr_named_frames; /* distinct frames without an address */
	uint64_t nr_guessed_maps; /* mappings that were not recorded but made up as said above */
	/* Rows were too many to be expanded: one record a row, its count as the period. */
	bool is_folded;
};

struct perfdata_options {
	/* Where the writer tells what was lost; may be NULL. */
	struct perfdata_written *ret_written;
};

#endif
