/* Colours; see palette.h. */
#include "base/base.h"
#include "render/palette.h"

#include <math.h>

#include "analyze/report.h"
#include "base/hash.h"
#include "model/wait.h"

static const char *const names[PALETTE_NR] = {
	[PALETTE_DEFAULT] = "default", [PALETTE_HOT] = "hot",       [PALETTE_MEM] = "mem",
	[PALETTE_IO] = "io",           [PALETTE_JAVA] = "java",     [PALETTE_RUST] = "rust",
	[PALETTE_MODULE] = "module",   [PALETTE_CHAIN] = "chain",   [PALETTE_RED] = "red",
	[PALETTE_GREEN] = "green",     [PALETTE_BLUE] = "blue",     [PALETTE_AQUA] = "aqua",
	[PALETTE_YELLOW] = "yellow",   [PALETTE_PURPLE] = "purple", [PALETTE_ORANGE] = "orange",
};

static const struct {
	const char *alias;
	enum palette palette;
} aliases[] = {
	{"wakeup", PALETTE_CHAIN}, {"by-module", PALETTE_MODULE}, {"js", PALETTE_JAVA},
	{"perl", PALETTE_JAVA},    {"python", PALETTE_JAVA},      {"assay", PALETTE_DEFAULT},
};

int palette_from_name(const char *name)
{
	for (int i = 0; i < PALETTE_NR; i++)
		if (!strcmp(names[i], name))
			return i;
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (!strcmp(aliases[i].alias, name))
			return (int)aliases[i].palette;
	return -1;
}

const char *palette_names(void)
{
	return "default, hot, mem, io, java, rust, module, chain, red, green, blue, aqua, yellow, "
	       "purple, orange";
}

/* ---- OKLCH -------------------------------------------------------------------------------- */

static uint8_t channel(double linear)
{
	double v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
	return (uint8_t)lrint(255 * MIN(MAX(v, 0.0), 1.0));
}

static struct rgb rgb_from_oklch(double lightness, double chroma, double hue_deg)
{
	double a = chroma * cos(hue_deg * M_PI / 180);
	double b = chroma * sin(hue_deg * M_PI / 180);
	double l = lightness + 0.3963377774 * a + 0.2158037573 * b;
	double m = lightness - 0.1055613458 * a - 0.0638541728 * b;
	double s = lightness - 0.0894841775 * a - 1.2914855480 * b;
	l = l * l * l;
	m = m * m * m;
	s = s * s * s;
	return (struct rgb){
		channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
		channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
		channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
	};
}

/* ---- families of colours ------------------------------------------------------------------ */

/*
 * A colour is (family, shade). The semantic palettes use all families, the plain ones a single
 * family with 32 shades spread over a range of hues.
 */
#define NR_SHADES  4
#define NR_MODULES 12 /* hues for modules */
#define NR_YELLOWS 3  /* of names without a module */

enum family {
	FAMILY_MODULE = 0, /* NR_MODULES families */
	FAMILY_INLINED = NR_MODULES,
	FAMILY_KERNEL = 2 * NR_MODULES,
	FAMILY_RUNTIME,
	FAMILY_JIT,
	FAMILY_PSEUDO,
	FAMILY_GUESSED,
	FAMILY_PYTHON,
	FAMILY_YELLOW, /* NR_YELLOWS families */
	FAMILY_NR = FAMILY_YELLOW + NR_YELLOWS
};

/* After the families: one colour for each wait reason, then those of other synthetic leaves. */
#define COLOR_WAIT      (FAMILY_NR * NR_SHADES)
#define COLOR_IDLE      (COLOR_WAIT + WAIT_NR)
#define COLOR_UNSAMPLED (COLOR_IDLE + 1)
#define COLOR_BLAMED    (COLOR_IDLE + 2)
#define COLOR_ON_CPU    (COLOR_WAIT + WAIT_ON_CPU)
_Static_assert(COLOR_BLAMED < PALETTE_COLORS_MAX, "colours fit");

#define PLAIN_SHADES 32
/* The chain palette: a second range for the stacks of wakers. */
#define CHAIN_WAKER PLAIN_SHADES

