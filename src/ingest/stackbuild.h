/*
 * Builds the stacks of a profile from events: from chains that the kernel unwound, from registers
 * and copied stack bytes (unwind/walk.h), or from an address alone.
 *
 * A stack is stored from the root outwards: "[truncated]" if it is incomplete, user frames, then
 * kernel frames. Recent locations, chains and stacks are cached. Used by one thread. Per stack only
 * the profile's own nodes are allocated.
 *
 * *ret_loss is why a stack is incomplete; LOSS_NR: it is complete. The caller counts the loss.
 */
#ifndef ASSAY_INGEST_STACKBUILD_H
#define ASSAY_INGEST_STACKBUILD_H

#include "base/base.h"
#include "ingest/modules.h"
#include "model/event.h"
#include "model/profile.h"
#include "unwind/space.h"

#define CHAIN_DEPTH_MAX 4096 /* further frames of a chain are ignored */

struct stackbuild_options {
	struct profile *p;
	struct modules *modules;
	struct spaces *spaces; /* current mappings of all processes */
	/* Called if the thread's stack copy of nr_bytes was too short to unwind. May be NULL. */
	void (*wants_more_stack)(void *ctx, int32_t tid, uint64_t nr_bytes);
	void *ctx;
};

struct stackbuild;

/* Borrows all that the options point to. */
struct stackbuild *stackbuild_new(const struct stackbuild_options *options);
void stackbuild_free(struct stackbuild *b);

/*
 * Returns the location of an address. @is_call: @addr is a return address, and the location is that
 * of the call instruction before it.
 */
loc_id stackbuild_user_location(struct stackbuild *b, int32_t pid, struct space *sp, uint64_t addr,
				bool is_call);
loc_id stackbuild_kernel_location(struct stackbuild *b, uint64_t addr, bool is_call);
/* Returns the stack of an EVENT_SAMPLE that contains its chain, registers or address. */
stack_id stackbuild_sample(struct stackbuild *b, const struct event *ev, enum loss_kind *ret_loss);
/* Returns the user stack of an EVENT_STACK. */
stack_id stackbuild_user(struct stackbuild *b, const struct event *ev, enum loss_kind *ret_loss);

#endif
