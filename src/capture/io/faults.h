/*
 * Counts every page fault: BPF programs on the kernel's page fault software events. Part of the
 * source in io.h, which delivers the rows.
 */
#ifndef ASSAY_CAPTURE_IO_FAULTS_H
#define ASSAY_CAPTURE_IO_FAULTS_H

#include "base/base.h"
#include "base/err.h"

struct assay_bpf;
struct btf;
struct faults;

/*
 * Called between engine_open and engine_load: disables the programs that are not wanted or not
 * supported. Where the kernel (@types: engine_kernel_types) has tracepoints at the start of faults,
 * their duration is measured.
 */
enum faults_which { FAULTS_NONE = 0, FAULTS_MAJOR, FAULTS_ALL };
void faults_choose(struct assay_bpf *skel, const struct btf *types, enum faults_which which);
struct bpf_link;
struct bpf_program;

/*
 * Attaches a BPF program to a software event (PERF_COUNT_SW_*, period 1) on one CPU. *ret_link owns
 * the descriptor; it is NULL if the CPU is offline.
 */
int faults_attach_event(struct bpf_link **ret_link, const struct bpf_program *p, uint64_t config,
			int cpu, struct err *err);
/* Called after engine_load. The caller frees *ret_f, also after an error. */
int faults_attach(struct faults **ret_f, struct assay_bpf *skel, enum faults_which which,
		  struct err *err);
/* Detaches and frees. @f may be NULL. */
void faults_free(struct faults *f);

#endif
