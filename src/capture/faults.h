/*
 * Page faults, each of them, by the kernel's own counters of them with our program behind: part of
 * the source io.h, which delivers the rows.
 */
#ifndef ASSAY_CAPTURE_FAULTS_H
#define ASSAY_CAPTURE_FAULTS_H

#include "base/base.h"
#include "base/err.h"

struct assay_bpf;
struct faults;

/*
 * Between engine_open and engine_load: leaves out what is not wanted or not there. Says whether
 * the kernel tells where faults begin, which is what gives their time.
 */
bool faults_choose(struct assay_bpf *skel, bool is_wanted);
/* After engine_load. */
int faults_attach(struct faults **ret_f, struct assay_bpf *skel, struct err *err);
/* Detaches. NULL is fine. */
void faults_free(struct faults *f);

#endif