static bool is_plain(enum palette p)
{
	return p == PALETTE_HOT || p == PALETTE_MEM || p == PALETTE_IO || p >= PALETTE_CHAIN;
}

/* Whether a module is libc, the dynamic linker, libstdc++ or another runtime library. */
static bool is_runtime(struct sv module)
{
	static const char *const prefixes[] = {
		"libc.so", "libc-",  "libpthread",  "ld-linux",    "ld-musl",     "ld-2.",
		"libm.so", "libm-",  "libstdc++",   "libgcc_s",    "libdl",       "librt",
		"[vdso]",  "libc++", "libjemalloc", "libtcmalloc", "libmimalloc",
	};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (sv_has_prefix(module, sv_from_str(prefixes[i])))
			return true;
	return false;
}

/* Text formats give the kind of a frame as a suffix of its name. */
static unsigned flags_of(const struct palette_key *k)
{
	unsigned flags = k->flags;
	if (k->name.n > 4 && k->name.p[k->name.n - 4] == '_' && k->name.p[k->name.n - 3] == '[' &&
	    k->name.p[k->name.n - 1] == ']') {
		char c = k->name.p[k->name.n - 2];
		flags |= c == 'k' ? TREE_KERNEL : c == 'i' ? TREE_INLINED : c == 'j' ? TREE_JIT : 0;
	}
	return flags;
}

/* The crate or outermost namespace of a qualified name; empty for a plain C name. */
static struct sv namespace_of(struct sv name)
{
	while (name.n && (name.p[0] == '<' || name.p[0] == '&' || name.p[0] == '*'))
		name = sv_from_idx(name, 1);
	size_t n = 0;
	while (n < name.n && name.p[n] != '<' && name.p[n] != '(' && name.p[n] != ' ' &&
	       name.p[n] != ':')
		n++;
	bool is_scope = n + 1 < name.n && name.p[n] == ':' && name.p[n + 1] == ':';
	return is_scope ? sv_from(name.p, n) : sv_from(name.p, 0);
}

static unsigned code_family(const struct palette_key *k, unsigned flags)
{
	struct sv group = namespace_of(k->name);
	unsigned first = flags & TREE_INLINED ? FAMILY_INLINED : FAMILY_MODULE;
	if (!group.n)
		group = k->module;
	/* A text format without modules: yellows by name, as in most flame graphs. */
	if (!group.n && first == FAMILY_MODULE)
		return FAMILY_YELLOW +
		       (unsigned)(hash_bytes(k->name.p, k->name.n) >> 16) % NR_YELLOWS;
	return first + (unsigned)(hash_bytes(group.p, group.n) >> 16) % NR_MODULES;
}

static bool is_std(struct sv name)
{
	struct sv ns = namespace_of(name);
	return sv_eq_str(ns, "std") || sv_eq_str(ns, "core") || sv_eq_str(ns, "alloc") ||
	       sv_eq_str(ns, "__gnu_cxx") || sv_eq_str(ns, "__cxxabiv1");
}

static bool is_java(struct sv name)
{
	return sv_index(name, '/') > 0 || sv_has_prefix(name, SV("java"));
}

static unsigned family_of(enum palette p, const struct palette_key *k)
{
	unsigned flags = flags_of(k);
	bool is_marker = k->name.n && k->name.p[0] == '[' && k->name.p[k->name.n - 1] == ']';
	if (flags & TREE_PSEUDO || is_marker || sv_eq_str(k->name, "all") ||
	    sv_eq_str(k->name, "-") || sv_eq_str(k->name, "--"))
		return FAMILY_PSEUDO;
	if (flags & TREE_KERNEL)
		return FAMILY_KERNEL;
	if (flags & TREE_PYTHON)
		return FAMILY_PYTHON;
	if (p == PALETTE_JAVA && flags & TREE_INLINED)
		return FAMILY_INLINED + 5;
	if (flags & TREE_JIT || (p == PALETTE_JAVA && is_java(k->name)))
		return FAMILY_JIT;
	if (p != PALETTE_MODULE && is_runtime(k->module))
		return FAMILY_RUNTIME;
	if (p == PALETTE_RUST && is_std(k->name))
		return FAMILY_RUNTIME;
	if (p == PALETTE_JAVA)
		return FAMILY_MODULE + (namespace_of(k->name).n ? 0 : 3);
	if (flags & TREE_GUESSED)
		return FAMILY_GUESSED;
	return code_family(k, flags);
}

