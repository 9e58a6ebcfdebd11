/* The heap by probes (capture/heapprobes.h) among the sources of a capture (source_kinds.c). */
#ifndef ASSAY_SESSION_PROBES_KIND_H
#define ASSAY_SESSION_PROBES_KIND_H

#include "base/base.h"
#include "session/sources.h"

extern const struct source_kind probes_kind;

#endif
