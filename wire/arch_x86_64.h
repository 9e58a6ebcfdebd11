/*
 * x86-64. Kernel register numbers: asm/perf_regs.h (PERF_REG_X86_*). DWARF numbers: System V
 * psABI figure 3.36. Signal frame: struct rt_sigframe (arch/x86/include/asm/sigframe.h). In the
 * restorer the return address is already popped, so sp points at the ucontext; the registers in it
 * (uc_mcontext, asm/sigcontext.h) start at offset 40.
 */
#ifndef ASSAY_WIRE_ARCH_X86_64_H
#define ASSAY_WIRE_ARCH_X86_64_H

#define ARCH_NAME         "x86-64"
#define ARCH_ELF_MACHINE  62
#define ARCH_NR_DWARF_REG 17 /* 0..15 general, 16 return address */
#define ARCH_DWARF_SP     7
#define ARCH_DWARF_FP     6
#define ARCH_DWARF_RA     16
#define ARCH_DWARF_PC     16
/* Callee-saved: rbx rbp rsp r12..r15. A mask of DWARF numbers. */
#define ARCH_DWARF_CALLEE_SAVED 0xf0c8ull

/* perf numbers: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8..r15 */
#define ARCH_PERF_SP 7
#define ARCH_PERF_FP 6
#define ARCH_PERF_IP 8
/* All but the segment registers ds es fs gs, which perf does not sample. */
#define ARCH_PERF_REGS_MASK 0xff0fffull
/* perf register number of each DWARF register; DWARF 16 is the instruction pointer. */
#define ARCH_PERF_FROM_DWARF                                              \
	{                                                                 \
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8 \
	}
#define ARCH_PERF_ABI_64 2 /* PERF_SAMPLE_REGS_ABI_64 */

/* The return address is pushed by the call: at CFA - 8, always. */
#define ARCH_RA_AT_CFA      (-8)
#define ARCH_RA_STRIP(addr) (addr)

/* From the restorer's stack pointer to the ucontext; from there to each DWARF register. */
#define ARCH_SIGFRAME_UC 0
#define ARCH_SIGFRAME_FROM_DWARF                                                            \
	{                                                                                   \
		144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168 \
	}

#define ARCH_SYSCALL_IP_ADJUST 0

#endif
