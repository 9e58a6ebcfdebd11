/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All BPF programs of assay, as one object: they share the unwind tables, the set of targets, the
 * set of stacks that were sent, and the ring buffer. capture/bpf/engine.c decides which programs
 * are loaded.
 */
#include "kernel.bpf.h"

#include "kernel_record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "engine.bpf.h"

#include "cpu.bpf.h"
#include "io.bpf.h"
#include "block.bpf.h"
#include "uring.bpf.h"
#include "faults.bpf.h"
#include "growth.bpf.h"
#include "waits.bpf.h"
#include "counts.bpf.h"
#include "spans.bpf.h"
#include "heap.bpf.h"
