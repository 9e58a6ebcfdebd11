/* The heap among the sources of a capture (source_kinds.c), and its tables. */
#ifndef ASSAY_SESSION_HEAP_KIND_H
#define ASSAY_SESSION_HEAP_KIND_H

#include "base/base.h"
#include "ingest/builder.h"
#include "model/profile.h"
#include "session/capture.h"
#include "session/sources.h"

extern const struct source_kind heap_kind;

#endif
