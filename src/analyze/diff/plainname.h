/*
 * Names as they are aligned between two builds of a program: without what a compiler or a linker
 * adds to the name that the source has.
 *
 *	f.cold, f.part.0, f.isra.0, f.constprop.2, f.llvm.123, f.lto_priv.0, f [clone .cold]   f
 *	krate::f::h0123456789abcdef                                                        krate::f
 *	server-0123456789abcdef (a test binary of cargo), libx.so.1.2           server, libx.so
 */
#ifndef ASSAY_ANALYZE_DIFF_PLAINNAME_H
#define ASSAY_ANALYZE_DIFF_PLAINNAME_H

#include "base/base.h"
#include "base/sv.h"

/* Both return a prefix of the name, never an empty one unless it is empty. */
struct sv plainname_of_function(struct sv name);
struct sv plainname_of_module(struct sv name);

#endif
