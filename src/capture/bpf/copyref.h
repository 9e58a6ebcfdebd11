/*
 * References for stacks that come as registers and copied bytes: equal stacks get one reference
 * without being walked. What decides how a stack is walked is hashed: its registers' addresses,
 * and of the copied words those that lie in code or in the copy itself, with their places. Two
 * stacks of one reference walk alike; one stack may get several, when dead words differ.
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
	struct map code_of_pid; /* pid -> index + 1 */
	VEC(struct copyref_code) codes;
	struct map reported;
	struct map last; /* hash of thread, ip and sp -> index + 1 of last_refs */
	VEC(uint64_t) last_refs;
	uint64_t nr_reported;
};

void copyrefs_release(struct copyrefs *c);
/* Mappings, forks and execs, so that code is known. Other events are ignored. */
void copyrefs_note(struct copyrefs *c, const struct event *ev);
/* The address lies in code that was noted. */
bool copyrefs_is_code(struct copyrefs *c, int32_t pid, uint64_t addr);
/* @regs: of mask ARCH_PERF_REGS_MASK. Tells the stack to the sink unless it was told before. */
int copyrefs_emit(struct copyrefs *c, const struct event *at, const uint64_t *regs,
		  const uint8_t *stack, uint64_t nr_stack, const struct event_sink *sink,
		  uint64_t *ret_ref, struct err *err);
/* The stack that this thread had when it was last seen with this ip and sp; 0 = never. */
uint64_t copyrefs_last(const struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp);
void copyrefs_set_last(struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp, uint64_t ref);

#endif
