/*
 * Demangles Rust (v0 and legacy) and Itanium C++ names; other names stay unchanged. The output is
 * that of c++filt and rustfilt, except that parts which differ between builds are removed, so that
 * two builds can be compared. Removed, unless DEMANGLE_HASHES is set:
 *
 *	::h0123456789abcdef, [c1f1a4ba060b9bfa]	Rust hashes and disambiguators
 *	.llvm.123, .lto_priv.0, .__uniq.123	suffixes added by LLVM and LTO
 *	.abi0, .abiinternal			Go's calling convention
 *
 * Other parts:
 *
 *	.cold, .constprop.0, .isra.0, .part.0	kept, because they are different code: 'f.cold' for
 *						C and Rust, 'f(int) [clone .cold]' for C++
 *	void f<int>(int)			parameters of C++ are kept, because they distinguish
 *						overloads; the return type is removed
 *	f@plt					'@plt' is kept after the demangled name
 *
 * A name that cannot be demangled is returned as it is. The cost of hostile names is bounded to a
 * few hundred microseconds: names over 16 KiB are not demangled, output stops at 64 KiB, recursion
 * is limited.
 */
#ifndef ASSAY_SYMBOL_DEMANGLE_H
#define ASSAY_SYMBOL_DEMANGLE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

enum demangle_flags {
	DEMANGLE_HASHES = 1 << 0, /* keep hashes, disambiguators, LLVM and LTO suffixes */
	DEMANGLE_RAW = 1 << 1,    /* no demangling at all */
};

/* Appends the name to be displayed to @to. @linkage may hold any bytes. Never fails. */
void demangle(struct buf *to, struct sv linkage, unsigned flags);

#endif
