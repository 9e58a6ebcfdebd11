/*
 * Facts about the machine's architecture that unwinding needs: register numbers of perf and of
 * DWARF, the return address, the signal frame. One header for each architecture; no other code
 * depends on the architecture through #ifdef of its own.
 */
#ifndef ASSAY_WIRE_ARCH_H
#define ASSAY_WIRE_ARCH_H

#if defined(__x86_64__)
#include "arch_x86_64.h"
#elif defined(__aarch64__)
#include "arch_arm64.h"
#else
#error "assay runs on x86-64 and arm64"
#endif

#endif
