/* Static probes; see sdtnotes.h. */
#include "base/base.h"
#include "object/sdtnotes.h"

#define TYPE_SDT    3u
#define OWNER       "stapsdt"
#define HEAD_BYTES  12u
#define ADDRS_BYTES 24u

struct addrs {
	uint64_t pc;
	uint64_t base;
	uint64_t semaphore;
};

/* Reads a string up to its NUL; false if there is none. */
static bool take_text(struct sv *from, struct sv *ret_text)
{
	const char *end = from->n ? memchr(from->p, 0, from->n) : NULL;
	if (!end)
		return false;
	size_t n = (size_t)(end - from->p);
	*ret_text = (struct sv){from->p, n};
	*from = (struct sv){from->p + n + 1, from->n - n - 1};
	return true;
}

static bool parse(const struct elf *e, struct sv desc, struct sdt_note *ret_n)
{
	struct addrs a;
	const struct elf_section *base = elf_section(e, ".stapsdt.base");
	*ret_n = (struct sdt_note){0};
	if (desc.n < ADDRS_BYTES)
		return false;
	memcpy(&a, desc.p, sizeof(a));
	desc = (struct sv){desc.p + ADDRS_BYTES, desc.n - ADDRS_BYTES};
	uint64_t moved = base && a.base ? base->vaddr - a.base : 0;
	if (!take_text(&desc, &ret_n->provider) || !take_text(&desc, &ret_n->name) ||
	    !elf_offset_from_vaddr(e, a.pc + moved, &ret_n->offset))
		return false;
	return !a.semaphore ||
	       elf_offset_from_vaddr(e, a.semaphore + moved, &ret_n->semaphore_offset);
}

static size_t padded(uint32_t n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

int sdt_notes(struct elf *e, int (*found)(void *ctx, const struct sdt_note *n, struct err *err),
	      void *ctx, struct err *err)
{
	struct sv all;
	int rc = elf_named_bytes(e, ".note.stapsdt", &all, err);
	while (!rc && all.n >= HEAD_BYTES) {
		uint32_t head[3]; /* size of the owner, size of the note, type */
		memcpy(head, all.p, sizeof(head));
		size_t owner = padded(head[0]);
		size_t nr_bytes = HEAD_BYTES + owner + padded(head[1]);
		if (nr_bytes > all.n)
			return 0;
		struct sdt_note n;
		struct sv desc = {all.p + HEAD_BYTES + owner, head[1]};
		bool is_sdt = head[2] == TYPE_SDT && head[0] == sizeof(OWNER) &&
			      !memcmp(all.p + HEAD_BYTES, OWNER, sizeof(OWNER));
		if (is_sdt && parse(e, desc, &n))
			rc = found(ctx, &n, err);
		all = (struct sv){all.p + nr_bytes, all.n - nr_bytes};
	}
	return rc;
}
