/*
 * Reads the first bytes of many pages of a process, by /proc/PID/pagemap and process_vm_readv. Only
 * resident pages are read, so that no page is faulted in. Nothing is stopped: the target may change
 * a page while it is read. Needs the permission to ptrace the process.
 */
#ifndef ASSAY_HOST_MEMORY_PAGEHEAD_H
#define ASSAY_HOST_MEMORY_PAGEHEAD_H

#include "base/base.h"

#define PAGEHEAD_PAGE  4096u
#define PAGEHEAD_BYTES 128u

struct pagehead {
	bool is_resident;
	bool is_read; /* false: the rest is 0 */
	union {
		uint64_t words[PAGEHEAD_BYTES / 8];
		uint32_t halves[PAGEHEAD_BYTES / 4];
		uint8_t bytes[PAGEHEAD_BYTES];
	};
};

struct pagehead_reader {
	int32_t pid;
	int pagemap_fd; /* -1: no permission */
};

#define PAGEHEAD_READER_INIT      \
	{                         \
		.pagemap_fd = -1, \
	}

/* Without permission nothing is resident for the functions below. */
void pagehead_open(struct pagehead_reader *ret_r, int32_t pid);
void pagehead_close(struct pagehead_reader *r);
/* Sets ret_is_resident[0..nr_pages) for the pages from @addr on. */
void pagehead_resident(const struct pagehead_reader *r, uint64_t addr, size_t nr_pages,
		       bool *ret_is_resident);
/* Reads the heads of @nr_pages pages from @addr on. */
void pagehead_read(const struct pagehead_reader *r, uint64_t addr, size_t nr_pages,
		   struct pagehead *ret_heads);
/* Copies memory that is resident as far as the caller knows; false: not all of it can be read. */
bool pagehead_copy(const struct pagehead_reader *r, uint64_t addr, void *to, size_t nr_bytes);
/* Reads @nr_bytes at each of the addresses into ret_items[i]; ret_is_read[i]: whether that worked. */
void pagehead_gather(const struct pagehead_reader *r, const uint64_t *addrs, size_t nr,
		     void *ret_items, size_t nr_bytes, bool *ret_is_read);
/* Reads a page; false: it is not resident, or cannot be read. */
bool pagehead_read_page(const struct pagehead_reader *r, uint64_t addr, void *to);

#endif
