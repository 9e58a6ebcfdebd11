/*
 * Stack references for stacks that come as registers and copied bytes (perf samples without BPF). A
 * reference is a hash, so equal stacks get the same reference without being unwound, and each is
 * delivered once. The hash covers what decides how the stack is unwound: registers that are
 * addresses, and the copied words that point to code or into the copy itself, with their positions.
 * Stacks with the same reference unwind to the same frames. One call stack may get several
 * references if words that the unwinder does not use differ.
 */
#ifndef ASSAY_CAPTURE_BPF_COPYREF_H
#define ASSAY_CAPTURE_BPF_COPYREF_H

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/event.h"

struct copyref_code;

struct copyrefs {
	struct map code_of_pid; /* pid -> index + 1 into codes */
	VEC(struct copyref_code) codes;
	struct map reported; /* references of stacks that were delivered */
	struct map last;     /* hash of thread, ip and sp -> index + 1 into last_refs */
	VEC(uint64_t) last_refs;
	uint64_t nr_reported;
};

void copyrefs_release(struct copyrefs *c);
/* Applies mappings, forks and execs, so that addresses of code are known; ignores other events. */
void copyrefs_apply(struct copyrefs *c, const struct event *ev);
/* Whether an address is in an executable mapping of the process. */
bool copyrefs_is_code(struct copyrefs *c, int32_t pid, uint64_t addr);
/*
 * Sets *ret_ref to the stack's reference, and delivers the stack to the sink as EVENT_STACK if it
 * is new. @at: time, process and thread of the stack; @regs: those of ARCH_PERF_REGS_MASK; @stack:
 * bytes from the stack pointer upwards.
 */
int copyrefs_emit(struct copyrefs *c, const struct event *at, const uint64_t *regs,
		  const uint8_t *stack, uint64_t nr_stack, const struct event_sink *sink,
		  uint64_t *ret_ref, struct err *err);
/* The stack reference that was last set for this thread with this ip and sp; 0 = none. */
uint64_t copyrefs_last(const struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp);
void copyrefs_set_last(struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp, uint64_t ref);

#endif
