/* Owners of anonymous memory; see anon.h. */
#include "base/base.h"
#include "host/memory/anon.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"

#define ARENA_ALIGN   ((uint64_t)64 << 20)
#define V8_ALIGN      ((uint64_t)256 << 10)
#define V8_HEADER_MAX ((uint64_t)64 << 10)
#define PAGE          4096u
#define IS_MMAPPED    2u
#define FLAG_BITS     7u
#define GO_HEAP_LO    ((uint64_t)0xc000000000)
#define GO_HEAP_HI    ((uint64_t)0xe000000000)

struct head {
	uint64_t words[4];
};

static bool is_arena(const struct memmap *one, const struct head *h)
{
	uint64_t len = one->end - one->start;
	uint64_t size = h->words[2];
	/* In an arena's first heap the arena follows this header; other heaps point to it. */
	return one->start % ARENA_ALIGN == 0 && len <= ARENA_ALIGN && size && size % PAGE == 0 &&
	       size <= h->words[3] && h->words[3] <= len &&
	       (h->words[1] ? h->words[1] % ARENA_ALIGN == 0
			    : h->words[0] > one->start && h->words[0] < one->start + PAGE);
}

static bool is_v8(const struct memmap *one, const struct head *h)
{
	return one->start % V8_ALIGN == 0 && h->words[0] == one->end - one->start &&
	       h->words[3] > one->start && h->words[3] - one->start < V8_HEADER_MAX;
}

/* Returns the length of the mmapped malloc block that begins at @addr, 0 = none. */
static uint64_t mmapped_block(const struct memmap *one, uint64_t addr, const struct head *h)
{
	uint64_t before = h->words[0]; /* bytes before an aligned block */
	uint64_t len = h->words[1] & ~(uint64_t)FLAG_BITS;
	if ((h->words[1] & FLAG_BITS) != IS_MMAPPED || before % 16 || before > one->end - addr ||
	    len < PAGE || len > one->end - addr || (before + len) % PAGE)
		return 0;
	return before + len;
}

static uint64_t mmapped_bytes(const struct memmap *one, memanon_read_fn read, void *ctx,
			      uint32_t *nr_left)
{
	uint64_t nr_bytes = 0;
	for (uint64_t addr = one->start; addr < one->end && *nr_left; --*nr_left) {
		struct head h;
		uint64_t len = read(ctx, addr, &h, sizeof(h)) ? mmapped_block(one, addr, &h) : 0;
		nr_bytes += len;
		addr += len ? len : PAGE;
	}
	return nr_bytes;
}

static bool is_bss(const struct memmaps *m, size_t i)
{
	if (!i)
		return false;
	const struct memmap *before = &m->list.p[i - 1];
	return before->end == m->list.p[i].start && before->is_writable && !before->is_shared &&
	       (before->kind == MEMMAP_BINARY || before->kind == MEMMAP_CODE);
}

struct memanon memanon_classify(const struct memmaps *m, size_t i, memanon_read_fn read, void *ctx,
				uint32_t *nr_left)
{
	const struct memmap *one = &m->list.p[i];
	uint64_t len = one->end - one->start;
	struct head h;
	if (is_bss(m, i))
		return (struct memanon){MEMANON_BSS, len};
	if (one->start >= GO_HEAP_LO && one->end <= GO_HEAP_HI)
		return (struct memanon){MEMANON_GO, len};
	if (!one->rss_bytes || !one->is_readable)
		return (struct memanon){MEMANON_UNKNOWN, 0};
	bool has_head = read(ctx, one->start, &h, sizeof(h));
	if (has_head && is_v8(one, &h))
		return (struct memanon){MEMANON_V8, len};
	if (has_head && is_arena(one, &h))
		return (struct memanon){MEMANON_GLIBC_ARENA, len};
	uint64_t blocks = mmapped_bytes(one, read, ctx, nr_left);
	if (blocks)
		return (struct memanon){MEMANON_GLIBC_MMAP, blocks};
	return (struct memanon){MEMANON_UNKNOWN, 0};
}

/* ---- reading a process -------------------------------------------------------------------- */

struct reader {
	int32_t pid;
	int pagemap_fd;
};

/* Reading a page that is not resident would fault it in. */
static bool is_present(const struct reader *r, uint64_t addr)
{
	uint64_t entry;
	off_t at = (off_t)(addr / PAGE * sizeof(entry));
	return pread(r->pagemap_fd, &entry, sizeof(entry), at) == (ssize_t)sizeof(entry) &&
	       entry >> 63;
}

static bool read_process(void *ctx, uint64_t addr, void *to, size_t nr_bytes)
{
	const struct reader *r = ctx;
	if (r->pagemap_fd < 0 || !is_present(r, addr))
		return false;
	struct iovec local = {.iov_base = to, .iov_len = nr_bytes};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = nr_bytes};
	return process_vm_readv(r->pid, &local, 1, &remote, 1, 0) == (ssize_t)nr_bytes;
}

void memanon_classify_all(struct memmaps *m, int32_t pid)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/pagemap", pid);
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader reader = {pid, fd};
	uint32_t nr_left = MEMANON_PROBES;
	for (size_t i = 0; i < m->list.n; i++)
		if (m->list.p[i].kind == MEMMAP_ANON)
			m->list.p[i].anon = memanon_classify(m, i, read_process, &reader, &nr_left);
}
