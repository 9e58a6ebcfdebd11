/*
 * arm64. Kernel register numbers: asm/perf_regs.h (PERF_REG_ARM64_*), which equal the DWARF
 * numbers of the AArch64 ABI: x0..x30, sp 31, pc 32.
 */
#ifndef ASSAY_WIRE_ARCH_ARM64_H
#define ASSAY_WIRE_ARCH_ARM64_H

#define ARCH_NAME         "arm64"
#define ARCH_ELF_MACHINE  183
#define ARCH_NR_DWARF_REG 33
#define ARCH_DWARF_SP     31
#define ARCH_DWARF_FP     29
#define ARCH_DWARF_RA     30

#define ARCH_PERF_SP        31
#define ARCH_PERF_FP        29
#define ARCH_PERF_IP        32
#define ARCH_PERF_REGS_MASK 0x1ffffffffull
#define ARCH_PERF_FROM_DWARF                                                                       \
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, \
	 25, 26, 27, 28, 29, 30, 31, 32}
#define ARCH_PERF_ABI_64 2

#endif
