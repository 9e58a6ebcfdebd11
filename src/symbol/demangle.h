/*
 * Names as people write them: Rust v0 and legacy, Itanium C++, else unchanged. As c++filt and
 * rustfilt print them, with these differences by default, so that two builds compare:
 *
 *	::h0123456789abcdef, [c1f1a4ba060b9bfa]	hashes and disambiguators of Rust are dropped
 *	.llvm.123, .lto_priv.0			renamings by the linker are dropped
 *	.cold, .constprop.0, .isra.0, .part.0	other code, and kept: 'f.cold' for C and Rust,
 *						'f(int) [clone .cold]' for C++
 *	void f<int>(int)			C++ keeps parameters, which tell overloads
 *						apart, and drops the return type
 *	f@plt					kept behind the demangled name
 *
 * A name that does not demangle comes out as it is. Hostile names cost at most some hundred
 * microseconds: names over 16 KiB are not tried, output stops at 64 KiB, recursion has a limit.
 */
#ifndef ASSAY_SYMBOL_DEMANGLE_H
#define ASSAY_SYMBOL_DEMANGLE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

enum demangle_flags {
	DEMANGLE_HASHES = 1 << 0, /* keep hashes, disambiguators, renamings */
	DEMANGLE_RAW = 1 << 1,    /* no demangling at all */
};

/* Appends the shown name to @to. Any bytes in; never fails. */
void demangle(struct buf *to, struct sv linkage, unsigned flags);

#endif
