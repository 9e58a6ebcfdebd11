/*
 * One file per binary: <cache_dir>/<device>-<inode>.unwind
 *
 *	header | rows | fdes | specials | pages | .eh_frame | .debug_frame
 *
 * each part starting at a multiple of 8. The file is mapped and used in place. After the check its
 * pages are released, so that only those used by walks become resident.
 *
 * The header holds the identity of the binary's file. A hash of the contents would have to cover
 * all that the rows are made from, which includes code, and would have to be one that cannot be
 * forged.
 */
#include "base/base.h"
#include "unwind/tablecache.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch.h"
#include "base/file/cachefile.h"
#include "base/hash.h"
#include "base/mem.h"

#define CACHE_MAGIC     0x31776e7579617361ull /* "asayunw1" */
#define CACHE_VERSION   3u                    /* changes with the meaning of rows as well */
#define CACHE_MAX_BYTES ((uint64_t)2 << 30)
#define DIR_BYTES       ((uint64_t)256 << 20) /* of all tables; the oldest are removed */
#define SPAN_MAX        ((uint64_t)2 << 30)
#define SUFFIX          ".unwind"
/* Smaller tables are not cached: they are built faster than a file is opened and checked. */
#define ROWS_MIN 4096

struct cache_header {
	uint64_t magic;
	uint32_t version;
	uint32_t machine;
	uint64_t nr_bytes; /* of the whole file */
	uint64_t checksum; /* of everything after this field */
	struct file_identity source;
	uint64_t base;
	uint64_t end;
	uint64_t nr_bad;
	uint32_t nr_rows;
	uint32_t nr_pages;
	uint32_t nr_specials;
	uint32_t nr_fdes;
	uint64_t cfi_vaddr[UNWIND_NR_SECTIONS];
	uint64_t nr_cfi[UNWIND_NR_SECTIONS];
	uint32_t is_terminated;
	uint32_t pad;
};
_Static_assert(sizeof(struct cache_header) == 176, "cache header size");

#define CHECKSUM_FROM (offsetof(struct cache_header, source))

/* File offsets of the parts. */
struct layout {
	uint64_t rows, fdes, specials, pages, cfi[UNWIND_NR_SECTIONS], end;
};

static uint64_t round_up(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

/* Computes the offsets. Counts have 32 bits and sections are limited, so nothing overflows. */
static struct layout lay_out(const struct cache_header *h)
{
	struct layout l;

	l.rows = sizeof(*h);
	l.fdes = l.rows + (uint64_t)h->nr_rows * sizeof(struct unwind_row);
	l.specials = l.fdes + (uint64_t)h->nr_fdes * sizeof(struct unwind_fde);
	l.pages = l.specials + (uint64_t)h->nr_specials * sizeof(struct unwind_special);
	l.cfi[0] = round_up(l.pages + ((uint64_t)h->nr_pages + 1) * sizeof(uint32_t));
	l.cfi[1] = round_up(l.cfi[0] + h->nr_cfi[0]);
	l.end = round_up(l.cfi[1] + h->nr_cfi[1]);
	return l;
}

/* Fills the header that identifies a binary. False if its file has no identity. */
static bool identify(const struct elf *elf, struct cache_header *h)
{
	memset(h, 0, sizeof(*h));
	h->magic = CACHE_MAGIC;
	h->version = CACHE_VERSION;
	h->machine = ARCH_ELF_MACHINE;
	return !elf_identity(elf, &h->source);
}

static bool is_same_binary(const struct cache_header *a, const struct cache_header *b)
{
	return a->magic == b->magic && a->version == b->version && a->machine == b->machine &&
	       file_identity_eq(&a->source, &b->source);
}

/* Checks every index that a lookup uses. */
static bool is_table_sound(const struct unwind_table *t)
{
	uint64_t span = t->end - t->base;

	if (t->end < t->base || span > SPAN_MAX || t->nr_pages != (span + 4095) >> 12 ||
	    t->base % 4096)
		return false;
	uint64_t next = 0;
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		uint32_t rule = t->rows[i].rule;
		bool is_good = t->rows[i].pc >= next && t->rows[i].pc < span &&
			       row_kind(rule) != ROW_PSEUDO;
		if (!is_good ||
		    (row_kind(rule) == ROW_SPECIAL && row_special_idx(rule) >= t->nr_specials))
			return false;
		next = (uint64_t)t->rows[i].pc + 1;
	}
	uint32_t last = 0;
	for (uint32_t i = 0; i <= t->nr_pages; i++) {
		if (t->pages[i] < last || t->pages[i] > t->nr_rows)
			return false;
		last = t->pages[i];
	}
	return last == t->nr_rows;
}

static struct unwind_table *table_from_map(uint8_t *p, size_t n, const struct cache_header *want)
{
	const struct cache_header *h = (const struct cache_header *)p;

