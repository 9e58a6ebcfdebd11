/*
 * heaptrack's files: version 3 as heaptrack_interpret writes them and heaptrack_gui opens them, and
 * the older versions. docs/formats/heaptrack.md has the grammar. Raw files (heaptrack -r) have to
 * go through heaptrack_interpret first: the error says so.
 *
 *	s <len> <text>                   strings, numbered from 1
 *	i <ip> <module> [<fn> <file> <line>]*   addresses with the functions there, innermost first
 *	t <address> <parent>             stacks, a node is a leaf; parent 0 = the root
 *	a <size> <stack>                 what was allocated where
 *	+ <a>   - <a>                    an allocation, a free
 *	c <ms>  R <pages>                the time, the resident set
 *
 * Reading keeps all numbers exact: "allocated" and "freed" in one-second slices, "live" at the
 * end, "peak" at the moment at which live bytes were most (the first one, if there are several),
 * temporary allocations by heaptrack's rule (the next event frees what was allocated). A free names
 * no block but where and how large: the age of live blocks is unknown.
 *
 * Peak: each site remembers what it held when it last changed after a new peak, so a peak costs
 * nothing but a new number, and none of the sites has to be visited.
 */
#ifndef ASSAY_FORMAT_HEAPTRACK_H
#define ASSAY_FORMAT_HEAPTRACK_H

#include "base/base.h"
#include "base/err.h"
#include "base/sv.h"
#include "model/profile.h"

struct format_input;
struct format_options;
struct format_output;

int heaptrack_sniff(struct sv head);
/* -EINVAL where the first line is no version, or the file is raw. */
int heaptrack_read(struct profile *p, const struct format_input *in,
		   const struct format_options *options, struct err *err);

/*
 * The tables of memory as a file of version 3. Rows know seconds, not events: those of a second
 * are ordered such that totals, live bytes at each second's end, and the peak are those of the
 * profile, and no moment in between is above the peak. Blocks of one row get sizes that differ by
 * one byte at most and add up to the row's bytes.
 */
int heaptrack_write(struct format_output *to, const struct profile *p,
		    const struct format_options *options, struct err *err);

#endif
