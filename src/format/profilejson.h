/*
 * A profile as JSON, aggregated: facts, losses, modules, functions, and per event each distinct
 * (thread, stack) with its sums. For scripts; docs/formats/profile-json.md is the schema. Only
 * written.
 */
#ifndef ASSAY_FORMAT_PROFILEJSON_H
#define ASSAY_FORMAT_PROFILEJSON_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

struct format_options;
struct format_output;

#define PROFILEJSON_VERSION 1

struct profilejson_options {
	unsigned flags; /* none yet */
};

int profilejson_write(struct format_output *to, const struct profile *p,
		      const struct format_options *options, struct err *err);

#endif