	if (n < sizeof(*h) || !is_same_binary(h, want) || h->nr_bytes != n || h->nr_cfi[0] > n ||
	    h->nr_cfi[1] > n)
		return NULL;
	struct layout l = lay_out(h);
	if (l.end != n || hash_bytes(p + CHECKSUM_FROM, n - CHECKSUM_FROM) != h->checksum)
		return NULL;
	struct unwind_table *t = xcalloc(1, sizeof(*t));
	t->base = h->base;
	t->end = h->end;
	t->rows = (struct unwind_row *)(p + l.rows);
	t->fdes = (struct unwind_fde *)(p + l.fdes);
	t->specials = (struct unwind_special *)(p + l.specials);
	t->pages = (uint32_t *)(p + l.pages);
	t->nr_rows = h->nr_rows;
	t->nr_fdes = h->nr_fdes;
	t->nr_specials = h->nr_specials;
	t->nr_pages = h->nr_pages;
	t->nr_bad = h->nr_bad;
	for (size_t i = 0; i < UNWIND_NR_SECTIONS; i++)
		t->cfi[i] = (struct ehframe_section){.p = p + l.cfi[i],
						     .n = h->nr_cfi[i],
						     .vaddr = h->cfi_vaddr[i],
						     .is_debug_frame = i == UNWIND_DEBUG_FRAME,
						     .is_terminated = i == UNWIND_EH_FRAME &&
								      h->is_terminated};
	if (!is_table_sound(t)) {
		free(t);
		return NULL;
	}
	t->nr_bytes = n;
	t->mapping = p;
	return t;
}

int table_cache_load(struct unwind_table **ret_t, const struct elf *elf, const char *cache_dir)
{
	struct cache_header want;
	uint64_t n;

	if (!identify(elf, &want))
		return -ENOENT;
	CLEANUP(free_p) char *name = file_identity_name(&want.source, SUFFIX);
	CLEANUP(close_p) int fd = cache_file_open(cache_dir, name, CACHE_MAX_BYTES, &n);
	if (fd < 0)
		return fd;
	if (n < sizeof(want))
		return -EBADMSG;
	void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	struct unwind_table *t = table_from_map(p, n, &want);
	if (!t) {
		(void)munmap(p, n);
		return -EBADMSG;
	}
	(void)madvise(p, n, MADV_DONTNEED);
	*ret_t = t;
	return 0;
}

static void put(struct buf *b, const void *p, uint64_t n)
{
	static const char zeros[8];

	if (n)
		buf_add(b, p, n);
	buf_add(b, zeros, round_up(b->n) - b->n);
}

static void table_to_buf(const struct unwind_table *t, struct cache_header *h, struct buf *b)
{
	h->base = t->base;
	h->end = t->end;
	h->nr_bad = t->nr_bad;
	h->nr_rows = t->nr_rows;
	h->nr_pages = t->nr_pages;
	h->nr_specials = t->nr_specials;
	h->nr_fdes = t->nr_fdes;
	for (size_t i = 0; i < UNWIND_NR_SECTIONS; i++) {
		h->cfi_vaddr[i] = t->cfi[i].vaddr;
		h->nr_cfi[i] = t->cfi[i].n;
	}
	h->is_terminated = t->cfi[UNWIND_EH_FRAME].is_terminated;
	h->nr_bytes = lay_out(h).end;
	(void)buf_reserve(b, h->nr_bytes);
	put(b, h, sizeof(*h));
	put(b, t->rows, (uint64_t)t->nr_rows * sizeof(*t->rows));
	put(b, t->fdes, (uint64_t)t->nr_fdes * sizeof(*t->fdes));
	put(b, t->specials, (uint64_t)t->nr_specials * sizeof(*t->specials));
	put(b, t->pages, ((uint64_t)t->nr_pages + 1) * sizeof(*t->pages));
	for (size_t i = 0; i < UNWIND_NR_SECTIONS; i++)
		put(b, t->cfi[i].p, t->cfi[i].n);
	h->checksum = hash_bytes(b->p + CHECKSUM_FROM, b->n - CHECKSUM_FROM);
	memcpy(b->p, h, sizeof(*h));
}

void table_cache_store(const struct unwind_table *t, const struct elf *elf,
		       const struct file_identity *built_from, const char *cache_dir)
{
	struct cache_header h;

	if (t->nr_rows < ROWS_MIN || !identify(elf, &h) || !file_identity_eq(&h.source, built_from))
		return;
	CLEANUP(free_p) char *name = file_identity_name(&h.source, SUFFIX);
	CLEANUP(buf_release) struct buf b = {0};
	table_to_buf(t, &h, &b);
	cache_file_write(cache_dir, name, &b, DIR_BYTES);
}

void table_cache_unmap(struct unwind_table *t)
{
	(void)munmap(t->mapping, t->nr_bytes);
	t->mapping = NULL;
}