/* The colour of a frame that gives a wait reason or another thread state, or 0. */
static unsigned wait_color(struct sv name)
{
	if (!name.n || name.p[0] != '[')
		return 0;
	for (enum wait_reason r = WAIT_RUN_QUEUE; r < WAIT_NR; r++)
		if (sv_eq_str(name, wait_frame(r)))
			return COLOR_WAIT + r;
	if (sv_has_prefix(name, SV("[blamed on] ")))
		return COLOR_BLAMED;
	return sv_eq_str(name, "[idle]")                ? COLOR_IDLE
	       : sv_eq_str(name, "[on CPU, no sample]") ? COLOR_UNSAMPLED
	       : sv_eq_str(name, "[on CPU]")            ? COLOR_ON_CPU
							: 0;
}

unsigned palette_color(enum palette p, const struct palette_key *k)
{
	ASSERT(p < PALETTE_NR);
	uint64_t h = hash_bytes(k->name.p, k->name.n) >> 8;
	unsigned wait = is_plain(p) ? 0 : wait_color(k->name);
	if (wait)
		return wait;
	if (!is_plain(p))
		return family_of(p, k) * NR_SHADES + (unsigned)(h % NR_SHADES);
	if (flags_of(k) & TREE_PSEUDO || sv_eq_str(k->name, "all"))
		return 2 * PLAIN_SHADES;
	bool is_waker =
		p == PALETTE_CHAIN && k->name.n > 3 && !memcmp(k->name.p + k->name.n - 3, "[w]", 3);
	return (unsigned)(h % PLAIN_SHADES) + (is_waker ? CHAIN_WAKER : 0);
}

const char *palette_meaning(enum palette p, unsigned color)
{
	unsigned family = color / NR_SHADES;
	if (is_plain(p))
		return NULL;
	if (color == COLOR_IDLE)
		return "idle";
	if (color == COLOR_UNSAMPLED)
		return "on CPU, no sample";
	if (color == COLOR_BLAMED)
		return "lock holder";
	if (color >= COLOR_WAIT)
		return wait_text((enum wait_reason)(color - COLOR_WAIT));
	if (family < FAMILY_INLINED || family >= FAMILY_YELLOW)
		return p == PALETTE_JAVA ? "native code" : "code (hue: module or crate)";
	if (family < FAMILY_KERNEL)
		return "inlined";
	switch (family) {
	case FAMILY_KERNEL:
		return "kernel";
	case FAMILY_RUNTIME:
		return p == PALETTE_RUST ? "std, libc" : "libc, runtime";
	case FAMILY_JIT:
		return "JIT";
	case FAMILY_GUESSED:
		return "no symbol";
	case FAMILY_PYTHON:
		return "Python";
	default:
		return "thread, marker";
	}
}

struct range {
	double hue_from;
	double hue_to;
	double chroma;
};

static const struct range plain_ranges[PALETTE_NR] = {
	[PALETTE_HOT] = {28, 95, 0.145},    [PALETTE_MEM] = {125, 165, 0.13},
	[PALETTE_IO] = {215, 265, 0.11},    [PALETTE_CHAIN] = {245, 270, 0.11},
	[PALETTE_RED] = {18, 32, 0.13},     [PALETTE_GREEN] = {138, 155, 0.14},
	[PALETTE_BLUE] = {245, 265, 0.11},  [PALETTE_AQUA] = {185, 205, 0.1},
	[PALETTE_YELLOW] = {92, 108, 0.13}, [PALETTE_PURPLE] = {300, 318, 0.12},
	[PALETTE_ORANGE] = {50, 70, 0.13},
};

