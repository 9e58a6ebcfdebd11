/*
 * The reader of HTML pages as recordings: any bytes as a page, and any bytes as the blocks of one,
 * which the input has one after the other, each after its length in two bytes. Rows that were read
 * refer to elements that exist.
 */
#include "base/base.h"

#include "base/buf.h"
#include "base/text/base64.h"
#include "format/format.h"
#include "format/page/pagefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_page(struct sv page)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	const struct format_input in = {.head = page};
	const struct format_options options = {0};
	if (pagefile_read(p, &in, &options, NULL))
		return;
	vec_foreach(t, &p->tables)
		for (size_t i = 0; i < t->n; i++) {
			ASSERT(t->stack[i] < p->stacks.n && t->task[i] < p->tasks.n);
			ASSERT(!t->has_tags || t->tag[i] < p->tags.n);
		}
	profile_seal(p);
}

static void add_block(struct buf *to, const char *type, struct sv *left)
{
	size_t n = left->n < 2 ? 0 : (uint8_t)left->p[0] | (size_t)(uint8_t)left->p[1] << 8;
	*left = sv_from_idx(*left, MIN(left->n, (size_t)2));
	n = MIN(n, left->n);
	buf_addf(to, "<script type=\"application/x-assay-%s\">", type);
	base64_add(to, sv_from(left->p, n));
	buf_add_str(to, "</script>");
	*left = sv_from_idx(*left, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv left = sv_from((const char *)data, n);
	CLEANUP(buf_release) struct buf page = {0};
	read_page(left);
	add_block(&page, "recording", &left);
	add_block(&page, "page", &left);
	add_block(&page, "rows", &left);
	read_page(buf_sv(&page));
	return 0;
}
