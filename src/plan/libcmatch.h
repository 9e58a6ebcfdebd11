/*
 * Finds the functions of a statically linked C library in a program without symbols, by the archive
 * (libc.a) that it was linked with, if this machine has it: glibc's or musl's.
 *
 * A linker copies each section of an object file as it is, but for the fields that relocations name.
 * So a section is found where all its other bytes are, if that is one place in the program's code and
 * they are many; a short one (a jump to another function) only if its relocations also lead to what has
 * been found already. An archive of another version has other bytes: then nothing is found. Everything
 * or nothing: malloc, free and __libc_start_main must be among what is found.
 */
#ifndef ASSAY_PLAN_LIBCMATCH_H
#define ASSAY_PLAN_LIBCMATCH_H

#include "base/base.h"
#include "base/file/bytesource.h"
#include "object/elf.h"

/*
 * Compares with each C library that is installed. Returns an image that only has a symbol table, as a
 * debug file; NULL: nothing was found, or it is not x86-64.
 */
struct elf *libcmatch_symbols(const struct elf *image);
/* The same with one archive. Public for tests. */
struct elf *libcmatch_with(const struct elf *image, const char *archive, size_t nr_bytes);

#endif
