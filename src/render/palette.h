/*
 * Colours of frames. A palette maps a function (its name, module and flags) to one of at most
 * PALETTE_COLORS_MAX colours, always the same for the same function, so that a function has one
 * colour in every picture. Each colour has a light and a dark form of equal meaning.
 *
 * The default palette says what code is: hue = module (or crate, or namespace), shade = function;
 * the kernel is warm, libc and the runtime slate, JIT code green, markers grey, and inlined
 * functions a paler form of their module's colour. Reasons of waiting ("[lock]", model/wait.h) have
 * a strong colour each, those of idle threads a grey one.
 *
 * Colours are computed in OKLCH (lightness, chroma, hue as people see them; B. Ottosson, 2020),
 * so that every hue has the same contrast to its text.
 */
#ifndef ASSAY_RENDER_PALETTE_H
#define ASSAY_RENDER_PALETTE_H

#include "base/base.h"
#include "base/sv.h"

enum palette {
	PALETTE_DEFAULT = 0,
	PALETTE_HOT,
	PALETTE_MEM,
	PALETTE_IO,
	PALETTE_JAVA,
	PALETTE_RUST,
	PALETTE_MODULE,
	PALETTE_CHAIN,
	PALETTE_RED,
	PALETTE_GREEN,
	PALETTE_BLUE,
	PALETTE_AQUA,
	PALETTE_YELLOW,
	PALETTE_PURPLE,
	PALETTE_ORANGE,
	PALETTE_NR
};

#define PALETTE_COLORS_MAX 160

struct rgb {
	uint8_t r;
	uint8_t g;
	uint8_t b;
};

/* What a frame is: decides its colour. Views are borrowed. */
struct palette_key {
	struct sv name;
	struct sv module;
	unsigned flags; /* enum tree_flags */
};

/* By its name ("hot", "wakeup" for chain, "default"); -1 if there is none. */
int palette_from_name(const char *name);
/* "default, hot, mem, ..." for messages and help. */
const char *palette_names(void);

unsigned palette_color(enum palette p, const struct palette_key *k);
/* What a colour says, for a legend: "kernel"; NULL where it only tells functions apart. */
const char *palette_meaning(enum palette p, unsigned color);
struct rgb palette_rgb(enum palette p, unsigned color, bool is_dark);

/*
 * Differences: 0 is "much less", PALETTE_DELTA_NR - 1 "much more", the middle unchanged.
 * @share: the change over the largest change in the picture, -1..1.
 */
#define PALETTE_DELTA_NR 21
unsigned palette_delta(double share);
struct rgb palette_delta_rgb(unsigned color, bool is_dark);

/* "yellow", "blue", "green", "grey" or "#rrggbb". */
bool palette_background(const char *name, struct rgb *ret_light, struct rgb *ret_dark);

#endif