static struct range plain_range(enum palette p, unsigned color)
{
	if (p == PALETTE_CHAIN && color >= CHAIN_WAKER)
		return (struct range){180, 205, 0.09};
	ASSERT(plain_ranges[p].chroma > 0);
	return plain_ranges[p];
}

static struct rgb neutral(bool is_dark, double step)
{
	return is_dark ? rgb_from_oklch(0.40 - step, 0.008, 260)
		       : rgb_from_oklch(0.88 - step, 0.006, 260);
}

/*
 * Of modules: at least 0.066 apart in OKLab from each other and from the kernel, JIT code, runtimes and waits, on
 * light and on dark. Reds are the kernel's and locks', yellows the run queue's.
 */
static const struct tint {
	double hue;
	double lighter;
	double chroma;
} module_tints[NR_MODULES] = {
	{265, -0.075, 0.11}, {120, 0.05, 0.11},  {325, -0.03, 0.135},  {120, -0.075, 0.135},
	{205, -0.03, 0.11},  {330, 0.05, 0.07},  {170, -0.075, 0.135}, {210, 0.05, 0.07},
	{335, -0.075, 0.07}, {185, 0.05, 0.135}, {230, -0.075, 0.135}, {145, -0.075, 0.07},
};
static const double yellow_hues[NR_YELLOWS] = {92, 76, 106};

static struct rgb family_rgb(unsigned family, unsigned shade, bool is_dark)
{
	double step = (double)shade * 0.016;
	double light = is_dark ? 0.44 + step : 0.86 - step;
	double chroma = is_dark ? 0.075 : 0.085;
	if (family >= FAMILY_YELLOW)
		return rgb_from_oklch(light, chroma,
				      yellow_hues[family - FAMILY_YELLOW] + 3.0 * shade);
	if (family < FAMILY_KERNEL) {
		bool is_inlined = family >= FAMILY_INLINED;
		const struct tint *t = &module_tints[family % NR_MODULES];
		double own = is_dark ? 0.44 + 0.5 * step + 0.7 * t->lighter
				     : 0.86 - 0.6 * step + t->lighter;
		double apart = is_inlined ? (is_dark ? -0.07 : 0.06) : 0;
		return rgb_from_oklch(own + apart,
				      t->chroma * (is_dark ? 0.9 : 1) * (is_inlined ? 0.6 : 1),
				      t->hue + 2.0 * shade);
	}
	switch (family) {
	case FAMILY_KERNEL:
		return rgb_from_oklch(is_dark ? light : light - 0.03, is_dark ? 0.09 : 0.115,
				      38 + 5.0 * shade);
	case FAMILY_RUNTIME:
		return rgb_from_oklch(light, 0.03, 245);
	case FAMILY_JIT:
		return rgb_from_oklch(light, chroma + 0.03, 148 + 3.0 * shade);
	case FAMILY_GUESSED:
		return rgb_from_oklch(light, 0.035, 85);
	case FAMILY_PYTHON:
		return rgb_from_oklch(light, chroma + 0.045, 78 + 6.0 * shade);
	default:
		return neutral(is_dark, step / 2);
	}
}

/* Hues of wait reasons; 0: grey, for idle waits. */
static const double wait_hues[WAIT_NR] = {
	[WAIT_ON_CPU] = 145,     [WAIT_RUN_QUEUE] = 95,    [WAIT_SYNC] = 8,
	[WAIT_LOCK] = 25,        [WAIT_FSYNC] = 300,       [WAIT_FILE_READ] = 265,
	[WAIT_FILE_WRITE] = 282, [WAIT_FAULT] = 330,       [WAIT_MMAP_LOCK] = 350,
	[WAIT_RECLAIM] = 65,     [WAIT_NET] = 235,         [WAIT_PIPE] = 205,
	[WAIT_FILE_OTHER] = 250, [WAIT_KERNEL] = 50,       [WAIT_OTHER] = 170,
	[WAIT_STOLEN] = 118,     [WAIT_JOIN] = 185,        [WAIT_PERMIT] = 315,
	[WAIT_YIELD] = 110,      [WAIT_BACKPRESSURE] = 38, [WAIT_EXECUTOR] = 355,
};

