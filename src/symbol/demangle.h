/*
 * Names as people write them: Rust v0 and legacy, Itanium C++, else unchanged. By default
 * hashes (::h0123456789abcdef), crate disambiguators ([c1f1a4ba060b9bfa]) and LLVM suffixes
 * (.llvm.123, .cold stays) are dropped so that two builds compare; DEMANGLE_HASHES keeps them.
 */
#ifndef ASSAY_SYMBOL_DEMANGLE_H
#define ASSAY_SYMBOL_DEMANGLE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

enum demangle_flags {
	DEMANGLE_HASHES = 1 << 0, /* keep hashes and disambiguators */
	DEMANGLE_RAW = 1 << 1,    /* no demangling at all */
};

/* Appends the shown name to @to. Any bytes in; never fails. */
void demangle(struct buf *to, struct sv linkage, unsigned flags);

#endif
