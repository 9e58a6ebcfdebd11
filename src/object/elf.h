/*
 * ELF images, opened safely. The file is foreign: it is read by pread into private memory in the
 * pieces that are asked for (sections, headers), every offset and size checked, so it may be
 * truncated, hostile or replaced while we look. Nothing is mapped; nothing can raise SIGBUS.
 *
 * Section headers that are absent or do not fit the file leave an image without sections, which
 * is not an error: its segments still serve. Limits: 2^18 sections, 4096 segments, 4 GiB a
 * section, decompressed at most 200 times its size in the file (plus 16 MiB).
 *
 * 64-bit little-endian only (x86-64, arm64); others give -ENOTSUP. An image is used by one
 * thread at a time; several images of one file may live side by side.
 */
#ifndef ASSAY_OBJECT_ELF_H
#define ASSAY_OBJECT_ELF_H

#include <sys/stat.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

#define ELF_BUILD_ID_MAX 20

enum elf_machine { ELF_MACHINE_X86_64 = 62, ELF_MACHINE_ARM64 = 183 };

struct elf_section {
	struct sv name;
	uint32_t type;  /* SHT_* */
	uint64_t flags; /* SHF_* */
	uint64_t vaddr;
	uint64_t offset;
	uint64_t nr_bytes;     /* in the file: 0 for SHT_NOBITS */
	uint64_t nr_mem_bytes; /* in memory, also of SHT_NOBITS (a debug file's .text) */
	uint32_t link;
	uint32_t info;
	uint64_t entry_bytes;
};

struct elf_segment {
	uint32_t type;  /* PT_* */
	uint32_t flags; /* PF_* */
	uint64_t offset;
	uint64_t vaddr;
	uint64_t nr_file_bytes;
	uint64_t nr_mem_bytes;
};

struct elf; /* opaque */

/* Takes a duplicate of @fd, which must be a regular file. Not an ELF image: -ENOEXEC. */
int elf_open_fd(struct elf **ret_e, int fd, struct err *err);
/* From memory (vDSO, .gnu_debugdata); the bytes are copied. */
int elf_open_bytes(struct elf **ret_e, const void *p, size_t n, struct err *err);
void elf_free(struct elf *e);
DEFINE_FREE_P(elf, struct elf)

enum elf_machine elf_machine(const struct elf *e);
bool elf_is_executable(const struct elf *e);  /* ET_EXEC: not relocated */
bool elf_is_relocatable(const struct elf *e); /* ET_REL: a kernel module, an object file */
uint64_t elf_entry(const struct elf *e);      /* link-time, 0 = none */
const struct elf_segment *elf_segments(const struct elf *e, size_t *ret_nr);
const struct elf_section *elf_sections(const struct elf *e, size_t *ret_nr);
/* First section of that name that has bytes in this file (SHT_NOBITS does not count), or NULL. */
const struct elf_section *elf_section(const struct elf *e, const char *name);
/* The same, and .zdebug_* for .debug_*. */
const struct elf_section *elf_debug_section(const struct elf *e, const char *name);
/*
 * The section's bytes, decompressed (SHF_COMPRESSED zlib and zstd, and old .zdebug), cached for
 * the image's life. Borrowed. Relocations of ET_REL files are not applied.
 */
int elf_section_bytes(struct elf *e, const struct elf_section *s, struct sv *ret_bytes,
		      struct err *err);
/* The same in a buffer of the caller (what it held is released), for what is read through once:
 * nothing is cached. */
int elf_section_read(const struct elf *e, const struct elf_section *s, struct buf *to,
		     struct err *err);
/* Same by name; an absent section gives 0 and an empty view. Also finds .zdebug_* for .debug_*. */
int elf_named_bytes(struct elf *e, const char *name, struct sv *ret_bytes, struct err *err);
uint64_t elf_nr_bytes(const struct elf *e); /* of the file */
/* What fstat says of the file; -ENOENT: the image is in memory. */
int elf_stat(const struct elf *e, struct stat *ret_st);
/* Bytes of the file at [offset, offset+n), into the caller's memory. */
int elf_read(const struct elf *e, void *to, size_t n, uint64_t offset, struct err *err);

/*
 * Link-time address of a file offset by the PT_LOADs; false if none. For code: an executable
 * segment wins over others, also where it only shares the page (the kernel maps whole pages, so
 * with lld layouts, vaddr != offset, one offset can be mapped twice).
 */
bool elf_vaddr_from_offset(const struct elf *e, uint64_t offset, uint64_t *ret_vaddr);
bool elf_offset_from_vaddr(const struct elf *e, uint64_t vaddr, uint64_t *ret_offset);
/* Whether a link-time address is in an executable segment. */
bool elf_is_code(const struct elf *e, uint64_t vaddr);

/* Length of the build-id (0 = none), copied to @to. From PT_NOTE or SHT_NOTE. */
size_t elf_build_id(const struct elf *e, uint8_t to[ELF_BUILD_ID_MAX]);

#endif
