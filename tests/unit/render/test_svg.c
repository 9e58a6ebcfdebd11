/* render/svg, flame, palette: whole files, labels, colours. */
#include "base/base.h"
#include "tap.h"

#include <math.h>

#include "analyze/stacks/calltree.h"
#include "model/wait.h"
#include "render/flame.h"
#include "render/svg.h"
#include "wellformed.h"

static void add(struct calltree *ct, struct sv line, uint64_t weight, uint64_t before)
{
	struct sv names[64];
	size_t n = 0;
	while (line.n && n < ARRAY_LEN(names))
		names[n++] = sv_split(&line, ';');
	calltree_add_names(ct, names, n, weight, before);
}

struct made {
	struct report *r;
	struct calltree *ct;
	struct buf svg;
};

static struct made make(void)
{
	struct made m = {.r = report_new()};
	m.ct = calltree_new(m.r, 0);
	return m;
}

static const char *draw(struct made *m, const struct svg_options *o)
{
	struct report_tree *t = calltree_finish(m->ct, "flame", "tree");
	buf_clear(&m->svg);
	svg_write(&m->svg, m->r, t, o);
	return buf_str(&m->svg);
}

static void made_release(struct made *m)
{
	buf_release(&m->svg);
	calltree_free(m->ct);
	report_free(m->r);
}

#define DEFAULTS .min_width_px = -1

TEST(svg_is_the_same_for_the_same_input)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made a = make();
	CLEANUP(made_release) struct made b = make();
	add(a.ct, SV("main;x"), 3, 0);
	add(a.ct, SV("main;y"), 4, 0);
	add(b.ct, SV("main;y"), 4, 0);
	add(b.ct, SV("main;x"), 3, 0);
	CHECK_STR(draw(&a, &o), draw(&b, &o));
}

TEST(svg_escapes_names_titles_and_fonts)
{
	struct svg_options o = {DEFAULTS, .title = "<t>&\"", .subtitle = "</svg>",
				.notes = "a\x01"
					 "b",
				.font = "\"><script>"};
	CLEANUP(made_release) struct made m = make();
	add(m.ct, SV("main;<script>alert(1)</script>;]]>"), 3, 0);
	const char *svg = draw(&m, &o);
	CHECK(strstr(svg, "&lt;t&gt;&amp;&quot;") != NULL);
	CHECK(strstr(svg, "&lt;script&gt;alert") != NULL);
	CHECK(strstr(svg, "<script>alert") == NULL);
	CHECK(strstr(svg, "\"><script>") == NULL);
	CHECK(strstr(svg, "a\\x01b") != NULL);
	CHECK(strstr(svg, "]]>]]>") == NULL);
}

TEST(svg_header_shows_what_was_lost)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made m = make();
	add(m.ct, SV("main"), 90, 0);
	m.r->losses.nr[LOSS_SEEN] = 100;
	m.r->losses.nr[LOSS_WRITTEN] = 90;
	m.r->losses.nr[LOSS_LOST] = 10;
	m.r->losses.nr[LOSS_TRUNC_COPY] = 5;
	const char *svg = draw(&m, &o);
	CHECK(strstr(svg, "100 samples taken \xc2\xb7 10 lost (10.00 %) \xc2\xb7 "
			  "5 stacks truncated (5.00 %)") != NULL);
	CHECK(strstr(svg, "class=\"loss some\"") != NULL);
}

TEST(svg_draws_no_frame_below_the_minimum_but_packs_it)
{
	struct svg_options o = {.min_width_px = 1, .width_px = 1000};
	CLEANUP(made_release) struct made m = make();
	add(m.ct, SV("main;wide"), 999999, 0);
	add(m.ct, SV("main;narrow_one"), 1, 0);
	struct report_tree *t = calltree_finish(m.ct, "flame", "tree");
	svg_write(&m.svg, m.r, t, &o);
	CHECK(strstr(buf_str(&m.svg), "narrow_one") == NULL);
	struct flame f;
	flame_init(&f, m.r, t, PALETTE_DEFAULT);
	CLEANUP(buf_release) struct buf packed = {0};
	flame_pack(&packed, &f);
	CHECK(memmem(packed.p, packed.n, "narrow_one", 10) != NULL);
	flame_release(&f);
}

