/*
 * Finds the main function of a program without symbols: the first argument of __libc_start_main, by
 * the instructions from the entry point to its call. Those of glibc load the address at once; those
 * of musl call a C function that does.
 */
#ifndef ASSAY_PLAN_MAINFIND_H
#define ASSAY_PLAN_MAINFIND_H

#include "base/base.h"
#include "object/elf.h"

/* The link-time address of main; 0: not found, or not x86-64. */
uint64_t mainfind_vaddr(const struct elf *e);

#endif
