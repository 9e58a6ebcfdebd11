/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every program shares: who is a target, the state of a task, the stack engine, the ring.
 */
#ifndef ASSAY_BPF_ENGINE_H
#define ASSAY_BPF_ENGINE_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} ring SEC(".maps");

#endif
