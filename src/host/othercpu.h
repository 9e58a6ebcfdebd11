/*
 * Which programs outside of the target used the CPUs during a capture, by /proc/PID/stat of all visible
 * processes at its start and at its end: two readings, of about 20 us a process.
 *
 * Processes of one name are added up, kernel threads as "kernel threads". Processes that start and end in
 * between are seen in the times of their parents' children, if a parent has waited for them.
 */
#ifndef ASSAY_HOST_OTHERCPU_H
#define ASSAY_HOST_OTHERCPU_H

#include "base/base.h"
#include "base/buf.h"
#include "base/vec.h"
#include "host/target.h"

struct othercpu_process {
	int32_t pid;
	int32_t parent;
	uint64_t start_ticks;
	uint64_t own_ticks;
	uint64_t children_ticks; /* of children that it has waited for */
	char name[16];
};

struct othercpu {
	VEC(struct othercpu_process) list; /* at its beginning, by pid */
	uint64_t start_ns;
};

void othercpu_release(struct othercpu *o);
/* @proc: "/proc". */
void othercpu_begin(struct othercpu *o, const char *proc);
/*
 * Appends "1.73 CPUs: stress-ng 1.20, cc1 0.43": the most busy ones since othercpu_begin, without assay, the
 * target and their descendants. To be called once. Nothing, if they used less than a twentieth of a CPU.
 */
void othercpu_end(struct othercpu *o, struct buf *to, const char *proc, const struct target *t,
		  uint64_t now_ns);

#endif