TEST(svg_counts_are_exact_beyond_53_bits)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made m = make();
	add(m.ct, SV("main"), 9007199254740993u, 0);
	CHECK(strstr(draw(&m, &o), "9,007,199,254,740,993 samples") != NULL);
}

TEST(svg_of_an_empty_tree_is_well_formed)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made m = make();
	CHECK(strstr(draw(&m, &o), "</svg>\n") != NULL);
}

TEST(svg_of_a_deep_stack_is_well_formed)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made m = make();
	struct sv names[5000];
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		names[i] = i % 2 ? SV("even") : SV("odd");
	calltree_add_names(m.ct, names, ARRAY_LEN(names), 1, 0);
	CHECK(strstr(draw(&m, &o), "height=\"85") != NULL);
}

TEST(svg_differential_draws_removed_functions)
{
	struct svg_options o = {DEFAULTS};
	CLEANUP(made_release) struct made m = make();
	add(m.ct, SV("main;stays"), 10, 10);
	add(m.ct, SV("main;vanished"), 0, 10);
	CHECK(strstr(draw(&m, &o), ">vanished<") != NULL);
}

static uint64_t seed = 42;
static uint32_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

/* Random bytes, with many markup characters. */
static struct sv random_name(char *to, size_t max)
{
	static const char *const bad[] = {"<",
					  ">",
					  "&",
					  "\"",
					  "'",
					  "]]>",
					  "--",
					  "\x01",
					  "\xff",
					  "\xc3\x28",
					  "\xed\xa0\x80",
					  "\x7f",
					  "</g>",
					  "<![CDATA[",
					  "\xef\xbf\xbf",
					  "\xc2\x85"};
	size_t n = 0;
	size_t want = 1 + next_random() % (max - 16);
	while (n < want) {
		if (next_random() % 2) {
			to[n++] = (char)next_random();
			continue;
		}
		const char *s = bad[next_random() % ARRAY_LEN(bad)];
		memcpy(to + n, s, strlen(s));
		n += strlen(s);
	}
	return sv_from(to, n);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned n = 0;
	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

TEST(notes_wider_than_the_picture_are_wrapped)
{
	CLEANUP(made_release) struct made m = make();
	struct svg_options o = {DEFAULTS, .width_px = 600};
	add(m.ct, SV("main;x"), 3, 0);
	report_note(m.r, "%s",
		    "one block per 512 KiB allocated on average; estimates are scaled to "
		    "the exact count of allocations of each size, +- is the half width of "
		    "the 95 % confidence interval");
	draw(&m, &o);
	CHECK(count_of(buf_str(&m.svg), "class=\"sub\"") == 1 + 2); /* with the subtitle */
}

TEST(losses_count_events_and_not_what_is_shown)
{
	CLEANUP(made_release) struct made m = make();
	struct svg_options o = {DEFAULTS};
	add(m.ct, SV("main;x"), 3, 0);
	m.r->noun = "live blocks";
	m.r->is_estimated = true;
	m.r->losses.nr[LOSS_SEEN] = m.r->losses.nr[LOSS_WRITTEN] = 16443;
	CHECK(strstr(draw(&m, &o), "16,443 events"));
}

TEST(a_hundred_thousand_random_names_stay_well_formed)
{
	struct svg_options o = {.min_width_px = 0, .flags = SVG_STATIC};
	char name[64];
	for (int round = 0; round < 10; round++) {
		CLEANUP(made_release) struct made m = make();
		for (int i = 0; i < 10000; i++) {
			struct sv path[2] = {SV("main"), random_name(name, sizeof(name))};
			calltree_add_names(m.ct, path, 2, 1000000, 0);
		}
		/* Maximum width, so that every frame has a tooltip with its name. */
		o.width_px = SVG_WIDTH_MAX;
		(void)draw(&m, &o);
		CHECK(is_well_formed(buf_sv(&m.svg)));
	}
}

static const char *label(struct buf *b, const char *name, double px)
{
	buf_clear(b);
	flame_label(b, sv_from_str(name), px, 12);
	return buf_str(b);
}

TEST(labels_use_the_longest_form_that_fits)
{
	CLEANUP(buf_release) struct buf b = {0};
	const char *name = "alloc::vec::Vec<T, A>::extend_from_slice(&self)";
	CHECK_STR(label(&b, name, 1000), name);
	CHECK_STR(label(&b, name, 230), "alloc::vec::Vec::extend_from_slice");
	CHECK_STR(label(&b, name, 130), "extend_from_slice");
	CHECK_STR(label(&b, name, 60), "extend_\xe2\x80\xa6");
	CHECK_STR(label(&b, name, 10), "");
	CHECK_STR(label(&b, "<reth::Db as core::Read>::get", 40), "get");
	CHECK_STR(label(&b, "tokio::run::{{closure}}", 130), "run::{{closure}}");
	CHECK_STR(label(&b, "std::operator<<", 1000), "std::operator<<");
}

TEST(colors_depend_on_the_kind_of_code)
{
	struct palette_key a = {SV("read"), SV("[kernel]"), TREE_KERNEL};
	struct palette_key b = {SV("read"), SV("libc.so.6"), 0};
	struct palette_key c = {SV("reth::db::get"), SV("reth"), 0};
	struct palette_key d = {SV("reth::db::get"), SV("reth"), TREE_INLINED};
	CHECK_STR(palette_meaning(PALETTE_DEFAULT, palette_color(PALETTE_DEFAULT, &a)), "kernel");
	CHECK_STR(palette_meaning(PALETTE_DEFAULT, palette_color(PALETTE_DEFAULT, &b)),
		  "libc, runtime");
	CHECK(palette_color(PALETTE_DEFAULT, &c) != palette_color(PALETTE_DEFAULT, &d));
	struct palette_key marked = {SV("do_sys_read_[k]"), SV(""), 0};
	CHECK_STR(palette_meaning(PALETTE_DEFAULT, palette_color(PALETTE_DEFAULT, &marked)),
		  "kernel");
}

/* WCAG 2: relative luminance and contrast. */
static double luminance(struct rgb c)
{
	double v[3] = {c.r / 255.0, c.g / 255.0, c.b / 255.0};
	for (int i = 0; i < 3; i++)
		v[i] = v[i] <= 0.04045 ? v[i] / 12.92 : pow((v[i] + 0.055) / 1.055, 2.4);
	return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
}

static double contrast(struct rgb a, struct rgb b)
{
	double x = luminance(a) + 0.05;
	double y = luminance(b) + 0.05;
	return x > y ? x / y : y / x;
}

TEST(labels_are_readable_on_every_color)
{
	const struct rgb on_light = {0x16, 0x19, 0x1f};
	const struct rgb on_dark = {0xf3, 0xf5, 0xf8};
	for (int p = 0; p < PALETTE_NR; p++) {
		for (unsigned c = 0; c < 65; c++) {
			CHECK(contrast(palette_rgb((enum palette)p, c, false), on_light) > 4.5);
			CHECK(contrast(palette_rgb((enum palette)p, c, true), on_dark) > 4.5);
		}
	}
	for (unsigned c = 0; c < PALETTE_DELTA_NR; c++) {
		CHECK(contrast(palette_delta_rgb(c, false), on_light) > 4.5);
		CHECK(contrast(palette_delta_rgb(c, true), on_dark) > 4.5);
	}
}

TEST(svg_each_wait_reason_has_a_colour_and_a_legend_text)
{
	unsigned seen[WAIT_NR] = {0};
	for (enum wait_reason r = WAIT_RUN_QUEUE; r < WAIT_NR; r++) {
		struct palette_key k = {.name = sv_from_str(wait_frame(r)), .flags = TREE_PSEUDO};
		unsigned c = palette_color(PALETTE_DEFAULT, &k);
		CHECK(c < PALETTE_COLORS_MAX);
		CHECK_STR(palette_meaning(PALETTE_DEFAULT, c), wait_text(r));
		struct rgb rgb = palette_rgb(PALETTE_DEFAULT, c, false);
		bool is_grey = rgb.r > 40 && abs(rgb.r - rgb.g) < 30 && abs(rgb.g - rgb.b) < 30;
		CHECK(is_grey == (wait_is_idle(r) || r == WAIT_UNKNOWN));
		for (enum wait_reason o = WAIT_RUN_QUEUE; o < r; o++)
			CHECK(seen[o] != c);
		seen[r] = c;
	}
	struct palette_key other = {.name = SV("[stack]"), .flags = TREE_PSEUDO};
	CHECK_STR(palette_meaning(PALETTE_DEFAULT, palette_color(PALETTE_DEFAULT, &other)),
		  "thread, marker");
}
