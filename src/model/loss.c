/* Losses; see loss.h. */
#include "base/base.h"
#include "model/loss.h"

#include "base/buf.h"
#include "base/text/num.h"

#define SECOND_NS     1000000000u
#define EVENTS_PER_NS 64                  /* of all CPUs together */
#define EVENTS_MAX    ((uint64_t)1 << 53) /* if the duration is unknown */
#define TIME_MAX_NS   ((uint64_t)1 << 60) /* 36 years */

static const struct {
	const char *key;
	const char *text;
	enum loss_class class;
	const char *noun; /* of LOSS_CLASS_OTHER: the plural that begins the text */
} kinds[LOSS_NR] = {
	[LOSS_SEEN] = {"seen", "seen", LOSS_CLASS_COUNT},
	[LOSS_WRITTEN] = {"written", "written", LOSS_CLASS_COUNT},
	[LOSS_LOST] = {"lost", "lost by the kernel (ring full)", LOSS_CLASS_LOST},
	[LOSS_THROTTLED] = {"throttled", "throttled by the kernel (times)", LOSS_CLASS_COUNT},
	[LOSS_UNPARSED] = {"unparsed", "could not be parsed", LOSS_CLASS_LOST},
	[LOSS_FILTERED] = {"filtered", "filtered out", LOSS_CLASS_COUNT},
	[LOSS_TRUNC_COPY] = {"truncated_copy", "stack copy too short", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_RULE] = {"truncated_no_rule", "code without unwind rules", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_FILE] = {"truncated_no_file", "binary not readable", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_MAP] = {"truncated_no_map", "address in no mapping", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_BAD_FRAME] = {"truncated_bad_frame", "invalid frame", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_DEPTH] = {"truncated_depth", "stack too deep", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_NO_REGS] = {"truncated_no_regs", "no user registers", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_JIT] = {"truncated_jit", "JIT code without frame pointers", LOSS_CLASS_TRUNC},
	[LOSS_TRUNC_FP] = {"truncated_fp", "frame-pointer chain broken", LOSS_CLASS_TRUNC},
	[LOSS_UNSYM_NO_FILE] = {"unsymbolized_no_file", "binary not found", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_STRIPPED] = {"unsymbolized_stripped", "stripped code", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_CHANGED] = {"unsymbolized_changed", "binary replaced on disk",
				LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_NO_MAP] = {"unsymbolized_no_map", "address in no mapping", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_JIT] = {"unsymbolized_jit", "JIT code without a map", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_KERNEL] = {"unsymbolized_kernel", "kernel addresses hidden", LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_NO_KERNEL] = {"unsymbolized_no_kernel", "no symbol of its kernel",
				  LOSS_CLASS_UNSYM},
	[LOSS_UNSYM_SILENT] = {"unsymbolized_no_answer", "binary did not answer", LOSS_CLASS_UNSYM},
	[LOSS_DISK] = {"disk", "not written (disk full)", LOSS_CLASS_LOST},
	[LOSS_DAMAGED] = {"damaged", "in damaged parts of the recording", LOSS_CLASS_LOST},
	[LOSS_STACK_LOST] = {"truncated_lost", "stack record lost", LOSS_CLASS_TRUNC},
	[LOSS_HEAP_DROPPED] = {"heap_dropped", "heap events (ring full or too many threads)",
			       .noun = "heap events"},
	[LOSS_HEAP_REFUSED] = {"heap_processes_refused",
			       "processes whose heap could not be recorded", .noun = "processes"},
	[LOSS_HEAP_NOT_FOLLOWED] = {"heap_children_not_followed", "child processes not followed",
				    .noun = "child processes"},
	[LOSS_HEAP_TOO_SHORT] = {"heap_children_too_short", "child processes that ended too early",
				 .noun = "child processes"},
	[LOSS_HEAP_LATE] = {"heap_children_late",
			    "programs of child processes not recorded from their start",
			    .noun = "programs"},
	[LOSS_HEAP_BROKEN] = {"heap_rings_broken", "corrupted rings of heap events",
			      .noun = "corrupted rings"},
	[LOSS_HEAP_NO_STACK] = {"heap_stacks_without_room", "stacks of allocations (table full)",
				.noun = "stacks"},
	[LOSS_HEAP_UNACCOUNTED] = {"heap_blocks_not_followed",
				   "heap blocks not tracked (table full)", .noun = "heap blocks"},
	[LOSS_HEAP_UNPATCHED] = {"heap_functions_not_patched", "allocator functions not patched",
				 .noun = "allocator functions"},
	[LOSS_HEAP_NO_FREE] = {"heap_frees_not_seen",
			       "heap blocks whose free is not recorded (table full)",
			       .noun = "heap blocks"},
	[LOSS_IO_NO_ROW] = {"io_without_row", "I/O calls without stack and file (table full)",
			    .noun = "I/O calls"},
	[LOSS_IO_UNCOUNTED] = {"io_not_counted", "I/O calls not counted", .noun = "I/O calls"},
	[LOSS_IO_NO_NAME] = {"io_files_without_name", "file names of I/O", .noun = "file names"},
	[LOSS_FAULTS_NO_MAP] = {"faults_without_mapping", "page faults counted without a mapping",
				.noun = "page faults"},
	[LOSS_BLOCK_NO_ISSUE] =
		{"block_without_issue",
		 "block requests of the machine completed without an issue event, in most "
		 "cases issued before the capture",
		 .noun = "block requests"},
	[LOSS_BLOCK_UNTRACKED] = {"block_not_followed", "block requests not tracked (table full)",
				  .noun = "block requests"},
	[LOSS_WAITS_NO_REASON] = {"waits_without_reason", "wait reasons (table full)",
				  .noun = "wait reasons"},
	[LOSS_WAITS_NO_ROW_NS] = {"waits_without_row_ns", "of wait time not recorded (table full)"},
	[LOSS_EVENTS_NO_ROW] = {"events_without_row", "events without stack (table full)",
				.noun = "events"},
	[LOSS_EVENTS_MISSED] = {"events_missed",
				"events in interrupts of BPF programs (all processes)",
				.noun = "events"},
	[LOSS_SPANS_UNFINISHED] = {"spans_unfinished", "calls that did not return",
				   .noun = "calls"},
	[LOSS_SPANS_INSIDE] = {"spans_inside",
			       "calls inside another measured call (part of its time, not measured "
			       "separately)",
			       .noun = "calls"},
	[LOSS_SPANS_NO_ROW] = {"spans_without_row", "calls not counted (table full)",
			       .noun = "calls"},
	[LOSS_SPANS_NO_DETAILS] = {"spans_without_details", "details of slow calls",
				   .noun = "details"},
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

void losses_add(struct losses *l, enum loss_kind kind, uint64_t nr)
{
	l->nr[kind] = u64_add(l->nr[kind], nr);
}

/*
 * More than the largest machine can count. Samples of some files are units of time, and may be
 * billions of heap blocks at one moment: for these kinds only the sum over years is a limit.
 */
static uint64_t limit_of(enum loss_kind kind, uint64_t duration_ns)
{
	bool is_time = kind == LOSS_WAITS_NO_ROW_NS;
	if (is_time || kind == LOSS_SEEN || kind == LOSS_WRITTEN)
		return TIME_MAX_NS;
	if (!duration_ns || duration_ns >= EVENTS_MAX / EVENTS_PER_NS - SECOND_NS)
		return EVENTS_MAX;
	return (duration_ns + SECOND_NS) * EVENTS_PER_NS;
}

static uint64_t sum_class(const struct losses *l, enum loss_class class)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < LOSS_NR; i++)
		if (kinds[i].class == class)
			sum = u64_add(sum, l->nr[i]);
	return sum;
}

