/* Files that are read at offsets; see bytesource.h. */
#include "base/base.h"
#include "base/file/bytesource.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"

#define PART_BYTES ((size_t)1 << 20)

static int read_fd(void *ctx, void *to, size_t n, uint64_t offset, struct err *err)
{
	return file_pread((int)(intptr_t)ctx, to, n, offset, err);
}

static int identify_fd(void *ctx, struct file_identity *ret_i)
{
	return file_identity_read(ret_i, (int)(intptr_t)ctx);
}

static void close_fd(void *ctx)
{
	(void)close((int)(intptr_t)ctx);
}

static const struct byte_source_ops fd_ops = {read_fd, identify_fd, close_fd};

int source_from_fd(struct byte_source *ret_s, int fd, struct err *err)
{
	struct byte_source s = {.ops = &fd_ops};
	if (fstat(fd, &s.st))
		return err_sys(err, "cannot stat");
	if (!S_ISREG(s.st.st_mode))
		return err_set(err, -EINVAL, "not a regular file");
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return err_sys(err, "cannot duplicate the descriptor");
	s.ctx = (void *)(intptr_t)own;
	*ret_s = s;
	return 0;
}

/* The caller has checked the range against st_size. */
static int read_memory(void *ctx, void *to, size_t n, uint64_t offset, struct err *err)
{
	(void)err;
	if (n)
		memcpy(to, (const uint8_t *)ctx + offset, n);
	return 0;
}

static int identify_memory(void *ctx, struct file_identity *ret_i)
{
	(void)ctx;
	(void)ret_i;
	return -ENOENT;
}

static const struct byte_source_ops memory_ops = {read_memory, identify_memory, free};

void source_from_bytes(struct byte_source *ret_s, const void *p, size_t n)
{
	*ret_s = (struct byte_source){
		.ops = &memory_ops, .ctx = xmemdup(p, n), .st = {.st_size = (off_t)n}};
}

void source_close(struct byte_source *s)
{
	if (s->ops)
		s->ops->close(s->ctx);
	*s = (struct byte_source){0};
}

int source_read_all(struct buf *to, struct byte_source *s, size_t limit, struct err *err)
{
	uint64_t left = (uint64_t)s->st.st_size;
	if (left > limit)
		return err_set(err, -EFBIG, "larger than %zu bytes", limit);
	for (uint64_t at = 0; left;) {
		size_t n = (size_t)MIN(left, (uint64_t)PART_BYTES);
		TRY(s->ops->read(s->ctx, buf_reserve(to, n), n, at, err));
		to->n += n;
		at += n;
		left -= n;
	}
	return 0;
}
