/*
 * Stacks that are sent once and referred to later. EVENT_STACK carries a user or a kernel part and
 * its reference; samples and aggregated rows carry a reference to each part.
 *
 * A user part becomes a stack of the profile when it arrives. A kernel part is kept as a list of
 * locations, since it is appended to many user stacks; joined stacks are cached. A reference whose
 * part has not arrived gives the stack "[lost stack]" and LOSS_STACK_LOST. Used by one thread.
 */
#ifndef ASSAY_INGEST_STACKREFS_H
#define ASSAY_INGEST_STACKREFS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/stackbuild.h"
#include "model/event.h"
#include "model/profile.h"

/* The part that a reference represents. */
struct stackref_part {
	stack_id stack;      /* user: the stack */
	bool has_leaf;       /* user: it includes the leaf of the samples that refer to it */
	uint32_t first;      /* kernel: its frames in stackrefs.frames, leaf first */
	uint32_t nr;         /* 0 for a user stack */
	enum loss_kind loss; /* user: why it is incomplete, or LOSS_NR */
};

struct stackrefs {
	struct profile *p;
	struct spaces *spaces;
	struct stackbuild *stackbuild;
	struct modules *modules;
	struct pythonframes *python; /* NULL: no Python frames have come */
	struct map user;             /* ref -> index into parts */
	struct map kernel;
	VEC(struct stackref_part) parts;
	VEC(loc_id) frames;
	struct map joined; /* stack << 32 | index of a kernel part -> joined stack */
	stack_id lost;     /* [lost stack] */
};

void stackrefs_release(struct stackrefs *r);
/*
 * Returns whether stackrefs_add uses an EVENT_STACK: its reference is new, or represents an
 * incomplete user stack, which may be complete this time.
 */
bool stackrefs_needs(const struct stackrefs *r, const struct event_stack *s);
/* Adds the part of an EVENT_STACK if it is needed. */
void stackrefs_add(struct stackrefs *r, const struct event *ev);
/* Adds an EVENT_PYCODE or EVENT_PYSTACK. */
void stackrefs_add_pycode(struct stackrefs *r, const struct event *ev);
void stackrefs_add_pystack(struct stackrefs *r, const struct event *ev);
/* Return whether the part has arrived; reference 0 (none) always has. */
bool stackrefs_has_user(const struct stackrefs *r, uint64_t ref);
bool stackrefs_has_kernel(const struct stackrefs *r, uint64_t ref);
/*
 * Returns the user stack of a reference; 0 for reference 0. *ret_loss, here and below: why the
 * stack is incomplete, or LOSS_NR.
 */
stack_id stackrefs_user(struct stackrefs *r, uint64_t ref, enum loss_kind *ret_loss);
/* Returns the joined stack: the frames of the kernel part are the callees of the user stack. */
stack_id stackrefs_stack(struct stackrefs *r, uint64_t user_ref, uint64_t kernel_ref,
			 enum loss_kind *ret_loss);
/* Returns the stack of an EVENT_SAMPLE that refers to its parts. */
stack_id stackrefs_sample(struct stackrefs *r, const struct event *ev, enum loss_kind *ret_loss);

#endif
