/*
 * What the BPF programs send through the ring (BPF_MAP_TYPE_RINGBUF), in the order in
 * which they reserved it, which is nearly that of time. Each record starts with this head.
 */
#ifndef ASSAY_WIRE_KERNEL_RECORD_H
#define ASSAY_WIRE_KERNEL_RECORD_H

#include "wire_types.h"

enum kernel_record_kind {
	RECORD_SAMPLE = 1, /* struct kernel_sample */
	RECORD_STACK = 2,  /* struct kernel_stack: frames */
	RECORD_COPY = 3, /* struct kernel_copy: registers and stack bytes, for user space to walk */
	RECORD_WAIT = 4, /* struct wait_single (wire/kernel_wait.h): one long wait */
	RECORD_EVENT = 5, /* struct kernel_event (wire/kernel_event.h): one event */
	RECORD_SPAN = 6,  /* struct kernel_span (wire/kernel_span.h): one slow span */
	RECORD_FILE = 7,  /* struct kernel_file (wire/kernel_io.h): the name of a file */
	RECORD_ALLOC = 8, /* struct kernel_heap (wire/kernel_heap.h): a block of memory */
	RECORD_FREE = 9,  /* the same: its end */
};

struct kernel_record {
	wire_u16 kind;
	wire_u16 flags;
	wire_u32 nr_bytes; /* of the whole record */
	wire_u64 time_ns;  /* CLOCK_MONOTONIC */
	wire_s32 tgid;     /* in the root PID namespace */
	wire_s32 pid;
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_record) == 24, "record head");
#endif

#endif
