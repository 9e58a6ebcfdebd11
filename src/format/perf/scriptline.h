/*
 * Parses single lines of `perf script` text, without state. The grammar is what perf's
 * builtin-script.c prints; every field of an event line but comm and the id may be missing:
 *
 *	event   comm  pid/tid | tid  "["cpu"]"  misc  time:  period  event:  payload | frame
 *	frame   ip  symbol[+0xoff] (dso) | ip  symbol[+0xoff] (inlined) | ip  [unknown] (dso) | ip
 *
 * comm may contain blanks, digits and slashes, symbols may contain anything. So an event line is
 * recognised by its ids, cpu and time, a frame by the last balanced parentheses. Returned texts are
 * borrowed from the line.
 */
#ifndef ASSAY_FORMAT_PERF_SCRIPTLINE_H
#define ASSAY_FORMAT_PERF_SCRIPTLINE_H

#include "base/base.h"
#include "base/sv.h"

struct script_event {
	struct sv comm;
	int32_t pid; /* -1 = not printed (perf prints only the tid by default) */
	int32_t tid; /* -1 = not printed */
	int32_t cpu; /* -1 = not printed */
	bool has_time;
	bool has_period;
	uint64_t time_ns;
	uint64_t period;
	struct sv event; /* without the colon; empty if not printed */
	struct sv rest;  /* payload or frame, trimmed */
};

struct script_frame {
	uint64_t ip;
	struct sv symbol; /* without +0xoff; empty when unknown */
	struct sv dso;    /* empty when unknown or inlined */
	bool is_inlined;
	bool is_inferred; /* "(tail-call)", as assay prints it */
};

struct script_source {
	struct sv file; /* empty when unknown: "??:0" */
	uint32_t line;
	bool is_inlined; /* the frame above is inlined: -F +srcline prints "(inlined)" here */
};

enum script_event_flags {
	SCRIPT_NEED_CPU_OR_TIME = 1 << 0, /* a line that has neither is not an event */
};

/* Each returns whether the line is of that kind; the result is untouched otherwise. */

bool script_parse_event(struct sv line, unsigned flags, struct script_event *ret_e);
bool script_parse_frame(struct sv line, struct script_frame *ret_f);
/* "  file.c:123" or "  file.c:123 (inlined)", as -F +srcline prints it below a frame. */
bool script_parse_source(struct sv line, struct script_source *ret_s);

#endif
