/*
 * arm64. Kernel register numbers: asm/perf_regs.h (PERF_REG_ARM64_*), which equal the DWARF
 * numbers of the AArch64 ABI: x0..x30, sp 31, pc 32. Signal frame: struct rt_sigframe
 * (arch/arm64/kernel/signal.c): siginfo (128 bytes), then the ucontext, whose registers
 * (sigcontext.regs) start at offset 184.
 */
#ifndef ASSAY_WIRE_ARCH_ARM64_H
#define ASSAY_WIRE_ARCH_ARM64_H

#define ARCH_NAME         "arm64"
#define ARCH_ELF_MACHINE  183
#define ARCH_NR_DWARF_REG 33
#define ARCH_DWARF_SP     31
#define ARCH_DWARF_FP     29
#define ARCH_DWARF_RA     30
#define ARCH_DWARF_PC     32
/* Callee-saved: x19..x28, x29, sp. A mask of DWARF numbers. */
#define ARCH_DWARF_CALLEE_SAVED 0xbff80000ull

#define ARCH_PERF_SP        31
#define ARCH_PERF_FP        29
#define ARCH_PERF_IP        32
#define ARCH_PERF_REGS_MASK 0x1ffffffffull
#define ARCH_PERF_FROM_DWARF                                                                      \
	{                                                                                         \
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, \
			23, 24, 25, 26, 27, 28, 29, 30, 31, 32                                    \
	}
#define ARCH_PERF_ABI_64 2

/*
 * The return address is saved in the slot after the frame pointer (stp x29, x30). If the frame
 * pointer is not saved, the return address is still in x30. Anything else is a special row.
 */
#define ARCH_RA_BESIDE_FP 1
/* Pointer authentication codes and tags are above the 48 address bits of user space. */
#define ARCH_RA_STRIP(addr) ((addr)&0xffffffffffffull)

#define ARCH_SIGFRAME_UC 128
#define ARCH_SIGFRAME_FROM_DWARF                                                                   \
	{                                                                                          \
		184, 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304,    \
			312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, \
			432, 440                                                                   \
	}

#define ARCH_SYSCALL_IP_ADJUST 0

#endif
