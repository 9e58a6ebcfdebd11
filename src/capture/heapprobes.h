/*
 * The heap of processes by probes on the functions of their allocators (tier UPROBES): for those
 * that nobody may trace, where programs may be loaded (bpf/heap.bpf.h). The books are the same as
 * those of the recorder (heapbook.h), a book a process.
 *
 * A probe costs the program a trap, about a microsecond on an instruction that the kernel emulates
 * and several times as much elsewhere; so of each function the first instruction is taken that is
 * emulated, always reached, and still has the arguments (heapprobes_point). Sampled, only calls
 * whose block was chosen are probed at their return as well, where the kernel can do that.
 *
 * Life: heapprobes_open before engine_load, _attach after it, _start, _poll, _stop (while the
 * engine's records can still be delivered), _free. One thread.
 */
#ifndef ASSAY_CAPTURE_HEAPPROBES_H
#define ASSAY_CAPTURE_HEAPPROBES_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "plan/heapplan.h"
#include "capture/heapsource.h"
#include "host/proc.h"
#include "model/event.h"

struct heapprobes_info {
	size_t nr_processes;
	size_t nr_probes;   /* on functions of all processes */
	size_t nr_stepped;  /* of these: on instructions that are not emulated */
	uint64_t nr_hits;   /* of entries */
	uint64_t nr_allocs; /* exact, also where sampled */
	uint64_t nr_alloc_bytes;
	uint64_t nr_frees;
	uint64_t nr_dropped; /* records for which there was no room */
	uint64_t dropped_bytes;
	uint64_t nr_no_room; /* sampled blocks whose frees will not be seen */
	bool has_sessions;   /* returns of calls that are not sampled cost nothing */
	bool is_launch;
	uint64_t interval_bytes; /* 0: every allocation */
	const char *why;         /* this tier */
	const char *allocator;   /* of the first process; "" before it is known. Borrowed */
};

struct heapprobes;

int heapprobes_open(struct heapprobes **ret_h, struct engine *e, const struct heapsource_spec *spec,
		    struct err *err);
/* The processes of the spec; a launched command when it has executed its program. */
int heapprobes_attach(struct heapprobes *h, struct err *err);
void heapprobes_start(struct heapprobes *h, uint64_t start_ns);
int heapprobes_poll(struct heapprobes *h, const struct event_sink *sink, struct err *err);
int heapprobes_stop(struct heapprobes *h, const struct event_sink *sink, struct err *err);
struct heapprobes_info heapprobes_info(const struct heapprobes *h);
void heapprobes_free(struct heapprobes *h);

/*
 * Where in a function's first bytes the probe goes: the offset of an instruction that is emulated,
 * always reached, with the arguments of its shape where they were and, unless it frees, the stack
 * pointer as well. 0 with *ret_is_emulated false: there is none, the first instruction is stepped
 * over.
 */
size_t heapprobes_point(const uint8_t *code, size_t n, enum heap_shape shape,
			bool *ret_is_emulated);

#endif
