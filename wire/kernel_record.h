/*
 * The head of each record that BPF programs send through a ring buffer (BPF_MAP_TYPE_RINGBUF).
 * Records are in the order in which they were reserved, which is nearly the order of their times.
 */
#ifndef ASSAY_WIRE_KERNEL_RECORD_H
#define ASSAY_WIRE_KERNEL_RECORD_H

#include "wire_types.h"

enum kernel_record_kind {
	RECORD_SAMPLE = 1, /* struct kernel_sample (wire/kernel_sample.h): a CPU sample */
	RECORD_STACK = 2,  /* struct kernel_stack (wire/kernel_stack.h): the frames of a stack */
	RECORD_COPY =
		3, /* struct kernel_copy (same file): registers and stack bytes, not yet walked */
	RECORD_WAIT = 4,     /* struct wait_single (wire/kernel_wait.h): one wait */
	RECORD_EVENT = 5,    /* struct kernel_event (wire/kernel_event.h): one event */
	RECORD_SPAN = 6,     /* struct kernel_span (wire/kernel_span.h): one slow span */
	RECORD_FILE = 7,     /* struct kernel_file (wire/kernel_io.h): the name of a file */
	RECORD_ALLOC = 8,    /* struct kernel_heap (wire/kernel_heap.h): an allocated block */
	RECORD_FREE = 9,     /* struct kernel_heap: a freed block */
	RECORD_THREAD = 10,  /* struct wait_thread (wire/kernel_wait.h): a thread of the target */
	RECORD_PYCODE = 11,  /* struct kernel_pycode (wire/kernel_python.h): a Python function */
	RECORD_PYSTACK = 12, /* struct kernel_pystack (same file): the Python frames of a stack */
};

struct kernel_record {
	wire_u16 kind;     /* enum kernel_record_kind */
	wire_u16 flags;    /* depends on kind */
	wire_u32 nr_bytes; /* of the whole record */
	wire_u64 time_ns;  /* CLOCK_MONOTONIC */
	wire_s32 tgid;     /* process and thread id, in the root PID namespace */
	wire_s32 pid;
};

#ifndef __bpf__
_Static_assert(sizeof(struct kernel_record) == 24, "record head");
#endif

#endif
