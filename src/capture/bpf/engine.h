/*
 * Our BPF programs: one BPF object a session, whose maps all of them share. It finds
 * whole user stacks by the unwind rows of unwind/table.h, for CPU samples, context switches,
 * tracepoints and probes alike, keeps each stack once, and sends what it has through one ring.
 *
 * What a mapping means is told to it by engine_publish() after the builder has applied the event;
 * a stack that its tables do not cover yet comes as registers and copied bytes (EVENT_STACK with
 * regs), so that nothing is lost in between.
 *
 * Life:
 *	engine_open    the object is open: sources set constants (skel->rodata), sizes of maps, and
 *	               leave out single programs (bpf_program__set_autoload)
 *	engine_load    the kernel has checked the programs and maps have descriptors; births and
 *	               ends of targets are followed, nothing else runs. Sources fill maps, attach
 *	               what needs more than its section's name says
 *	engine_start   everything else is attached; records are delivered through the sampler's
 *	               merge by time (sampler.h, struct side)
 *	engine_stop    nothing runs any more, records that are in the ring can be delivered
 *	engine_free
 * Used by one thread.
 *
 * Names decide what is loaded: programs and maps of a source begin with its prefix (source.h) and are
 * left out without it; those of no source belong to the engine itself.
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
	const struct target *target; /* processes with what they fork; borrowed until the end */
	/* Programs and maps whose names begin so are left out. Borrowed by engine_open. */
	const char *const *left_out;
	size_t nr_left_out;
};

struct engine_info {
	uint64_t own_ns; /* time in our programs by their own timing of every 64th run */
	uint64_t run_ns; /* the same as the kernel counts it, with kernel.bpf_stats_enabled; else 0
			  */
	uint64_t nr_runs;
	uint64_t nr_stacks; /* told */
	uint64_t nr_walks;
	uint64_t nr_stack_cache_hits; /* stacks that were what they had been: not walked */
	uint64_t nr_frames;           /* walked */
	uint64_t nr_rule_misses;      /* frames whose rule had to be searched for */
	uint64_t nr_copies;           /* stacks that user space had to finish */
	uint64_t nr_copies_held; /* of these: cut short here, too many bytes of them a second */
	uint64_t nr_ring_full;   /* records dropped; stacks among them are told again */
	uint64_t nr_bad;         /* records that made no sense */
	uint64_t nr_tables_full; /* binaries for which there was no room */
	uint64_t nr_rows;
	uint64_t map_bytes; /* kernel memory of the maps */
};

struct engine;

/*
 * -EPERM, -ENOTSUP (no BPF here, no BTF, built with BPF=0): the caller goes on without, and says
 * so; the hint has the remedy.
 */
int engine_open(struct engine **ret_e, const struct engine_spec *spec, struct err *err);
/* The same refusals: what the kernel says no to is known only now. */
int engine_load(struct engine *e, struct err *err);
/* Attaches what was loaded and not attached by its source. */
int engine_start(struct engine *e, struct err *err);
/* Detaches; records that are in the ring can still be delivered. */
void engine_stop(struct engine *e);
void engine_free(struct engine *e);
void engine_free_p(struct engine **e);

/* One more process, and what it forks from now on. */
int engine_add(struct engine *e, int32_t pid, struct err *err);

/* The program for sampling events (PERF_EVENT_IOC_SET_BPF), negative = not loaded. */
int engine_sample_prog(const struct engine *e);
/* The process's executable mappings are these now; borrowed until told otherwise. NULL: it is gone.
 */
void engine_publish(struct engine *e, int32_t pid, const struct space *sp);
/* Every event up to this time has been applied: what engine_publish said holds at least then. */
void engine_applied(struct engine *e, uint64_t time_ns);

/* The oldest record's time, UINT64_MAX = none; delivering it. For sampler.h's struct side. */
uint64_t engine_peek_ns(void *e);
int engine_deliver(void *e, const struct event_sink *sink, struct err *err);
/* For who reads the kernel side's maps: the sum over all CPUs of a per-CPU array's element of u64s.
 * @nr: how many u64 an element has. */
int engine_sum_percpu(int map_fd, uint32_t idx, uint64_t *ret_v, size_t nr);

/*
 * Samples that were dropped since the last call, as EVENT_LOST. To be called now and then, and
 * once when everything has been delivered.
 */
int engine_emit_losses(struct engine *e, const struct event_sink *sink, struct err *err);
struct engine_info engine_info(const struct engine *e);

/* For the sources (waitsource.c, counts.c ...): the loaded skeleton (gen/assay.skel.h). */
struct assay_bpf;
struct assay_bpf *engine_skel(const struct engine *e);
/* Hands RECORD_<kind> to a source; it may keep nothing of the record. */
struct kernel_record;
typedef int (*engine_record_fn)(void *ctx, const struct kernel_record *r,
				const struct event_sink *sink, struct err *err);
void engine_on_record(struct engine *e, unsigned kind, engine_record_fn fn, void *ctx);

#endif
