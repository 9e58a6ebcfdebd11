/*
 * Page faults, each of them, by the kernel's own counters of them with our program behind: part of
 * the source io.h, which delivers the rows.
 */
#ifndef ASSAY_CAPTURE_IO_FAULTS_H
#define ASSAY_CAPTURE_IO_FAULTS_H

#include "base/base.h"
#include "base/err.h"

struct assay_bpf;
struct faults;

/*
 * Between engine_open and engine_load: leaves out what is not wanted or not there. Where the kernel
 * tells where faults begin they have their time.
 */
void faults_choose(struct assay_bpf *skel, bool is_wanted);
struct bpf_link;
struct bpf_program;

/*
 * A program behind a software event that counts each time (PERF_COUNT_SW_*) on one CPU. *ret_link
 * owns the descriptor; NULL: the CPU is offline.
 */
int faults_attach_event(struct bpf_link **ret_link, const struct bpf_program *p, uint64_t config,
			int cpu, struct err *err);
/* After engine_load. Also after an error *ret_f is to be freed. */
int faults_attach(struct faults **ret_f, struct assay_bpf *skel, struct err *err);
/* Detaches. NULL is fine. */
void faults_free(struct faults *f);

#endif