static struct rgb wait_rgb(unsigned color, bool is_dark)
{
	if (color == COLOR_IDLE)
		return rgb_from_oklch(is_dark ? 0.33 : 0.93, 0.004, 260);
	if (color == COLOR_UNSAMPLED)
		return rgb_from_oklch(is_dark ? 0.42 : 0.87, 0.05, 145);
	if (color == COLOR_BLAMED)
		return rgb_from_oklch(is_dark ? 0.52 : 0.74, 0.02, 260);
	double hue = wait_hues[color - COLOR_WAIT];
	if (hue == 0)
		return rgb_from_oklch((is_dark ? 0.36 : 0.84) + 0.008 * (color % 4), 0.015, 260);
	/* Yellow is strong only if it is light. */
	double light = (is_dark ? 0.5 : 0.77) + (color == COLOR_WAIT + WAIT_RUN_QUEUE ? 0.09 : 0);
	return rgb_from_oklch(light, is_dark ? 0.12 : 0.14, hue);
}

struct rgb palette_rgb(enum palette p, unsigned color, bool is_dark)
{
	ASSERT(p < PALETTE_NR && color < PALETTE_COLORS_MAX);
	if (!is_plain(p) && color >= COLOR_WAIT)
		return wait_rgb(MIN(color, COLOR_BLAMED), is_dark);
	if (!is_plain(p))
		return family_rgb(color / NR_SHADES, color % NR_SHADES, is_dark);
	if (color >= 2 * PLAIN_SHADES)
		return neutral(is_dark, 0);
	/* Consecutive shades step through the hues by a number coprime to PLAIN_SHADES, and through
	 * lightness by another. */
	unsigned shade = color % PLAIN_SHADES;
	struct range r = plain_range(p, color);
	double hue = r.hue_from +
		     (r.hue_to - r.hue_from) * (shade * 13 % PLAIN_SHADES) / (PLAIN_SHADES - 1);
	double step = 0.008 * (shade * 5 % 9);
	return is_dark ? rgb_from_oklch(0.43 + step, r.chroma * 0.75, hue)
		       : rgb_from_oklch(0.86 - step, r.chroma * 0.85, hue);
}

/* ---- differences -------------------------------------------------------------------------- */

#define DELTA_MIDDLE (PALETTE_DELTA_NR / 2)

unsigned palette_delta(double share)
{
	double strength = sqrt(MIN(fabs(share), 1.0)); /* small changes stay visible */
	unsigned step = (unsigned)lrint(strength * DELTA_MIDDLE);
	return share < 0 ? DELTA_MIDDLE - step : DELTA_MIDDLE + step;
}

struct rgb palette_delta_rgb(unsigned color, bool is_dark)
{
	ASSERT(color < PALETTE_DELTA_NR);
	double strength = fabs((double)color - DELTA_MIDDLE) / DELTA_MIDDLE;
	double hue = color < DELTA_MIDDLE ? 250 : 25;
	double chroma = 0.005 + 0.16 * strength;
	return is_dark ? rgb_from_oklch(0.38 + 0.12 * strength, chroma, hue)
		       : rgb_from_oklch(0.92 - 0.22 * strength, chroma, hue);
}

bool palette_background(const char *name, struct rgb *ret_light, struct rgb *ret_dark)
{
	static const struct {
		const char *name;
		double hue;
		double chroma;
	} known[] = {{"yellow", 95, 0.035}, {"blue", 250, 0.02},  {"green", 145, 0.025},
		     {"grey", 260, 0.003},  {"gray", 260, 0.003}, {"white", 0, 0}};
	uint64_t v;
	if (name[0] == '#' && strlen(name) == 7 && sv_to_hex(sv_from_str(name + 1), &v)) {
		*ret_light = (struct rgb){(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
		*ret_dark = *ret_light;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		bool is_white = !strcmp(name, "white");
		*ret_light = rgb_from_oklch(is_white ? 1 : 0.965, known[i].chroma, known[i].hue);
		*ret_dark = rgb_from_oklch(0.21, known[i].chroma / 2, known[i].hue);
		return true;
	}
	return false;
}
