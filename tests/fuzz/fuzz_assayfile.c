/*
 * The reader of recordings: any bytes as a file, and any bytes as the payload of a chunk with valid
 * checksums. A profile that was read must give the same bytes when written, read and written again.
 */
#include "base/base.h"

#include "base/buf.h"
#include "base/file/zio.h"
#include "format/assay/assayfile.h"
#include "format/assay/assayfile_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void walk(const struct profile *p)
{
	uint64_t sum = 0;
	vec_foreach(t, &p->tables) {
		for (size_t i = 0; i < t->n; i++) {
			sum += p->tasks.p[t->task[i]].comm;
			for (stack_id s = t->stack[i]; s; s = p->stacks.p[s].parent)
				sum += p->locations.p[p->stacks.p[s].loc].offset;
			if (!t->has_tags)
				continue;
			const struct tag *tag = &p->tags.p[t->tag[i]];
			sum += wait_key((enum wait_reason)tag->reason)[0];
			sum += profile_sv(p, tag->object).n + profile_sv(p, tag->detail).n;
			sum += p->tasks.p[tag->other].comm + p->stacks.p[tag->other_stack].loc;
		}
	}
	vec_foreach(l, &p->locations)
		for (size_t i = 0; i < l->nr_frames; i++)
			sum += profile_frame_name(p, &p->frames.p[l->first_frame + i])[0];
	vec_foreach(f, &p->facts)
		sum += profile_sv(p, f->value).n;
	__asm__ volatile("" ::"r"(sum));
}

static void read_and_write(const void *bytes, size_t n)
{
	CLEANUP(profile_free_p) struct profile *p = NULL;
	if (assayfile_read(&p, NULL, bytes, n, NULL))
		return;
	walk(p);
	CLEANUP(buf_release) struct buf a = {0};
	ASSERT(!assayfile_write(&a, p, "fuzz", NULL));
	CLEANUP(profile_free_p) struct profile *q = NULL;
	if (assayfile_read(&q, NULL, a.p, a.n, NULL))
		return; /* larger than the reader's limit: a decompression bomb just below it */
	CLEANUP(buf_release) struct buf b = {0};
	ASSERT(!assayfile_write(&b, q, "fuzz", NULL));
	ASSERT(a.n == b.n && !memcmp(a.p, b.p, a.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	read_and_write(data, n);
	if (n > 1 << 20)
		return 0;
	CLEANUP(profile_free_p) struct profile *none = profile_new();
	CLEANUP(buf_release) struct buf file = {0};
	(void)assayfile_write(&file, none, "fuzz", NULL);
	struct assayfile_chunk c = {.mark = ASSAYFILE_CHUNK_MARK,
				    .type = ASSAYFILE_DATA,
				    .stored_bytes = (uint32_t)n,
				    .raw_bytes = (uint32_t)n,
				    .payload_crc = zio_crc32(data, n)};
	c.header_crc = zio_crc32(&c, offsetof(struct assayfile_chunk, header_crc));
	buf_add(&file, &c, sizeof(c));
	buf_add(&file, data, n);
	read_and_write(file.p, file.n);
	return 0;
}
