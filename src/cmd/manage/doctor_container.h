/*
 * The part of `assay doctor` about containers: how to profile one from outside, which needs no flags, and
 * the least flags of a container with assay beside it.
 */
#ifndef ASSAY_CMD_MANAGE_DOCTOR_CONTAINER_H
#define ASSAY_CMD_MANAGE_DOCTOR_CONTAINER_H

#include "analyze/report.h"
#include "base/base.h"
#include "host/target.h"
#include "model/rights.h"

/* @needs: of the command cpu. */
void doctor_add_container(struct report *r, const struct target_container *c,
			  const struct rights_needs *needs, int32_t pid);

#endif
