/*
 * jemalloc's mallctl in a binary without symbols (x86-64), by jemalloc's own tables.
 *
 * mallctl resolves names by a tree of constant nodes, which needs pointers to the names and
 * to the functions behind them, so it stands in the data of every build (ctl.c, 5.0 to 5.3):
 *
 *	super_root_node { named, "", n, root_node, NULL }
 *	root_node[]     { named, "version", 0, NULL, version_ctl } { named, "epoch", ... } ...
 *
 * The function that refers to super_root_node is ctl_byname, ctl_nametomib or ctl_lookup, which
 * both call; mallctl is the one caller of ctl_byname, and is called itself from all over the code
 * that prints statistics. Function starts are those of .eh_frame.
 *
 * What comes out is very likely, not certain: whoever calls it first asks for "version".
 */
#ifndef ASSAY_PLAN_ALLOCSTRIP_H
#define ASSAY_PLAN_ALLOCSTRIP_H

#include "base/base.h"
#include "object/elf.h"
#include "plan/allocfind.h"

/* Sets jemalloc.mallctl, prefix, is_stripped and code of @f. False: not found, nothing is set. */
bool allocstrip_find(struct allocfind *f, struct elf *e);

#endif
