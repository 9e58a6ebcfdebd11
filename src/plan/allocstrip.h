/*
 * Finds jemalloc's mallctl in an x86-64 binary without symbols, by jemalloc's data tables.
 *
 * mallctl resolves names by a tree of constant nodes with pointers to names and functions. The tree
 * is in the data of every build (ctl.c, 5.0 to 5.3):
 *
 *	super_root_node { named, "", n, root_node, NULL }
 *	root_node[]     { named, "version", 0, NULL, version_ctl } { named, "epoch", ... } ...
 *
 * The function that refers to super_root_node is ctl_byname, ctl_nametomib, ctl_bymib, or ctl_lookup,
 * which the first two call. Only ctl_byname both searches dots in a name and calls the function of a
 * node. mallctl is its only caller and has many callers in the code that prints statistics. Function
 * starts are those of .eh_frame.
 *
 * The result is very likely, not certain: the caller must verify it by reading "version".
 */
#ifndef ASSAY_PLAN_ALLOCSTRIP_H
#define ASSAY_PLAN_ALLOCSTRIP_H

#include "base/base.h"
#include "object/elf.h"
#include "plan/allocfind.h"

/* Sets jemalloc.mallctl, prefix, is_stripped and code of @f. False: not found, nothing is set. */
bool allocstrip_find(struct allocfind *f, struct elf *e);

#endif