size_t losses_ignore_implausible(struct losses *l, uint64_t duration_ns)
{
	size_t nr_ignored = 0;
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (k == LOSS_SEEN || l->nr[k] <= limit_of(k, duration_ns))
			continue;
		l->nr[k] = 0;
		nr_ignored++;
	}
	uint64_t limit = limit_of(LOSS_SEEN, duration_ns);
	if (!nr_ignored && l->nr[LOSS_SEEN] <= limit)
		return 0;
	uint64_t parts = u64_add(l->nr[LOSS_WRITTEN], l->nr[LOSS_FILTERED]);
	l->nr[LOSS_SEEN] = u64_add(parts, sum_class(l, LOSS_CLASS_LOST));
	return MAX(nr_ignored, 1u);
}

void losses_merge(struct losses *to, const struct losses *from)
{
	for (size_t i = 0; i < LOSS_NR; i++)
		losses_add(to, (enum loss_kind)i, from->nr[i]);
}

enum loss_kind loss_from_walk_end(enum walk_end end)
{
	static const uint8_t losses[WALK_END_NR] = {
		[WALK_ROOT] = LOSS_NR,
		[WALK_NO_MAP] = LOSS_TRUNC_NO_MAP,
		[WALK_NO_RULE] = LOSS_TRUNC_NO_RULE,
		[WALK_NO_FILE] = LOSS_TRUNC_NO_FILE,
		[WALK_JIT] = LOSS_TRUNC_JIT,
		[WALK_BAD_FRAME] = LOSS_TRUNC_BAD_FRAME,
		[WALK_UNREADABLE] = LOSS_TRUNC_COPY,
		[WALK_DEPTH] = LOSS_TRUNC_DEPTH,
		[WALK_NEEDS_FULL] = LOSS_TRUNC_NO_RULE,
	};
	return (uint32_t)end < WALK_END_NR ? (enum loss_kind)losses[end] : LOSS_TRUNC_BAD_FRAME;
}

bool losses_has_samples(const struct losses *l)
{
	for (size_t i = 0; i < LOSS_NR; i++)
		if (l->nr[i] && kinds[i].class != LOSS_CLASS_OTHER)
			return true;
	return false;
}

void losses_add_other(struct buf *to, const struct losses *l)
{
	const char *sep = "missing or incomplete: ";
	for (size_t i = 0; i < LOSS_NR; i++) {
		if (!l->nr[i] || kinds[i].class != LOSS_CLASS_OTHER)
			continue;
		const char *noun = kinds[i].noun;
		if (noun)
			buf_addf(to, "%s%s%s", sep, num_noun(l->nr[i], noun).s,
				 kinds[i].text + strlen(noun));
		else
			buf_addf(to, "%s%s %s", sep, num_ns(l->nr[i]).s, kinds[i].text);
		sep = ", ";
	}
}

uint64_t losses_truncated(const struct losses *l)
{
	return sum_class(l, LOSS_CLASS_TRUNC);
}

uint64_t losses_unsymbolized(const struct losses *l)
{
	return sum_class(l, LOSS_CLASS_UNSYM);
}
