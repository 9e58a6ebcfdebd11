/* Reads perf.data as a profile. Called by load.c only. */
#ifndef ASSAY_SESSION_LOAD_PERFDATA_H
#define ASSAY_SESSION_LOAD_PERFDATA_H

#include "format/format.h"
#include "session/load.h"

/* The profile is not sealed yet. @fd: a regular file from its start, or a pipe; not closed. */
int load_perfdata_fd(struct profile **ret_p, int fd, const struct load_options *options,
		     struct err *err);
/* An input that cannot be read again from its start: a pipe, or compressed. */
int load_perfdata(struct profile **ret_p, const struct format_input *in,
		  const struct load_options *options, struct err *err);

#endif
