/*
 * The BPF engine: loads and attaches assay's BPF programs, which are one BPF object with shared
 * maps. For CPU samples, context switches, tracepoints and probes the programs unwind user stacks
 * by unwind rows (unwind/table.h). They send each stack once, and all records through one ring
 * buffer.
 *
 * After the builder (ingest/builder.h) has applied an mmap event, engine_publish() copies the
 * mappings to the programs. Until then, a stack in these mappings is delivered as registers and
 * copied bytes (EVENT_STACK with regs), for the unwinder in user space.
 *
 * Life cycle:
 *	engine_open    opens the object: sources may set constants (skel->rodata) and map sizes, and
 *	               disable single programs (bpf_program__set_autoload)
 *	engine_load    the kernel has verified the programs, and maps have descriptors. Only the
 *	               programs that follow creation and exit of target threads are attached.
 *	               Sources fill maps, and attach programs whose section name has no attach point
 *	engine_start   attaches all other programs; records are delivered through the sampler, which
 *	               merges them by time (sampler.h, struct side)
 *	engine_stop    detaches; records that are in the ring can still be delivered
 *	engine_free
 * Used by one thread.
 *
 * The names of programs and maps decide what is loaded: those of a source begin with its prefix
 * (source.bpf_prefix) and are left out if the source is not open. The others are the engine's own.
 */
#ifndef ASSAY_CAPTURE_BPF_ENGINE_H
#define ASSAY_CAPTURE_BPF_ENGINE_H

#include "base/base.h"
#include "base/err.h"
#include "host/target.h"
#include "model/event.h"
#include "unwind/space.h"

#define ENGINE_SAMPLES "cpu_" /* the prefix of the program for CPU samples */

struct engine_spec {
	const struct target *target; /* processes and their children; borrowed until engine_free */
	/* Prefixes of programs and maps that are not loaded. Borrowed until engine_open returns. */
	const char *const *excluded;
	size_t nr_excluded;
};

/* What the programs did and what it cost. */
struct engine_info {
	uint64_t own_ns; /* time in BPF programs: estimate from their timing of every 64th run */
	/* Time in BPF programs as counted by the kernel; 0 without kernel.bpf_stats_enabled. */
	uint64_t run_ns;
	uint64_t nr_runs;
	uint64_t nr_stacks; /* sent */
	uint64_t nr_walks;
	uint64_t nr_stack_cache_hits;  /* stacks found in the per-thread cache: not walked */
	uint64_t nr_frames;            /* walked */
	uint64_t nr_rule_misses;       /* frames whose rule was not in the rule cache */
	uint64_t nr_copies;            /* stacks sent as bytes, to be walked by user space */
	uint64_t nr_copies_over_limit; /* stacks truncated: limit of copied bytes per second */
	uint64_t nr_pythons;           /* stacks of threads with Python frames */
	uint64_t nr_pythons_partly;    /* of these, some frames were not readable */
	uint64_t nr_ring_full;         /* records dropped; stacks among them are sent again */
	uint64_t nr_bad;               /* invalid records */
	uint64_t nr_tables_full;       /* binaries whose unwind rows had no room */
	uint64_t nr_rows;              /* unwind rows in the tables */
	uint64_t map_bytes;            /* kernel memory of the maps */
};

struct engine;

/*
 * Opens the BPF object. -EPERM or -ENOTSUP (no BPF, no BTF, built with BPF=0): the caller continues
 * without BPF and reports it; the error's hint has the remedy.
 */
int engine_open(struct engine **ret_e, const struct engine_spec *spec, struct err *err);
/* Loads the programs. The same errors: only now does the kernel refuse a program. */
int engine_load(struct engine *e, struct err *err);
/*
 * After engine_load: whether its maps can be used without capabilities. Kernels before 5.19 refuse
 * that if kernel.unprivileged_bpf_disabled is set.
 */
bool engine_works_without_caps(struct engine *e);
/* Attaches the programs that were loaded and not attached by their source. */
int engine_start(struct engine *e, struct err *err);
/* Detaches; records that are in the ring can still be delivered. */
void engine_stop(struct engine *e);
void engine_free(struct engine *e);
void engine_free_p(struct engine **e);

/* Adds a process and its future children to the targets, from now on. */
int engine_add(struct engine *e, int32_t pid, struct err *err);

/* Descriptor of the program for perf sampling events (PERF_EVENT_IOC_SET_BPF); -1: not loaded. */
int engine_sample_prog(const struct engine *e);
/*
 * Publishes the executable mappings of a process to the programs. @sp is borrowed until the next
 * call for this process; NULL: the process has ended.
 */
void engine_publish(struct engine *e, int32_t pid, const struct space *sp);
/* States that all events up to @time_ns are applied: published mappings are valid until then. */
void engine_applied(struct engine *e, uint64_t time_ns);

/*
 * Return the time of the oldest record (UINT64_MAX = none, 0 = still being written), and deliver
 * that record. These are functions of the sampler's second stream of records (struct side).
 */
uint64_t engine_peek_ns(void *e);
int engine_deliver(void *e, const struct event_sink *sink, struct err *err);
/* Sums element @idx of a per-CPU array over all CPUs. @nr: number of u64 in an element. */
int engine_sum_percpu(int map_fd, uint32_t idx, uint64_t *ret_v, size_t nr);

/*
 * Delivers the number of samples dropped since the last call, as EVENT_LOST. Called once in a
 * while, and after all records have been delivered.
 */
int engine_emit_losses(struct engine *e, const struct event_sink *sink, struct err *err);
struct engine_info engine_info(const struct engine *e);

/*
 * The types of the kernel (BTF), from engine_open until engine_load, for what a source decides by
 * them. They are read once, since that takes about 50 ms. NULL: the kernel has none.
 */
struct btf;
const struct btf *engine_kernel_types(const struct engine *e);
/* For sources: the object's libbpf skeleton (gen/assay.skel.h). */
struct assay_bpf;
struct assay_bpf *engine_skel(const struct engine *e);
/* Passes records of @kind to a source; a record is borrowed until the function returns. */
struct kernel_record;
typedef int (*engine_record_fn)(void *ctx, const struct kernel_record *r,
				const struct event_sink *sink, struct err *err);
void engine_on_record(struct engine *e, unsigned kind, engine_record_fn fn, void *ctx);
/* Passes slow spans (calls that one source measured) to another source. NULL: no more. */
typedef void (*engine_span_fn)(void *ctx, int32_t tid, uint64_t from_ns, uint64_t to_ns);
void engine_on_span(struct engine *e, engine_span_fn fn, void *ctx);
void engine_add_span(struct engine *e, int32_t tid, uint64_t from_ns, uint64_t to_ns);
/* Calls @fn often, in a thread of its own; see recordqueue_on_poll. NULL: no more. */
void engine_on_poll(struct engine *e, void (*fn)(void *ctx), void *ctx);
/* Descriptor that becomes readable when a ring fills up; -1: not loaded. */
int engine_wakeups_fd(const struct engine *e);
/* Returns whether a ring has filled up since the last call. */
bool engine_take_wakeups(struct engine *e);
/* The caller waits until a ring fills up, or has been woken; see recordqueue_rest. */
void engine_rest(struct engine *e, bool is_resting);

#endif
