/*
 * Flame graphs with any names: lines of the input are stacks with frames separated by ';', their
 * lengths are the weights. The SVG must be well-formed and reproducible, and its widths add up.
 */
#include "base/base.h"

#include "analyze/stacks/calltree.h"
#include "render/svg.h"
#include "wellformed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void draw(struct buf *to, struct sv text, unsigned flags, const struct svg_options *o)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(calltree_free_p) struct calltree *ct = calltree_new(r, flags);
	uint64_t sum = 0;
	while (text.n) {
		struct sv line = sv_split(&text, '\n');
		uint64_t weight = line.n;
		struct sv names[32];
		size_t nr = 0;
		while (line.n && nr < ARRAY_LEN(names))
			names[nr++] = sv_split(&line, ';');
		calltree_add_names(ct, names, nr, weight, flags & CALLTREE_NORMALISE ? nr * 7 : 0);
		sum += weight;
	}
	struct report_tree *t = calltree_finish(ct, "flame", "tree");
	ASSERT(t->nodes[0].total == sum);
	for (size_t i = 1; i < t->nr_nodes; i++)
		ASSERT(t->nodes[t->nodes[i].parent].total >= t->nodes[i].total);
	svg_write(to, r, t, o);
}

static const char *const palettes[] = {NULL,   "default", "hot",    "mem",   "io",    "java",
				       "rust", "module",  "chain",  "red",   "green", "blue",
				       "aqua", "yellow",  "purple", "orange"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 2 || n > 1 << 16)
		return 0;
	struct sv text = sv_from((const char *)data + 2, n - 2);
	CLEANUP(free_p) char *title = xstrndup(text.p, MIN(text.n, (size_t)40));
	struct svg_options o = {
		.title = title,
		.notes = title,
		.font = title,
		.count_name = title,
		.min_width_px = data[0] & 1 ? 0 : -1,
		.width_px = data[0] & 2 ? 700 : 0,
		.palette = palettes[data[1] % ARRAY_LEN(palettes)],
		.flags = data[0] >> 2 & 7u,
	};
	unsigned flags = (data[0] & 32 ? CALLTREE_REVERSE : 0u) |
			 (data[0] & 64 ? CALLTREE_FOLD_RECURSION : 0u) |
			 (data[0] & 128 ? CALLTREE_NORMALISE : 0u);
	CLEANUP(buf_release) struct buf a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	draw(&a, text, flags, &o);
	draw(&b, text, flags, &o);
	ASSERT(a.n == b.n && !memcmp(a.p, b.p, a.n));
	ASSERT(is_well_formed(buf_sv(&a)));
	return 0;
}
