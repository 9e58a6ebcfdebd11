/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Everything that assay runs in the kernel, as one object: the programs of a session share the
 * unwind tables, the target set, the stacks already told and the ring. Which programs are loaded
 * is decided by capture/bpf/engine.c.
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
