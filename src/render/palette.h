/*
 * Colours of frames. A palette maps a function (its name, module and flags) to one of at most
 * PALETTE_COLORS_MAX colours. The mapping is fixed, so a function has the same colour in every
 * graph. Each colour has a light and a dark variant.
 *
 * In the default palette the hue is the module (or crate, or namespace) and the shade is the
 * function. The kernel has warm colours, libc and the runtime slate, JIT code green, Python code gold, frames that assay adds ("[no stack]") grey,
 * inlined functions a paler variant of their module's colour. Each wait reason ("[lock]",
 * model/wait.h) has a strong colour of its own; idle threads are grey.
 *
 * Colours are computed in OKLCH (lightness, chroma, hue as perceived; B. Ottosson, 2020), so that
 * the contrast to the text is the same for every hue.
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

#define PALETTE_COLORS_MAX 176

struct rgb {
	uint8_t r;
	uint8_t g;
	uint8_t b;
};

/* The properties of a frame that determine its colour. Views are borrowed. */
struct palette_key {
	struct sv name;
	struct sv module;
	unsigned flags; /* enum tree_flags */
};

/* Returns the palette of a name ("hot", "wakeup" for chain, "default"); -1 if unknown. */
int palette_from_name(const char *name);
/* Returns "default, hot, mem, ..." for messages and help. */
const char *palette_names(void);

/* Returns the colour of a frame, 0..PALETTE_COLORS_MAX - 1; palette_rgb has its values. */
unsigned palette_color(enum palette p, const struct palette_key *k);
/* Returns the legend text of a colour ("kernel"); NULL if it only distinguishes functions. */
const char *palette_meaning(enum palette p, unsigned color);
struct rgb palette_rgb(enum palette p, unsigned color, bool is_dark);

/*
 * Colours of differential graphs: 0 is the largest decrease, PALETTE_DELTA_NR - 1 the largest
 * increase, the middle one no change. @share: the change relative to the largest change, -1..1.
 */
#define PALETTE_DELTA_NR 21
unsigned palette_delta(double share);
struct rgb palette_delta_rgb(unsigned color, bool is_dark);

/* Parses a background colour: "yellow", "blue", "green", "grey" or "#rrggbb"; false if invalid. */
bool palette_background(const char *name, struct rgb *ret_light, struct rgb *ret_dark);

#endif
