/* The ledger of samples; see loss.h. */
#include "base/base.h"
#include "model/loss.h"

static const struct {
	const char *key;
	const char *text;
	enum loss_class class;
} kinds[LOSS_NR] = {
	[LOSS_SEEN] = {"seen", "seen", LOSS_CLASS_COUNT},
	[LOSS_WRITTEN] = {"written", "written", LOSS_CLASS_COUNT},
	[LOSS_LOST] = {"lost", "lost by the kernel (ring full)", LOSS_CLASS_LOST},
	[LOSS_THROTTLED] = {"throttled", "throttled by the kernel (times)", LOSS_CLASS_COUNT},
	[LOSS_UNPARSED] = {"unparsed", "not understood", LOSS_CLASS_LOST},
	[LOSS_FILTERED] = {"filtered", "left out by a filter", LOSS_CLASS_COUNT},
	[LOSS_TRUNC_COPY] = {"truncated_copy", "stack copy too short", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_RULE] = {"truncated_no_rule", "code without unwind rules", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_FILE] = {"truncated_no_file", "binary not readable", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_MAP] = {"truncated_no_map", "address in no mapping", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_BAD_FRAME] = {"truncated_bad_frame", "impossible frame", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_DEPTH] = {"truncated_depth", "too deep", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_REGS] = {"truncated_no_regs", "no user registers", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_JIT] = {"truncated_jit", "JIT code without frame pointers", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_FP] = {"truncated_fp", "frame-pointer chain broken", LOSS_CLASS_TRUNC},
	[LOSS_UNSYM_NO_FILE] = {"unsymbolized_no_file", "binary not found", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_STRIPPED] = {"unsymbolized_stripped", "stripped code", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_CHANGED] = {"unsymbolized_changed", "file replaced since", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_NO_MAP] = {"unsymbolized_no_map", "address in no mapping", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_JIT] = {"unsymbolized_jit", "JIT code without a map", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_KERNEL] = {"unsymbolized_kernel", "kernel addresses hidden", LOSS_CLASS_UNSYM},
	[LOSS_DISK] = {"disk", "not written (disk full)", LOSS_CLASS_LOST},
	[LOSS_DAMAGED] = {"damaged", "in damaged parts of the recording", LOSS_CLASS_LOST},
	[LOSS_STACK_LOST] = {"truncated_lost", "stack lost on its way", LOSS_CLASS_TRUNC},
};

const char *loss_key(enum loss_kind kind)
{
	ASSERT(kind < LOSS_NR);
	return kinds[kind].key;
}

const char *loss_text(enum loss_kind kind)
{
	ASSERT(kind < LOSS_NR);
	return kinds[kind].text;
}

enum loss_class loss_class(enum loss_kind kind)
{
	ASSERT(kind < LOSS_NR);
	return kinds[kind].class;
}

void losses_merge(struct losses *to, const struct losses *from)
{
	for (size_t i = 0; i < LOSS_NR; i++)
		to->nr[i] += from->nr[i];
}

static uint64_t sum_class(const struct losses *l, enum loss_class class)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < LOSS_NR; i++)
		if (kinds[i].class == class)
			sum += l->nr[i];
	return sum;
}

uint64_t losses_truncated(const struct losses *l)
{
	return sum_class(l, LOSS_CLASS_TRUNC);
}

uint64_t losses_unsymbolized(const struct losses *l)
{
	return sum_class(l, LOSS_CLASS_UNSYM);
}
