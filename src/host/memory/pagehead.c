/* Heads of pages; see pagehead.h. */
#include "base/base.h"
#include "host/memory/pagehead.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"

#define ENTRIES 512u
#define BATCH   256u /* below IOV_MAX */

void pagehead_open(struct pagehead_reader *ret_r, int32_t pid)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/pagemap", pid);
	*ret_r = (struct pagehead_reader){pid, open(path, O_RDONLY | O_CLOEXEC)};
}

void pagehead_close(struct pagehead_reader *r)
{
	close_p(&r->pagemap_fd);
}

void pagehead_resident(const struct pagehead_reader *r, uint64_t addr, size_t nr_pages,
		       bool *ret_is_resident)
{
	uint64_t entries[ENTRIES];
	memset(ret_is_resident, 0, nr_pages * sizeof(*ret_is_resident));
	for (size_t done = 0; r->pagemap_fd >= 0 && done < nr_pages;) {
		size_t n = MIN(nr_pages - done, (size_t)ENTRIES);
		off_t at = (off_t)((addr / PAGEHEAD_PAGE + done) * sizeof(*entries));
		ssize_t got = pread(r->pagemap_fd, entries, n * sizeof(*entries), at);
		if (got < (ssize_t)sizeof(*entries))
			return;
		n = (size_t)got / sizeof(*entries);
		for (size_t i = 0; i < n; i++)
			ret_is_resident[done + i] = entries[i] >> 63;
		done += n;
	}
}

/* The call ends at the first address that cannot be read: continues behind it. */
static void read_all(const struct pagehead_reader *r, struct iovec *local, struct iovec *remote,
		     size_t n, bool *ret_is_read)
{
	memset(ret_is_read, 0, n * sizeof(*ret_is_read));
	for (size_t i = 0; i < n; i++) {
		ssize_t got = process_vm_readv(r->pid, local + i, n - i, remote + i, n - i, 0);
		for (; i < n && got >= (ssize_t)local[i].iov_len;
		     got -= (ssize_t)local[i++].iov_len)
			ret_is_read[i] = true;
	}
}

void pagehead_gather(const struct pagehead_reader *r, const uint64_t *addrs, size_t nr,
		     void *ret_items, size_t nr_bytes, bool *ret_is_read)
{
	struct iovec local[BATCH];
	struct iovec remote[BATCH];
	for (size_t done = 0; done < nr; done += BATCH) {
		size_t n = MIN(nr - done, (size_t)BATCH);
		for (size_t i = 0; i < n; i++) {
			char *to = (char *)ret_items + (done + i) * nr_bytes;
			local[i] = (struct iovec){to, nr_bytes};
			remote[i] = (struct iovec){(void *)(uintptr_t)addrs[done + i], nr_bytes};
		}
		read_all(r, local, remote, n, ret_is_read + done);
	}
}

static void read_batch(const struct pagehead_reader *r, uint64_t addr, size_t nr,
		       struct pagehead *heads)
{
	struct iovec local[BATCH];
	struct iovec remote[BATCH];
	struct pagehead *of[BATCH];
	bool is_read[BATCH];
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!heads[i].is_resident)
			continue;
		of[n] = &heads[i];
		local[n] = (struct iovec){heads[i].bytes, PAGEHEAD_BYTES};
		remote[n++] = (struct iovec){(void *)(uintptr_t)(addr + i * PAGEHEAD_PAGE),
					     PAGEHEAD_BYTES};
	}
	read_all(r, local, remote, n, is_read);
	for (size_t i = 0; i < n; i++)
		of[i]->is_read = is_read[i];
}

void pagehead_read(const struct pagehead_reader *r, uint64_t addr, size_t nr_pages,
		   struct pagehead *ret_heads)
{
	memset(ret_heads, 0, nr_pages * sizeof(*ret_heads));
	for (size_t done = 0; done < nr_pages; done += BATCH) {
		size_t n = MIN(nr_pages - done, (size_t)BATCH);
		uint64_t from = addr + done * PAGEHEAD_PAGE;
		bool is_resident[BATCH];
		pagehead_resident(r, from, n, is_resident);
		for (size_t i = 0; i < n; i++)
			ret_heads[done + i].is_resident = is_resident[i];
		read_batch(r, from, n, ret_heads + done);
	}
}

bool pagehead_copy(const struct pagehead_reader *r, uint64_t addr, void *to, size_t nr_bytes)
{
	struct iovec local = {to, nr_bytes};
	struct iovec remote = {(void *)(uintptr_t)addr, nr_bytes};
	return process_vm_readv(r->pid, &local, 1, &remote, 1, 0) == (ssize_t)nr_bytes;
}

bool pagehead_read_page(const struct pagehead_reader *r, uint64_t addr, void *to)
{
	bool is_resident;
	pagehead_resident(r, addr, 1, &is_resident);
	return is_resident && pagehead_copy(r, addr, to, PAGEHEAD_PAGE);
}
