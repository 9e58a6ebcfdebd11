/* The table of sources; see sources.h. */
#ifndef ASSAY_SESSION_SOURCE_KINDS_H
#define ASSAY_SESSION_SOURCE_KINDS_H

#include "session/sources.h"

/* NULL after the last. */
const struct source_kind *source_kind_at(size_t i);

#endif
