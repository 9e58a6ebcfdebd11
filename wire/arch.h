/*
 * What the machine is: registers as the kernel samples them, as DWARF numbers them, and the few
 * facts of the ABI that unwinding needs. One header per architecture; code elsewhere knows none.
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
