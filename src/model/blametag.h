/*
 * The detail of a row of TABLE_BLAME: what the blamed thread did, over how many steps the waiter
 * waited for it, and whether they wait in a convoy: "fsync/1", "on_cpu/2/convoy". The other fields
 * of the tag are those of the waiter's wait, except `other` and `other_stack`: the blamed thread.
 *
 * Recordings of earlier versions have no detail: there the reason is what the blamed thread did, and
 * the waiter waited for a futex.
 */
#ifndef ASSAY_MODEL_BLAMETAG_H
#define ASSAY_MODEL_BLAMETAG_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"
#include "wait_reason.h"

struct blametag {
	enum wait_reason doing; /* WAIT_ON_CPU: it ran */
	unsigned nr_steps;      /* 1: the waiter waited for the thread directly */
	bool is_convoy;
};

void blametag_add_text(struct buf *to, const struct blametag *tag);
/* Returns false if the text is not a detail of blame. */
bool blametag_parse(struct sv text, struct blametag *ret_tag);

#endif
