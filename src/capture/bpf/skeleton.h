/*
 * The loaded object as bpftool describes it (gen/assay.skel.h), with the types of its global
 * variables. Include this instead of the generated header.
 */
#ifndef ASSAY_CAPTURE_BPF_SKELETON_H
#define ASSAY_CAPTURE_BPF_SKELETON_H

#ifndef ASSAY_NO_BPF

#include <bpf/libbpf.h>

#include "base/base.h"
#include "kernel_event.h"
#include "kernel_heap.h"
#include "kernel_io.h"
#include "kernel_record.h"
#include "kernel_sample.h"
#include "kernel_span.h"
#include "kernel_stack.h"
#include "kernel_tables.h"
#include "kernel_wait.h"

#include "assay.skel.h"

#endif

#endif
