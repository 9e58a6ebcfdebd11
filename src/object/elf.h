/*
 * Reads ELF images safely. The file is untrusted: sections and headers are read on demand into
 * private memory, and every offset and size is checked. The file may be truncated, hostile or
 * replaced at any time. Nothing is mapped, so SIGBUS cannot occur.
 *
 * Section headers that are absent or do not fit the file leave an image without sections. That is
 * not an error; its segments can still be used. Limits: 2^18 sections, 4096 segments, 4 GiB per
 * section, a decompressed size of at most 200 times the size in the file (plus 16 MiB).
 *
 * 64-bit little-endian only (x86-64, arm64); others give -ENOTSUP. An image is used by one thread
 * at a time; a file may be opened several times.
 */
#ifndef ASSAY_OBJECT_ELF_H
#define ASSAY_OBJECT_ELF_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/bytesource.h"
#include "base/file/cachefile.h"
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
	uint64_t nr_mem_bytes; /* in memory; set for SHT_NOBITS as well (a debug file's .text) */
	uint32_t link;
	uint32_t info;
	uint64_t entry_bytes;
	uint64_t align; /* 0 and 1: none */
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

/* Opens an image in @source, which it owns from now on. -ENOEXEC: not an ELF image. */
int elf_open_source(struct elf **ret_e, struct byte_source source, struct err *err);
/* The same for the regular file @fd, which is duplicated. */
int elf_open_fd(struct elf **ret_e, int fd, struct err *err);
/* Opens an image in memory (vDSO, .gnu_debugdata); the bytes are copied. */
int elf_open_bytes(struct elf **ret_e, const void *p, size_t n, struct err *err);
void elf_free(struct elf *e);
DEFINE_FREE_P(elf, struct elf)

enum elf_machine elf_machine(const struct elf *e);
bool elf_is_executable(const struct elf *e);  /* ET_EXEC: link-time addresses = run-time ones */
bool elf_is_relocatable(const struct elf *e); /* ET_REL: a kernel module, an object file */
uint64_t elf_entry(const struct elf *e);      /* link-time, 0 = none */
const struct elf_segment *elf_segments(const struct elf *e, size_t *ret_nr);
const struct elf_section *elf_sections(const struct elf *e, size_t *ret_nr);
/* Returns the first section of that name with bytes in this file (not SHT_NOBITS), or NULL. */
const struct elf_section *elf_section(const struct elf *e, const char *name);
/* Like elf_section; for .debug_* also finds .zdebug_*. */
const struct elf_section *elf_debug_section(const struct elf *e, const char *name);
/*
 * Returns the section's bytes, decompressed (SHF_COMPRESSED zlib and zstd, and old .zdebug). They
 * are borrowed and stay cached until elf_free. Relocations of ET_REL files are not applied.
 */
int elf_section_bytes(struct elf *e, const struct elf_section *s, struct sv *ret_bytes,
		      struct err *err);
/*
 * Like elf_section_bytes, but into the caller's buffer, whose contents are released first. Nothing
 * is cached; for sections that are read once.
 */
int elf_section_read(const struct elf *e, const struct elf_section *s, struct buf *to,
		     struct err *err);
/*
 * Like elf_section_bytes, by name; an absent section gives 0 and an empty view. For .debug_* also
 * finds .zdebug_*.
 */
int elf_named_bytes(struct elf *e, const char *name, struct sv *ret_bytes, struct err *err);
uint64_t elf_nr_bytes(const struct elf *e); /* size of the file */
/* Reads the file's identity; -ENOENT: the image is in memory, -ENOTSUP: it cannot be trusted. */
int elf_identity(const struct elf *e, struct file_identity *ret_i);
/*
 * Returns 0, or the error of a read that was not answered in time: -ETIMEDOUT, or -EINPROGRESS if it
 * may be answered later. What was found in the image is then incomplete.
 */
int elf_silence(const struct elf *e);
/* Reads the bytes [offset, offset + n) of the file. */
int elf_read(const struct elf *e, void *to, size_t n, uint64_t offset, struct err *err);

/*
 * Converts a file offset to a link-time address by the PT_LOADs; false if none covers it. An
 * executable segment is preferred, even where it only shares the page: the kernel maps whole pages,
 * so in lld layouts (vaddr != offset) one offset can be mapped twice.
 */
bool elf_vaddr_from_offset(const struct elf *e, uint64_t offset, uint64_t *ret_vaddr);
bool elf_offset_from_vaddr(const struct elf *e, uint64_t vaddr, uint64_t *ret_offset);
/* Returns whether a link-time address is in an executable segment. */
bool elf_is_code(const struct elf *e, uint64_t vaddr);

/* Copies the build-id from PT_NOTE or SHT_NOTE to @to; returns its length, 0 = none. */
size_t elf_build_id(const struct elf *e, uint8_t to[ELF_BUILD_ID_MAX]);

#endif
